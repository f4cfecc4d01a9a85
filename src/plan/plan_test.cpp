// Plans are values: what they promise is checked without threads, MPI or files.
#include "plan/plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/algorithm.hpp"

namespace penstock::plan::plan_test {
namespace {

using layout::FileView;
using layout::Geometry;
using layout::LoopTree;

std::vector<Summary> draw_summaries(int ranks) {
  std::vector<Summary> all;
  const bool regular = *rc::gen::arbitrary<bool>();
  const auto lo = *rc::gen::inRange<int64_t>(0, 100000), n = *rc::gen::inRange<int64_t>(1, 60000);
  const auto shift = *rc::gen::inRange<int64_t>(0, 70000);
  for (int r = 0; r < ranks; ++r) {
    Summary s;
    if (!regular && *rc::gen::inRange(0, 4) == 0) {
      all.push_back(s);
      continue;
    }
    s.lo = regular ? lo + r * shift : *rc::gen::inRange<int64_t>(0, 200000);
    s.hi = s.lo + (regular ? n : *rc::gen::inRange<int64_t>(1, 60000));
    s.bytes = s.hi - s.lo;
    all.push_back(s);
  }
  return all;
}

RC_GTEST_PROP(Crowd, HoldsEverySummaryItWasMadeFrom, ()) {
  const auto all = draw_summaries(*rc::gen::inRange(1, 40));
  const Crowd crowd = Crowd::from(all);
  RC_ASSERT(crowd.ranks() == int(all.size()));
  int64_t bytes = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    RC_ASSERT(crowd.summary(int(r)).bytes == all[r].bytes);
    if (!all[r].empty()) RC_ASSERT(crowd.summary(int(r)) == all[r]);
    bytes += all[r].bytes;
  }
  RC_ASSERT(crowd.bytes() == bytes);
}

RC_GTEST_PROP(Crowd, FindsExactlyTheRanksThatTouchAnExtent, ()) {
  const auto all = draw_summaries(*rc::gen::inRange(1, 40));
  const auto begin = *rc::gen::inRange<int64_t>(0, 250000);
  const Extent e{begin, begin + *rc::gen::inRange<int64_t>(0, 60000)};
  std::set<int> expected, found;
  for (size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty() && all[r].extent().overlaps(e)) expected.insert(int(r));
  Crowd::from(all).for_each_touching(e, [&](int rank, const Summary& s) {
    EXPECT_EQ(s, all[size_t(rank)]);
    found.insert(rank);
  });
  RC_ASSERT(found == expected);
}

RC_GTEST_PROP(Crowd, CallsDisjointOnlyWhatIsDisjoint, ()) {
  const auto all = draw_summaries(*rc::gen::inRange(1, 12));
  bool overlap = false;
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      overlap = overlap ||
                (!all[a].empty() && !all[b].empty() && all[a].extent().overlaps(all[b].extent()));
  if (overlap) RC_ASSERT(!Crowd::from(all).extents_disjoint());
}

TEST(Crowd, HoldsAHundredThousandRegularRanksInOneClass) {
  std::vector<Summary> all(100000);
  for (int64_t r = 0; r < 100000; ++r) all[size_t(r)] = {r * 4096, (r + 1) * 4096, 4096};
  const Crowd crowd = Crowd::from(all);
  EXPECT_EQ(crowd.classes().size(), 1u);
  EXPECT_TRUE(crowd.extents_disjoint());
  int touching = 0;
  crowd.for_each_touching({4096 * 500, 4096 * 502}, [&](int rank, const Summary&) {
    EXPECT_TRUE(rank == 500 || rank == 501);
    ++touching;
  });
  EXPECT_EQ(touching, 2);
}

// --- Every algorithm keeps the promises of Plan ---

struct Drawn {
  Team team;
  Geometry geometry;
  std::vector<FileView> views;
  std::vector<StreamRange> ranges;
  std::vector<Summary> summaries;
};

// The last byte of all is the last that a file can have.
void move_to_the_end(Drawn& d) {
  Off end = 0;
  for (const Summary& s : d.summaries) end = std::max(end, s.extent().end);
  for (size_t r = 0; r < d.views.size(); ++r) {
    const FileView& v = d.views[r];
    d.views[r] = *FileView::make(v.displacement() + (kLastOff - end), 1, v.filetype());
    d.summaries[r] = summarise(d.views[r], d.ranges[r], 64);
  }
}

Drawn draw_team() {
  Drawn d;
  d.team.ranks = *rc::gen::inRange(1, 9);
  d.team.nodes = *rc::gen::inRange(1, d.team.ranks + 1);
  d.team.turn = *rc::gen::inRange(0, d.team.ranks / d.team.nodes + 1);
  d.team.cores_per_node = *rc::gen::inRange(1, 5);
  d.geometry.stripe_bytes = *rc::gen::element<int64_t>(0, 0, 65536);
  for (int r = 0; r < d.team.ranks; ++r) {
    const auto block = *rc::gen::inRange<int64_t>(1, 9000);
    const LoopTree tile =
        *LoopTree::resized(LoopTree::bytes(block), 0, block + *rc::gen::inRange<int64_t>(0, 20000));
    d.views.push_back(*FileView::make(*rc::gen::inRange<int64_t>(0, 50000), 1, tile));
    const auto begin = *rc::gen::inRange<int64_t>(0, 30000);
    d.ranges.push_back({begin, begin + *rc::gen::inRange<int64_t>(0, 100000)});
    d.summaries.push_back(summarise(d.views.back(), d.ranges.back(), 64));
  }
  if (*rc::gen::inRange(0, 4) == 0) move_to_the_end(d);
  return d;
}

void add_blocks(std::vector<Extent>& blocks, const FileView& view, StreamRange range) {
  layout::Cursor cursor = view.cursor();
  cursor.seek(range.begin);
  for (int64_t left = range.size(); left > 0;) {
    const layout::Run run = cursor.next(left);
    for (int64_t i = 0; i < run.count; ++i)
      blocks.push_back({run.offset + i * run.stride, run.offset + i * run.stride + run.block});
    left -= run.bytes();
  }
}

int64_t union_bytes(std::vector<Extent>& blocks) {
  std::ranges::sort(blocks, {}, &Extent::begin);
  int64_t bytes = 0;
  Off end = 0;
  for (const Extent e : blocks) {
    bytes += std::max<int64_t>(0, e.end - std::max(end, e.begin));
    end = std::max(end, e.end);
  }
  return bytes;
}

// The plan as all ranks know it together.
std::shared_ptr<const Plan> place_whole(const Algorithm& algorithm, const Parameters& parameters,
                                        const Drawn& d) {
  auto placed = algorithm.place(parameters, d.team, Crowd::from(d.summaries), d.geometry);
  RC_ASSERT(bool(placed));
  std::vector<Part> parts;
  for (size_t r = 0; r < d.views.size(); ++r) parts.push_back({d.views[r], d.ranges[r]});
  return with_all_cuts(*std::move(placed), parts);
}

// One cycle after the other, as next_cycle() does not.
void check_next_cycle(const Plan& plan, const FileView& view, StreamRange own, int rank,
                      int writer) {
  int expected = plan.cycles(writer);
  for (int cycle = plan.cycles(writer); cycle-- > 0;) {
    if (!plan.part(view, own, rank, writer, cycle).empty()) expected = cycle;
    RC_ASSERT(plan.next_cycle(view, own, rank, writer, cycle) == expected);
  }
}

void check_promises(const Algorithm& algorithm, const Parameters& parameters, const Drawn& d) {
  const auto whole = place_whole(algorithm, parameters, d);
  const Plan& plan = *whole;
  std::map<std::pair<int, int>, std::vector<Extent>> pages;  // that are lists
  for (int w = 0; w < plan.writers(); ++w)
    RC_ASSERT(plan.writer_of(plan.writer_rank(w)) == std::optional(w));
  for (int r = 0; r < d.team.ranks; ++r) {
    const auto i = size_t(r);
    // A description that is sent is received: the writer looks for senders by its domain.
    const IntRange reached = plan.reached(d.summaries[i], r);
    for (int w = reached.begin; w < reached.end; ++w) {
      RC_ASSERT(plan.cycles(w) > 0);
      const Extent domain{plan.extent(w, 0).begin, plan.extent(w, plan.cycles(w) - 1).end};
      RC_ASSERT(domain.overlaps(d.summaries[i].extent()));
    }
    for (int w = reached.begin; w < reached.end; ++w)
      check_next_cycle(plan, d.views[i], d.ranges[i], r, w);
    int64_t at = 0, sum = 0;
    std::pair<int, int> last{-1, -1};
    std::vector<StreamRange> parts;
    Slices slices(plan, d.views[i], d.ranges[i], d.summaries[i], r);
    while (const auto s = slices.next()) {
      RC_ASSERT(std::pair(s->cycle, s->writer) > last);
      last = {s->cycle, s->writer};
      RC_ASSERT(plan.owes(d.summaries[i], r, s->writer, s->cycle));
      RC_ASSERT(plan.reached(d.summaries[i], r).contains(s->writer));
      RC_ASSERT(s->cycle < plan.cycles(s->writer) && s->cycle < plan.cycles());
      const Extent e = d.views[i].extent_of(s->src), page = plan.extent(s->writer, s->cycle);
      RC_ASSERT(page.begin <= e.begin && e.end <= page.end);
      RC_ASSERT(plan.senders(s->writer).contains(r));
      if (algorithm.scatters)
        add_blocks(pages[{s->writer, s->cycle}], d.views[i], s->src);
      else
        RC_ASSERT(page.size() <= plan.page_bytes());
      // A writer that knows only the summary and the tree computes the same bytes.
      const auto located = locate(d.summaries[i], d.views[i].filetype());
      RC_ASSERT(bool(located));
      const StreamRange theirs = plan.part(located->view, located->own, r, s->writer, s->cycle);
      RC_ASSERT(theirs.size() == s->src.size() && located->view.extent_of(theirs) == e);
      parts.push_back(s->src);
      sum += s->src.size();
    }
    std::ranges::sort(parts, {}, &StreamRange::begin);
    at = d.ranges[i].begin;
    for (const StreamRange& p : parts) {
      RC_ASSERT(p.begin == at);
      at = p.end;
    }
    RC_ASSERT(sum == std::max<int64_t>(0, d.ranges[i].size()));
  }
  for (auto& [where, blocks] : pages) RC_ASSERT(union_bytes(blocks) <= plan.page_bytes());
}

RC_GTEST_PROP(Plan, GivesEveryByteToOneWriterInOneCycle, ()) {
  const Drawn d = draw_team();
  const auto cycle = *rc::gen::element<int64_t>(0, 4096, 12288, 65536);
  const auto stripe = *rc::gen::element<int64_t>(0, 4096, 20480, 65536);
  const auto writer = *rc::gen::inRange(0, 9);
  for (const Algorithm* a : algorithms())
    for (const int writers : {0, 1, 3})
      check_promises(*a, taken_by(*a, {writers, cycle, stripe, writer}), d);
}

RC_GTEST_PROP(Plan, NeverCutsAUnitThatItOwns, ()) {
  const Drawn d = draw_team();
  const Crowd crowd = Crowd::from(d.summaries);
  for (const Algorithm* a : algorithms()) {
    if (!a->owns_blocks) continue;
    const Parameters parameters{*rc::gen::inRange(1, 9), 4096, 12288};
    const auto placed = a->place(taken_by(*a, parameters), d.team, crowd, d.geometry);
    RC_ASSERT(bool(placed));
    const Plan& plan = **placed;
    std::map<Off, int> owner;  // by unit
    for (int w = 0; w < plan.writers(); ++w)
      for (int c = 0; c < plan.cycles(w); ++c) {
        const Extent e = plan.extent(w, c);
        for (Off u = e.begin / d.geometry.unit();
             !e.empty() && u <= (e.end - 1) / d.geometry.unit(); ++u)
          RC_ASSERT(owner.emplace(u, w).first->second == w);
      }
  }
}

// A plan that counts what it is asked for.
class Asked final : public Plan {
 public:
  explicit Asked(const Plan& plan) : plan_(plan) {}
  int64_t parts() const noexcept { return parts_; }

