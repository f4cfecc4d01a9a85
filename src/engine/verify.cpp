#include "engine/verify.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::engine {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr size_t kMostPieces = size_t{1}
                               << 20;  // about 64 MiB of memory; what comes later is unverified
constexpr int64_t kMostDisputes = int64_t{1} << 12;  // differing extents that ranks are asked about

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

}  // namespace

void Verifier::writing(Off offset, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), size_t(kPieceBytes)));
    const Extent where{offset, offset + int64_t(piece.size())};
    forget(where);
    note_written(where);
    if (pieces_.size() < kMostPieces)
      pieces_[offset] = {int64_t(piece.size()), checksum(piece)};
    else
      unverified_bytes_ += int64_t(piece.size());
    offset += int64_t(piece.size());
    bytes = bytes.subspan(piece.size());
  }
}

void Verifier::missed(Extent e) {
  const std::lock_guard lock(mutex_);
  forget(e);
}

void Verifier::forget(Extent e) {
  auto it = pieces_.upper_bound(e.begin);
  if (it != pieces_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > e.begin) --it;
  while (it != pieces_.end() && it->first < e.end) {
    const Extent old{it->first, it->first + it->second.bytes};
    unverified_bytes_ += old.size() - old.intersect(e).size();
    it = pieces_.erase(it);
  }
}

// Joins what touches.
void Verifier::note_written(Extent e) {
  if (wrote_anywhere_) return;
  auto it = written_.upper_bound(e.begin);
  if (it != written_.begin() && std::prev(it)->second >= e.begin) --it;
  while (it != written_.end() && it->first <= e.end) {
    e = {std::min(e.begin, it->first), std::max(e.end, it->second)};
    it = written_.erase(it);
  }
  written_[e.begin] = e.end;
  wrote_anywhere_ = written_.size() > kMostPieces;
}

bool Verifier::wrote(Extent e) const {
  const std::lock_guard lock(mutex_);
  const auto behind = written_.lower_bound(e.end);
  return wrote_anywhere_ || (behind != written_.begin() && std::prev(behind)->second > e.begin);
}

// The extents that differ; what is equal is counted.
std::vector<Extent> Verifier::read_back(io::ReadableFile& file, Verification& v) const {
  std::vector<Extent> differing;
  std::vector<std::byte> buffer(static_cast<size_t>(kPieceBytes));
  for (const auto& [offset, piece] : pieces_) {
    const auto into = std::span(buffer).first(size_t(piece.bytes));
    if (file.read(into, offset).bytes == piece.bytes && checksum(into) == piece.hash)
      v.verified_bytes += piece.bytes;
    else
      differing.push_back({offset, offset + piece.bytes});
  }
  return differing;
}

int64_t Verifier::remembered_bytes() const {
  int64_t bytes = 0;
  for (const auto& [offset, piece] : pieces_) bytes += piece.bytes;
  return bytes;
}

Verification Verifier::check(comm::Comm& comm, io::ReadableFile* file,
                             const VerifiedTogether& beside, bool others_wrote) {
  Verification v;
  v.unverified_bytes = unverified_bytes_ + (file == nullptr ? remembered_bytes() : 0);
  (void)comm.barrier();  // everybody's bytes are in the file before anybody looks
  std::vector<Extent> differing;
  if (file != nullptr) differing = read_back(*file, v);

  const bool past_us = others_wrote || beside.others_may_write(comm.size());
  int64_t facts[2] = {int64_t(differing.size()), past_us ? 1 : 0};
  if (!comm.all_max(facts) || facts[0] == 0) return v;
  // Rare: somebody sees a difference. Who wrote the same bytes, maybe later, explains it.
  const auto most = size_t(std::min(facts[0], kMostDisputes));
  std::vector<Extent> mine(most), all(most * size_t(comm.size()));
  std::copy_n(differing.begin(), std::min(most, differing.size()), mine.begin());
  (void)comm.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<int64_t> explained(all.size());
  const size_t begin = most * size_t(comm.rank());
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_own = i >= begin && i < begin + most;
    explained[i] = !all[i].empty() && beside.wrote(all[i], is_own ? this : nullptr);
  }
  (void)comm.all_max(explained);
  for (size_t i = 0; i < differing.size(); ++i) {
    const bool excused = facts[1] != 0 || (i < most && explained[begin + i] != 0);
    (excused ? v.unverified_bytes : v.mismatched_bytes) += differing[i].size();
  }
  return v;
}

void VerifiedTogether::opened(int ranks) {
  const std::lock_guard lock(mutex_);
  most_ranks_ = std::max(most_ranks_, ranks);
}

bool VerifiedTogether::others_may_write(int ranks) const {
  const std::lock_guard lock(mutex_);
  return ranks < most_ranks_;
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
