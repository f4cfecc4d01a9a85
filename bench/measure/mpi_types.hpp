// MPI datatypes of patterns and of memory, from the descriptions that the loop trees are made from.
#pragma once

#include <mpi.h>

#include <utility>

#include "base/error.hpp"
#include "memory.hpp"
#include "pattern.hpp"

namespace penstock::measure {

// A committed datatype, or a predefined one that is not ours to free.
class Datatype {
 public:
  Datatype() = default;
  static Datatype predefined(MPI_Datatype type) { return Datatype(type, false); }
  static Datatype own(MPI_Datatype type) { return Datatype(type, true); }
  Datatype(Datatype&& o) noexcept
      : type_(std::exchange(o.type_, MPI_DATATYPE_NULL)), own_(std::exchange(o.own_, false)) {}
  Datatype& operator=(Datatype&& o) noexcept {
    std::swap(type_, o.type_);
    std::swap(own_, o.own_);
    return *this;
  }
  ~Datatype() {
    if (own_) MPI_Type_free(&type_);
  }
  MPI_Datatype get() const noexcept { return type_; }

 private:
  Datatype(MPI_Datatype type, bool own) : type_(type), own_(own) {}
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool own_ = false;
};

// The class of an MPI error code, and its text: file errors of every library in our words.
tl::unexpected<Error> mpi_failure(const char* operation, const std::string& detail, int code);

Result<Datatype> filetype_of(const Part& part);
Datatype etype_of(const Part& part);

// What a call writes from: `count` of `type`.
struct MemoryType {
  Datatype type;
  int count = 0;
};
Result<MemoryType> memory_type_of(const MemoryShape& shape, int64_t bytes);

}  // namespace penstock::measure
