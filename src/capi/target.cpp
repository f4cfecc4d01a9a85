// A repeated pattern gives equal filetypes wherever it begins, so that the engine exchanges no
// description of it twice: offsets go into the view's displacement.
#include "capi/target.hpp"

#include <string>
#include <utility>
#include <vector>

#include "capi/status.hpp"

namespace penstock::capi {
namespace {

tl::unexpected<Error> refuse_write(std::string detail) {
  return tl::unexpected(argument_error("write", std::move(detail)));
}

Result<void> not_negative(const char* name, int64_t value) {
  if (value >= 0) return {};
  return refuse_write(std::string(name) + " must not be negative, got " + std::to_string(value));
}

tl::unexpected<Error> beyond_every_file(int64_t offset_bytes) {
  return refuse_write("the last byte lies beyond offset 9223372036854775807, from offset_bytes=" +
                      std::to_string(offset_bytes) + " on");
}

bool sum_fits(int64_t a, int64_t b) {
  int64_t sum = 0;
  return !__builtin_add_overflow(a, b, &sum);
}

// Whether the last block ends within the offsets that a file can have.
bool blocks_fit(int64_t offset, int64_t block, int64_t stride, int64_t count) {
  int64_t last = 0;
  return !__builtin_mul_overflow(count - 1, stride, &last) && sum_fits(last, block) &&
         sum_fits(last + block, offset);
}

// Says what is wrong with extent `i`, which follows on byte `behind`. Not on the fast path.
tl::unexpected<Error> refuse_extent(const penstock_extent& e, int64_t i, int64_t behind) {
  const std::string which = "extents[" + std::to_string(i) + "]";
  const auto got = [](int64_t value) { return ", got " + std::to_string(value); };
  if (e.offset_bytes < 0)
    return refuse_write(which + ".offset_bytes must not be negative" + got(e.offset_bytes));
  if (e.bytes < 0) return refuse_write(which + ".bytes must not be negative" + got(e.bytes));
  if (!sum_fits(e.offset_bytes, e.bytes)) return beyond_every_file(e.offset_bytes);
  return refuse_write(which + ".offset_bytes must be at least " + std::to_string(behind) +
                      ", where the extent before it ends" + got(e.offset_bytes));
}

bool extent_follows(const penstock_extent& e, int64_t behind) {
  if (e.offset_bytes < 0 || e.bytes < 0 || !sum_fits(e.offset_bytes, e.bytes)) return false;
  return e.bytes == 0 || e.offset_bytes >= behind;
}

Result<Target> target_of(layout::FileView view, int64_t bytes) {
  return Target{std::move(view), 0, bytes};
}

}  // namespace

Result<Target> contiguous_target(int64_t offset_bytes, int64_t bytes) {
  if (auto r = not_negative("offset_bytes", offset_bytes); !r) return tl::unexpected(r.error());
  if (auto r = not_negative("bytes", bytes); !r) return tl::unexpected(r.error());
  if (!sum_fits(offset_bytes, bytes)) return beyond_every_file(offset_bytes);
  return Target{layout::FileView(), offset_bytes, bytes};
}

Result<Target> strided_target(int64_t offset_bytes, int64_t block_bytes, int64_t stride_bytes,
                              int64_t count) {
  for (const auto& [name, value] :
       {std::pair{"offset_bytes", offset_bytes}, std::pair{"block_bytes", block_bytes},
        std::pair{"count", count}})
    if (auto r = not_negative(name, value); !r) return tl::unexpected(r.error());
  if (stride_bytes < block_bytes && count > 1)
    return refuse_write("stride_bytes must be at least block_bytes=" + std::to_string(block_bytes) +
                        ", got " + std::to_string(stride_bytes));
  if (block_bytes == 0 || count <= 1)
    return contiguous_target(offset_bytes, count == 0 ? 0 : block_bytes);
  if (!blocks_fit(offset_bytes, block_bytes, stride_bytes, count))
    return beyond_every_file(offset_bytes);
  return layout::LoopTree::resized(layout::LoopTree::bytes(block_bytes), 0, stride_bytes)
      .and_then([&](layout::LoopTree tile) {
        return layout::FileView::make(offset_bytes, 1, std::move(tile));
      })
      .and_then(
          [&](layout::FileView view) { return target_of(std::move(view), block_bytes * count); });
}

Result<Target> extents_target(const penstock_extent* extents, int64_t count) {
  if (auto r = not_negative("count", count); !r) return tl::unexpected(r.error());
  if (count > kMostExtents)
    return refuse_write("count must be at most " + std::to_string(kMostExtents) + " extents, got " +
                        std::to_string(count) + "; use several calls");
  if (count > 0 && extents == nullptr) return refuse_write("extents must not be NULL");
  std::vector<layout::LoopTree::Block> blocks;
  blocks.reserve(size_t(count));
  int64_t first = 0, behind = 0, bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const penstock_extent& e = extents[i];
    if (!extent_follows(e, behind)) return refuse_extent(e, i, behind);
    if (e.bytes == 0) continue;
    if (blocks.empty()) first = e.offset_bytes;
    blocks.push_back({e.offset_bytes - first, e.bytes});
    behind = e.offset_bytes + e.bytes;
    bytes += e.bytes;  // disjoint, so no more than `behind`
  }
  if (blocks.empty()) return contiguous_target(0, 0);
  return layout::LoopTree::indexed(blocks, layout::LoopTree::bytes(1))
      .and_then(
          [&](layout::LoopTree tree) { return layout::FileView::make(first, 1, std::move(tree)); })
      .and_then([&](layout::FileView view) { return target_of(std::move(view), bytes); });
}

}  // namespace penstock::capi
