// For tests: what a collective write may cost, worked out from its plan and byte by byte, and what
// it did cost. Counts are the same on every machine, on threads and on MPI ranks.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/borrow.hpp"
#include "exec/cycle.hpp"
#include "exec/pipeline.hpp"

namespace penstock::exec {

// --- What is counted ---

struct Sent {
  int64_t messages = 0, bytes = 0;
};

// Everything that a pipeline asks of its communicator, where no other communicator is made of it.
struct CommCounts {
  int64_t collectives = 0;       // calls
  int64_t collective_bytes = 0;  // that this rank puts in
  Sent sent;                     // point to point, of whatever kind
};

class CountingTransfers final : public comm::Transfers {
 public:
  CountingTransfers(std::unique_ptr<comm::Transfers> inner, Sent& sent)
      : inner_(std::move(inner)), sent_(sent) {}

  int send(int to, int tag, std::span<const std::byte> bytes) override {
    count(int64_t(bytes.size()));
    return inner_->send(to, tag, bytes);
  }
  int send_strided(int to, int tag, const comm::Strided& pieces) override {
    count(pieces.bytes());
    return inner_->send_strided(to, tag, pieces);
  }
  int receive(int from, int tag, std::span<std::byte> bytes) override {
    return inner_->receive(from, tag, bytes);
  }
  std::optional<comm::Event> next() override { return inner_->next(); }
  const Result<void>& status() const noexcept override { return inner_->status(); }
  Result<void> finish() override { return inner_->finish(); }

 private:
  void count(int64_t bytes) {
    ++sent_.messages;
    sent_.bytes += bytes;
  }

  std::unique_ptr<comm::Transfers> inner_;
  Sent& sent_;
};

class CountingComm final : public comm::Borrowed {
 public:
  CountingComm(comm::Comm& owner, CommCounts& counts)
      : Borrowed(owner), owner_(owner), counts_(counts) {}

  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    count(mine.size());
    return owner_.allgather(mine, all);
  }
  Result<void> all_max(std::span<int64_t> values) override {
    count(values.size_bytes());
    return owner_.all_max(values);
  }
  Result<void> all_sum(std::span<int64_t> values) override {
    count(values.size_bytes());
    return owner_.all_sum(values);
  }
  Result<void> barrier() override {
    count(0);
    return owner_.barrier();
  }
  Result<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override {
    count(mine.size());
    return owner_.gather(mine, root);
  }
  Result<std::unique_ptr<comm::Comm>> split_by_node() override {
    count(0);
    return owner_.split_by_node();
  }
  std::unique_ptr<comm::Transfers> transfers() override {
    return std::make_unique<CountingTransfers>(owner_.transfers(), counts_.sent);
  }

 private:
  void count(size_t bytes) {
    ++counts_.collectives;
    counts_.collective_bytes += int64_t(bytes);
  }

  comm::Comm& owner_;
  CommCounts& counts_;
};

// --- What is written: the same bytes, however many ranks divide them ---

inline constexpr int64_t kCountedBytes = int64_t{1} << 21;
inline constexpr int64_t kCountedBlock = 4096;  // none is a crumb: each run of them is a call
inline constexpr int64_t kCountedCycle = int64_t{1} << 16;

// Blocks dealt to the ranks in turn, to each as many whole ones. Where there is a hole of a block
// behind each round of them, every second rank says the same by a filetype of two rounds.
struct Deal {
  int ranks = 1;
  bool holes = false;

  plan::Part of(int rank) const {
    const int64_t round = kCountedBlock * (ranks + (holes ? 1 : 0));
    const int rounds = holes && rank % 2 == 1 ? 2 : 1;
    const auto blocks =
        *layout::LoopTree::strided(rounds, kCountedBlock, round, layout::LoopTree::bytes(1));
    const auto tile = *layout::LoopTree::resized(blocks, 0, rounds * round);
    return {*layout::FileView::make(kCountedBlock * rank, 1, tile), {0, kCountedBytes / ranks}};
  }
};

inline int64_t described_bytes(const layout::FileView& view) {
  std::vector<std::byte> description;
  view.filetype().serialise(description);
  return int64_t(description.size());
}

// --- What it may cost one rank ---

struct Cost {
  int64_t own_bytes = 0;     // straight into its own page
  int64_t shared_bytes = 0;  // straight into another rank's
  Sent data, cuts, descriptions;
  int64_t writes = 0;   // of the file: as many as there are runs of bytes in its pages
  int64_t cycles = 0;   // of the longest writer
  int64_t reached = 0;  // writers, at most
};

