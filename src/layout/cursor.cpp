// The walk over a loop tree: a stack of levels, the lowest of which yields
// whole strided runs. Offsets beyond int64 saturate instead of wrapping.
#include "layout/cursor.hpp"

#include <algorithm>

#include "layout/node.hpp"

namespace penstock::layout {
namespace {

// What saturate(Wide(a) + b) is, for every block of a list. REQUIRES b >= 0.
Off behind(Off a, int64_t b) noexcept {
  Off sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// REQUIRES b >= 0.
bool touches(Off a, int64_t b, Off next) noexcept {
  Off sum;
  return !__builtin_add_overflow(a, b, &sum) && sum == next;
}

// Every entry of a list of adjacent bytes is plain, and so is every copy of a plain child.
bool lists_bytes(const Node& node) noexcept {
  return node.kind == NodeKind::segments || (node.child && node.child->kind == NodeKind::bytes);
}

}  // namespace

Cursor::Cursor(LoopTree tree, Off base, int64_t repetitions) : tree_(std::move(tree)) {
  if (tree_.depth() + 1 > kInlineLevels) deep_.resize(size_t(tree_.depth()) + 1);
  set_repetitions(base, tree_.body() ? repetitions : 0);
  seek(0);
}

// Repetitions that continue the tree's own outermost loop become one loop with it, and those of
// adjacent bytes one block: the runs of a tiled view are then as long as they can be.
void Cursor::set_repetitions(Off base, int64_t repetitions) {
  Level& top = levels()[0];
  const Node* body = tree_.body();
  top = Level{};
  top.origin = saturate(Wide(base) + tree_.true_lb());
  top.stride = tree_.extent();
  top.count = repetitions;
  if (!body) return;
  top_entry_ = body->kind == NodeKind::bytes ? nullptr : body;
  top_bytes_ = body->size;
  if (!top_entry_ && top.stride == body->size) {
    top_bytes_ = saturate(Wide(repetitions) * body->size);
    top.count = repetitions > 0 ? 1 : 0;
  }
  if (body->kind == NodeKind::loop && Wide(body->stride) * body->count == top.stride) {
    top.origin = saturate(Wide(top.origin) + body->first());
    top.stride = body->stride;
    top.count = saturate(Wide(repetitions) * body->count);
    top_entry_ = body->entry(0);
    top_bytes_ = body->child->size;
  }
  top.plain = top_entry_ == nullptr;
}

const Node* Cursor::entry(const Level& level) const noexcept {
  return level.node ? level.node->entry(level.index) : top_entry_;
}

// What is inline here is done for each of millions of blocks, of a few bytes perhaps, where a call
// costs as much as all the rest.
[[gnu::always_inline]] inline int64_t Cursor::length(const Level& level) const noexcept {
  return level.node ? level.node->length(level.index) : top_bytes_;
}

[[gnu::always_inline]] inline Off Cursor::place(const Level& level) noexcept {
  if (!level.strided) return behind(level.origin, level.node->displacements[size_t(level.index)]);
  return saturate(level.origin + Wide(level.index) * level.stride);
}

void Cursor::push(const Node& node, Off origin) noexcept {
  const bool strided = node.kind == NodeKind::loop;
  const Off first = strided ? saturate(Wide(origin) + node.first()) : origin;
  levels()[depth_++] = Level{&node, first, node.stride, 0, node.count, strided, lists_bytes(node)};
}

// From the current entry of the lowest level down to the first block in it.
void Cursor::descend() noexcept {
  while (const Node* node = entry(bottom())) push(*node, place(bottom()));
  start_block();
}

[[gnu::always_inline]] inline void Cursor::start_block() noexcept {
  block_ = length(bottom());
  within_ = 0;
}

[[gnu::always_inline]] inline void Cursor::step(int64_t entries) noexcept {
  Level& lowest = bottom();
  lowest.index += entries;
  if (lowest.plain && lowest.index < lowest.count)
    start_block();
  else
    climb();
}

void Cursor::pass(int64_t entries, int64_t bytes) noexcept {
  position_ += bytes;
  step(entries);
}

// From the end of an entry to the next one of the lowest level that has one.
void Cursor::climb() noexcept {
  while (depth_ > 1 && bottom().index == bottom().count) {
    --depth_;
    ++bottom().index;
  }
  if (bottom().index < bottom().count) descend();
}

void Cursor::seek(int64_t position) {
  position_ = position;
  depth_ = 1;
  within_ = 0;
  Level& top = levels()[0];
  top.index = top_bytes_ == 0 ? 0 : position / top_bytes_;
  if (top.index >= top.count) return;  // at the end
  int64_t rest = position - top.index * top_bytes_;
  while (const Node* node = entry(bottom())) {
    push(*node, place(bottom()));
    bottom().index = node->entry_at(rest);
    rest -= node->start_of(bottom().index);
  }
  block_ = length(bottom());
  within_ = rest;
}

[[gnu::always_inline]] inline Run Cursor::part_of_block(int64_t max_bytes) noexcept {
  const int64_t n = std::min(block_ - within_, max_bytes);
  const Run run{behind(place(bottom()), within_), n, n, 1};
  within_ += n;
  if (within_ == block_) step(1);
  return run;
}

// Blocks of neighbouring entries may touch though no loop says so.
[[gnu::always_inline]] inline void Cursor::extend(Run& run, int64_t max_bytes) noexcept {
  while (run.block < max_bytes && within_ == 0 && bottom().index < bottom().count &&
         touches(run.offset, run.block, place(bottom()))) {
    run.block += part_of_block(max_bytes - run.block).block;
  }
}

Run Cursor::next(int64_t max_bytes) {
  Level& level = bottom();
  Run run;
  if (within_ == 0 && level.strided && level.count - level.index > 1 && max_bytes / 2 >= block_) {
    const int64_t n = std::min(max_bytes / block_, level.count - level.index);
    run = Run{place(level), block_, level.stride, n};
    step(n);
  } else {
    run = part_of_block(max_bytes);
    extend(run, max_bytes);
  }
  position_ += run.bytes();
  return run;
}

}  // namespace penstock::layout
