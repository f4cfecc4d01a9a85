// Who packs, sends and receives what, load after load.
#include "exec/node_leaders.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "exec/abandon.hpp"
#include "exec/cycle.hpp"
#include "layout/copy.hpp"

namespace penstock::exec {
namespace {

constexpr int kLoadTag = 4;

// That rank has, perhaps, bytes for the writer. Sender and writer compute the same.
bool owes(const CollectiveCall& call, const plan::Summary& s, int rank, int writer, int cycle) {
  return call.plan.senders(writer).contains(rank) && call.plan.owes(s, rank, writer, cycle);
}

}  // namespace

// --- Who has what ---

void NodeLeaders::begin(const CollectiveCall& call, int cycle, const Page* page) {
  cycle_ = cycle;
  bundles_.clear();
  sources_.clear();
  arrivals_.clear();
  find_bundles(call);
  take_room(call);
  if (page != nullptr) find_sources(call, *page);
}

// Loads are received where single messages were: none is on its way when loads are.
void NodeLeaders::take_room(const CollectiveCall& call) {
  room_.clear();
  const std::span<std::byte> all = call.pools.in.all();
  const auto load_bytes = size_t(outbox_.load_bytes());
  for (size_t at = 0; at + load_bytes <= all.size(); at += load_bytes)
    room_.push_back(all.data() + at);
}

void NodeLeaders::find_bundles(const CollectiveCall& call) {
  const plan::IntRange mine = call.plan.cycles_of(call.summary, call.rank).contains(cycle_)
                                  ? call.plan.writers_of(call.summary, call.rank, cycle_)
                                  : plan::IntRange();
  for (int writer = mine.begin; writer < mine.end; ++writer) consider(call, writer, true);
  const int ranks = outbox_.map().size_of(outbox_.node());
  for (int group = 0; group * outbox_.boards() < call.plan.writers(); ++group)
    for (int board = outbox_.place(); board < outbox_.boards(); board += ranks) {
      const int writer = group * outbox_.boards() + board;
      if (writer < call.plan.writers() && !mine.contains(writer)) consider(call, writer, false);
    }
  std::ranges::sort(bundles_, {}, &Bundle::writer);
}

void NodeLeaders::consider(const CollectiveCall& call, int writer, bool may_owe) {
  const Extent where = call.plan.extent(writer, cycle_);
  const bool mine = may_owe && where.overlaps(call.summary.extent());
  const bool led = outbox_.leads(writer);
  if (where.empty() || (!mine && !led)) return;
  if (outbox_.map().node_of(call.plan.writer_rank(writer)) == outbox_.node()) return;
  if (const int parts = parts_of(call, writer, led); parts > 1)
    bundles_.push_back({writer, parts, mine, led});
}

// Who does not lead needs to know whether there are several alone.
int NodeLeaders::parts_of(const CollectiveCall& call, int writer, bool all) const {
  const Extent where = call.plan.extent(writer, cycle_);
  int parts = 0;
  for (const int rank : outbox_.ranks()) {
    const plan::Summary s = call.crowd.summary(rank);
    if (where.overlaps(s.extent()) && owes(call, s, rank, writer, cycle_)) ++parts;
    if (parts > 1 && !all) break;
  }
  return parts;
}

bool NodeLeaders::sends_to(int writer) const {
  const auto found = std::ranges::lower_bound(bundles_, writer, {}, &Bundle::writer);
  return found != bundles_.end() && found->writer == writer;
}

void NodeLeaders::find_sources(const CollectiveCall& call, const Page& page) {
  candidates_.clear();
  call.crowd.for_each_touching(page.where, [&](int rank, const plan::Summary& s) {
    const int node = outbox_.map().node_of(rank);
    if (node != outbox_.node() && owes(call, s, rank, page.writer, cycle_))
      candidates_.push_back({node, rank});
  });
  std::ranges::sort(candidates_, before);
  for (auto first = candidates_.begin(); first != candidates_.end();) {
    const auto last =
        std::ranges::upper_bound(first, candidates_.end(), first->node, {}, &Source::node);
    if (last - first > 1) {  // who alone of its node has bytes sends them itself
      arrivals_.push_back({first->node, sources_.size(), sources_.size() + size_t(last - first)});
      sources_.insert(sources_.end(), first, last);
    }
    first = last;
  }
}

bool NodeLeaders::before(const Source& a, const Source& b) {
  return std::pair(a.node, a.rank) < std::pair(b.node, b.rank);
}

NodeLeaders::Source* NodeLeaders::find_source(int rank) {
  const Source wanted{outbox_.map().node_of(rank), rank};
  const auto found = std::ranges::lower_bound(sources_, wanted, before);
  return found != sources_.end() && found->rank == rank ? &*found : nullptr;
}

bool NodeLeaders::expect(Peer& peer, StreamRange part) {
  Source* const source = find_source(peer.rank);
  if (source == nullptr) return false;
  source->peer = &peer;
  source->part = part;
  return true;
}

// --- The cycle ---

void NodeLeaders::run(const CollectiveCall& call, Page* page) {
  for (Arrival& a : arrivals_)
    for (Source& s : of(a)) {
      s.before = a.total;
      a.total += s.part.size();
    }
  for (int group = 0; group * outbox_.boards() < call.plan.writers(); ++group)
    run_group(call, group, page);
}

void NodeLeaders::run_group(const CollectiveCall& call, int group, Page* page) {
  const auto group_of = [this](const Bundle& b) { return outbox_.group_of(b.writer); };
  const std::span<Bundle> bundles(std::ranges::lower_bound(bundles_, group, {}, group_of),
                                  std::ranges::upper_bound(bundles_, group, {}, group_of));
  meet(call, bundles);
  const bool receives = page != nullptr && outbox_.group_of(page->writer) == group;
  int64_t loads = 0;
  for (const Bundle& b : bundles) loads = std::max(loads, loads_of(b.placing.total));
  for (const Arrival& a : arrivals_)
    if (receives) loads = std::max(loads, loads_of(a.total));
  for (int64_t load = 0; load < loads; ++load) {
    for (const Bundle& b : bundles) pack(call, b, int(load));
    for (const Bundle& b : bundles) send(call, b, int(load));
    receive_and_wait(call, load, receives ? page : nullptr);
    for (const Bundle& b : bundles)
      if (b.led && load + 1 < loads_of(b.placing.total)) outbox_.next_load(b.writer);
  }
}

// All bundles are open before this rank waits for one.
void NodeLeaders::meet(const CollectiveCall& call, std::span<Bundle> bundles) {
  const Stopwatch watch(call.times.exchange_s);
  for (const Bundle& b : bundles)
    if (b.led) outbox_.open({b.writer, cycle_}, b.parts);
  for (Bundle& b : bundles) {
    if (!b.mine) continue;
    b.part = call.plan.part(call.view, call.own, call.rank, b.writer, cycle_);
    outbox_.bring({b.writer, cycle_}, b.part.size());
  }
  for (Bundle& b : bundles)
    if (b.led || !b.part.empty()) b.placing = outbox_.placing(b.writer);
}

int64_t NodeLeaders::loads_of(int64_t total) const noexcept {
  return divide_up(total, outbox_.load_bytes());
}

// Which of the bundle's bytes are in that load.
StreamRange NodeLeaders::load_range(int64_t load, int64_t total) const noexcept {
  const int64_t begin = load * outbox_.load_bytes();
  return {std::min(begin, total), std::min(begin + outbox_.load_bytes(), total)};
}

void NodeLeaders::pack(const CollectiveCall& call, const Bundle& b, int load) {
  const StreamRange all = load_range(load, b.placing.total);
  const int64_t begin = std::max(all.begin, b.placing.before),
                end = std::min(all.end, b.placing.before + b.part.size());
  if (begin >= end) return;
  std::byte* memory = nullptr;
  {
    const Stopwatch watch(call.times.exchange_s);
    memory = outbox_.enter(b.writer, load);
  }
  {
    const Stopwatch watch(call.times.pack_s);
    call.data.pack(memory + (begin - all.begin), b.part.begin + (begin - b.placing.before),
                   end - begin);
  }
  outbox_.leave(b.writer, end - begin, all.size());
}

void NodeLeaders::send(const CollectiveCall& call, const Bundle& b, int load) {
  const StreamRange range = load_range(load, b.placing.total);
  if (!b.led || range.empty()) return;
  const Stopwatch watch(call.times.exchange_s);
  const auto bytes = outbox_.wait_until_packed(b.writer, range.size());
  call.transfers.send(call.plan.writer_rank(b.writer), kLoadTag, bytes);
  ++call.traffic.messages;
  call.traffic.message_bytes += range.size();
}

// Until what was sent has been taken and what comes has arrived.
void NodeLeaders::receive_and_wait(const CollectiveCall& call, int64_t load, Page* page) {
  next_arrival_ = 0;
  for (;;) {
    if (page != nullptr) start_receives(call, load, *page);
    std::optional<comm::Event> event;
    {
      const Stopwatch watch(call.times.exchange_s);
      event = next_or_abandon(call.transfers);
    }
    if (!event) return;
    if (event->kind != comm::Event::Kind::received) continue;
    const Landing landing = landings_[size_t(event->number)];
    if (page->usable()) unpack(call, landing, load, *page);
    room_.push_back(landing.bytes.data());
  }
}

void NodeLeaders::start_receives(const CollectiveCall& call, int64_t load, const Page& page) {
  for (; next_arrival_ < arrivals_.size(); ++next_arrival_) {
    const Arrival& a = arrivals_[next_arrival_];
    const StreamRange range = load_range(load, a.total);
    if (range.empty()) continue;
    if (room_.empty()) return;
    const std::span<std::byte> into(room_.back(), size_t(range.size()));
    room_.pop_back();
    const int number =
        call.transfers.receive(outbox_.leader_of(a.node, page.writer), kLoadTag, into);
    if (landings_.size() <= size_t(number)) landings_.resize(size_t(number) + 1);
    landings_[size_t(number)] = {&a, into};
  }
}

// In rank order, each part by its own rank's view.
void NodeLeaders::unpack(const CollectiveCall& call, const Landing& landing, int64_t load,
                         Page& page) {
  const Stopwatch watch(call.times.pack_s);
  const StreamRange range = load_range(load, landing.arrival->total);
  for (const Source& s : of(*landing.arrival)) {
    const int64_t begin = std::max(range.begin, s.before),
                  end = std::min(range.end, s.before + s.part.size());
    if (begin >= end) continue;
    layout::Cursor& cursor = s.peer->cursor;
    cursor.seek(s.part.begin + (begin - s.before));
    layout::scatter(page.memory.data(), page.where.begin, cursor,
                    landing.bytes.data() + (begin - range.begin), end - begin);
  }
}

std::span<NodeLeaders::Source> NodeLeaders::of(const Arrival& a) {
  return std::span(sources_).subspan(a.begin, a.end - a.begin);
}

}  // namespace penstock::exec
