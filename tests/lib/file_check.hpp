// What the programs about files have in common: open, write a block of known bytes, compare.
#pragma once

#include <string>
#include <vector>

#include "check.hpp"
#include "random.hpp"

namespace suite {

struct World {
  Report& report;
  std::string directory;
  int64_t bytes;
  int rank() const { return report.rank(); }
  int ranks() const { return report.ranks(); }
  std::string path(const std::string& name) const { return directory + "/" + name; }
};

// Stops the job when the file cannot be opened.
MPI_File open(World& w, MPI_Comm comm, const std::string& path,
              int mode = MPI_MODE_CREATE | MPI_MODE_RDWR);

// The bytes that belong at [offset, offset + bytes).
std::vector<uint8_t> data(int64_t offset, int64_t bytes, uint64_t version = 1);

// Writes the bytes that belong there, at an explicit offset, and checks code and count.
void write_block(World& w, MPI_File file, int64_t offset, int64_t bytes, bool collective);

// The file holds data(0, bytes) and nothing else.
void expect_file(World& w, const std::string& path, int64_t bytes);

}  // namespace suite
