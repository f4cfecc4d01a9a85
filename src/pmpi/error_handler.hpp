// The program's error handler of a file. For as long as a thread of this rank is in the library for
// one of our files it is set aside, so that the library's errors come back to us. That may be long,
// as long as other ranks take, and other threads go on using the file: they are shown the handler
// that the program gave, may give another, and have it called.
#pragma once

#include <mpi.h>

#include "pmpi/open_files.hpp"

namespace penstock::pmpi {

// While one of these lives, the library's errors of this file come back to us. Several threads may
// have one each.
class HandlerAside {
 public:
  HandlerAside(MPI_File handle, OpenFile& file);
  ~HandlerAside();
  HandlerAside(const HandlerAside&) = delete;

 private:
  MPI_File handle_;
  AsideHandler& aside_;
};

// Has the library call the handler, which may leave by longjmp: no lock is held meanwhile. Returns
// what MPI_File_call_errhandler does.
int call_handler(MPI_File handle, int code);

// Of the C++ bindings, which throw by what their call returns: there is no function to call.
bool throws_what_is_returned(MPI_File handle);

}  // namespace penstock::pmpi
