// How --verify reads back what it remembers, and asks who else wrote what differs.
#include <algorithm>
#include <utility>

#include "comm/agreement.hpp"
#include "engine/verify.hpp"
#include "engine/verify_blocks.hpp"
#include "layout/copy.hpp"

namespace penstock::engine {
namespace {

constexpr int64_t kWindowBytes = int64_t{1} << 20;
// Of what is read together, one byte in so many is wanted; else piece by piece is faster.
constexpr int64_t kMostSparse = 64;
// Pieces that a rank asks about at once, and all together, of which every rank has the list.
constexpr size_t kMostAsked = size_t{1} << 12, kMostAskedByAll = size_t{1} << 16;

// Bytes of a view's stream, from the file.
class StreamReader {
 public:
  StreamReader(io::ReadableFile& file, const layout::FileView& view, StreamRange range)
      : file_(file), view_(view), range_(range), cursor_(view.cursor()) {}

  // Whether the file has all of them; why() where nobody knows. REQUIRES `wanted` within the range.
  bool read(std::span<std::byte> into, StreamRange wanted) {
    int64_t at = wanted.begin;
    while (at < wanted.end) {
      if (!window_.contains(view_.offset_of(at)) && !load(at)) return false;
      const StreamRange here = view_.clip({at, wanted.end}, window_);
      if (cursor_.position() != at) cursor_.seek(at);
      layout::gather(into.data() + (at - wanted.begin), buffer_.data(), window_.begin, cursor_,
                     here.size());
      at = here.end;
    }
    return true;
  }
  const std::optional<Error>& why() const noexcept { return why_; }

 private:
  // The file from where stream byte `at` lies. Whether it has that byte.
  bool load(int64_t at) {
    const Off begin = view_.offset_of(at);
    const StreamRange ahead = view_.clip({at, range_.end}, Extent::of(begin, kWindowBytes));
    Extent wanted = view_.extent_of(ahead);
    if (wanted.size() / kMostSparse > ahead.size()) wanted.end = begin + piece_at(at);
    buffer_.resize(size_t(wanted.size()));
    io::Readout got = file_.read(buffer_, begin);
    window_ = {begin, begin + got.bytes};
    why_ = got.bytes == 0 ? std::move(got.error) : std::nullopt;
    return !window_.empty();
  }

  int64_t piece_at(int64_t at) {
    cursor_.seek(at);
    return cursor_.next(std::min(range_.end - at, kWindowBytes)).block;
  }

  io::ReadableFile& file_;
  const layout::FileView& view_;
  const StreamRange range_;
  layout::Cursor cursor_;
  Extent window_;
  std::vector<std::byte> buffer_;
  std::optional<Error> why_;
};

// Calls use(piece) for the adjacent bytes of a stream range until one gives true; whether one did.
// Pieces have all bytes of the range: none is cut off at the last offset, for Verifier::add keeps
// nothing that lies behind it.
template <class Use>
bool any_piece_of(const layout::FileView& view, StreamRange range, Use&& use) {
  layout::Cursor cursor = view.cursor();
  cursor.seek(range.begin);
  for (int64_t left = range.size(); left > 0;) {
    const layout::Run run = cursor.next(left);
    for (int64_t i = 0; i < run.count; ++i)
      if (use(Extent::of(run.offset + i * run.stride, run.block))) return true;
    left -= run.bytes();
  }
  return false;
}

int64_t size_of_union(std::vector<Extent> extents) {
  std::ranges::sort(extents, {}, &Extent::begin);
  int64_t bytes = 0;
  Off end = 0;
  for (const Extent e : extents) {
    bytes += std::max<int64_t>(0, e.end - std::max(end, e.begin));
    end = std::max(end, e.end);
  }
  return bytes;
}

void note_unread(Verification& v, StreamRange range, const Error& why) {
  v.unverified_bytes += range.size();
  if (!v.why_unread) v.why_unread = why;
}

}  // namespace

// The blocks that differ; what is equal is counted.
std::vector<Verifier::Block> Verifier::read_back(io::ReadableFile& file, Verification& v) const {
  std::vector<Block> differing;
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (!part.in_file) {
      v.unverified_bytes += part.range.size();
      continue;
    }
    StreamReader reader(file, views_[part.view], part.range);
    buffer.resize(size_t(part.block_bytes));
    const Hash* expected = &blocks_[part.first_block];
    for (int64_t at = part.range.begin; at < part.range.end; at += part.block_bytes, ++expected) {
      const StreamRange range{at, std::min(at + part.block_bytes, part.range.end)};
      const auto bytes = std::span(buffer).first(size_t(range.size()));
      const bool there = reader.read(bytes, range);
      if (there && checksum(bytes) == *expected)
        v.verified_bytes += range.size();
      else if (!there && reader.why())
        note_unread(v, range, *reader.why());
      else
        differing.push_back({i, range});
    }
  }
  return differing;
}

