#include "engine/verify.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::engine {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr size_t kMostPieces = size_t{1} << 20;  // what comes later is unverified
constexpr int64_t kMostBlocks = 1024;            // of a piece, which are copied when it is cut
// The first bytes are remembered in the finest blocks: about 150 MiB of memory in all.
constexpr int64_t kFineBlockBytes = 64, kBlockBytes = 4096;
constexpr size_t kMostFineBlocks = size_t{1} << 20, kMostPlainBlocks = size_t{1} << 21;
constexpr int64_t kMostDisputes = int64_t{1}
                                  << 12;  // differing extents that are asked about at once

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

// To the last extent from the `first` on, where it touches that.
void join(std::vector<Extent>& extents, size_t first, Extent e) {
  if (extents.size() > first && extents.back().end == e.begin)
    extents.back().end = e.end;
  else
    extents.push_back(e);
}

}  // namespace

void Verifier::writing(Off offset, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  while (!bytes.empty()) {
    const int64_t block_bytes = next_block_bytes();
    const int64_t most = std::min(kPieceBytes, kMostBlocks * block_bytes);
    const auto piece = bytes.first(std::min(bytes.size(), size_t(most)));
    const Extent where{offset, offset + int64_t(piece.size())};
    forget(where);
    note_written(where);
    if (pieces_.size() < kMostPieces)
      remember(offset, piece, block_bytes);
    else
      unverified_bytes_ += int64_t(piece.size());
    offset += int64_t(piece.size());
    bytes = bytes.subspan(piece.size());
  }
}

int64_t Verifier::next_block_bytes() const noexcept {
  if (blocks_ < kMostFineBlocks) return kFineBlockBytes;
  return blocks_ < kMostPlainBlocks ? kBlockBytes : kPieceBytes;
}

void Verifier::remember(Off offset, std::span<const std::byte> bytes, int64_t block_bytes) {
  Piece piece{int64_t(bytes.size()), block_bytes, {}};
  piece.blocks.reserve(size_t(divide_up(piece.bytes, block_bytes)));
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), size_t(block_bytes))))
    piece.blocks.push_back(checksum(bytes.first(std::min(bytes.size(), size_t(block_bytes)))));
  insert(offset, std::move(piece));
}

void Verifier::insert(Off offset, Piece piece) {
  blocks_ += piece.blocks.size();
  pieces_[offset] = std::move(piece);
}

void Verifier::missed(Extent e) {
  const std::lock_guard lock(mutex_);
  forget(e);
}

void Verifier::forget(Extent e) {
  auto it = pieces_.upper_bound(e.begin);
  if (it != pieces_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > e.begin) --it;
  while (it != pieces_.end() && it->first < e.end) {
    const Piece old = std::move(it->second);
    const Extent where{it->first, it->first + old.bytes};
    it = pieces_.erase(it);
    blocks_ -= old.blocks.size();
    const int64_t before = std::max<int64_t>(0, e.begin - where.begin) / old.block_bytes;
    const int64_t behind = divide_up(e.end - where.begin, old.block_bytes);
    unverified_bytes_ += where.size() - where.intersect(e).size();
    unverified_bytes_ -= keep(where.begin, old, 0, before);
    unverified_bytes_ -= keep(where.begin, old, behind, int64_t(old.blocks.size()));
  }
}

// Of a piece that was at `begin`. The bytes of what is kept.
int64_t Verifier::keep(Off begin, const Piece& old, int64_t first, int64_t last) {
  if (first >= last || pieces_.size() >= kMostPieces) return 0;
  const int64_t skipped_bytes = first * old.block_bytes;
  const int64_t bytes = std::min(old.bytes, last * old.block_bytes) - skipped_bytes;
  insert(begin + skipped_bytes,
         {bytes, old.block_bytes, {old.blocks.begin() + first, old.blocks.begin() + last}});
  return bytes;
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

// The extents that differ, within a piece each; what is equal is counted.
std::vector<Extent> Verifier::read_back(io::ReadableFile& file, Verification& v) const {
  std::vector<Extent> differing;
  std::vector<std::byte> buffer(static_cast<size_t>(kPieceBytes));
  for (const auto& [offset, piece] : pieces_) {
    const auto into = std::span(buffer).first(size_t(piece.bytes));
    const int64_t there_bytes = file.read(into, offset).bytes;
    const size_t before = differing.size();
    for (size_t i = 0; i < piece.blocks.size(); ++i) {
      const int64_t begin = int64_t(i) * piece.block_bytes;
      const int64_t end = std::min(begin + piece.block_bytes, piece.bytes);
      const auto block = into.subspan(size_t(begin), size_t(end - begin));
      if (end <= there_bytes && checksum(block) == piece.blocks[i])
        v.verified_bytes += end - begin;
      else
        join(differing, before, {offset + begin, offset + end});
    }
  }
  return differing;
}

int64_t Verifier::remembered_bytes() const {
  int64_t bytes = 0;
  for (const auto& [offset, piece] : pieces_) bytes += piece.bytes;
  return bytes;
}

int64_t Verifier::not_yet_verified_bytes() const {
  const std::lock_guard lock(mutex_);
  return unverified_bytes_ + remembered_bytes();
}

// Collective: what somebody wrote too, maybe later. Every rank asks about `most` of its extents.
std::vector<int64_t> Verifier::explained(comm::Comm& comm, std::span<const Extent> differing,
                                         size_t most, const VerifiedTogether& beside) const {
  std::vector<Extent> mine(most), all(most * size_t(comm.size()));
  std::ranges::copy(differing, mine.begin());
  (void)comm.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<int64_t> answers(all.size());
  const size_t begin = most * size_t(comm.rank());
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_own = i >= begin && i < begin + most;
    answers[i] = !all[i].empty() && beside.wrote(all[i], is_own ? this : nullptr);
  }
  (void)comm.all_max(answers);
  const auto own = answers.begin() + ptrdiff_t(begin);
  return {own, own + ptrdiff_t(differing.size())};
}

Verification Verifier::check(comm::Comm& comm, io::ReadableFile* file,
                             const VerifiedTogether& beside, bool library_wrote) {
  Verification v;
  v.unverified_bytes = unverified_bytes_ + (file == nullptr ? remembered_bytes() : 0);
  (void)comm.barrier();  // everybody's bytes are in the file before anybody looks
  std::vector<Extent> differing;
  if (file != nullptr) differing = read_back(*file, v);

  int64_t facts[] = {int64_t(differing.size()), library_wrote ? 1 : 0,
                     beside.others_may_write(comm.size()) ? 1 : 0};
  if (!comm.all_max(facts) || facts[0] == 0) return v;
  // Rare: somebody sees a difference.
  std::span<const Extent> left = differing;
  for (int64_t todo = facts[0]; todo > 0; todo -= kMostDisputes) {
    const auto most = size_t(std::min(todo, kMostDisputes));
    const auto asked = left.first(std::min(most, left.size()));
    left = left.subspan(asked.size());
    const std::vector<int64_t> answers = explained(comm, asked, most, beside);
    for (size_t i = 0; i < asked.size(); ++i) {
      const bool known = facts[1] != 0 || answers[i] != 0;
      const bool excused = known || facts[2] != 0;
      (excused ? v.unverified_bytes : v.mismatched_bytes) += asked[i].size();
      if (!known && excused) v.unasked_bytes += asked[i].size();
    }
  }
  return v;
}

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
