// The event loop of one cycle.
#include "exec/cycle.hpp"

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "layout/copy.hpp"

namespace penstock::exec {
namespace {

constexpr int kDataTag = 2;

// A stream range in pieces of at most kMessageBytes: both sides cut alike.
class Pieces {
 public:
  Pieces() = default;
  explicit Pieces(StreamRange range) : rest_(range) {}
  bool empty() const noexcept { return rest_.empty(); }
  StreamRange pop() noexcept {
    const StreamRange piece{rest_.begin, std::min(rest_.end, rest_.begin + kMessageBytes)};
    rest_.begin = piece.end;
    return piece;
  }

 private:
  StreamRange rest_;
};

// This rank's slices of the cycle, on their way out. Its own page is filled without a message.
class Outgoing {
 public:
  Outgoing(const CollectiveCall& call, int cycle, SliceQueue& slices, const PageToFill* page)
      : call_(call), cycle_(cycle), slices_(slices), page_(page) {}

  void start_more() {
    while (in_flight_ < kInFlight && (call_.data.contiguous() || call_.pools.out.available()) &&
           advance())
      send(pieces_.pop());
  }
  void sent(int number) {
    --in_flight_;
    const int chunk = std::exchange(chunk_of_[size_t(number)], -1);
    if (chunk >= 0) call_.pools.out.give_back(chunk);
  }

 private:
  // Makes `pieces_` hold the next piece to send; false when the cycle has none left.
  bool advance() {
    while (pieces_.empty() && slices_.has(cycle_)) {
      const plan::Slice slice = slices_.pop();
      if (page_ != nullptr && slice.writer == page_->writer) {
        fill_own(slice.src);
        continue;
      }
      to_ = call_.plan.writer_rank(slice.writer);
      pieces_ = Pieces(slice.src);
    }
    return !pieces_.empty();
  }

  void fill_own(StreamRange src) {
    if (page_->lease == nullptr) return;
    const Stopwatch watch(call_.times.pack_s);
    layout::Cursor to = call_.view.cursor();
    to.seek(src.begin);
    call_.data.transfer(page_->lease->memory.data(), page_->where.begin, to, src.begin, src.size());
    layout::Cursor covered = call_.view.cursor();
    covered.seek(src.begin);
    page_->coverage->add(covered, src.size());
  }

  void send(StreamRange piece) {
    int chunk = -1;
    std::span<const std::byte> bytes;
    if (call_.data.contiguous()) {
      bytes = call_.data.in_place(piece.begin, piece.size());
    } else {
      const Stopwatch watch(call_.times.pack_s);
      chunk = call_.pools.out.take();
      const auto packed = call_.pools.out[chunk].first(size_t(piece.size()));
      call_.data.pack(packed.data(), piece.begin, piece.size());
      bytes = packed;
    }
    const int number = call_.transfers.send(to_, kDataTag, bytes);
    remember(number, chunk);
    ++in_flight_;
    ++call_.traffic.messages;
    call_.traffic.message_bytes += piece.size();
  }

  void remember(int number, int chunk) {
    if (chunk_of_.size() <= size_t(number)) chunk_of_.resize(size_t(number) + 1, -1);
    chunk_of_[size_t(number)] = chunk;
  }

  const CollectiveCall& call_;
  int cycle_;
  SliceQueue& slices_;
  const PageToFill* page_;
  Pieces pieces_;
  int to_ = 0;
  int in_flight_ = 0;
  std::vector<int> chunk_of_;  // by message number
};

// What the peers send for this rank's page.
class Incoming {
 public:
  Incoming(const CollectiveCall& call, int cycle, const PageToFill* page)
      : call_(call), page_(page) {
    if (page == nullptr) return;
    call.crowd.for_each_touching(page->where, [&](int rank, const plan::Summary& s) {
      if (rank != call.rank && call.plan.owes(s, rank, page->writer, cycle)) expect(rank, cycle);
    });
  }

  void start_more() {
    while (in_flight_ < kInFlight && advance()) {
      if (!direct_ && !call_.pools.in.available()) return;
      receive(pieces_.pop());
    }
  }

