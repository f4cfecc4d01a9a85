// A pattern's MPI datatype names the same bytes in the same order as its loop tree: the library
// packs a numbered file by the type, and the cursor walks the tree. Prints a line per difference.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include "mpi_types.hpp"

using namespace penstock;
using namespace penstock::measure;

namespace {

int failures = 0, checks = 0;

void compare(const std::string& what, const std::vector<uint32_t>& by_type,
             const std::vector<uint32_t>& by_tree) {
  ++checks;
  if (by_type == by_tree) return;
  ++failures;
  std::printf("FAILED %s: the datatype and the loop tree differ\n", what.c_str());
}

// Every byte of `extent` packed by `type`, its number as the oracle: one pass per byte of a number.
std::vector<uint32_t> packed(MPI_Datatype type, int count, int64_t extent, int64_t size) {
  std::vector<uint32_t> numbers(static_cast<size_t>(size), 0u);
  std::vector<unsigned char> file(static_cast<size_t>(extent)), out(static_cast<size_t>(size));
  for (int shift = 0; shift < 32; shift += 8) {
    for (size_t i = 0; i < file.size(); ++i) file[i] = static_cast<unsigned char>(i >> shift);
    int position = 0;
    MPI_Pack(file.data(), count, type, out.data(), int(out.size()), &position, MPI_COMM_SELF);
    for (size_t i = 0; i < out.size(); ++i) numbers[i] |= uint32_t(out[i]) << shift;
  }
  return numbers;
}

std::vector<uint32_t> walked(layout::Cursor cursor, int64_t size) {
  std::vector<uint32_t> numbers;
  for (int64_t left = size; left > 0;) {
    const layout::Run run = cursor.next(left);
    for (int64_t i = 0; i < run.count; ++i)
      for (int64_t b = 0; b < run.block; ++b)
        numbers.push_back(uint32_t(run.offset + i * run.stride + b));
    left -= run.bytes();
  }
  return numbers;
}

void check_pattern(const char* text, int workers) {
  const Amount amount{workers, 5000, 2, 3};
  for (int w = 0; w < workers; ++w) {
    Part part = make_part(parse_pattern(text).value(), w, amount).value();
    part.displacement_bytes = 0;  // the view's, not the type's
    if (part.tile.plain()) continue;
    const auto type = filetype_of(part);
    if (!type) {
      ++failures;
      std::printf("FAILED %s: %s\n", text, type.error().message().c_str());
      continue;
    }
    const int64_t size = view_of(part)->filetype().size();
    compare(std::string(text) + " of " + std::to_string(workers),
            packed(type->get(), 2, 2 * part.tile.extent_bytes, 2 * size),
            walked(view_of(part)->cursor(), 2 * size));
  }
}

void check_memory(const MemoryShape& shape, int64_t bytes) {
  const auto type = memory_type_of(shape, bytes);
  const auto tree = shape.tree(bytes);
  if (!type || !tree) {
    ++failures;
    return;
  }
  compare("memory", packed(type->type.get(), type->count, shape.footprint(bytes), bytes),
          walked(layout::Cursor(*tree, 0, 1), bytes));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (const char* text : {"contiguous", "interleaved:8", "interleaved:470", "slabs3d", "cubes3d",
                           "irregular:40", "irregular:8", "particles"})
    for (const int workers : {1, 2, 3, 4, 6}) check_pattern(text, workers);
  for (const int workers : {1, 4, 9}) check_pattern("btio", workers);
  for (const int64_t bytes : {1, 8, 100, 1000}) {
    check_memory({8, 32}, bytes);
    check_memory({24, 25}, bytes);
    check_memory({0, 0}, bytes);
  }
  std::printf("%d of %d comparisons failed\n", failures, checks);
  MPI_Finalize();
  return failures == 0 && checks > 60 ? 0 : 1;
}
