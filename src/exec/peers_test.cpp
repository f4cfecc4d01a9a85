// What writers learn of the ranks that send to them. The sender's own view is the oracle; what is
// sent is counted.
#include "exec/peers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "comm/thread_comm.hpp"
#include "exec/counts.hpp"
#include "exec/cuts.hpp"

namespace penstock::exec::peers_test {
namespace {

using Random = std::mt19937_64;
using Parts = std::vector<plan::Part>;  // by rank

int64_t below(Random& random, int64_t n) { return int64_t(random() % uint64_t(n)); }

// Every block of a deck of `blocks` for each rank, short and of different lengths, goes to some
// rank, as the cells of an unstructured mesh do.
std::vector<layout::LoopTree> dealt(Random& random, int ranks, int64_t blocks) {
  std::vector<std::vector<layout::LoopTree::Block>> lists(static_cast<size_t>(ranks));
  Off at = 0;
  for (int64_t i = 0; i < blocks * ranks; ++i) {
    const int64_t bytes = 4 * (1 + below(random, 4));
    if (below(random, 20) > 0) lists[size_t(below(random, ranks))].push_back({at, bytes});
    at += bytes;
  }
  std::vector<layout::LoopTree> trees;
  for (const auto& list : lists)
    trees.push_back(*layout::LoopTree::resized(
        *layout::LoopTree::indexed(list, layout::LoopTree::bytes(1)), 0, at));
  return trees;
}

// As these, but that some ranks bring what the first one does.
std::vector<layout::LoopTree> some_alike(Random& random, std::vector<layout::LoopTree> trees) {
  for (layout::LoopTree& t : trees)
    if (below(random, 3) == 0) t = trees.front();
  return trees;
}

struct Asked {
  const plan::Algorithm* algorithm;
  plan::Parameters parameters;
  plan::Team team;
  std::vector<Parts> calls;
};

// The bytes of one cycle, in the order of the stream.
std::vector<Off> places(const layout::FileView& view, StreamRange part) {
  std::vector<Off> all;
  layout::Cursor cursor = view.cursor();
  cursor.seek(part.begin);
  while (cursor.position() < part.end) {
    const layout::Run run = cursor.next(part.end - cursor.position());
    for (int64_t i = 0; i < run.count; ++i) {
      all.push_back(run.offset + i * run.stride);
      all.push_back(run.block);
    }
  }
  return all;
}

void expect_alike(const plan::Plan& plan, int writer, const Peer& peer, const plan::Part& whole) {
  for (int cycle = 0; cycle < plan.cycles(writer); ++cycle) {
    const StreamRange told = plan.part(peer.part.view, peer.part.own, peer.rank, writer, cycle);
    const StreamRange should = plan.part(whole.view, whole.own, peer.rank, writer, cycle);
    ASSERT_EQ(told.size(), should.size()) << "cycle " << cycle;
    ASSERT_EQ(places(peer.part.view, told), places(whole.view, should)) << "cycle " << cycle;
  }
}

plan::Crowd crowd_of(const Parts& parts) {
  std::vector<plan::Summary> summaries;
  for (const plan::Part& p : parts)
    summaries.push_back(
        plan::summarise(p.view, p.own, uint32_t(described_bytes(p.view.filetype()))));
  return plan::Crowd::from(summaries);
}

// Bytes of descriptions that this rank sent in each call.
std::vector<int64_t> introduce(comm::Comm& comm, const Asked& asked) {
  CommCounts counts;
  CountingComm counting(comm, counts);
  const auto transfers = counting.transfers();
  Peers peers;
  std::vector<int64_t> sent;
  for (const Parts& parts : asked.calls) {
    const plan::Crowd crowd = crowd_of(parts);
    const plan::Part& mine = parts[size_t(comm.rank())];
    const plan::Summary summary = crowd.summary(comm.rank());
    auto plan = *asked.algorithm->place(asked.parameters, asked.team, crowd, {});
    const int64_t before = counts.sent.bytes;
    const auto senders = peers.introduce(counting, *transfers, *plan, crowd, mine.view.filetype());
    EXPECT_TRUE(senders);
    if (!senders) return sent;
    sent.push_back(counts.sent.bytes - before);
    Traffic traffic;
    plan = *learn_cuts(std::move(plan), counting, *transfers, mine, summary, *senders, traffic);
    for (const Peer& peer : *senders) {
      SCOPED_TRACE("rank " + std::to_string(peer.rank));
      expect_alike(*plan, *plan->writer_of(comm.rank()), peer, parts[size_t(peer.rank)]);
    }
  }
  return sent;
}

// By call and rank.
std::vector<std::vector<int64_t>> introduce_all(const Asked& asked) {
  std::vector<std::vector<int64_t>> sent(size_t(asked.team.ranks));
  comm::run_thread_team(
      asked.team.ranks,
      [&](comm::Comm& comm) { sent[size_t(comm.rank())] = introduce(comm, asked); },
      {.nodes = asked.team.nodes});
  std::vector<std::vector<int64_t>> by_call(asked.calls.size());
  for (const auto& of_rank : sent)
    for (size_t call = 0; call < of_rank.size(); ++call) by_call[call].push_back(of_rank[call]);
  return by_call;
}

// Each rank's tiles from `displacement` on: `own` of its stream, in tiles.
Parts parts_of(const std::vector<layout::LoopTree>& trees, Off displacement, double from,
               double to) {
  Parts parts;
  for (const layout::LoopTree& t : trees)
    parts.push_back({*layout::FileView::make(displacement, 1, t),
                     {int64_t(from * double(t.size())), int64_t(to * double(t.size()))}});
  return parts;
}

class Introduced : public testing::TestWithParam<const plan::Algorithm*> {};

TEST_P(Introduced, SayWhereTheirBytesLieInTheWritersPartOfTheFile) {
  const plan::Algorithm* const algorithm = GetParam();
  Random random(7);
  for (int n = 0; n < 12; ++n) {
    const int ranks = 2 + int(below(random, 4));
    // Neighbours join: with two ranks there are half as many blocks.
    const int64_t blocks = blocks_per_chapter() * (10 + below(random, 4));
    const auto trees = dealt(random, ranks, blocks);
    for (const layout::LoopTree& t : trees)
      ASSERT_TRUE(layout::Outline::of(t, blocks_per_chapter()));
    Asked asked{algorithm, {}, {ranks, 1 + int(below(random, 2)), 2}, {}};
    asked.parameters.writers = 1 + int(below(random, ranks));
    asked.parameters.cycle_bytes = int64_t{1} << (10 + below(random, 8));
    asked.parameters = plan::taken_by(*algorithm, asked.parameters);
    for (int call = 0; call < 5; ++call) {
      const double from = double(below(random, 3)) / 4, tiles = double(below(random, 8) + 1) / 4;
      asked.calls.push_back(
          parts_of(some_alike(random, trees), 4 * below(random, 1000), from, from + tiles));
    }
    introduce_all(asked);
    if (testing::Test::HasFatalFailure()) FAIL() << "case " << n;
  }
}

std::vector<const plan::Algorithm*> exchanging() {
  std::vector<const plan::Algorithm*> all;
  for (const plan::Algorithm* a : plan::algorithms())
    if (a->exchanges) all.push_back(a);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, Introduced, testing::ValuesIn(exchanging()),
                         [](const auto& tested) { return std::string(tested.param->name); });

// Of two_phase, whose writers each have one part of the file.
class Descriptions : public testing::Test {
 protected:
  static constexpr int kRanks = 8;
  const int64_t blocks_ = 200 * blocks_per_chapter();

