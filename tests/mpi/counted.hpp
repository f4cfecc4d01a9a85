// What is made of a communicator of the program's, counted.
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
