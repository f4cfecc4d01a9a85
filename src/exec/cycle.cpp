// The event loop of one cycle.
#include "exec/cycle.hpp"

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "exec/abandon.hpp"
#include "layout/copy.hpp"

namespace penstock::exec {
namespace {

constexpr int kDataTag = 2;

bool shared(const CollectiveCall& call, int rank) {
  return call.node != nullptr && call.node->holds(rank);
}

// A part of this rank's stream to its places in a page.
void copy_into(const CollectiveCall& call, std::byte* memory, Extent where, StreamRange src) {
  call.cursor.seek(src.begin);
  call.data.transfer(memory, where.begin, call.cursor, src.begin, src.size());
}

Turn turn_of(const Page& page) { return {page.writer, page.cycle, page.where}; }

// This rank's slices of the cycle, on their way out. Its own page is filled without a message.
class Outgoing {
 public:
  Outgoing(const CollectiveCall& call, int cycle, SliceQueue& slices, Page* page)
      : call_(call),
        cycle_(cycle),
        slices_(slices),
        page_(page),
        chunks_sent_(call.pools.lists.chunks_sent) {}

  void start_more() {
    while (in_flight_ < kInFlight && (call_.data.contiguous() || call_.pools.out.available()) &&
           advance())
      send(pieces_.pop());
  }
  void sent(int number) {
    --in_flight_;
    chunks_sent_.arrived(number, call_.pools.out);
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
      if (shared(call_, to_)) continue;  // filled in place
      if (call_.leaders != nullptr && call_.leaders->sends_to(slice.writer)) continue;
      pieces_ = Pieces(slice.src);
    }
    return !pieces_.empty();
  }

  void fill_own(StreamRange src) {
    if (!page_->usable()) return;
    const Stopwatch watch(call_.times.pack_s);
    if (page_->list != nullptr) return fill_own_list(src);
    copy_into(call_, page_->memory.data(), page_->where, src);
    if (!page_->known_whole) cover(page_->coverage, call_.view, call_.cursor, src);
  }

  void fill_own_list(StreamRange src) {
    call_.cursor.seek(src.begin);
    Off position = src.begin;
    for_each_place(*page_, call_.cursor, src.size(), [&](std::byte* place, int64_t bytes) {
      call_.data.pack(place, position, bytes);
      position += bytes;
    });
  }

  void send(StreamRange piece) {
    if (call_.data.contiguous())
      chunks_sent_.sent(call_.transfers.send(to_, kDataTag, in_place(piece)), ChunksSent::kInPlace);
    else if (const auto pieces = describe(piece))
      send_pieces(*pieces);
    else
      send_packed(piece);
    ++in_flight_;
    ++call_.traffic.messages;
    call_.traffic.message_bytes += piece.size();
  }

  std::span<const std::byte> in_place(StreamRange piece) const {
    return call_.data.in_place(piece.begin, piece.size());
  }

  // A piece that one datatype of three numbers describes: a list of blocks would cost more to make
  // than packing them. nullopt: it is not to be described so, or cannot be.
  std::optional<comm::Strided> describe(StreamRange piece) {
    if (call_.pack == Pack::copy) return std::nullopt;
    const layout::Run run = call_.data.run_at(piece.begin, piece.size());
    if (run.bytes() != piece.size()) return std::nullopt;
    // Open MPI (4.1, 5.0) takes bytes one below the other for bytes one above the other.
    if (run.stride < 0) return std::nullopt;
    return comm::Strided{call_.data.piece(run, 0).data(), run.block, run.stride, run.count};
  }

  void send_pieces(const comm::Strided& pieces) {
    chunks_sent_.sent(call_.transfers.send_strided(to_, kDataTag, pieces), ChunksSent::kInPlace);
    ++call_.traffic.unpacked;
  }

  void send_packed(StreamRange piece) {
    const int chunk = call_.pools.out.take();
    const auto packed = call_.pools.out[chunk].first(size_t(piece.size()));
    {
      const Stopwatch watch(call_.times.pack_s);
      call_.data.pack(packed.data(), piece.begin, piece.size());
    }
    chunks_sent_.sent(call_.transfers.send(to_, kDataTag, packed), chunk);
  }

  const CollectiveCall& call_;
  int cycle_;
  SliceQueue& slices_;
  Page* page_;
  Pieces pieces_;
  int to_ = 0;
  int in_flight_ = 0;
  ChunksSent& chunks_sent_;
};

// What the peers send for this rank's page.
class Incoming {
 public:
  Incoming(const CollectiveCall& call, Page* page)
      : call_(call),
        page_(page),
        sources_(call.pools.lists.sources),
        landings_(call.pools.lists.landings) {
    sources_.clear();
    if (page == nullptr) return;
    for_each_owing(call, turn_of(*page), [&](int rank, const plan::Summary&) { expect(rank); });
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
    if (page_->usable()) unpack(landing);
    call_.pools.in.give_back(landing.chunk);
  }

