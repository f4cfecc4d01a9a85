// What the program could ask of the MPI library by one rank alone, as far as the names tell that it
// and the libraries it has loaded import.
#pragma once

namespace penstock::pmpi {

struct CallsAlone {
  bool at_shared_pointer = false;  // of those that move it, collective ones too
  bool nonblocking_reads = false;  // likewise
};

// Of now: more libraries may be loaded later. A library of the MPI library's, whose name begins
// with "libmpi", has the calls for others and makes none.
CallsAlone calls_alone();

}  // namespace penstock::pmpi
