// The simulator keeps what must hold of gotwals-1995's models whatever the parameters, and shows
// what the paper says at its own.
#include "model/simulator.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace penstock::model::simulator_test {
namespace {

using Kind = Event::Kind;

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// The paper's ratios (figure 3), with so many blocks in a memory of 1 MB.
System paper(int64_t blocks_in_memory, Paging paging) {
  System s;
  s.path = {0, 5e6, 1e6};
  s.paging_bytes_per_s = 5e5;
  s.block_bytes = 1'000'000 / blocks_in_memory;
  s.memory_bytes = s.block_bytes * blocks_in_memory;
  s.paging = paging;
  return s;
}

System draw_system() {
  System s;
  s.path = {*rc::gen::inRange(0, 3) * 0.01, *rc::gen::inRange(1, 200) * 1e5,
            *rc::gen::inRange(1, 50) * 1e5};
  s.paging_bytes_per_s = *rc::gen::inRange(1, 80) * 1e5;
  s.block_bytes = *rc::gen::inRange<int64_t>(1, 100'000);
  s.memory_bytes = s.block_bytes * *rc::gen::inRange<int64_t>(1, 30) +
                   *rc::gen::inRange<int64_t>(0, s.block_bytes);
  s.buffer_bytes = *rc::gen::weightedOneOf<int64_t>(
      {{2, rc::gen::just(kNoLimit)},
       {2, rc::gen::inRange<int64_t>(s.block_bytes, 60 * s.block_bytes + 1)},
       {1, rc::gen::just<int64_t>(0)}});
  s.nodes = *rc::gen::weightedElement<int>({{3, 1}, {1, 2}, {1, 5}});
  s.mapping = *rc::gen::element(Mapping::cyclic, Mapping::blocked);
  s.paging = *rc::gen::element(Paging::demand, Paging::early);
  return s;
}

int64_t draw_bytes(const System& s) { return *rc::gen::inRange<int64_t>(1, 150 * s.block_bytes); }

struct Played {
  Outcome outcome;
  std::vector<Event> events;
};
Played play(const System& s, int64_t n) {
  Played p;
  auto outcome = simulate(s, n, [&](const Event& e) { p.events.push_back(e); });
  if (!outcome) throw std::runtime_error(outcome.error().message());
  p.outcome = std::move(*outcome);
  return p;
}
Times times(const System& s, int64_t n) { return play(s, n).outcome.times; }

RC_GTEST_PROP(Simulator, NoBufferIsModelOne, ()) {
  System s = draw_system();
  s.buffer_bytes = 0;
  const int64_t n = draw_bytes(s);
  const Times played = times(s, n), formula = *unbuffered(s.path, double(n));
  RC_ASSERT(near(played.application_s, formula.application_s));
  RC_ASSERT(near(played.actual_s, formula.actual_s));
}

// Model 2 by its own recurrence: a block is sent when the one before has arrived and the one that
// had its place is written, and written when it is there and the one before is written.
RC_GTEST_PROP(Simulator, ABufferThatMemoryHoldsIsModelTwoEventForEvent, ()) {
  System s = draw_system();
  s.nodes = 1;
  s.buffer_bytes = *rc::gen::inRange<int64_t>(s.block_bytes, s.memory_bytes + 1);
  const int64_t n = draw_bytes(s);
  const auto places = size_t(s.buffer_bytes / s.block_bytes);
  std::vector<double> arrived, written;
  for (int64_t begin = 0; begin < n; begin += s.block_bytes) {
    const auto bytes = double(std::min(s.block_bytes, n - begin));
    const size_t i = arrived.size();
    double sent_s = i > 0 ? arrived[i - 1] : s.path.startup_s;
    if (i >= places) sent_s = std::max(sent_s, written[i - places]);
    arrived.push_back(sent_s + bytes / s.path.network_bytes_per_s);
    const double from_s = i > 0 ? std::max(arrived[i], written[i - 1]) : arrived[i];
    written.push_back(from_s + bytes / s.path.disk_bytes_per_s);
  }
  const Played p = play(s, n);
  RC_ASSERT(p.events.size() == arrived.size() + written.size());
  for (const Event& e : p.events) {
    RC_ASSERT(e.kind == Kind::arrived || e.kind == Kind::written);
    const auto& expected = e.kind == Kind::arrived ? arrived : written;
    RC_ASSERT(near(e.time_s, expected.at(size_t(e.block))));
  }
}

// Where each block is, by the events alone.
class Whereabouts {
 public:
  void see(const Event& e) {
    RC_ASSERT(e.time_s >= now_s_);
    now_s_ = e.time_s;
    const auto at = place_.find(e.block);
    switch (e.kind) {
      case Kind::arrived:
        RC_ASSERT(at == place_.end());
        place_[e.block] = 'm';
        break;
      case Kind::written:
        RC_ASSERT(at != place_.end() && at->second == 'm');
        at->second = 'd';
        break;
      case Kind::paged_out:
        RC_ASSERT(at != place_.end() && at->second == 'm');
        at->second = 'p';
        break;
      case Kind::paged_in:
        RC_ASSERT(at != place_.end() && at->second == 'p');
        at->second = 'm';
        break;
    }
  }
  int64_t bytes(const Blocks& blocks, char place) const {
    int64_t sum = 0;
    for (const auto& [block, at] : place_) sum += at == place ? blocks.bytes(block) : 0;
    return sum;
  }

 private:
  double now_s_ = 0;
  std::map<int64_t, char> place_;
};

RC_GTEST_PROP(Simulator, NoByteIsLostOrWrittenTwice, ()) {
  System s = draw_system();
  s.order = *rc::gen::element(Order::memory, Order::file);
  const int64_t n = draw_bytes(s);
  const Played p = play(s, n);
  const Blocks blocks(s, n);
  Whereabouts where;
  for (const Event& e : p.events) {
    where.see(e);
    if (s.has_buffer()) RC_ASSERT(where.bytes(blocks, 'm') <= s.nodes * s.memory_bytes);
    if (s.has_buffer() && s.buffer_bytes < kNoLimit)
      RC_ASSERT(where.bytes(blocks, 'm') + where.bytes(blocks, 'p') <= s.nodes * s.buffer_bytes);
  }
  RC_ASSERT(where.bytes(blocks, 'd') == n);
  RC_ASSERT(p.outcome.paged_in_bytes == p.outcome.paged_out_bytes);
}

RC_GTEST_PROP(Simulator, TheTimelineKeepsAccountOfEveryByte, ()) {
  System s = draw_system();
  s.timeline_points = *rc::gen::inRange<size_t>(2, 300);
  const int64_t n = draw_bytes(s);
  const Outcome outcome = play(s, n).outcome;
  RC_ASSERT(outcome.timeline.size() <= s.timeline_points);
  Moment before;
  for (const Moment& m : outcome.timeline) {
    RC_ASSERT(m.sent_bytes == m.memory_bytes + m.paged_bytes + m.disk_bytes);
    RC_ASSERT(m.memory_bytes >= 0 && m.memory_bytes <= outcome.most_memory_bytes);
    RC_ASSERT(m.paged_bytes >= 0 && m.paged_bytes <= outcome.most_paged_bytes);
    RC_ASSERT(m.time_s >= before.time_s && m.disk_bytes >= before.disk_bytes);
    before = m;
  }
  RC_ASSERT(before.disk_bytes == n);
  RC_ASSERT(before.time_s == outcome.times.actual_s);
}

RC_GTEST_PROP(Simulator, NoRateExceedsItsDevice, ()) {
  const System s = draw_system();
  const int64_t n = draw_bytes(s);
  const Times t = times(s, n);
  RC_ASSERT(t.application_s <= t.actual_s);
  RC_ASSERT(double(n) <= t.actual_s * s.nodes * s.path.disk_bytes_per_s * (1 + 1e-9));
  RC_ASSERT(double(n) <= t.application_s * s.path.network_bytes_per_s * (1 + 1e-9));
}

RC_GTEST_PROP(Simulator, EarlyPageInIsNeverSlowerAndTheProgramDoesNotNotice, ()) {
  System s = draw_system();
  const int64_t n = draw_bytes(s);
  s.paging = Paging::demand;
  const Times demand = times(s, n);
  s.paging = Paging::early;
  const Times early = times(s, n);
  RC_ASSERT(early.actual_s <= demand.actual_s * (1 + 1e-9));
  RC_ASSERT(near(early.application_s, demand.application_s));
}

RC_GTEST_PROP(Simulator, TheSameParametersGiveTheSameOutcome, ()) {
  System s = draw_system();
  s.order = *rc::gen::element(Order::memory, Order::file);
  const int64_t n = draw_bytes(s);
  const Played a = play(s, n), b = play(s, n);
  RC_ASSERT(a.outcome.times == b.outcome.times);
  RC_ASSERT(a.outcome.timeline == b.outcome.timeline);
  RC_ASSERT(a.events.size() == b.events.size());
}

RC_GTEST_PROP(Simulator, WhatMemoryHoldsIsSentAtTheNetworksRateAndNeverPaged, ()) {
  System s = draw_system();
  s.nodes = 1;
  s.buffer_bytes = kNoLimit;
  const auto n = *rc::gen::inRange<int64_t>(1, s.frames() * s.block_bytes + 1);
  const Outcome outcome = play(s, n).outcome;
  RC_ASSERT(outcome.paged_out_bytes == 0);
  RC_ASSERT(
      near(outcome.times.application_s, s.path.startup_s + double(n) / s.path.network_bytes_per_s));
}

// In blocks of a fifth of memory and more, memory is full before the disk has written one: paging
// begins with the first byte that memory does not hold, and both rates leave their plateaus there.
TEST(Simulator, BothCurvesLeaveThePlateauAtTheSizeOfMemory) {
  for (const int64_t blocks : {4, 5}) {
    const System s = paper(blocks, Paging::demand);
    const Outcome fits = play(s, s.memory_bytes).outcome;
    const Outcome exceeds = play(s, s.memory_bytes + s.block_bytes).outcome;
    EXPECT_EQ(fits.paged_out_bytes, 0);
    EXPECT_EQ(exceeds.paged_out_bytes, s.block_bytes);
    const Rates plateau = rates(double(s.memory_bytes), fits.times);
    const Rates after = rates(double(s.memory_bytes + s.block_bytes), exceeds.times);
    EXPECT_DOUBLE_EQ(plateau.application_bytes_per_s, 5e6);
    EXPECT_LT(after.application_bytes_per_s, 0.9 * plateau.application_bytes_per_s);
    EXPECT_LT(after.actual_bytes_per_s, 0.8 * plateau.actual_bytes_per_s);
  }
}

// In smaller blocks the disk frees memory meanwhile, and the plateau ends later by that.
TEST(Simulator, SmallBlocksLeaveThePlateauWhereTheClosedFormDoes) {
  const System s = paper(1000, Paging::demand);
  const auto full = int64_t(1'250'000);
  EXPECT_EQ(play(s, full - 5 * s.block_bytes).outcome.paged_out_bytes, 0);
  EXPECT_GT(play(s, full + 5 * s.block_bytes).outcome.paged_out_bytes, 0);
}

RC_GTEST_PROP(Simulator, TendsToTheClosedFormForSmallBlocks, ()) {
  System s = draw_system();
  s.nodes = 1;
  s.block_bytes = 1000;
  s.memory_bytes = 400'000;
  s.buffer_bytes = *rc::gen::element<int64_t>(400'000, 700'000, kNoLimit);
  const auto n = *rc::gen::inRange<int64_t>(100'000, 3'000'000);
  const VirtualMemory memory{double(s.memory_bytes),
                             s.buffer_bytes == kNoLimit ? kUnlimited : double(s.buffer_bytes),
                             s.paging_bytes_per_s, s.paging};
  const Times formula = *paged(s.path, memory, double(n)), played = times(s, n);
  // Nearer than a hundredth, and the few blocks that are on their way at the ends of each piece.
  const double few_blocks_s =
      3 * double(s.block_bytes) *
      (1 / s.path.network_bytes_per_s + 1 / s.path.disk_bytes_per_s + 1 / s.paging_bytes_per_s);
  const auto is_near = [&](double a, double b) {
    return std::abs(a - b) <= 0.01 * b + few_blocks_s;
  };
  RC_ASSERT(is_near(played.application_s, formula.application_s));
  RC_ASSERT(is_near(played.actual_s, formula.actual_s));
}

// Figure 4 at five times the memory: 0.60 of the raw disk on demand, 0.85 early.
TEST(Simulator, ThePapersFigureFour) {
  const int64_t n = 5'000'000;
  const double demand = rates(n, times(paper(5, Paging::demand), n)).actual_bytes_per_s / 1e6;
  const double early = rates(n, times(paper(5, Paging::early), n)).actual_bytes_per_s / 1e6;
  EXPECT_NEAR(demand, 0.60, 0.06);
  EXPECT_NEAR(early, 0.85, 0.085);
}

// Figure 3, against a buffer that is all in memory.
TEST(Simulator, ThePapersFigureThree) {
  const int64_t n = 5'000'000;
  const System with = paper(5, Paging::demand);
  System without = with;
  without.buffer_bytes = without.memory_bytes;
  EXPECT_LT(times(with, n).application_s, 0.8 * times(without, n).application_s);
  EXPECT_GT(times(with, n).actual_s, 1.2 * times(without, n).actual_s);
}

// Writing in file order, memory that pages makes both rates worse: not what figure 3 says.
TEST(Simulator, InFileOrderVirtualMemoryCostsTheApplicationToo) {
  const int64_t n = 5'000'000;
  System with = paper(100, Paging::demand), without = with;
  with.order = Order::file;
  without.buffer_bytes = without.memory_bytes;
  EXPECT_GT(times(with, n).application_s, times(without, n).application_s);
}

TEST(Simulator, BlocksDealtToNodesKeepAllDisksBusyAndConsecutiveOnesDoNot) {
  System s = paper(20, Paging::demand);
  s.nodes = 4;
  const int64_t n = 20'000'000;
  const Times cyclic = times(s, n);
  s.mapping = Mapping::blocked;
  EXPECT_LT(cyclic.actual_s, 0.8 * times(s, n).actual_s);
}

TEST(Simulator, AMillionBlocksTakeAtMostFourEventsEach) {
  System s = paper(200'000, Paging::early);
  int64_t events = 0;
  const auto outcome = simulate(s, 1'000'000 * s.block_bytes, [&](const Event&) { ++events; });
  ASSERT_TRUE(outcome);
  EXPECT_LE(events, 4'000'000);
  EXPECT_GT(outcome->paged_out_bytes, 0);
  EXPECT_LE(outcome->timeline.size(), s.timeline_points);
}

TEST(Simulator, RefusesWhatItCannotPlay) {
  System s = paper(5, Paging::demand);
  s.block_bytes = 0;
  const auto outcome = simulate(s, 1);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().error_class, ErrorClass::argument);
}

}  // namespace
}  // namespace penstock::model::simulator_test