 private:
  using Source = CycleLists::Source;
  using Landing = CycleLists::Landing;

  void expect(int rank) {
    const auto [peer, part] = brought_by(call_, rank, turn_of(*page_));
    if (part.empty()) return;
    const Source source{peer, part, peer->part.view.extent_of(part)};
    if (page_->usable() && page_->list == nullptr && !page_->known_whole)
      cover(page_->coverage, peer->part.view, peer->cursor, part);
    if (shared(call_, rank)) return;  // comes by itself
    if (call_.leaders != nullptr && call_.leaders->expect(*peer, part)) return;
    sources_.push_back(source);
  }

  bool advance() {
    while (pieces_.empty()) {
      if (next_ == sources_.size()) return false;
      source_ = sources_[next_++];
      pieces_ = Pieces(source_.part);
      // In place only what is one extent behind all that came before: two receives in flight must
      // not share memory, and views of different ranks may overlap.
      direct_ = page_->usable() && source_.extent.size() == source_.part.size() &&
                source_.extent.begin >= direct_end_;
      direct_end_ = std::max(direct_end_, source_.extent.end);
    }
    return true;
  }

  void receive(StreamRange piece) {
    Landing landing{source_.peer, piece, -1};
    std::span<std::byte> into;
    if (direct_) {
      const Off begin = source_.extent.begin + (piece.begin - source_.part.begin);
      into = page_->place(begin, piece.size());
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
    const std::byte* from = call_.pools.in[l.chunk].data();
    if (page_->list == nullptr)
      return layout::scatter(page_->memory.data(), page_->where.begin, l.peer->cursor, from,
                             l.piece.size());
    for_each_place(*page_, l.peer->cursor, l.piece.size(), [&](std::byte* place, int64_t bytes) {
      std::memcpy(place, from, size_t(bytes));
      from += bytes;
    });
  }

  const CollectiveCall& call_;
  Page* page_;
  std::vector<Source>& sources_;
  size_t next_ = 0;
  Source source_{};
  Pieces pieces_;
  bool direct_ = false;
  Off direct_end_ = 0;
  int in_flight_ = 0;
  std::vector<Landing>& landings_;
};

// This rank's part of one shared page.
void fill_shared(const CollectiveCall& call, int cycle, int writer_rank, StreamRange src) {
  NodePages::Place place;
  {
    const Stopwatch watch(call.times.exchange_s);
    place = call.node->enter(writer_rank, cycle);
  }
  if (place.memory != nullptr) {
    const Stopwatch watch(call.times.pack_s);
    copy_into(call, place.memory, place.where, src);
    call.traffic.shared_bytes += src.size();
  }
  call.node->leave(writer_rank, cycle);
}

// The pages of this node's other writers, each rank beginning behind itself, so that they do not
// all wait for the same one. Who comes is what fillers_of() counts: who has bytes.
void fill_shared_pages(const CollectiveCall& call, int cycle) {
  if (call.node == nullptr || !call.plan.cycles_of(call.summary, call.rank).contains(cycle)) return;
  const plan::IntRange writers = call.plan.writers_of(call.summary, call.rank, cycle);
  const int count = writers.end - writers.begin;
  for (int i = 0; i < count; ++i) {
    const int writer = writers.begin + (i + call.rank) % count;
    const int rank = call.plan.writer_rank(writer);
    if (!shared(call, rank)) continue;
    const StreamRange src = call.plan.part(call.view, call.own, call.rank, writer, cycle);
    if (!src.empty()) fill_shared(call, cycle, rank, src);
  }
}

}  // namespace

int fillers_of(const CollectiveCall& call, const Page& page) {
  int count = 0;
  const Turn turn = turn_of(page);
  for_each_owing(call, turn, [&](int rank, const plan::Summary&) {
    if (shared(call, rank) && !brought_by(call, rank, turn).part.empty()) ++count;
  });
  return count;
}

Result<void> ExchangePools::reserve() {
  if (Result<void> r = out.reserve(kChunks, kMessageBytes); !r) return r;
  return in.reserve(kChunks, kMessageBytes);
}

void ExchangePools::require(bool nothing_on_its_way) const {
  if (nothing_on_its_way || (out.available() && in.available())) return;
  abandon(
      Error{ErrorClass::no_memory, 0, "exchange", "there is no room for other ranks' messages"});
}

void run_cycle(const CollectiveCall& call, int cycle, SliceQueue& slices, Page* page) {
  fill_shared_pages(call, cycle);
  if (call.leaders != nullptr) call.leaders->begin(call, cycle, page);
  Incoming incoming(call, page);
  Outgoing outgoing(call, cycle, slices, page);
  pass_messages(call.transfers, call.times.exchange_s, incoming, outgoing);
  if (call.leaders != nullptr) call.leaders->run(call, page);
  if (page == nullptr || call.node == nullptr) return;
  const Stopwatch watch(call.times.exchange_s);
  call.node->wait_until_filled(cycle);
}

}  // namespace penstock::exec