  int writers() const noexcept override { return plan_.writers(); }
  int writer_rank(int writer) const noexcept override { return plan_.writer_rank(writer); }
  std::optional<int> writer_of(int rank) const noexcept override { return plan_.writer_of(rank); }
  int cycles(int writer) const noexcept override { return plan_.cycles(writer); }
  int cycles() const noexcept override { return plan_.cycles(); }
  Extent extent(int writer, int cycle) const override { return plan_.extent(writer, cycle); }
  int64_t page_bytes() const noexcept override { return plan_.page_bytes(); }
  bool owns_blocks() const noexcept override { return plan_.owns_blocks(); }
  bool exchanges() const noexcept override { return plan_.exchanges(); }
  IntRange cycles_of(const Summary& s, int rank) const override { return plan_.cycles_of(s, rank); }
  IntRange writers_of(const Summary& s, int rank, int cycle) const override {
    return plan_.writers_of(s, rank, cycle);
  }
  IntRange reached(const Summary& s, int rank) const override { return plan_.reached(s, rank); }
  StreamRange part(const FileView& view, StreamRange own, int rank, int writer,
                   int cycle) const override {
    ++parts_;
    return plan_.part(view, own, rank, writer, cycle);
  }

 private:
  const Plan& plan_;
  mutable int64_t parts_ = 0;
};

// Two bytes of a rank with 2^28 pages between them.
TEST(Plan, SlicesCostWhatTheRankBringsAndNotWhatItSpans) {
  const LoopTree far = *LoopTree::strided(2, 1, Off{1} << 40, LoopTree::bytes(1));
  const FileView view = *FileView::make(0, 1, far);
  const std::vector<Summary> one{summarise(view, {0, 2}, 64)};
  for (const Algorithm* a : algorithms()) {
    const std::string_view name = a->name;
    auto placed = a->place(taken_by(*a, {1, 4096, 4096}), {1, 1, 1}, Crowd::from(one), {});
    ASSERT_TRUE(placed) << name;
    const Part parts[] = {{view, {0, 2}}};
    const auto plan = with_all_cuts(*std::move(placed), parts);
    const Asked asked(*plan);
    Slices slices(asked, view, {0, 2}, one[0], 0);
    int64_t bytes = 0;
    while (const auto slice = slices.next()) bytes += slice->src.size();
    EXPECT_EQ(bytes, 2) << name;
    EXPECT_LE(asked.parts(), 16) << name;
  }
}

// Over two bytes, in the smallest pages.
void count_cycles_to(Off far) {
  const std::vector<Summary> two{{0, 1, 1}, {far, far + 1, 1}};
  const Crowd crowd = Crowd::from(two);
  const FileView view = *FileView::make(far, 1, LoopTree::bytes(1));
  for (const Algorithm* a : algorithms()) {
    if (!a->exchanges) continue;
    const std::string_view name = a->name;
    auto placed = a->place(taken_by(*a, {1, 4096, 4096}), {2, 1, 2}, crowd, {});
    ASSERT_TRUE(placed);
    const Part parts[] = {{FileView(), {0, 1}}, {view, {0, 1}}};
    const auto plan = with_all_cuts(*std::move(placed), parts);
    EXPECT_GT(plan->cycles(), 0) << name;
    Slices slices(*plan, view, {0, 1}, two[1], 1);
    const auto slice = slices.next();
    ASSERT_TRUE(slice) << name;
    EXPECT_EQ(slice->src, (StreamRange{0, 1}));
    EXPECT_LT(slice->cycle, plan->cycles(slice->writer)) << name;
    EXPECT_FALSE(slices.next()) << name;
  }
}

TEST(Plan, CountsCyclesOverAnExtentThatIsAHole) {
  count_cycles_to(Off{1} << 60);
  count_cycles_to(kLastOff - 1);
}

// 2^32 cycles as asked for, which no plan counts.
TEST(Individual, WritesALargeStreamInFewerCyclesThanWereAskedFor) {
  constexpr int64_t kBytes = int64_t{1} << 44;
  const std::vector<Summary> summaries{{.lo = 0, .hi = kBytes, .bytes = kBytes}};
  const auto placed = find_algorithm("individual")
                          ->place({.cycle_bytes = 4096}, {1, 1, 1}, Crowd::from(summaries), {});
  ASSERT_TRUE(placed);
  const Plan& plan = **placed;
  ASSERT_GT(plan.cycles(), 0);
  EXPECT_EQ(plan.cycles_of(summaries[0], 0).end, plan.cycles());
  const StreamRange last = plan.part({}, {0, kBytes}, 0, 0, plan.cycles() - 1);
  EXPECT_FALSE(last.empty());
  EXPECT_EQ(last.end, kBytes);
}

// A buffer that followed the stripes of a file system could be as large as they are.
TEST(TwoPhase, CutsAStripeThatIsLargerThanTheCycleIntoPages) {
  const std::vector<Summary> all(4, Summary{0, 1 << 28, 1 << 28});
  Geometry geometry;
  geometry.stripe_bytes = 1 << 26;
  const auto plan =
      find_algorithm("two_phase")->place({2, 1 << 20}, {4, 1, 4}, Crowd::from(all), geometry);
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)->extent(1, 0), (Extent{1 << 27, (1 << 27) + (1 << 20)}));
  EXPECT_EQ((*plan)->cycles(), 128);
}

