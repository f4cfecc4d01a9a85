#include "exec/read_page.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/seeded_fault.hpp"

namespace penstock::exec {
namespace {

// How many of the first extents are read at once, with the small holes between them.
size_t joined_with_first(std::span<const Extent> extents) {
  size_t n = 1;
  while (n < extents.size() && extents[n].begin - extents[n - 1].end < kReadOverBytes) ++n;
  return n;
}

}  // namespace

Result<void> ReadPage::reset(Extent where, int64_t granule) {
  where_ = where;
  usable_ = false;
  missing_.reset();
  error_.reset();
  if (Result<void> r = memory_.reserve(size_t(where.size())); !r) return r;
  if (Result<void> r = wanted_.reset(where, granule); !r) return r;
  usable_ = true;
  return {};
}

void ReadPage::clip_wanted(Off end) {
  clipped_.clear();
  try {
    for (const Extent e : wanted_.extents())
      if (e.begin < end) clipped_.push_back({e.begin, std::min(e.end, end)});
  } catch (const std::bad_alloc&) {  // of crumbs the list may be longer than the page: read all
    clipped_.assign(1, where_.intersect({where_.begin, end}));
    if (clipped_.front().empty()) clipped_.clear();
  }
}

// Invariant: of the wanted bytes before `rest` all have been read.
void ReadPage::fill(io::ReadableFile& file, Off end, ReadCounts& counts) {
  clip_wanted(end);
  const std::span<const Extent> extents = clipped_;
  for (auto rest = extents; !rest.empty();) {
    const size_t n = joined_with_first(rest);
    if (!read(file, rest.first(n), counts)) return clear_rest(rest);
    rest = rest.subspan(n);
  }
}

// A hole that cannot be read is nobody's loss: then the extents are read one by one.
bool ReadPage::read(io::ReadableFile& file, std::span<const Extent> joined, ReadCounts& counts) {
  if (read_one(file, {joined.front().begin, joined.back().end}, counts)) return true;
  if (!error_ || joined.size() == 1) return false;
  error_.reset();
  missing_.reset();
  return std::ranges::all_of(joined, [&](Extent e) { return read_one(file, e, counts); });
}

bool ReadPage::read_one(io::ReadableFile& file, Extent e, ReadCounts& counts) {
  const std::span<std::byte> into{memory_.data() + (e.begin - where_.begin), size_t(e.size())};
  io::Readout got = file.read(into, e.begin + (seeded_fault("read_shifted") ? 1 : 0));
  ++counts.reads;
  counts.bytes += got.bytes;
  if (got.bytes == e.size()) return true;
  missing_ = e.begin + got.bytes;
  error_ = std::move(got.error);
  return false;
}

// A read may have ended inside a hole, so the first byte that is missing is looked for.
void ReadPage::clear_rest(std::span<const Extent> wanted) {
  const Off from = *missing_;
  missing_.reset();
  for (const Extent e : wanted) {
    const Off begin = std::max(e.begin, from);
    if (begin >= e.end) continue;
    if (!missing_) missing_ = begin;
    std::memset(memory_.data() + (begin - where_.begin), 0, size_t(e.end - begin));
  }
}

}  // namespace penstock::exec