  std::vector<std::vector<int64_t>> sent(std::vector<Parts> calls) const {
    Asked asked{plan::find_algorithm("two_phase"), {}, {kRanks, kRanks, 2}, std::move(calls)};
    asked.parameters.writers = kRanks;
    asked.parameters.cycle_bytes = int64_t{1} << 20;
    return introduce_all(asked);
  }
};

TEST_F(Descriptions, OfALongListGoToAllWritersTogetherAboutOnce) {
  Random random(8);
  const auto trees = dealt(random, kRanks, blocks_);
  const auto by_call =
      sent({parts_of(trees, 0, 0, 1), parts_of(trees, 0, 1, 2), parts_of(trees, 4096, 3, 4)});
  for (size_t rank = 0; rank < size_t(kRanks); ++rank) {
    // Without what it keeps for itself; each writer has two chapters more, and an outline.
    EXPECT_LT(by_call[0][rank], trees[rank].serialised_bytes() * 11 / 10);
    EXPECT_GT(by_call[0][rank], trees[rank].serialised_bytes() * 7 / 10);
    EXPECT_EQ(by_call[1][rank], 0) << "the same pattern a tile further on";
    EXPECT_EQ(by_call[2][rank], 0) << "and elsewhere in the file";
  }
}

TEST_F(Descriptions, OfWhatAnotherCallWritesBringWhatIsNewAlone) {
  Random random(9);
  const auto trees = dealt(random, kRanks, blocks_);
  const auto by_call = sent({parts_of(trees, 0, 0, 0.5), parts_of(trees, 0, 0, 0.52)});
  for (size_t rank = 0; rank < size_t(kRanks); ++rank)
    EXPECT_LT(by_call[1][rank], trees[rank].serialised_bytes() / 5);
}

// Records of one size, dealt to the ranks (M_RECORD of gotwals-1995): who writes them has them too.
TEST_F(Descriptions, OfWhatAllBringAlikeGoToNobody) {
  Random random(10);
  const std::vector<layout::LoopTree> listed(kRanks, dealt(random, 1, blocks_).front());
  const auto record = layout::LoopTree::resized(layout::LoopTree::bytes(100), 0, 100 * kRanks);
  const std::vector<layout::LoopTree> records(kRanks, record.value());
  for (const auto& trees : {listed, records}) {
    const auto by_call = sent({parts_of(trees, 0, 0, 1), parts_of(trees, 4096, 2, 40)});
    for (const auto& call : by_call) EXPECT_EQ(call, std::vector<int64_t>(kRanks));
  }
}

// A plan that counts what it is asked.
class AskedOften final : public plan::Plan {
 public:
  AskedOften(std::unique_ptr<const plan::Plan> plan, int& extents)
      : plan_(std::move(plan)), extents_(extents) {}
  int writers() const noexcept override { return plan_->writers(); }
  int writer_rank(int w) const noexcept override { return plan_->writer_rank(w); }
  std::optional<int> writer_of(int rank) const noexcept override { return plan_->writer_of(rank); }
  int cycles(int w) const noexcept override { return plan_->cycles(w); }
  int cycles() const noexcept override { return plan_->cycles(); }
  Extent extent(int w, int cycle) const override {
    ++extents_;
    return plan_->extent(w, cycle);
  }
  int64_t page_bytes() const noexcept override { return plan_->page_bytes(); }
  bool owns_blocks() const noexcept override { return plan_->owns_blocks(); }
  bool exchanges() const noexcept override { return plan_->exchanges(); }
  plan::IntRange cycles_of(const plan::Summary& s, int rank) const override {
    return plan_->cycles_of(s, rank);
  }
  plan::IntRange writers_of(const plan::Summary& s, int rank, int cycle) const override {
    return plan_->writers_of(s, rank, cycle);
  }
  plan::IntRange reached(const plan::Summary& s, int rank) const override {
    return plan_->reached(s, rank);
  }
  plan::IntRange senders(int w) const noexcept override { return plan_->senders(w); }
  StreamRange part(const layout::FileView& view, StreamRange own, int rank, int w,
                   int cycle) const override {
    return plan_->part(view, own, rank, w, cycle);
  }

