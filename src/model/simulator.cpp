#include "model/simulator.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "model/io_node.hpp"

namespace penstock::model {
namespace {

using Kind = Event::Kind;

// Transfers that end within such a part of the shortest one of each other end together: what they
// differ by is rounding, and what begins next must not depend on that.
constexpr double kTogether = 1e-6;

// Counts bytes by where they are.
class Account {
 public:
  explicit Account(size_t timeline_points) : timeline_(timeline_points) {}

  void move(const Event& event, int64_t bytes) {
    now_.time_s = event.time_s;
    switch (event.kind) {
      case Kind::arrived:
        now_.sent_bytes += bytes;
        now_.memory_bytes += bytes;
        outcome_.times.application_s = event.time_s;
        break;
      case Kind::written:
        now_.memory_bytes -= bytes;
        now_.disk_bytes += bytes;
        outcome_.times.actual_s = event.time_s;
        break;
      case Kind::paged_out:
        now_.memory_bytes -= bytes;
        now_.paged_bytes += bytes;
        outcome_.paged_out_bytes += bytes;
        break;
      case Kind::paged_in:
        now_.paged_bytes -= bytes;
        now_.memory_bytes += bytes;
        outcome_.paged_in_bytes += bytes;
        break;
    }
  }
  void end_moment() {
    outcome_.most_memory_bytes = std::max(outcome_.most_memory_bytes, now_.memory_bytes);
    outcome_.most_paged_bytes = std::max(outcome_.most_paged_bytes, now_.paged_bytes);
    timeline_.add(now_);
  }
  int64_t disk_bytes() const { return now_.disk_bytes; }
  Outcome finish() && {
    outcome_.timeline = std::move(timeline_).finish();
    return std::move(outcome_);
  }

 private:
  Moment now_;
  Outcome outcome_;
  Timeline timeline_;
};

// Model 1: a block is on the disk when it has left the program. It takes the slower of the two.
Outcome play_unbuffered(const System& system, const Blocks& blocks, const Observer& observer) {
  const double rate = std::min(system.path.network_bytes_per_s, system.path.disk_bytes_per_s);
  Account account(system.timeline_points);
  double now_s = system.path.startup_s;
  for (int64_t block = 0; block < blocks.count(); ++block) {
    now_s += double(blocks.bytes(block)) / rate;
    for (const Kind kind : {Kind::arrived, Kind::written}) {
      const Event event{now_s, kind, blocks.node(block), block};
      account.move(event, blocks.bytes(block));
      if (observer) observer(event);
    }
    account.end_moment();
  }
  return std::move(account).finish();
}

// Models 2 and 3.
class Simulation {
 public:
  Simulation(const System& system, const Blocks& blocks, const Observer& observer)
      : system_(system),
        blocks_(blocks),
        observer_(observer),
        account_(system.timeline_points),
        now_s_(system.path.startup_s),
        together_s_(kTogether * shortest_s()) {
    for (int node = 0; node < system.nodes; ++node)
      nodes_.emplace_back(system, blocks.count_on(node));
  }

  Result<Outcome> run(int64_t n_bytes) {
    start(blocks_.node(0));
    while (!under_way_.empty()) {
      end_together();
      // Whoever had a transfer that ended may begin one; so may the node that the network turns to.
      if (!sending_ && next_ < blocks_.count()) touched_.push_back(blocks_.node(next_));
      for (const int node : touched_) start(node);
    }
    if (account_.disk_bytes() != n_bytes)
      return fail(ErrorClass::internal, "simulate",
                  "it stands still with " + std::to_string(account_.disk_bytes()) + " of " +
                      std::to_string(n_bytes) + " bytes written");
    return std::move(account_).finish();
  }

 private:
  struct Pending {
    Event event;  // as it will be
    int64_t number;
    // std::priority_queue has the greatest on top.
    bool operator<(const Pending& o) const {
      return std::pair(o.event.time_s, o.number) < std::pair(event.time_s, number);
    }
  };

  double shortest_s() const {
    const double fastest = std::max({system_.path.network_bytes_per_s,
                                     system_.path.disk_bytes_per_s, system_.paging_bytes_per_s});
    return double(system_.block_bytes) / fastest;
  }

  void begin(Kind kind, int node, int64_t block, double bytes_per_s) {
    const double ends_s = now_s_ + double(blocks_.bytes(block)) / bytes_per_s;
    under_way_.push({{ends_s, kind, node, block}, number_++});
  }

  void end_together() {
    touched_.clear();
    const double until_s = under_way_.top().event.time_s + together_s_;
    while (!under_way_.empty() && under_way_.top().event.time_s <= until_s) {
      const Event event = under_way_.top().event;
      under_way_.pop();
      now_s_ = event.time_s;
      end(event);
      touched_.push_back(event.node);
    }
    account_.end_moment();
  }

  void end(const Event& event) {
    IoNode& node = nodes_[size_t(event.node)];
    const int64_t place = blocks_.place(event.block);
    switch (event.kind) {
      case Kind::arrived:
        sending_ = false;
        node.arrived(place);
        break;
      case Kind::written:
        node.written();
        break;
      case Kind::paged_out:
        node.paged({IoNode::Direction::out, place});
        break;
      case Kind::paged_in:
        node.paged({IoNode::Direction::in, place});
        break;
    }
    account_.move(event, blocks_.bytes(event.block));
    if (observer_) observer_(event);
  }

  // Everything that a node can begin now; what begins may let another begin.
  void start(int node) {
    for (bool more = true; more;) {
      more = start_write(node);
      more |= start_sending(node);
      more |= start_paging(node);
    }
  }

  bool start_write(int node) {
    const auto place = nodes_[size_t(node)].start_write();
    if (place) begin(Kind::written, node, blocks_.at(node, *place), system_.path.disk_bytes_per_s);
    return place.has_value();
  }

  bool start_sending(int node) {
    if (sending_ || next_ == blocks_.count() || blocks_.node(next_) != node) return false;
    if (!nodes_[size_t(node)].can_take()) return false;
    nodes_[size_t(node)].take();
    begin(Kind::arrived, node, next_, system_.path.network_bytes_per_s);
    sending_ = true;
    ++next_;
    return true;
  }

  bool start_paging(int node) {
    const auto transfer = nodes_[size_t(node)].start_paging();
    if (!transfer) return false;
    const bool is_out = transfer->direction == IoNode::Direction::out;
    begin(is_out ? Kind::paged_out : Kind::paged_in, node, blocks_.at(node, transfer->block),
          system_.paging_bytes_per_s);
    return true;
  }

  const System& system_;
  const Blocks& blocks_;
  const Observer& observer_;
  Account account_;
  double now_s_;
  double together_s_;
  std::vector<IoNode> nodes_;
  std::priority_queue<Pending> under_way_;
  int64_t number_ = 0;    // of the next transfer: transfers that end together end in their order
  int64_t next_ = 0;      // block that the application sends next
  bool sending_ = false;  // the network is busy
  std::vector<int> touched_;  // nodes that may begin something
};

}  // namespace

Result<Outcome> simulate(const System& system, int64_t n_bytes, const Observer& observer) {
  if (auto ok = check(system, n_bytes); !ok) return tl::unexpected(ok.error());
  const Blocks blocks(system, n_bytes);
  if (!system.has_buffer()) return play_unbuffered(system, blocks, observer);
  return Simulation(system, blocks, observer).run(n_bytes);
}

}  // namespace penstock::model
