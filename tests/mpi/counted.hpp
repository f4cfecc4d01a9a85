// What is made of a communicator of the program's, and what Penstock's ranks ask of MPI, counted.
#pragma once

#include <mpi.h>

namespace workers {

// Communicators that Penstock has made of `parent` with all of its ranks.
class Duplicates {
 public:
  explicit Duplicates(MPI_Comm parent);
  Duplicates(const Duplicates&) = delete;

  int made() const;

 private:
  MPI_Comm parent_;
  int before_;
};

// Collectives of MPI's by which this rank has agreed with others: all-reduces, all-gathers and
// barriers.
class Collectives {
 public:
  Collectives();
  Collectives(const Collectives&) = delete;

  int made() const;

 private:
  int before_;
};

// An attribute as programs and libraries cache them.
class Attribute {
 public:
  explicit Attribute(MPI_Comm comm);
  Attribute(const Attribute&) = delete;
  ~Attribute();

  int copies() const noexcept { return copies_; }

 private:
  MPI_Comm comm_;
  int key_ = MPI_KEYVAL_INVALID;
  int copies_ = 0;
};

}  // namespace workers
