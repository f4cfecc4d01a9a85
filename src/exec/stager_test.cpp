// The bound, the order and the thread of staged writes. Nothing here depends on how fast anything
// is: what must wait is held.
#include "exec/stager.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "base/descriptors_for_tests.hpp"
#include "io/eventually.hpp"
#include "io/held_file.hpp"

namespace penstock::exec::stager_test {
namespace {

constexpr int64_t kPage = 4096;

class Noted final : public Staged {
 public:
  Noted(std::vector<int>& order, int name, io::Hold* hold = nullptr)
      : order_(order), name_(name), hold_(hold) {}
  void write() noexcept override {
    if (hold_ != nullptr) hold_->pass();
    order_.push_back(name_);
  }

 private:
  std::vector<int>& order_;
  const int name_;
  io::Hold* hold_;
};

std::unique_ptr<Staged> staged(Stager& stager, std::vector<int>& order, int name,
                               io::Hold* hold = nullptr, int64_t bytes = kPage,
                               int64_t limit = kStagedLimitBytes) {
  auto memory = stager.memory(bytes, limit);
  EXPECT_TRUE(memory);
  auto work = std::make_unique<Noted>(order, name, hold);
  work->memory = *std::move(memory);
  return work;
}

Result<pthread_t> no_thread(void* (*)(void*), void*) {
  return os_error("pthread_create", "a test", EAGAIN);
}

TEST(Stager, WritesAllLanesInTheOrderInWhichTheyWereStaged) {
  Stager stager;
  Stager::Lane a, b;
  std::vector<int> order, expected;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(stager.stage(i % 2 == 0 ? a : b, staged(stager, order, i)), i / 2 + 1);
    expected.push_back(i);
  }
  stager.drain(a);
  stager.drain(b);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(stager.held_bytes(), 0);
}

TEST(Stager, ReturnsWhileTheWriteIsHeldAndWaitsWhenAsked) {
  Stager stager;
  Stager::Lane lane, other;
  std::vector<int> order;
  io::Hold hold;
  const int64_t first = stager.stage(lane, staged(stager, order, 1, &hold));
  stager.stage(lane, staged(stager, order, 2, &hold));
  hold.wait_until_someone_waits();
  EXPECT_EQ(hold.passed(), 0) << "stage() came back before anything was written";
  stager.drain(other);  // nothing of it is staged
  hold.let_go();
  stager.wait(lane, first);
  EXPECT_EQ(hold.passed(), 1);
  hold.open();
  stager.drain(lane);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Stager, WhoDoesNotFitWaitsForAnEarlierWriteAndNotForAll) {
  Stager stager;
  Stager::Lane lane;
  std::vector<int> order;
  io::Hold hold;
  const int64_t limit = 2 * kPage;
  stager.stage(lane, staged(stager, order, 1, &hold, kPage, limit));
  stager.stage(lane, staged(stager, order, 2, &hold, kPage, limit));
  int passed_when_there_was_room = -1;
  std::thread third([&] {
    auto work = staged(stager, order, 3, &hold, kPage, limit);
    passed_when_there_was_room = hold.passed();
    stager.stage(lane, std::move(work));
  });
  hold.wait_until_someone_waits();
  EXPECT_EQ(stager.held_bytes(), limit);
  hold.let_go();
  third.join();
  EXPECT_EQ(passed_when_there_was_room, 1);
  EXPECT_EQ(stager.held_bytes(), limit);
  hold.open();
  stager.drain(lane);
  EXPECT_EQ(order.size(), 3u);
}

// Else who writes small pieces on and on would keep out for ever who needs more.
TEST(Stager, WhoAsksFirstGetsMemoryFirst) {
  Stager stager;
  Stager::Lane lane;
  std::vector<int> order;
  io::Hold hold;
  const int64_t limit = 3 * kPage;
  stager.stage(lane, staged(stager, order, 1, &hold, kPage, limit));
  stager.stage(lane, staged(stager, order, 2, &hold, kPage, limit));
  const auto ask = [&](int name, int64_t bytes) {
    stager.stage(lane, staged(stager, order, name, &hold, bytes, limit));
  };
  std::thread large(ask, 3, limit);
  EXPECT_TRUE(io::eventually([&] { return stager.waiting() == 1; }));
  std::thread small(ask, 4, kPage);  // for which there is room
  EXPECT_TRUE(io::eventually([&] { return stager.waiting() == 2; }));
  hold.open();
  large.join();
  small.join();
  stager.drain(lane);
  EXPECT_EQ(order.size(), 4u);
}

TEST(Stager, WhatIsLargerThanTheBoundComesThroughAlone) {
  Stager stager;
  Stager::Lane lane;
  std::vector<int> order;
  io::Hold hold;
  stager.stage(lane, staged(stager, order, 1, &hold, kPage, kPage));
  int passed = -1;
  std::thread large([&] {
    auto work = staged(stager, order, 2, &hold, 100 * kPage, kPage);
    passed = hold.passed();
    stager.stage(lane, std::move(work));
  });
  hold.wait_until_someone_waits();
  hold.open();
  large.join();
  stager.drain(lane);
  EXPECT_EQ(passed, 1);
}

TEST(Stager, SeveralThreadsKeepTheBoundTogether) {
  Stager stager;
  constexpr int64_t limit = 8 * kPage;
  std::atomic<int64_t> most = 0;
  std::vector<std::vector<int>> orders(4);
  std::vector<std::thread> threads;
  Stager::Lane lanes[4];
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        auto work = staged(stager, orders[t], i, nullptr, kPage * (i % 3 + 1), limit);
        const int64_t held = stager.held_bytes();
        for (int64_t m = most; held > m && !most.compare_exchange_weak(m, held);) {
        }
        stager.stage(lanes[t], std::move(work));
      }
      stager.drain(lanes[t]);
    });
  for (std::thread& t : threads) t.join();
  // What came through alone, because nothing was being written, may stand beside another's pages.
  EXPECT_LE(most, limit + 4 * 3 * kPage);
  for (const auto& order : orders) EXPECT_EQ(order.size(), 200u);
  EXPECT_EQ(stager.held_bytes(), 0);
}