TEST(TwoPhase, SpreadsWritersOverNodes) {
  const Algorithm& a = *find_algorithm("two_phase");
  std::vector<Summary> all(8, Summary{0, 1 << 24, 1 << 24});
  const auto plan = a.place({4, 0}, {8, 4, 2}, Crowd::from(all), {});
  ASSERT_TRUE(plan);
  std::vector<int> ranks;
  for (int w = 0; w < (*plan)->writers(); ++w) ranks.push_back((*plan)->writer_rank(w));
  EXPECT_EQ(ranks, (std::vector{0, 2, 4, 6}));
}

TEST(TwoPhase, CutsAHundredThousandRanksInTimeThatDoesNotFollowThem) {
  std::vector<RankClass> one{{0, 100000, {0, 4096, 4096}, 4096}};
  const Crowd crowd = Crowd::from_classes(one, 100000);
  const auto plan =
      find_algorithm("two_phase")->place({512, 1 << 20}, {100000, 1000, 64}, crowd, {});
  ASSERT_TRUE(plan);
  int senders = 0;
  crowd.for_each_touching((*plan)->extent(300, 0), [&](int, const Summary&) { ++senders; });
  EXPECT_GT(senders, 0);
  EXPECT_LE(senders, 257);
}

}  // namespace
}  // namespace penstock::plan::plan_test
