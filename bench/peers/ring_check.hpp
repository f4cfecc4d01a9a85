// Reads the page ring's file back, in file order, and compares every byte with what all ranks'
// views and contents say should be there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "layout/file_view.hpp"

namespace penstock::peers {

// What the file must hold. The views of all workers together name every byte once.
struct CheckedFile {
  std::vector<layout::FileView> views;
  std::vector<int64_t> bytes_per_iteration;
  int64_t bytes = 0;
  int64_t iterations = 1;
  int64_t shift_bytes = 0;  // of the contents, between iterations
};

struct Found {
  int64_t wrong_bytes = 0;
  int64_t first_wrong = -1;  // a file offset
};

// The part of the file in `share`.
Result<Found> check_file(const CheckedFile& file, const std::string& path, uint64_t seed,
                         Extent share);

}  // namespace penstock::peers