// Of each rank in the first call of a pattern.
class Costs {
 public:
  // `nodes`: of each rank. Only between ranks of one node are pages shared, and only they send
  // together.
  Costs(const plan::Algorithm& algorithm, const plan::Parameters& parameters,
        const plan::Team& team, const Deal& deal, std::vector<int> nodes, const Exchange& exchange)
      : team_(team),
        nodes_(std::move(nodes)),
        shares_(exchange.shares_pages && !algorithm.scatters),
        leads_(exchange.outbox_bytes > 0 && shares_),
        costs_(size_t(team.ranks)) {
    std::vector<plan::Part> parts;
    std::vector<plan::Summary> summaries;
    for (int rank = 0; rank < team.ranks; ++rank) {
      parts.push_back(deal.of(rank));
      summaries.push_back(plan::summarise(parts.back().view, parts.back().own,
                                          uint32_t(described_bytes(parts.back().view))));
    }
    std::shared_ptr<const plan::Plan> plan =
        *algorithm.place(parameters, team, plan::Crowd::from(summaries), {});
    tell_cuts(*plan, summaries);
    plan = plan::with_all_cuts(std::move(plan), parts);
    for (int rank = 0; rank < team.ranks; ++rank)
      follow(*plan, parts[size_t(rank)], summaries, rank);
    count_writes(*plan, parts);
  }
  const Cost& of(int rank) const { return costs_[size_t(rank)]; }

 private:
  void tell_cuts(const plan::Plan& plan, const std::vector<plan::Summary>& summaries) {
    for (int rank = 0; rank < team_.ranks; ++rank) {
      const plan::IntRange reached = plan.reached(summaries[size_t(rank)], rank);
      for (int writer = reached.begin; writer < reached.end; ++writer) {
        const int to = plan.writer_rank(writer);
        if (to == rank || plan.cuts(writer) == 0) continue;
        ++costs_[size_t(to)].cuts.messages;
        costs_[size_t(to)].cuts.bytes += plan.cuts(writer) * int64_t(sizeof(Off));
      }
    }
  }

  void follow(const plan::Plan& plan, const plan::Part& part,
              const std::vector<plan::Summary>& summaries, int rank) {
    const plan::Summary& summary = summaries[size_t(rank)];
    Cost& cost = costs_[size_t(rank)];
    plan::Slices slices(plan, part.view, part.own, summary, rank);
    while (const auto slice = slices.next()) {
      const int to = plan.writer_rank(slice->writer);
      if (to == rank) {
        cost.own_bytes += slice->src.size();
      } else if (shares_ && nodes_[size_t(to)] == nodes_[size_t(rank)]) {
        cost.shared_bytes += slice->src.size();
      } else if (leads_ && several_owe(plan, summaries, nodes_[size_t(rank)], *slice)) {
        lead(nodes_[size_t(rank)], *slice);
      } else {
        cost.data.messages += divide_up(slice->src.size(), kMessageBytes);
        cost.data.bytes += slice->src.size();
      }
    }
    const plan::IntRange reached = plan.reached(summary, rank);
    cost.reached = reached.end - reached.begin;
    for (int writer = reached.begin; writer < reached.end; ++writer)
      if (summaries[size_t(plan.writer_rank(writer))].shape != summary.shape)
        ++cost.descriptions.messages;
    cost.descriptions.bytes = cost.descriptions.messages * int64_t(summary.description_bytes);
    cost.cycles = plan.cycles();
  }

  // Whether more than one rank of the node has, by what all know, bytes for that page.
  bool several_owe(const plan::Plan& plan, const std::vector<plan::Summary>& summaries, int node,
                   const plan::Slice& slice) const {
    const Extent page = plan.extent(slice.writer, slice.cycle);
    int owing = 0;
    for (int rank = 0; rank < team_.ranks; ++rank) {
      const plan::Summary& s = summaries[size_t(rank)];
      if (nodes_[size_t(rank)] != node || !page.overlaps(s.extent())) continue;
      if (plan.senders(slice.writer).contains(rank) &&
          plan.owes(s, rank, slice.writer, slice.cycle))
        ++owing;
    }
    return owing > 1;
  }

