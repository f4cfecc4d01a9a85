// From the name that a program gives MPI_File_open to the path that the library opens.
#pragma once

#include <string>

namespace penstock::pmpi {

struct FileName {
  std::string path;
  std::string unserved_why;  // not empty: the library reaches this file in a way of its own
};

// "ufs:out.dat" -> "out.dat". Call it after the library's own open: what exists decides where
// libraries differ in what they take for a prefix.
FileName file_name(const std::string& given);

}  // namespace penstock::pmpi
