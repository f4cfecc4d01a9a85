// From the name that a program gives MPI_File_open to the path that the library opens.
#pragma once

#include <string>
#include <vector>

namespace penstock::pmpi {

struct FileName {
  // At least one; of two, the library opens the first where it strips a prefix ("ufs:out.dat" is
  // out.dat to ROMIO), the second where it does not (pmpi/library_file.hpp).
  std::vector<std::string> paths;
  std::string unserved_why;  // not empty: the library reaches this file in a way of its own
};

FileName file_name(const std::string& given);

}  // namespace penstock::pmpi
