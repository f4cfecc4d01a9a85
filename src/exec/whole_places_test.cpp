// That a place is never held for whole which is not, whatever ranks ask for; and that patterns
// which programs repeat are known from their first repetition on.
#include "exec/whole_places.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "comm/thread_comm.hpp"
#include "exec/blocks.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::whole_places_test {
namespace {

// What each of a few ranks brings in a call.
struct Team {
  std::vector<layout::FileView> views;
  std::vector<StreamRange> ranges;
  std::vector<std::vector<Segment>> blocks;
  int64_t extent = 0;
};

// Units of a tile, dealt to the ranks at random: each to one, but for some that none or two have.
Team deal(Random& random) {
  Team team;
  const int64_t ranks = draw(random, 1, 4), unit = draw(random, 1, 3), units = draw(random, 4, 20);
  const bool perfect = draw(random, 0, 2) != 0;
  team.extent = unit * units;
  team.blocks.resize(size_t(ranks));
  for (int64_t i = 0; i < units; ++i) {
    const auto owner = size_t(i < ranks ? i : draw(random, 0, ranks - 1));
    if (perfect || draw(random, 0, 9) > 0) team.blocks[owner].push_back({i * unit, unit});
    const auto second = size_t(draw(random, 0, ranks - 1));
    if (!perfect && second != owner && draw(random, 0, 9) == 0)
      team.blocks[second].push_back({i * unit, unit});
  }
  for (std::vector<Segment>& b : team.blocks) {
    if (b.empty()) b.push_back({0, unit});
    const Off displacement = 100 + (draw(random, 0, 9) == 0 ? draw(random, 0, 5) : 0);
    team.views.push_back(*layout::FileView::make(displacement, 1, tree_of(b, team.extent)));
    team.ranges.push_back({});
  }
  return team;
}

// Whole tiles, of all ranks the same; or of one of them something else.
void ask(Random& random, Team& team) {
  const int64_t first = draw(random, 0, 3), tiles = draw(random, 1, 4);
  for (size_t r = 0; r < team.views.size(); ++r) {
    const int64_t size = team.views[r].filetype().size();
    team.ranges[r] = {first * size, (first + tiles) * size};
    if (draw(random, 0, 5) == 0) team.ranges[r].end -= draw(random, 0, 2 * size);
    if (draw(random, 0, 5) == 0) team.ranges[r].begin += draw(random, 0, size);
    if (team.ranges[r].empty()) team.ranges[r] = {};
  }
}

// Bytes of the file that somebody brings.
std::vector<bool> brought(const Team& team) {
  std::vector<bool> there(2000);
  for (size_t r = 0; r < team.views.size(); ++r)
    for (const Segment& s :
         expand(team.blocks[r], team.views[r].displacement(), team.extent, team.ranges[r]))
      std::fill_n(there.begin() + s.offset, s.bytes, true);
  return there;
}

// One call of a team as its first rank sees it, which writes it all.
struct Call {
  explicit Call(const Team& of) : team(of) {
    for (size_t r = 1; r < team.views.size(); ++r)
      if (!team.ranges[r].empty()) peers.push_back(peer(int(r)));
  }
  // As a writer hears of it: by the summary of this very call.
  Peer peer(int rank) const {
    const layout::FileView& view = team.views[size_t(rank)];
    const plan::Summary summary = plan::summarise(view, team.ranges[size_t(rank)], 0);
    plan::Part part = *plan::locate(summary, view.filetype());
    layout::Cursor cursor = part.view.cursor();
    return {rank, summary, std::move(part), std::move(cursor)};
  }
  Parties parties() { return {*plan, crowd, team.views[0], team.ranges[0], {}, 0, peers}; }
  const Team& team;
  std::vector<Peer> peers;
  plan::Crowd crowd;
  std::unique_ptr<const plan::Plan> plan =
      *plan::find_algorithm("two_phase")->place({}, {1, 1, 1}, crowd, {});
};

struct Count {
  int64_t pages = 0, whole = 0, held = 0;
};

void write_pages(Random& random, WholePlaces& places, const Team& team, Count& count) {
  Call call(team);
  const int64_t page = draw(random, 1, 60);
  places.begin(call.parties(), page);
  const std::vector<bool> there = brought(team);
  for (Off at = 90; at + page < 900; at += page) {
    const bool whole =
        std::all_of(there.begin() + at, there.begin() + at + page, [](bool byte) { return byte; });
    const bool held = places.hold({at, at + page});
    ASSERT_TRUE(whole || !held) << "a page of " << page << " bytes at " << at;
    count.whole += whole ? 1 : 0;
    count.held += held ? 1 : 0;
    ++count.pages;
    if (whole && places.would_keep({at, at + page})) places.learn({at, at + page});
  }
}

TEST(WholePlaces, HoldsNothingThatHasAGap) {
  Random random(20261123);
  Count count;
  for (int team_number = 0; team_number < 400; ++team_number) {
    SCOPED_TRACE(team_number);
    WholePlaces places;
    Team team = deal(random);
    for (int call = 0; call < 8; ++call) {
      if (draw(random, 0, 9) == 0) team = deal(random);
      ask(random, team);
      ASSERT_NO_FATAL_FAILURE(write_pages(random, places, team, count));
    }
  }
  EXPECT_GT(count.whole, count.pages / 40);  // else the test tests nothing
  EXPECT_GT(count.held, count.whole / 4);
}

// Blocks dealt in turn, in cycles of four turns: from the second page on each is known, in the
// first call already.
TEST(WholePlaces, APatternIsFollowedOnce) {
  constexpr int kRanks = 4;
  constexpr int64_t kBlock = 1024, kBlocks = 64, kPage = 4 * kRanks * kBlock;
  const io::TemporaryFile path;
  std::atomic<int64_t> known = 0, cycles = 0, bad = 0;
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    auto file = io::find_mechanism("pwrite")->open({path.path()}).value();
    Pipeline pipeline(comm, *file, {});
    Pipeline::Policy policy;
    policy.algorithm = plan::find_algorithm("two_phase");
    policy.parameters.writers = 1;
    policy.parameters.cycle_bytes = kPage;
    policy.exchange = find_exchange("messages");
    const Blocks mine = dealt(comm, kBlock, kBlocks);
    for (int call = 0; call < 2; ++call)
      if (pipeline.write_all(mine.request(), policy).agreed != ErrorClass::none) ++bad;
    known += pipeline.spent_together().traffic.known_pages;
    if (comm.rank() == 0) cycles = pipeline.spent_together().traffic.cycles;
    EXPECT_TRUE(file->close());
  });
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(cycles, 2 * kRanks * kBlock * kBlocks / kPage);
  EXPECT_EQ(known, cycles - 1);
}

}  // namespace
}  // namespace penstock::exec::whole_places_test
