// What --verify remembers. How it is read back: verify_check.cpp.
#include "engine/verify.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "engine/verify_blocks.hpp"

namespace penstock::engine {
namespace {

// The first bytes are remembered in the finest blocks: about 150 MiB of memory in all. What comes
// when there are more parts, or larger descriptions of views, is unverified.
constexpr int64_t kFineBlockBytes = 64, kBlockBytes = 4096, kCoarseBlockBytes = int64_t{1} << 20;
constexpr size_t kMostFineBlocks = size_t{1} << 20, kMostBlocks = size_t{1} << 21;
constexpr size_t kMostParts = size_t{1} << 20;
constexpr size_t kMostViewBytes = size_t{256} << 20;
constexpr int64_t kPackedBytes = int64_t{64} << 10;  // at a time

// The blocks of that size that there may be yet.
struct Grain {
  int64_t block_bytes;
  int64_t most_blocks;
};

constexpr Grain kCoarsest{kCoarseBlockBytes, kLastOff};

Grain grain_of_next(size_t blocks) noexcept {
  if (blocks < kMostFineBlocks) return {kFineBlockBytes, int64_t(kMostFineBlocks - blocks)};
  if (blocks < kMostBlocks) return {kBlockBytes, int64_t(kMostBlocks - blocks)};
  return kCoarsest;
}

// What no file can have, behind the last offset, is neither read back nor asked about: what a call
// brings lies in the order of its bytes, so that is its end.
StreamRange part_in_a_file(const exec::WriteRequest& request) {
  if (request.range.empty()) return request.range;
  return request.view->clip(request.range, {0, kLastOff});
}

}  // namespace

Hash checksum(std::span<const std::byte> bytes) {
  Hash h = bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    h = mix(h, word);
  }
  for (; i < bytes.size(); ++i) h = mix(h, uint64_t(bytes[i]));
  return h;
}

int64_t Verifier::next_moment() {
  const std::lock_guard lock(mutex_);
  return ++moment_;
}

void Verifier::remember(const exec::WriteRequest& request, int64_t began, bool in_file) {
  const std::lock_guard lock(mutex_);
  add(request, began, in_file);
}

Verifier::Begun Verifier::begun(const exec::WriteRequest& request) {
  const std::lock_guard lock(mutex_);
  const Begun call{parts_.size(), ++moment_};
  add(request, call.began, true);
  return call;
}

void Verifier::ended(const Begun& call, bool in_file) {
  const std::lock_guard lock(mutex_);
  ++moment_;
  for (size_t i = call.first; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (part.began != call.began) continue;  // of a call in between
    part.ended = moment_;
    part.in_file = in_file;
  }
}

void Verifier::add(const exec::WriteRequest& request, int64_t began, bool in_file) {
  if (request.argument_error != ErrorClass::none) return;
  StreamRange left = part_in_a_file(request);
  unverified_bytes_ += request.range.size() - left.size();
  if (left.empty()) return;
  ++moment_;
  const size_t parts = parts_.size(), blocks = blocks_.size();
  bool kept = false;
  try {
    kept = parts < kMostParts && add_parts(request, left, began, in_file);
  } catch (const std::bad_alloc&) {  // of no call a part
    parts_.erase(parts_.begin() + std::ptrdiff_t(parts), parts_.end());
    blocks_.erase(blocks_.begin() + std::ptrdiff_t(blocks), blocks_.end());
  }
  if (!kept) forget(left.size());
}

// What is not in the file has no blocks: nobody compares them, and that its memory cannot be read
// may be why. false: descriptions of views take too much memory.
bool Verifier::add_parts(const exec::WriteRequest& request, StreamRange left, int64_t began,
                         bool in_file) {
  const std::optional<size_t> view = keep(*request.view);
  if (!view) return false;
  exec::UserData data(request.memory, request.memory_type, request.memory_count, left.begin);
  index_.reset();
  while (!left.empty()) {
    const auto [block_bytes, most_blocks] = in_file ? grain_of_next(blocks_.size()) : kCoarsest;
    const Off most_bytes = capped_product(block_bytes, most_blocks);
    const StreamRange part{left.begin, left.begin + std::min(left.size(), most_bytes)};
    parts_.push_back({*view, part, request.view->extent_of(part), block_bytes, blocks_.size(),
                      began, moment_, in_file});
    if (in_file) add_blocks(data, part, block_bytes);
    left.begin = part.end;
  }
  return true;
}

