// Stream piece by stream piece, one write per file extent. Memory that is not contiguous is packed
// first, but for large pieces that the mechanism can gather itself (pwritev).
#include "exec/alone.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "base/clock.hpp"
#include "base/ticks.hpp"
#include "base/units.hpp"
#include "exec/beyond_files.hpp"

namespace penstock::exec {
namespace {

constexpr int64_t kStagingBytes = int64_t{1} << 20;
// Pieces are gathered when they have 1 KiB each on average. Then a full call carries as much as the
// staging buffer, so gathering takes no more calls than packing; and it saves a copy of 100 ns or
// more (10 GB/s) for the few tens of ns that the kernel spends on an entry of the vector. Crumbs
// lose both ways: elements of 8 bytes went at 0.78 GB/s by writev and at 5.7 packed.
constexpr int64_t kLeastPieceBytes = kStagingBytes / int64_t(io::kGatheredPieces);

// One write after the other, and what they mean together.
class Written {
 public:
  explicit Written(const AloneContext& context) : context_(context) {}

  bool failed() const noexcept { return failed_.has_value(); }
  void fail_with(Error error) { failed_ = std::move(error); }

  // The same of extents that come together, in ascending order.
  template <class Write>
  void write_together(Write&& write, std::span<const Extent> extents) {
    context_.traffic.writes += int64_t(extents.size()) - 1;
    const std::optional<io::Fault> fault = timed(std::forward<Write>(write));
    for (const Extent e : extents) {
      if (!failed())
        settle(fault && fault->first_missing < e.end ? fault : std::nullopt, e.size(), e.begin);
    }
  }

  // write() puts these bytes into the file at `offset`.
  template <class Write>
  void write(Write&& write, int64_t bytes, Off offset) {
    settle(timed(std::forward<Write>(write)), bytes, offset);
  }

  WriteOutcome outcome() && {
    WriteOutcome outcome;
    outcome.prefix_bytes = done_;
    outcome.written_bytes = done_;
    outcome.synced_bytes = synced_;
    outcome.sync_failed = sync_failed_;
    if (failed_) outcome.agreed = failed_->error_class;
    outcome.mine = std::move(failed_);
    return outcome;
  }

 private:
  template <class Write>
  std::optional<io::Fault> timed(Write&& write) {
    const TickWatch watch(context_.times.write_s);
    ++context_.traffic.writes;
    return write();
  }

  // Invariant: the first done_ bytes of the range are in the file.
  void settle(std::optional<io::Fault> fault, int64_t bytes, Off offset) {
    if (!fault) return follow(bytes, offset);
    done_ += std::clamp<int64_t>(fault->first_missing - offset, 0, bytes);
    failed_ = std::move(fault->error);
  }

  // These bytes are in the file, and the sync policy is told. When the sync fails that it asks for,
  // nothing of this range since the last one is certain to be in the file.
  void follow(int64_t bytes, Off offset) {
    done_ += bytes;
    if (context_.sync == nullptr) return;
    const TickWatch watch(context_.times.sync_s);
    Result<bool> pushed = context_.sync->wrote({offset, offset + bytes}, bytes);
    if (pushed) {
      if (!*pushed) return;
      ++context_.traffic.syncs;
      synced_ = done_;
      return;
    }
    done_ = synced_;
    sync_failed_ = true;
    failed_ = std::move(pushed).error();
  }

  const AloneContext& context_;
  int64_t done_ = 0;
  int64_t synced_ = 0;  // the part of done_ before the last sync of the policy
  bool sync_failed_ = false;
  std::optional<Error> failed_;
};

void write_extent(const AloneContext& context, Written& written, std::span<const std::byte> bytes,
                  Off offset) {
  const auto write = [&]() -> std::optional<io::Fault> {
    if (context.trail != nullptr && context.file.store_next(*context.trail, bytes, offset))
      return std::nullopt;
    return context.file.write(bytes, offset);
  };
  written.write(write, int64_t(bytes.size()), offset);
}

// Short blocks of the file, near each other, whose bytes follow each other in memory.
class Crumbs {
 public:
  // false: it is none, or cannot be written together with what is here.
  bool take(Extent block, const std::byte* bytes) noexcept {
    if (block.size() >= kPageStep || count_ == kMost) return false;
    if (count_ == 0) {
      bytes_ = bytes;
    } else if (const Off gap = block.begin - extents().back().end; gap < 0 || gap >= kPageStep) {
      return false;
    }
    new (room_ + sizeof(Extent) * count_++) Extent(block);
    return true;
  }