  void received(int number) {
    --in_flight_;
    const Landing landing = landings_[size_t(number)];
    if (landing.chunk < 0) return;
    if (page_->lease != nullptr) unpack(landing);
    call_.pools.in.give_back(landing.chunk);
  }

 private:
  struct Source {
    Peer* peer;
    StreamRange part;
    Extent extent;
  };
  struct Landing {
    Peer* peer = nullptr;
    StreamRange piece;
    int chunk = -1;  // -1: received in place
  };

  void expect(int rank, int cycle) {
    const auto peer = std::ranges::lower_bound(call_.peers, rank, {}, &Peer::rank);
    if (peer == call_.peers.end() || peer->rank != rank) return;
    const StreamRange part =
        call_.plan.part(peer->part.view, peer->part.own, rank, page_->writer, cycle);
    if (part.empty()) return;
    sources_.push_back({&*peer, part, peer->part.view.extent_of(part)});
    if (page_->lease != nullptr) cover(sources_.back());
  }

  void cover(const Source& s) {
    if (s.extent.size() == s.part.size()) return page_->coverage->add(s.extent);
    s.peer->cursor.seek(s.part.begin);
    page_->coverage->add(s.peer->cursor, s.part.size());
  }

  bool advance() {
    while (pieces_.empty()) {
      if (next_ == sources_.size()) return false;
      source_ = sources_[next_++];
      pieces_ = Pieces(source_.part);
      // In place only what is one extent behind all that came before: two receives in flight must
      // not share memory, and views of different ranks may overlap.
      direct_ = page_->lease != nullptr && source_.extent.size() == source_.part.size() &&
                source_.extent.begin >= direct_end_;
      direct_end_ = std::max(direct_end_, source_.extent.end);
    }
    return true;
  }

  void receive(StreamRange piece) {
    Landing landing{source_.peer, piece, -1};
    std::span<std::byte> into;
    if (direct_) {
      const Off at = source_.extent.begin + (piece.begin - source_.part.begin) - page_->where.begin;
      into = page_->lease->memory.subspan(size_t(at), size_t(piece.size()));
    } else {
      landing.chunk = call_.pools.in.take();
      into = call_.pools.in[landing.chunk].first(size_t(piece.size()));
    }
    const int number = call_.transfers.receive(source_.peer->rank, kDataTag, into);
    if (landings_.size() <= size_t(number)) landings_.resize(size_t(number) + 1);
    landings_[size_t(number)] = landing;
    ++in_flight_;
  }

  void unpack(const Landing& l) {
    const Stopwatch watch(call_.times.pack_s);
    if (l.peer->cursor.position() != l.piece.begin) l.peer->cursor.seek(l.piece.begin);
    layout::scatter(page_->lease->memory.data(), page_->where.begin, l.peer->cursor,
                    call_.pools.in[l.chunk].data(), l.piece.size());
  }

  const CollectiveCall& call_;
  const PageToFill* page_;
  std::vector<Source> sources_;
  size_t next_ = 0;
  Source source_{};
  Pieces pieces_;
  bool direct_ = false;
  Off direct_end_ = 0;
  int in_flight_ = 0;
  std::vector<Landing> landings_;  // by message number
};

}  // namespace

Result<void> ExchangePools::reserve() {
  if (Result<void> r = out.reserve(kChunks, kMessageBytes); !r) return r;
  return in.reserve(kChunks, kMessageBytes);
}

void run_cycle(const CollectiveCall& call, int cycle, SliceQueue& slices, const PageToFill* page) {
  Incoming incoming(call, cycle, page);
  Outgoing outgoing(call, cycle, slices, page);
  for (;;) {
    incoming.start_more();
    outgoing.start_more();
    std::optional<comm::Event> event;
    {
      const Stopwatch watch(call.times.exchange_s);
      event = call.transfers.next();
    }
    if (!event) break;
    if (event->kind == comm::Event::Kind::received)
      incoming.received(event->number);
    else
      outgoing.sent(event->number);
  }
}

}  // namespace penstock::exec
