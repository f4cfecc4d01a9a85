#include "model/system.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/extent.hpp"

namespace penstock::model {
namespace {

Result<void> refuse(std::string detail) {
  return fail(ErrorClass::argument, "simulate", std::move(detail));
}

Result<void> check_rates(const System& s) {
  const struct {
    const char* name;
    double value;
    bool needed;
  } rates[] = {{"network_bytes_per_s", s.path.network_bytes_per_s, true},
               {"disk_bytes_per_s", s.path.disk_bytes_per_s, true},
               {"paging_bytes_per_s", s.paging_bytes_per_s, s.has_buffer() && s.may_page()}};
  for (const auto& r : rates)
    if (r.needed && !(std::isfinite(r.value) && r.value > 0))
      return refuse(std::string(r.name) + " must be positive and finite, got " +
                    std::to_string(r.value));
  if (!(std::isfinite(s.path.startup_s) && s.path.startup_s >= 0))
    return refuse("startup_s must be finite and not negative, got " +
                  std::to_string(s.path.startup_s));
  return {};
}

Result<void> check_room(const System& s) {
  const auto block = std::to_string(s.block_bytes);
  if (s.has_buffer() && s.memory_bytes < s.block_bytes)
    return refuse("memory_bytes must hold a block of " + block + ", got " +
                  std::to_string(s.memory_bytes) + "; give smaller blocks");
  if (s.buffer_bytes < 0 || (s.has_buffer() && s.buffer_bytes < s.block_bytes))
    return refuse("buffer_bytes must be 0 (no buffer) or hold a block of " + block + ", got " +
                  std::to_string(s.buffer_bytes) + "; give smaller blocks");
  return {};
}

Result<void> check_blocks(const System& s, int64_t n_bytes) {
  if (n_bytes < 1) return refuse("n_bytes must be at least 1, got " + std::to_string(n_bytes));
  if (s.block_bytes < 1)
    return refuse("block_bytes must be at least 1, got " + std::to_string(s.block_bytes));
  if ((n_bytes - 1) / s.block_bytes >= kMostBlocks)
    return refuse("block_bytes must be at least " +
                  std::to_string((n_bytes - 1) / kMostBlocks + 1) + " to write n_bytes of " +
                  std::to_string(n_bytes) + " as at most " + std::to_string(kMostBlocks) +
                  " blocks, got " + std::to_string(s.block_bytes) + "; give larger blocks");
  return {};
}

}  // namespace

const char* to_string(Mapping m) noexcept { return m == Mapping::cyclic ? "cyclic" : "blocked"; }
const char* to_string(Order o) noexcept { return o == Order::memory ? "memory" : "file"; }

int64_t System::frames() const noexcept {
  return std::min(memory_bytes, buffer_bytes) / block_bytes;
}

Result<void> check(const System& s, int64_t n_bytes) {
  if (s.nodes < 1) return refuse("nodes must be at least 1, got " + std::to_string(s.nodes));
  if (s.timeline_points < 2)
    return refuse("timeline_points must be at least 2, got " + std::to_string(s.timeline_points));
  return check_blocks(s, n_bytes).and_then([&] { return check_rates(s); }).and_then([&] {
    return check_room(s);
  });
}

Blocks::Blocks(const System& system, int64_t n_bytes) noexcept
    : n_bytes_(n_bytes),
      block_bytes_(system.block_bytes),
      count_((n_bytes - 1) / system.block_bytes + 1),
      nodes_(system.nodes),
      per_node_(divide_up(count_, nodes_)),
      mapping_(system.mapping) {}

int64_t Blocks::bytes(int64_t block) const noexcept {
  return std::min(block_bytes_, n_bytes_ - block * block_bytes_);
}

int Blocks::node(int64_t block) const noexcept {
  return int(mapping_ == Mapping::cyclic ? block % nodes_ : block / per_node_);
}

int64_t Blocks::count_on(int node) const noexcept {
  if (mapping_ == Mapping::cyclic) return count_ / nodes_ + (node < count_ % nodes_ ? 1 : 0);
  return std::clamp<int64_t>(count_ - node * per_node_, 0, per_node_);
}

int64_t Blocks::at(int node, int64_t i) const noexcept {
  return mapping_ == Mapping::cyclic ? i * nodes_ + node : node * per_node_ + i;
}

int64_t Blocks::place(int64_t block) const noexcept {
  return mapping_ == Mapping::cyclic ? block / nodes_ : block % per_node_;
}

}  // namespace penstock::model