  std::span<const Extent> extents() const noexcept {
    return {std::launder(reinterpret_cast<const Extent*>(room_)), count_};
  }
  // REQUIRES some extents.
  io::FileBytes bytes() const noexcept {
    int64_t n = 0;
    for (const Extent e : extents()) n += e.size();
    return {{extents().front().begin, extents().back().end}, {bytes_, size_t(n)}, true};
  }
  void clear() noexcept { count_ = 0; }

 private:
  static constexpr size_t kMost = 512;

  // Of extents, left uninitialised: most calls have one block.
  alignas(Extent) std::byte room_[kMost * sizeof(Extent)];
  size_t count_ = 0;
  const std::byte* bytes_ = nullptr;  // of the first, and the others behind it
};

class Alone {
 public:
  Alone(const AloneContext& context, const layout::FileView& view, StreamRange own, UserData& data)
      : context_(context),
        own_(own),
        data_(data),
        gathers_(!data.contiguous() && context.file.gathers()),
        in_place_bytes_(in_place_bytes(context.sync)),
        cursor_(view.cursor()),
        written_(context) {
    cursor_.seek(own.begin);
  }

  WriteOutcome run() {
    reserve();
    if (context_.cycle_bytes == 0)
      write_until(own_.end);
    else
      write_in_cycles();
    return std::move(written_).outcome();
  }

 private:
  // What leaves in several writes, and lies in one piece of the file.
  void reserve() {
    if (own_.size() <= kStagingBytes) return;
    layout::Cursor ahead = cursor_;
    const layout::Run run = ahead.next(own_.size());
    if (run.count != 1 || run.block != own_.size()) return;
    const Stopwatch watch(context_.times.write_s);
    context_.file.reserve({run.offset, run.offset + run.block});
  }

  void write_in_cycles() {
    Turns* const turns = context_.turns;
    const int64_t cycles =
        turns != nullptr ? turns->rounds() : divide_up(own_.size(), context_.cycle_bytes);
    for (int64_t cycle = 0; cycle < cycles; ++cycle) {
      if (turns != nullptr) await(*turns, cycle);
      ++context_.traffic.cycles;
      write_until(at_ + std::min(own_.end - at_, context_.cycle_bytes));
      if (turns != nullptr) turns->pass(cycle);
    }
  }

  void await(Turns& turns, int64_t cycle) {
    const Stopwatch watch(context_.times.exchange_s);
    turns.await(cycle);
  }

  // Of the stream, from where the last one ended.
  void write_until(int64_t end) {
    end_ = end;
    while (at_ < end && !written_.failed())
      at_ += gathers_ ? write_gathering(at_) : write_staging(at_);
  }

  // --- Contiguous bytes: the user's own, or packed. Each writes a part of the stream from `at` on,
  // and returns its length.

  int64_t write_staging(int64_t at) {
    const int64_t n = std::min(end_ - at, data_.contiguous() ? bytes_in_place() : kStagingBytes);
    std::span<const std::byte> bytes = stage(at, n);
    while (!bytes.empty() && !written_.failed()) {
      const layout::Run run = cursor_.next(int64_t(bytes.size()));
      write_blocks(bytes.first(size_t(run.bytes())), run);
      bytes = bytes.subspan(size_t(run.bytes()));
    }
    write_gathered();
    return n;
  }

  int64_t bytes_in_place() const noexcept {
    return std::max(in_place_bytes_, context_.file.wanted_bytes());
  }

  // Empty when there is no memory for it: then this rank has failed.
  std::span<const std::byte> stage(int64_t at, int64_t n) {
    if (data_.contiguous()) return data_.in_place(at, n);
    if (Result<void> r = context_.staging.reserve(kStagingBytes); !r) {
      written_.fail_with(std::move(r).error());
      return {};
    }
    const Stopwatch watch(context_.times.pack_s);
    data_.pack(context_.staging.data(), at, n);
    return {context_.staging.data(), size_t(n)};
  }

  // Short blocks that lie close to each other wait for the others of theirs.
  void write_blocks(std::span<const std::byte> bytes, const layout::Run& run) {
    for (int64_t i = 0; i < run.count && !written_.failed(); ++i) {
      const Off offset = run.offset + i * run.stride;
      const Extent block{offset, offset + run.block};
      if (!crumbs_.take(block, bytes.data())) {
        write_gathered();
        if (!crumbs_.take(block, bytes.data()) && !written_.failed())
          write_extent(context_, written_, bytes.first(size_t(run.block)), offset);
      }
      bytes = bytes.subspan(size_t(run.block));
    }
  }

  // What waits; before its memory is used again.
  void write_gathered() {
    const std::span<const Extent> extents = crumbs_.extents();
    const bool wanted = !extents.empty() && !written_.failed();
    if (wanted && extents.size() == 1)
      write_extent(context_, written_, crumbs_.bytes().memory, extents.front().begin);
    else if (wanted)
      write_together(crumbs_.bytes(), extents);
    crumbs_.clear();
  }

