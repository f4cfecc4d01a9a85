// The event loop of one cycle.
#include "exec/read_cycle.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "layout/copy.hpp"

namespace penstock::exec {
namespace {

constexpr int kReadTag = 16;

// The part of `range` that lies before the end of the file. Both sides cut alike.
StreamRange readable(StreamRange range, int64_t readable_end) {
  return {range.begin, std::clamp(readable_end, range.begin, range.end)};
}

// What this reader sends.
class Deliveries {
 public:
  Deliveries(const ReadCall& call, OutgoingPage* out, ReadScratch& scratch)
      : call_(call), out_(out), chunks_sent_(scratch.chunks_sent) {}

  void start_more() {
    while (in_flight_ < kInFlight && advance()) {
      if (!in_place_ && !call_.pools.out.available()) return;
      send(pieces_.pop());
    }
  }

  void sent(int number) {
    --in_flight_;
    chunks_sent_.arrived(number, call_.pools.out);
  }

 private:
  // Makes `pieces_` hold the next piece to send; false when there is none left.
  bool advance() {
    while (pieces_.empty()) {
      if (out_ == nullptr || next_ == out_->deliveries.size()) return false;
      current_ = &out_->deliveries[next_++];
      pieces_ = Pieces(current_->part);
      in_place_ = out_->page.usable() && current_->extent.size() == current_->part.size();
    }
    return true;
  }

  void send(StreamRange piece) {
    int chunk = ChunksSent::kInPlace;
    std::span<const std::byte> bytes;
    if (in_place_) {
      const Off at = current_->extent.begin + (piece.begin - current_->part.begin);
      bytes = {out_->page.memory() + (at - out_->page.where().begin), size_t(piece.size())};
    } else {
      chunk = call_.pools.out.take();
      const auto packed = call_.pools.out[chunk].first(size_t(piece.size()));
      pack(packed, piece);
      bytes = packed;
    }
    const int number = call_.transfers.send(current_->taker->rank, kReadTag, bytes);
    chunks_sent_.sent(number, chunk);
    ++in_flight_;
    ++call_.spent.messages;
    call_.spent.message_bytes += piece.size();
  }

  // Of a page without memory zeros are sent: the taker waits for its bytes, and will be told.
  void pack(std::span<std::byte> packed, StreamRange piece) {
    const Stopwatch watch(call_.spent.pack_s);
    if (!out_->page.usable()) {
      std::memset(packed.data(), 0, packed.size());
      return;
    }
    layout::Cursor& cursor = current_->taker->cursor;
    if (cursor.position() != piece.begin) cursor.seek(piece.begin);
    layout::gather(packed.data(), out_->page.memory(), out_->page.where().begin, cursor,
                   piece.size());
  }

  const ReadCall& call_;
  OutgoingPage* out_;
  size_t next_ = 0;
  Delivery* current_ = nullptr;
  Pieces pieces_;
  bool in_place_ = false;
  int in_flight_ = 0;
  ChunksSent& chunks_sent_;
};

// What this rank gets. Its own page is taken from without a message.
class Arrivals {
 public:
  Arrivals(const ReadCall& call, int cycle, SliceQueue& slices, OutgoingPage* out,
           ReadScratch& scratch)
      : call_(call), cycle_(cycle), slices_(slices), out_(out), landings_(scratch.landings) {}

  void start_more() {
    while (in_flight_ < kInFlight && (call_.room.contiguous() || call_.pools.in.available()) &&
           advance())
      receive(pieces_.pop());
  }

  void received(int number) {
    --in_flight_;
    const ReadScratch::Landing landing = landings_[size_t(number)];
    if (landing.chunk < 0) return;
    {
      const Stopwatch watch(call_.spent.pack_s);
      call_.room.unpack(call_.pools.in[landing.chunk].data(), landing.piece.begin,
                        landing.piece.size());
    }
    call_.pools.in.give_back(landing.chunk);
  }

 private:
  bool advance() {
    while (pieces_.empty() && slices_.has(cycle_)) {
      const plan::Slice slice = slices_.pop();
      const StreamRange part = readable(slice.src, call_.readable_end);
      if (part.empty()) continue;
      if (out_ != nullptr && slice.writer == out_->writer) {
        take_own(part);
        continue;
      }
      from_ = call_.plan.writer_rank(slice.writer);
      pieces_ = Pieces(part);
    }
    return !pieces_.empty();
  }

  void take_own(StreamRange part) {
    if (!out_->page.usable()) return;
    const Stopwatch watch(call_.spent.pack_s);
    call_.cursor.seek(part.begin);
    call_.room.take(out_->page.memory(), out_->page.where().begin, call_.cursor, part.begin,
                    part.size());
  }

  void receive(StreamRange piece) {
    ReadScratch::Landing landing{piece, -1};
    std::span<std::byte> into;
    if (call_.room.contiguous()) {
      into = call_.room.in_place(piece.begin, piece.size());
    } else {
      landing.chunk = call_.pools.in.take();
      into = call_.pools.in[landing.chunk].first(size_t(piece.size()));
    }
    const int number = call_.transfers.receive(from_, kReadTag, into);
    if (landings_.size() <= size_t(number)) landings_.resize(size_t(number) + 1);
    landings_[size_t(number)] = landing;
    ++in_flight_;
  }

  const ReadCall& call_;
  int cycle_;
  SliceQueue& slices_;
  OutgoingPage* out_;
  Pieces pieces_;
  int from_ = 0;
  int in_flight_ = 0;
  std::vector<ReadScratch::Landing>& landings_;
};

Turn turn_of(const OutgoingPage& out) { return {out.writer, out.cycle, out.page.where()}; }

void note_wanted(OutgoingPage& out, const layout::FileView& view, layout::Cursor& cursor,
                 StreamRange part) {
  if (out.page.usable() && !part.empty()) cover(out.page.wanted(), view, cursor, part);
}

// Notes what a rank wants, up to where a block ends, though the file may end within it: the wanted
// bytes are counted in granules of the blocks.
void want(const ReadCall& call, OutgoingPage& out, const Brought& wanted) {
  if (wanted.peer == nullptr) return;
  const layout::FileView& view = wanted.peer->part.view;
  const StreamRange sent = readable(wanted.part, view.position_at(call.file_bytes));
  if (sent.empty()) return;
  out.deliveries.push_back({wanted.peer, sent, view.extent_of(sent)});
  note_wanted(out, view, wanted.peer->cursor, wanted.part);
}

}  // namespace

void collect_wanted(const ReadCall& call, OutgoingPage& out) {
  out.deliveries.clear();
  const Turn turn = turn_of(out);
  note_wanted(out, call.view, call.cursor, brought_by_own(call, turn));
  for_each_owing(call, turn, [&](int rank, const plan::Summary&) {
    want(call, out, brought_by(call, rank, turn));
  });
}

void run_read_cycle(const ReadCall& call, int cycle, SliceQueue& slices, OutgoingPage* out,
                    ReadScratch& scratch) {
  Arrivals arrivals(call, cycle, slices, out, scratch);
  Deliveries deliveries(call, out, scratch);
  pass_messages(call.transfers, call.spent.exchange_s, arrivals, deliveries);
}

}  // namespace penstock::exec