  // One message for all that a node has for a page, which is no larger than a load, by the rank of
  // the node whose turn it is: for the first writer its first rank, and so on.
  void lead(int node, const plan::Slice& slice) {
    std::vector<int> ranks;
    for (int rank = 0; rank < team_.ranks; ++rank)
      if (nodes_[size_t(rank)] == node) ranks.push_back(rank);
    Cost& leader = costs_[size_t(ranks[size_t(slice.writer) % ranks.size()])];
    leader.data.bytes += slice.src.size();
    if (bundles_.insert({node, slice.writer, slice.cycle}).second) ++leader.data.messages;
  }

  // Block by block, without a plan's extents or a coverage.
  void count_writes(const plan::Plan& plan, const std::vector<plan::Part>& parts) {
    for (int writer = 0; writer < plan.writers(); ++writer)
      for (int cycle = 0; cycle < plan.cycles(writer); ++cycle) {
        std::vector<Extent> blocks;
        for (int rank = 0; rank < team_.ranks; ++rank) {
          const plan::Part& p = parts[size_t(rank)];
          const StreamRange src = plan.part(p.view, p.own, rank, writer, cycle);
          for (int64_t at = src.begin, n; at < src.end; at += n) {
            n = std::min(kCountedBlock - at % kCountedBlock, src.end - at);
            const Off offset = p.view.offset_of(at);
            blocks.push_back({offset, offset + n});
          }
        }
        std::ranges::sort(blocks, {}, &Extent::begin);
        int64_t runs = blocks.empty() ? 0 : 1;
        for (size_t i = 1; i < blocks.size(); ++i)
          runs += blocks[i].begin > blocks[i - 1].end ? 1 : 0;
        costs_[size_t(plan.writer_rank(writer))].writes += runs;
      }
  }

  plan::Team team_;
  std::vector<int> nodes_;
  bool shares_, leads_;
  std::set<std::tuple<int, int, int>> bundles_;  // (node, writer, cycle)
  std::vector<Cost> costs_;
};

// --- What it did cost ---

struct Counted {
  Traffic traffic;
  CommCounts comm;
  int64_t system_calls = 0;  // that write
};

inline Counted operator-(const Counted& a, const Counted& b) {
  const auto sent = [](const Sent& x, const Sent& y) {
    return Sent{x.messages - y.messages, x.bytes - y.bytes};
  };
  Counted d = a;
  d.traffic.messages -= b.traffic.messages;
  d.traffic.message_bytes -= b.traffic.message_bytes;
  d.traffic.shared_bytes -= b.traffic.shared_bytes;
  d.traffic.writes -= b.traffic.writes;
  d.traffic.descriptions -= b.traffic.descriptions;
  d.comm.collectives -= b.comm.collectives;
  d.comm.collective_bytes -= b.comm.collective_bytes;
  d.comm.sent = sent(a.comm.sent, b.comm.sent);
  d.system_calls -= b.system_calls;
  return d;
}

// Where the two differ, one line each; empty when they agree. `repeated`: a call of the same
// pattern came before.
inline std::vector<std::string> differences(const Cost& cost, const Counted& did, bool repeated) {
  std::vector<std::string> all;
  const auto equal = [&](std::string_view what, int64_t is, int64_t should) {
    if (is != should)
      all.push_back(std::string(what) + ": " + std::to_string(is) + ", not " +
                    std::to_string(should));
  };
  const int64_t described = repeated ? 0 : cost.descriptions.messages;
  const int64_t described_bytes = repeated ? 0 : cost.descriptions.bytes;
  const int64_t messages = cost.data.messages + cost.cuts.messages;
  const int64_t message_bytes = cost.data.bytes + cost.cuts.bytes;
  equal("messages", did.traffic.messages, messages);
  equal("bytes in messages", did.traffic.message_bytes, message_bytes);
  equal("bytes copied through shared memory", did.traffic.shared_bytes, cost.shared_bytes);
  equal("descriptions", did.traffic.descriptions, described);
  equal("messages sent, of any kind", did.comm.sent.messages, messages + described);
  equal("bytes sent, of any kind", did.comm.sent.bytes, message_bytes + described_bytes);
  equal("writes", did.traffic.writes, cost.writes);
  equal("system calls that write", did.system_calls, cost.writes);
  if (cost.data.messages > cost.reached * cost.cycles)
    all.push_back("more messages than writers touched x cycles");
  if (!repeated) return all;
  // The entry: a summary. The exit: the worst error, and how many faults.
  equal("collective calls", did.comm.collectives, 2);
  equal("bytes in collective calls", did.comm.collective_bytes,
        int64_t(sizeof(plan::Summary)) + 2 * int64_t(sizeof(int64_t)));
  return all;
}

}  // namespace penstock::exec