 private:
  const std::unique_ptr<const plan::Plan> plan_;
  int& extents_;
};

// With one writer: what it asks must not follow the number of its senders.
TEST_F(Descriptions, OfManySendersAskThePlanAsOftenAsThoseOfFew) {
  Random random(10);
  for (const int ranks : {3, 12}) {
    const auto trees = dealt(random, ranks, 6 * ranks * blocks_per_chapter());
    const Parts parts = parts_of(trees, 0, 0, 1);
    std::vector<int> asked(static_cast<size_t>(ranks));
    comm::run_thread_team(ranks, [&](comm::Comm& comm) {
      const plan::Crowd crowd = crowd_of(parts);
      const AskedOften plan(
          *plan::find_algorithm("static_segmentation")
               ->place({.writers = 1, .cycle_bytes = 1 << 20}, {ranks, 1, 2}, crowd, {}),
          asked[size_t(comm.rank())]);
      const auto transfers = comm.transfers();
      Peers peers;
      const layout::LoopTree& mine = parts[size_t(comm.rank())].view.filetype();
      EXPECT_TRUE(peers.introduce(comm, *transfers, plan, crowd, mine));
    });
    for (const int often : asked) EXPECT_LE(often, 4);
  }
}

}  // namespace
}  // namespace penstock::exec::peers_test
