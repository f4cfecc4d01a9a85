// What every worker writes: patterns of real programs as file views. A pattern describes one tile
// of the file as its program would describe it to MPI; the loop tree (here) and the MPI datatype
// (mpi_pattern.cpp) are made from that one description.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "layout/file_view.hpp"

namespace penstock::measure {

enum class PatternKind : uint8_t {
  contiguous,
  interleaved,
  slabs3d,
  cubes3d,
  btio,
  irregular,
  particles,
};

struct PatternChoice {
  PatternKind kind = PatternKind::contiguous;
  int64_t block_bytes = 0;  // of interleaved; the mean run of irregular
};

struct PatternInfo {
  std::string_view name;
  std::string_view argument;  // ":BYTES"; empty when it takes none
  std::string_view summary;
  PatternKind kind;
};
std::span<const PatternInfo> patterns();

// "interleaved:47008". Errors name the pattern, what was given, and what there is.
Result<PatternChoice> parse_pattern(std::string_view text);
std::string to_string(const PatternChoice& choice);

// A sub-array in C order (the last dimension is the fastest), at `displacement_bytes`.
struct Box {
  std::array<int64_t, 3> sizes{}, subsizes{}, starts{};
  int64_t element_bytes = 8;
  Off displacement_bytes = 0;
};

struct Blocks {  // ascending, disjoint
  std::vector<Off> displacements;
  std::vector<int64_t> lengths;
};

// One tile: boxes or blocks, and how far apart tiles lie. Neither: the whole file.
struct Tile {
  std::vector<Box> boxes;
  Blocks blocks;
  int64_t extent_bytes = 0;
  bool plain() const noexcept { return boxes.empty() && blocks.lengths.empty(); }
};

// One worker's part of one file.
struct Part {
  Tile tile;
  Off displacement_bytes = 0;
  int64_t etype_bytes = 1;               // 8: doubles
  int64_t bytes_per_iteration = 0;       // this worker
  int64_t file_bytes_per_iteration = 0;  // all workers of the file
};

// How much is written, by how many.
struct Amount {
  int workers = 1;
  int64_t bufsize_bytes = 0;
  int64_t iterations = 1;
  uint64_t seed = 1;
};

// Pure: every worker computes every worker's part alike. What a pattern cannot cut exactly makes
// bytes_per_iteration differ from bufsize (whole blocks, whole cubes). Together the parts of all
// workers name every byte of [0, iterations * file_bytes_per_iteration) once.
// Fails with ErrorClass::argument (number of workers, a buffer too small), with the remedy.
Result<Part> make_part(const PatternChoice& choice, int worker, const Amount& amount);

Result<layout::FileView> view_of(const Part& part);

}  // namespace penstock::measure