TEST(Stager, MemoryIsKeptWarmWithinTheBound) {
  Stager stager;
  auto first = stager.memory(3 * kPage, 4 * kPage);
  ASSERT_TRUE(first);
  const std::byte* const where = first->data();
  stager.give_back(*std::move(first));
  auto again = stager.memory(3 * kPage, 4 * kPage);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->data(), where);
  stager.give_back(*std::move(again));
  auto other = stager.memory(2 * kPage, 4 * kPage);  // both do not fit: the warm one goes
  ASSERT_TRUE(other);
  EXPECT_EQ(stager.held_bytes(), 2 * kPage);
  stager.give_back(*std::move(other));
}

TEST(Stager, WithoutAThreadItWritesBeforeItReturnsAndSaysSo) {
  Stager stager(&no_thread);
  Stager::Lane lane;
  std::vector<int> order;
  stager.stage(lane, staged(stager, order, 7));
  EXPECT_EQ(order, (std::vector<int>{7}));
  stager.drain(lane);
  EXPECT_EQ(stager.held_bytes(), 0);
  EXPECT_NE(stager.degraded().find("could not be started"), std::string::npos);
}

TEST(Stager, WritesWhatIsStagedBeforeItEnds) {
  std::vector<int> order;
  Stager::Lane lane;
  {
    Stager stager;
    for (int i = 0; i < 10; ++i) stager.stage(lane, staged(stager, order, i));
  }
  EXPECT_EQ(order.size(), 10u);
}

// From one file to the next; others find the thread's bell anew.
TEST(Stager, RestsWithoutADescriptorAndIsRungAgain) {
  const int before = open_descriptors();
  Stager stager;
  for (int round = 0; round < 100; ++round) {
    const std::optional<Bell::Address> address = stager.bell();
    ASSERT_TRUE(address);
    const auto far = FarBell::find(*address);
    ASSERT_NE(far, nullptr);
    struct Counted final : Chore {
      std::atomic<int> runs = 0;
      void run(Why) noexcept override { ++runs; }
    } chore;
    EXPECT_TRUE(stager.add(chore));
    const auto has_run = [&] { return chore.runs > 0; };
    EXPECT_TRUE(io::eventually(has_run));
    const int runs = chore.runs;
    far->ring();
    EXPECT_TRUE(io::eventually([&] { return chore.runs > runs; }));
    Stager::Lane lane;
    std::vector<int> order;
    stager.stage(lane, staged(stager, order, round));
    stager.drain(lane);
    EXPECT_EQ(order, std::vector{round});
    stager.remove(chore);
    stager.rest();
    EXPECT_EQ(open_descriptors(), before);
  }
}

TEST(Stager, IsRungThoughItHasComeRoundBetweenTwoRests) {
  using namespace std::chrono_literals;
  Stager stager;
  const auto far = FarBell::find(*stager.bell());
  ASSERT_NE(far, nullptr);
  std::this_thread::sleep_for(20ms);  // it sleeps by the first bell
  stager.rest();
  (void)stager.bell();
  far->ring();
  std::this_thread::sleep_for(20ms);  // and by the second now
  stager.rest();
  (void)stager.bell();
  Stager::Lane lane;
  std::vector<int> order;
  stager.stage(lane, staged(stager, order, 7));
  stager.drain(lane);  // without a bell it takes an hour
  EXPECT_EQ(order, std::vector{7});
}

}  // namespace
}  // namespace penstock::exec::stager_test