// Of a block's bytes, those of later calls of this rank, which these answer for: of calls that were
// not over when the block's began.
int64_t Verifier::written_again(const Block& block) const {
  const Part& own = parts_[block.part];
  int64_t bytes = 0;
  (void)any_piece_of(views_[own.view], block.range, [&](Extent piece) {
    std::vector<Extent> again;
    const bool all = index().any(piece, [&](size_t i) {
      const Part& part = parts_[i];
      if (part.began == own.began || part.ended < own.began) return false;
      const layout::FileView& view = views_[part.view];
      const StreamRange range = view.clip(part.range, piece);
      (void)any_piece_of(view, range, [&](Extent e) {
        again.push_back(e);
        return false;
      });
      return range.size() == piece.size();
    });
    bytes += all ? piece.size() : size_of_union(std::move(again));
    return false;
  });
  return bytes;
}

// The pieces of many blocks, some at a time.
class Verifier::Pieces {
 public:
  Pieces(const Verifier& of, const std::vector<Block>& blocks) : of_(of), blocks_(blocks) {}

  // Of blocks that are not `known` yet.
  std::vector<Piece> next(size_t most, const std::vector<bool>& known) {
    std::vector<Piece> some;
    while (block_ < blocks_.size() && some.size() < most) {
      const auto& [part, range] = blocks_[block_];
      if (done_ == range.size() || known[block_]) {
        ++block_;
        done_ = 0;
        continue;
      }
      const StreamRange left{range.begin + done_, range.end};
      (void)any_piece_of(of_.views_[of_.parts_[part].view], left, [&](Extent e) {
        some.push_back({e, block_});
        done_ += e.size();
        return some.size() == most;
      });
    }
    return some;
  }

 private:
  const Verifier& of_;
  const std::vector<Block>& blocks_;
  size_t block_ = 0;
  int64_t done_ = 0;  // bytes of it
};

// Collective: which blocks somebody else wrote to, earlier or later.
Result<std::vector<bool>> Verifier::explained(comm::Comm& comm, const std::vector<Block>& differing,
                                              const VerifiedTogether& beside) const {
  std::vector<bool> blocks(differing.size());
  Pieces pieces(*this, differing);
  const size_t at_once = std::clamp(kMostAskedByAll / size_t(comm.size()), size_t{1}, kMostAsked);
  for (;;) {
    const std::vector<Piece> asked = pieces.next(at_once, blocks);
    int64_t most[] = {int64_t(asked.size())};
    if (auto r = comm.all_max(most); !r) return tl::unexpected(r.error());
    if (most[0] == 0) return blocks;
    const auto answers = answered(comm, asked, size_t(most[0]), beside);
    if (!answers) return tl::unexpected(answers.error());
    for (size_t i = 0; i < asked.size(); ++i)
      if ((*answers)[i]) blocks[asked[i].block] = true;
  }
}

// Every rank asks about `most` pieces, and is answered by all.
Result<std::vector<bool>> Verifier::answered(comm::Comm& comm, std::span<const Piece> asked,
                                             size_t most, const VerifiedTogether& beside) const {
  std::vector<Extent> mine(most), all(most * size_t(comm.size()));
  std::ranges::transform(asked, mine.begin(), &Piece::where);
  if (auto r =
          comm.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
      !r)
    return tl::unexpected(r.error());
  std::vector<int64_t> answers(all.size());
  const size_t begin = most * size_t(comm.rank());
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_own = i >= begin && i < begin + most;
    answers[i] = !all[i].empty() && beside.wrote(all[i], is_own ? this : nullptr);
  }
  if (auto r = comm.all_max(answers); !r) return tl::unexpected(r.error());
  const auto own = answers.begin() + ptrdiff_t(begin);
  return std::vector<bool>(own, own + ptrdiff_t(asked.size()));
}

Verification Verifier::check(comm::Comm& comm, io::ReadableFile* file,
                             const VerifiedTogether& beside, bool excused) {
  Verification v;
  std::vector<Block> differing;
  {
    const std::lock_guard lock(mutex_);
    v.unverified_bytes = unverified_bytes_ + (file == nullptr ? remembered_bytes() : 0);
    if (file != nullptr) differing = read_back(*file, v);
    std::erase_if(differing, [&](const Block& block) {
      const int64_t again = written_again(block);
      if (again > 0 || wrote_anywhere_) v.unverified_bytes += block.range.size() - again;
      return again > 0 || wrote_anywhere_;
    });
    std::vector<Hash>().swap(blocks_);  // other handles ask for the places alone
  }
  comm::Agreement agreement;
  const auto some_differ = agreement.some(!differing.empty());
  const auto excused_by_some = agreement.some(excused);
  const auto others_may_write = agreement.some(beside.others_may_write(comm.size()));
  const Result<void> met = agreement.reach(comm);
  if (met && !agreement[some_differ]) return v;
  // Rare: somebody sees a difference.
  const auto others = met.and_then([&]() -> Result<std::vector<bool>> {
    if (agreement[excused_by_some]) return std::vector<bool>(differing.size(), true);
    return explained(comm, differing, beside);
  });
  for (size_t i = 0; i < differing.size(); ++i) {
    const int64_t bytes = differing[i].range.size();
    const bool known = others && (*others)[i];
    const bool unverified = known || agreement[others_may_write] || !others;
    (unverified ? v.unverified_bytes : v.mismatched_bytes) += bytes;
    if (!known && unverified) v.unasked_bytes += bytes;
  }
  return v;
}

}  // namespace penstock::engine
