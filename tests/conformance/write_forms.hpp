// One write, or one collective read, by any function of MPI-IO that does it.
#pragma once

#include "view_case.hpp"

namespace suite {

struct WriteCall {
  MPI_File file;
  MPI_Offset offset;  // for explicit operations
  const void* buffer;
  int count;
  MPI_Datatype type;
};

// What begins the write and, for non-blocking and split functions, what ends it; the worse code.
int write_by(Op op, Means means, const WriteCall& call, MPI_Status* status);

struct ReadCall {
  MPI_File file;
  MPI_Offset offset;  // at the individual pointer, when negative
  void* buffer;
  int count;
  MPI_Datatype type;
};

// A collective read; a form that is non-blocking is done as a blocking one.
int read_by(Means means, const ReadCall& call, MPI_Status* status);

}  // namespace suite