void Verifier::add_blocks(exec::UserData& data, StreamRange range, int64_t block_bytes) {
  std::vector<std::byte> packed;
  const int64_t step = std::max(kPackedBytes, block_bytes);
  for (int64_t at = range.begin; at < range.end; at += step) {
    const int64_t n = std::min(step, range.end - at);
    if (!data.contiguous()) {
      packed.resize(size_t(n));
      data.pack(packed.data(), at, n);
    }
    auto some = data.contiguous() ? data.in_place(at, n) : std::span<const std::byte>(packed);
    while (!some.empty()) {
      const auto block = some.first(std::min(some.size(), size_t(block_bytes)));
      blocks_.push_back(checksum(block));
      some = some.subspan(block.size());
    }
  }
}

// What more than is remembered says of itself.
void Verifier::forget(int64_t bytes) {
  unverified_bytes_ += bytes;
  wrote_anywhere_ = true;
}

// A view like an earlier one is that one. nullopt: descriptions take too much memory.
std::optional<size_t> Verifier::keep(const layout::FileView& view) {
  const Hash hash = mix(view.hash(), uint64_t(view.displacement()));
  const auto [begin, end] = view_of_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const layout::FileView& kept = views_[it->second];
    if (kept.displacement() == view.displacement() && kept.filetype() == view.filetype())
      return it->second;
  }
  if (views_memory_bytes_ > kMostViewBytes) return std::nullopt;
  views_memory_bytes_ += sizeof view + view.filetype().memory_bytes();
  views_.push_back(view);
  view_of_hash_.emplace(hash, views_.size() - 1);
  return views_.size() - 1;
}

bool Verifier::touches(const Part& part, Extent e) const {
  return !views_[part.view].clip(part.range, e).empty();
}

const IntervalIndex& Verifier::index() const {
  if (!index_) {
    std::vector<Extent> all;
    for (const Part& part : parts_) all.push_back(part.where);
    index_.emplace(std::move(all));
  }
  return *index_;
}

bool Verifier::wrote(Extent e) const {
  const std::lock_guard lock(mutex_);
  return wrote_anywhere_ || index().any(e, [&](size_t i) { return touches(parts_[i], e); });
}

int64_t Verifier::remembered_bytes() const {
  int64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.range.size();
  return bytes;
}

int64_t Verifier::not_yet_verified_bytes() const {
  const std::lock_guard lock(mutex_);
  return unverified_bytes_ + remembered_bytes();
}

// --- Together ---

// A file of one rank is taken for that rank's: a job may have as many of them as ranks. Of what
// several have, another part of the job may have a handle too.
void VerifiedTogether::opened(int ranks, int job_ranks) {
  const std::lock_guard lock(mutex_);
  most_ranks_ = std::max({most_ranks_, ranks, ranks > 1 ? job_ranks : 0});
}

bool VerifiedTogether::others_may_write(int ranks) const {
  const std::lock_guard lock(mutex_);
  return ranks < most_ranks_;
}

void VerifiedTogether::written_past() {
  const std::lock_guard lock(mutex_);
  ++times_written_past_;
}

int64_t VerifiedTogether::times_written_past() const {
  const std::lock_guard lock(mutex_);
  return times_written_past_;
}

void VerifiedTogether::add(std::shared_ptr<const Verifier> verifier) {
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(verifier));
}

bool VerifiedTogether::wrote(Extent e, const Verifier* except) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      all_, [&](const auto& each) { return each.get() != except && each->wrote(e); });
}

}  // namespace penstock::engine
