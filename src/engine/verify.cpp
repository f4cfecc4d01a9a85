#include "engine/verify.hpp"

#include <algorithm>
#include <cstring>

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
    forget({offset, offset + int64_t(piece.size())});
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

bool Verifier::covers(Extent e) const {
  auto it = pieces_.lower_bound(e.end);
  return it != pieces_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > e.begin;
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

Verification Verifier::check(comm::Comm& comm, io::ReadableFile* file, bool others_wrote) {
  Verification v;
  v.unverified_bytes = unverified_bytes_ + (file == nullptr ? remembered_bytes() : 0);
  (void)comm.barrier();  // everybody's bytes are in the file before anybody looks
  std::vector<Extent> differing;
  if (file != nullptr) differing = read_back(*file, v);

  int64_t facts[2] = {int64_t(differing.size()), others_wrote ? 1 : 0};
  if (!comm.all_max(facts) || facts[0] == 0) return v;
  // Rare: somebody sees a difference. A rank that wrote the same bytes later explains it.
  const auto most = size_t(std::min(facts[0], kMostDisputes));
  std::vector<Extent> mine(most), all(most * size_t(comm.size()));
  std::copy_n(differing.begin(), std::min(most, differing.size()), mine.begin());
  (void)comm.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<int64_t> explained(all.size());
  const size_t begin = most * size_t(comm.rank());
  for (size_t i = 0; i < all.size(); ++i)
    explained[i] = (i < begin || i >= begin + most) && !all[i].empty() && covers(all[i]);
  (void)comm.all_max(explained);
  for (size_t i = 0; i < differing.size(); ++i) {
    const bool excused = facts[1] != 0 || (i < most && explained[begin + i] != 0);
    (excused ? v.unverified_bytes : v.mismatched_bytes) += differing[i].size();
  }
  return v;
}

}  // namespace penstock::engine
