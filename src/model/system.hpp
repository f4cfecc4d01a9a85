// What an I/O system of gotwals-1995's third model is made of, and how a request's blocks lie on
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/error.hpp"
#include "model/buffer_models.hpp"

namespace penstock::model {

// Which I/O node a block goes to.
enum class Mapping : uint8_t {
  cyclic,   // block i to node i mod nodes
  blocked,  // as many consecutive blocks to each node
};
const char* to_string(Mapping m) noexcept;

// Which block the output disk takes next.
enum class Order : uint8_t {
  memory,  // the first of those in memory: what was paged out waits until nothing else is there
  file,    // the next of the file, and the disk waits when that one was paged out
};
const char* to_string(Order o) noexcept;

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kMostBlocks = 10'000'000;

struct System {
  Path path;  // one network for all I/O nodes; an output disk of such a rate on each
  double paging_bytes_per_s = 0;    // of each I/O node's paging disk, both directions together
  int64_t memory_bytes = 0;         // of each I/O node
  int64_t buffer_bytes = kNoLimit;  // of each I/O node; 0: bytes go straight to the disk
  int64_t block_bytes = 0;
  int nodes = 1;
  Mapping mapping = Mapping::cyclic;
  Paging paging = Paging::demand;
  Order order = Order::memory;
  size_t timeline_points = 256;  // at most so many are kept

  bool has_buffer() const noexcept { return buffer_bytes > 0; }
  bool may_page() const noexcept { return buffer_bytes > memory_bytes; }
  // Blocks that fit into a node's memory, and into its buffer, of which memory may be a part.
  int64_t frames() const noexcept;
  int64_t capacity() const noexcept { return buffer_bytes / block_bytes; }
};

// ErrorClass::argument, naming the value and what it must be.
Result<void> check(const System& system, int64_t n_bytes);

// The blocks of one request of n bytes, numbered in file order; the last may be short.
class Blocks {
 public:
  Blocks(const System& system, int64_t n_bytes) noexcept;

  int64_t count() const noexcept { return count_; }
  int64_t bytes(int64_t block) const noexcept;
  int node(int64_t block) const noexcept;
  // How many go to a node, and which is that node's i-th.
  int64_t count_on(int node) const noexcept;
  int64_t at(int node, int64_t i) const noexcept;
  // The inverse of at(): the place of a block among its node's.
  int64_t place(int64_t block) const noexcept;

 private:
  int64_t n_bytes_, block_bytes_, count_, nodes_, per_node_;
  Mapping mapping_;
};

}  // namespace penstock::model
