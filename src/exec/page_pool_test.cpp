// The pool itself: memory that is not there, that takes its time, that is mapped; pages on offer.
#include "exec/page_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "comm/shared_segment.hpp"

namespace penstock::exec::page_pool_test {
namespace {

constexpr int64_t kPage = 4096;

// Of one process, with something else on the way.
class Threads : public comm::SharedSegment {
 public:
  explicit Threads(PoolShape shape)
      : Threads(*comm::make_thread_segment(PagePool::bytes_for(shape))) {}
  Result<void> populate(size_t at, size_t bytes) override { return real_->populate(at, bytes); }

 private:
  explicit Threads(std::shared_ptr<comm::SharedSegment> real)
      : SharedSegment(real->memory()), real_(std::move(real)) {}

  std::shared_ptr<comm::SharedSegment> real_;
};

// A machine without memory to share: nothing is accepted, and the caller writes itself.
class Bare final : public Threads {
 public:
  using Threads::Threads;
  Result<void> populate(size_t at, size_t bytes) override {
    if (at == 0) return Threads::populate(at, bytes);
    return os_error("posix_fallocate", "the test", ENOSPC);
  }
};

TEST(PagePool, WithoutMemoryForAPageNoneIsGivenOut) {
  const PoolShape shape{kPage, 4};
  auto pool = PagePool::make(std::make_shared<Bare>(shape), shape);
  ASSERT_TRUE(pool);
  for (int n = 0; n < 2 * shape.slots; ++n) {
    EXPECT_EQ((*pool)->pin(3).first, PagePool::Pinning::no_memory);
    EXPECT_FALSE((*pool)->add_slot(n));
  }
  EXPECT_EQ((*pool)->used(), 0);
  EXPECT_TRUE((*pool)->usable());
  EXPECT_TRUE((*pool)->empty());
}

// While memory is being had, others find, fill and release pages.
class Slow final : public Threads {
 public:
  using Threads::Threads;
  Result<void> populate(size_t at, size_t bytes) override {
    if (meanwhile) meanwhile();
    return Threads::populate(at, bytes);
  }
  std::function<void()> meanwhile;
};

TEST(PagePool, MemoryIsNotTakenUnderTheLock) {
  const PoolShape shape{kPage, 4};
  const auto segment = std::make_shared<Slow>(shape);
  auto pool = PagePool::make(segment, shape).value();
  pool->add_slot(0);
  int others = 0;
  segment->meanwhile = [&] {
    const auto [pinning, stay] = pool->pin(7);
    ASSERT_EQ(pinning, PagePool::Pinning::pinned);
    pool->unpin(stay, 0);
    EXPECT_TRUE(pool->close(stay, 0));
    pool->release(stay, 0);
    ++others;
  };
  pool->add_slot(0);
  EXPECT_EQ(others, 1);
  EXPECT_EQ(pool->used(), 2);
}

// What a process is said to store into.
class Mapping final : public Threads {
 public:
  using Threads::Threads;
  void expect_stores(size_t at, size_t bytes) noexcept override {
    expected.push_back({Off(at), Off(at + bytes)});
  }
  std::vector<Extent> expected;
};

constexpr int64_t kManyPieces = int64_t{1} << 20;
Off bytes_of(const std::vector<Extent>& all) {
  Off sum = 0;
  for (const Extent e : all) sum += e.size();
  return sum;
}

TEST(PagePool, EachProcessMapsAroundItsFirstStoresThenAll) {
  const PoolShape shape{kManyPieces, 4};
  const auto mine = std::make_shared<Mapping>(shape);
  auto pool = PagePool::make(mine, shape).value();
  pool->add_slot(0);
  const PagePool::Stay stay = pool->pin(7).second;
  EXPECT_TRUE(mine->expected.empty()) << "nobody stores into it yet";
  const Extent page = pool->extent(7);

  const Extent some = pool->come_to(stay, {page.begin + 70'000, page.begin + 70'100});
  EXPECT_EQ(some, (Extent{page.begin + 65'536, page.begin + 131'072}));
  ASSERT_EQ(mine->expected.size(), 2U) << "the map of dirty bytes, and the page";
  const Off memory = pool->memory(stay) - mine->memory().data();
  EXPECT_EQ(mine->expected[0].begin, memory - kManyPieces / 8 + 65'536 / 8);
  EXPECT_EQ(mine->expected[0].size(), 65'536 / 8);
  EXPECT_EQ(mine->expected[1], (Extent{memory + 65'536, memory + 131'072}));
  EXPECT_FALSE(pool->is_mapped(stay));

  EXPECT_EQ(pool->come_to(stay, {page.begin, page.begin + 1}), page);
  EXPECT_TRUE(pool->is_mapped(stay));
  EXPECT_EQ(mine->expected[2], (Extent{memory - kManyPieces / 8, memory}));
  EXPECT_EQ(mine->expected[3], (Extent{memory, memory + kManyPieces}));
  pool->unpin(stay, 0);
}

TEST(PagePool, MemoryIsMappedOnceWhateverPageIsThere) {
  const PoolShape shape{kPage, 4};
  const auto mine = std::make_shared<Mapping>(shape);
  auto pool = PagePool::make(mine, shape).value();
  pool->add_slot(0);
  for (const int64_t page : {7, 9}) {
    const PagePool::Stay stay = pool->pin(page).second;
    EXPECT_EQ(pool->is_mapped(stay), page == 9);
    EXPECT_EQ(pool->come_to(stay, {page * kPage + 1, page * kPage + 2}), pool->extent(page));
    EXPECT_LE(bytes_of(mine->expected), 2 * kPage) << "its map and itself";
    pool->unpin(stay, 0);
    ASSERT_TRUE(pool->close(stay, 0));
    pool->release(stay, 0);
  }
}

// Who was taken for dead may live, and write from that memory when it goes on.
TEST(PagePool, MemoryOfAPageThatWasTakenOverHoldsNoOther) {
  constexpr int kSlow = 1, kOther = 2;
  const PoolShape shape{kPage, 2};
  auto pool = PagePool::make(*comm::make_thread_segment(PagePool::bytes_for(shape)), shape).value();
  for (int slot = 0; slot < shape.slots; ++slot) {
    pool->add_slot(0);
    const PagePool::Stay stay = pool->pin(slot).second;
    pool->dirty(stay).mark(pool->extent(slot));
    pool->unpin(stay, kPage);
    ASSERT_TRUE(pool->close(stay, kSlow));
    ASSERT_TRUE(pool->take_over(stay, kSlow, kOther));
    pool->release(stay, kSlow);
    EXPECT_TRUE(pool->find(slot)) << "the other one is still writing it";
    pool->release(stay, kOther);
    EXPECT_TRUE(pool->wait_until_left(stay));
    EXPECT_FALSE(pool->find(slot));
    EXPECT_EQ(pool->pin(9).first,
              slot == 0 ? PagePool::Pinning::no_memory : PagePool::Pinning::no_room);
    EXPECT_EQ(pool->usable(), slot == 0);
  }
  EXPECT_TRUE(pool->empty());
}

// Its closer has ended while it waited for somebody who fills it yet.
void take_over_while_somebody_fills(bool by_a_guest) {
  constexpr int kGone = 1, kOther = 2, kGuest = 0;
  const PoolShape shape{kPage, 1, 1};
  auto pool = PagePool::make(*comm::make_thread_segment(PagePool::bytes_for(shape)), shape).value();
  pool->add_slot(0);
  const PagePool::Stay stay = pool->pin(0).second;
  if (by_a_guest) {
    pool->come_as_guest(kGuest, stay);
    pool->unpin(stay, 0);
    ASSERT_TRUE(pool->hold(kGuest, stay));
  }
  const auto is_closed_by = [&](int writer) {
    const auto seen = pool->look(stay.slot);
    return seen && seen->leaving && seen->writer == writer;
  };
  std::thread gone([&] { EXPECT_TRUE(pool->close(stay, kGone)); });
  while (!is_closed_by(kGone)) std::this_thread::yield();
  std::atomic<bool> filled = false;
  std::thread other([&] {
    EXPECT_TRUE(pool->take_over(stay, kGone, kOther));
    EXPECT_TRUE(filled) << "its bytes would not be written";
    pool->release(stay, kOther);
  });
  while (!is_closed_by(kOther)) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a copy that waits for its source
  filled = true;
  if (by_a_guest)
    pool->let_go(kGuest, stay);
  else
    pool->unpin(stay, 0);
  other.join();
  gone.join();
  EXPECT_TRUE(pool->wait_until_left(stay));
}

TEST(PagePool, WhoTakesAPageOverWaitsForThoseWhoFillIt) {
  take_over_while_somebody_fills(false);
  take_over_while_somebody_fills(true);
}

TEST(PagePool, OnlyTheStayThatWasSeenIsTakenOver) {
  constexpr int kFirst = 1, kOther = 2;
  const PoolShape shape{kPage, 1};
  auto pool = PagePool::make(*comm::make_thread_segment(PagePool::bytes_for(shape)), shape).value();
  pool->add_slot(0);
  const auto closed = [&](int64_t page) {
    const PagePool::Stay stay = pool->pin(page).second;
    pool->unpin(stay, 0);
    EXPECT_TRUE(pool->close(stay, kFirst));
    return stay;
  };
  const PagePool::Stay left = closed(0);
  pool->release(left, kFirst);
  const PagePool::Stay next = closed(1);
  EXPECT_FALSE(pool->take_over(left, kFirst, kOther)) << "another page of the same writer";
  EXPECT_TRUE(pool->take_over(next, kFirst, kOther));
}

TEST(PagePool, OnlySoManyPagesAreOfferedAndOneThatHasLeftIsNotClosed) {
  const PoolShape shape{kPage, PagePool::kMostOffered + 1};
  auto pool = PagePool::make(*comm::make_thread_segment(PagePool::bytes_for(shape)), shape).value();
  std::vector<PagePool::Stay> stays;
  for (int page = 0; page <= PagePool::kMostOffered; ++page) {
    pool->add_slot(0);
    stays.push_back(pool->pin(page).second);
    pool->unpin(stays.back(), kPage);
    EXPECT_EQ(pool->offer(stays.back()), page < PagePool::kMostOffered);
  }
  EXPECT_TRUE(pool->has_offers());
  const auto first = pool->take_offer();
  EXPECT_EQ(first, stays[0]);
  EXPECT_TRUE(pool->close(stays[1], 0));
  pool->release(stays[1], 0);
  const auto second = pool->take_offer();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->slot, stays[1].slot);
  EXPECT_FALSE(pool->close(*second, 0));
  for (int left = PagePool::kMostOffered - 2; left > 0; --left) EXPECT_TRUE(pool->take_offer());
  EXPECT_FALSE(pool->has_offers());
  EXPECT_FALSE(pool->take_offer());
}

TEST(PagePool, NobodyIsWantedInAnothersTurnUnlessItLasts) {
  const PoolShape shape{kPage, 1};
  auto pool = PagePool::make(*comm::make_thread_segment(PagePool::bytes_for(shape)), shape).value();
  constexpr double kNow = 1000;
  EXPECT_FALSE(pool->wants_writer(kNow)) << "nothing is offered";
  pool->add_slot(0);
  ASSERT_TRUE(pool->offer(pool->pin(0).second));
  EXPECT_TRUE(pool->wants_writer(kNow));
  {
    const PagePool::Turn turn(*pool, kNow);
    EXPECT_FALSE(pool->wants_writer(kNow + 0.01));
    EXPECT_TRUE(pool->wants_writer(kNow + 0.03)) << "who has it may be dead";
  }
  EXPECT_TRUE(pool->wants_writer(kNow + 0.01));
}

TEST(PagePool, AnEndedTurnLeavesThatOfWhoBeganSince) {
  const PoolShape shape{kPage, 1};
  auto pool = PagePool::make(*comm::make_thread_segment(PagePool::bytes_for(shape)), shape).value();
  pool->add_slot(0);
  ASSERT_TRUE(pool->offer(pool->pin(0).second));
  constexpr double kNow = 1000;
  auto first = std::make_unique<PagePool::Turn>(*pool, kNow);
  auto second = std::make_unique<PagePool::Turn>(*pool, kNow + 0.001);
  first.reset();
  EXPECT_FALSE(pool->wants_writer(kNow + 0.002));
  second.reset();
  EXPECT_TRUE(pool->wants_writer(kNow + 0.002));
}

}  // namespace
}  // namespace penstock::exec::page_pool_test
