// File views: positions and offsets by arithmetic down the tree, never by a walk
// over its blocks.
#include "layout/file_view.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "layout/node.hpp"
#include "layout/wire.hpp"

namespace penstock::layout {
namespace {

// The offset of stream byte `position` of a node. REQUIRES 0 <= position < node.size.
Off offset_in(const Node* node, int64_t position) {
  Off offset = 0;
  while (node && node->kind != NodeKind::bytes) {
    const int64_t i = node->entry_at(position);
    offset += node->place(i);
    position -= node->start_of(i);
    node = node->entry(i);
  }
  return offset + position;
}

// The entry of a monotone node that begins last at or before `offset`. REQUIRES offset >= 0.
int64_t entry_below(const Node& node, Off offset) {
  if (node.kind == NodeKind::loop) return std::min(offset / node.stride, node.count - 1);
  return node.displacements.upper_bound(offset) - 1;
}

// How many stream bytes of a monotone node lie below `offset`.
int64_t bytes_below(const Node* node, Off offset) {
  int64_t below = 0;
  while (node->kind != NodeKind::bytes) {
    if (offset >= node->span) return below + node->size;
    const int64_t i = entry_below(*node, offset);
    below += node->start_of(i);
    offset -= node->place(i);
    const Node* entry = node->entry(i);
    if (!entry) return below + std::min(offset, node->length(i));
    node = entry;
  }
  return below + std::min(offset, node->size);
}

}  // namespace

Result<FileView> FileView::make(Off displacement, int64_t etype_bytes, LoopTree filetype) {
  const auto refuse = [](std::string why) {
    return fail(ErrorClass::argument, "file view", std::move(why));
  };
  if (displacement < 0) {
    return refuse("its displacement must not be negative, got " + std::to_string(displacement));
  }
  if (etype_bytes <= 0) {
    return refuse("the etype must have data, got " + std::to_string(etype_bytes) + " bytes");
  }
  if (filetype.size() == 0) return refuse("the filetype must have data, got 0 bytes");
  if (filetype.size() % etype_bytes != 0) {
    return refuse("the filetype must be a multiple of the etype, got " +
                  std::to_string(filetype.size()) + " of " + std::to_string(etype_bytes) +
                  " bytes");
  }
  FileView v;
  v.displacement_ = displacement;
  v.etype_bytes_ = etype_bytes;
  // Bytes before the file's beginning exist in no file: such a view is nobody's to accelerate.
  const bool begins_in_file = Wide(displacement) + filetype.true_lb() >= 0;
  v.monotone_ = begins_in_file && filetype.is_monotone(Cursor::kForever);
  v.filetype_ = std::move(filetype);
  return v;
}

Off FileView::offset_of(int64_t position) const {
  const int64_t tile = position / filetype_.size();
  const Off inside = offset_in(filetype_.body(), position % filetype_.size());
  return saturate(Wide(displacement_) + filetype_.true_lb() + Wide(tile) * filetype_.extent() +
                  inside);
}

int64_t FileView::position_at(Off offset) const {
  // A monotone view begins at 0 or behind it, so the distance cannot overflow.
  const Off base = saturate(Wide(displacement_) + filetype_.true_lb());
  if (offset <= base) return 0;
  const int64_t tile = (offset - base) / filetype_.extent();
  const Off inside = (offset - base) % filetype_.extent();
  return tile * filetype_.size() + bytes_below(filetype_.body(), inside);
}

Extent FileView::extent_of(StreamRange range) const {
  const Off begin = offset_of(range.begin);
  if (range.empty()) return {begin, begin};
  return {begin, saturate(Wide(offset_of(range.end - 1)) + 1)};
}

StreamRange FileView::clip(StreamRange within, Extent file) const {
  if (file.empty()) return {within.begin, within.begin};
  return within.intersect({position_at(file.begin), position_at(file.end)});
}

int64_t FileView::granule() const noexcept {
  return gcd(gcd(filetype_.granule(), filetype_.extent()), displacement_);
}

Hash FileView::hash() const noexcept { return mix(filetype_.hash(), uint64_t(etype_bytes_)); }

void FileView::serialise(std::vector<std::byte>& out) const {
  WireWriter w(out);
  w.put(displacement_);
  w.put(etype_bytes_);
  filetype_.serialise(out);
}

Result<FileView> FileView::deserialise(std::span<const std::byte> in) {
  WireReader r(in);
  const int64_t displacement = r.get();
  const int64_t etype_bytes = r.get();
  if (!r.ok()) return fail(ErrorClass::argument, "file view", "its description is cut short");
  auto filetype = LoopTree::deserialise(r.rest());
  if (!filetype) return tl::unexpected(filetype.error());
  return make(displacement, etype_bytes, std::move(*filetype));
}

}  // namespace penstock::layout