  void write_together(const io::FileBytes& bytes, std::span<const Extent> extents) {
    written_.write_together([&] { return context_.file.write_extents(bytes, extents); }, extents);
  }

  // --- Pieces of memory, block by block of the file.

  int64_t write_gathering(int64_t at) {
    const layout::Run run = cursor_.next(std::min(end_ - at, kMostInPlaceBytes));
    if (run.block < kLeastPieceBytes) {
      write_crumbs(at, run);
      return run.bytes();
    }
    for (int64_t i = 0; i < run.count && !written_.failed(); ++i)
      gather_block(at + i * run.block, run.block, run.offset + i * run.stride);
    return run.bytes();
  }

  // Blocks of the file that are too small to be gathered: as many as the staging buffer holds are
  // packed at a time.
  void write_crumbs(int64_t at, const layout::Run& run) {
    const int64_t at_once = kStagingBytes / run.block;
    for (int64_t i = 0; i < run.count && !written_.failed(); i += at_once) {
      layout::Run part = run;
      part.offset += i * run.stride;
      part.count = std::min(at_once, run.count - i);
      const std::span<const std::byte> bytes = stage(at + i * run.block, part.bytes());
      if (!written_.failed()) write_blocks(bytes, part);
      write_gathered();
    }
  }

  void gather_block(int64_t at, int64_t bytes, Off offset) {
    while (bytes > 0 && !written_.failed()) {
      int64_t n = collect(at, bytes);
      if (n > 0) {
        write_pieces(n, offset);
      } else {
        n = std::min(bytes, kStagingBytes);
        const std::span<const std::byte> packed = stage(at, n);
        if (!written_.failed()) write_extent(context_, written_, packed, offset);
      }
      at += n;
      offset += n;
      bytes -= n;
    }
  }

  // Makes pieces_ hold the stream from `at` on, as far as one call carries it and gathering pays;
  // how many bytes that is, at most `most`. One crumb among them is forgiven, since the end of a
  // block cuts a piece in two. 0: the next pieces are to be packed.
  int64_t collect(int64_t at, int64_t most) {
    pieces_.clear();
    int64_t bytes = 0;
    while (bytes < most && pieces_.size() < io::kGatheredPieces) {
      const layout::Run run = data_.run_at(at + bytes, most - bytes);
      const auto had = int64_t(pieces_.size());
      const int64_t count = std::min(run.count, int64_t(io::kGatheredPieces) - had);
      if (bytes + count * run.block < (had + count - 1) * kLeastPieceBytes) break;
      for (int64_t i = 0; i < count; ++i) pieces_.push_back(data_.piece(run, i));
      bytes += count * run.block;
    }
    return bytes < int64_t(pieces_.size()) * kLeastPieceBytes ? 0 : bytes;
  }

  void write_pieces(int64_t bytes, Off offset) {
    written_.write([&] { return context_.file.write_pieces(pieces_, offset); }, bytes, offset);
  }

  const AloneContext& context_;
  StreamRange own_;
  int64_t at_ = own_.begin, end_ = own_.begin;  // of the stream: what is written next, and how far
  UserData& data_;
  const bool gathers_;
  const int64_t in_place_bytes_;
  layout::Cursor cursor_;
  Crumbs crumbs_;
  std::vector<std::span<const std::byte>> pieces_;  // allocated when something is gathered
  Written written_;
};

}  // namespace

int64_t in_place_bytes(const io::FileSync* sync) noexcept {
  const int64_t asked = sync != nullptr ? sync->piece_bytes() : 0;
  return asked > 0 ? std::min(asked, kMostInPlaceBytes) : kMostInPlaceBytes;
}

WriteOutcome write_alone(const AloneContext& context, const layout::FileView& view, StreamRange own,
                         UserData& data) {
  const bool beyond = reaches_beyond_files(view, own);
  if (beyond) own.end = std::max(own.begin, view.position_at(kLastOff));
  WriteOutcome outcome = Alone(context, view, own, data).run();
  if (beyond && !outcome.mine) {
    outcome.mine = beyond_every_file("write");
    outcome.agreed = outcome.mine->error_class;
  }
  if (context.turns != nullptr) context.traffic.messages += context.turns->messages();
  return outcome;
}

WriteOutcome write_run(const AloneContext& context, const layout::Run& run,
                       const std::byte* bytes) {
  Written written(context);
  for (int64_t i = 0; i < run.count && !written.failed(); ++i)
    write_extent(context, written, {bytes + i * run.block, size_t(run.block)},
                 run.offset + i * run.stride);
  return std::move(written).outcome();
}

}  // namespace penstock::exec
