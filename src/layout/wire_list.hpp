// Lists of irregular blocks in messages: each of its numbers as multiples of a unit, in halves of
// words, where they fit. What arrives is taken from where it lies, and kept as it came where it is
// normal already. Internal to src/layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/error.hpp"
#include "layout/node.hpp"
#include "layout/offset_list.hpp"
#include "layout/wire.hpp"

namespace penstock::layout {

tl::unexpected<Error> malformed(const char* why);

constexpr int64_t words_of_list(int64_t n, bool narrow) { return narrow ? 1 + (n + 1) / 2 : n; }

// A list of numbers where it lies in a message.
class WireList {
 public:
  static WireList read(WireReader& in, int64_t count, bool narrow) {
    WireList list;
    list.narrow_ = narrow;
    if (narrow) list.unit_ = in.get();
    const auto n = uint64_t(count);
    list.bytes_ = in.words(narrow ? n / 2 + n % 2 : n);
    return list;
  }

  Wide operator[](size_t i) const {
    return narrow_ ? Wide{load<uint32_t>(i)} * unit_ : Wide{load<int64_t>(i)};
  }

  // As a node keeps it; none where it is kept otherwise.
  OffsetList kept(size_t n) const {
    return narrow_ && unit_ > 0 ? OffsetList(bytes_, n, unit_) : OffsetList();
  }

 private:
  template <class T>
  T load(size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof value, sizeof value);
    return value;
  }

  std::span<const std::byte> bytes_;
  int64_t unit_ = 1;
  bool narrow_ = false;
};

// `n` blocks of plain bytes, from starts[i] to starts[i + 1] of the stream each; of one child.
// Normalised, or refused.
Result<Placed> segments_from(const WireList& places, const WireList& starts, size_t n);
Result<Placed> blocks_from(const WireList& places, size_t n, const NodePtr& child);

}  // namespace penstock::layout
