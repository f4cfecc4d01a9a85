// Guests of a page, who hold it without a pin: whoever closes it waits for them and for no others,
// and what they stored is in it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "comm/shared_segment.hpp"
#include "exec/page_pool.hpp"

namespace penstock::exec::page_guests_test {
namespace {

constexpr int64_t kPage = 4096;

std::unique_ptr<PagePool> make_pool(PoolShape shape) {
  auto pool = PagePool::make(*comm::make_thread_segment(PagePool::bytes_for(shape)), shape).value();
  for (int slot = 0; slot < shape.slots; ++slot) pool->add_slot(0);
  return pool;
}

PagePool::Stay come(PagePool& pool, int guest, int64_t page) {
  const auto [pinning, stay] = pool.pin(page);
  EXPECT_EQ(pinning, PagePool::Pinning::pinned);
  pool.come_as_guest(guest, stay);
  pool.unpin(stay, 0);
  return stay;
}

TEST(PageGuests, WhoClosesAPageWaitsForEachThatHoldsIt) {
  for (const int guest : {0, 3, 64, 69}) {  // 64 and 69 share a bit with another
    const auto pool = make_pool({kPage, 2, 70});
    const PagePool::Stay stay = come(*pool, guest, 5);
    ASSERT_TRUE(pool->hold(guest, stay));
    std::atomic<bool> let_go = false, closed = false;
    std::thread closer([&] {
      EXPECT_TRUE(pool->close(stay, 0));
      EXPECT_TRUE(let_go) << "guest " << guest;
      closed = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(closed);
    let_go = true;
    pool->let_go(guest, stay);
    closer.join();
  }
}

TEST(PageGuests, AGuestOfAnotherPageIsNotWaitedFor) {
  const auto pool = make_pool({kPage, 2, 2});
  const PagePool::Stay mine = come(*pool, 0, 5), other = come(*pool, 0, 6);
  ASSERT_TRUE(pool->hold(0, other));
  EXPECT_TRUE(pool->close(mine, 0));
  pool->release(mine, 0);
  pool->let_go(0, other);
}

TEST(PageGuests, WhatLeavesIsNotHeld) {
  const auto pool = make_pool({kPage, 1, 1});
  const PagePool::Stay stay = come(*pool, 0, 5);
  ASSERT_TRUE(pool->close(stay, 0));
  EXPECT_FALSE(pool->hold(0, stay));
  pool->release(stay, 0);
  EXPECT_FALSE(pool->hold(0, stay)) << "nor what has left";
  const PagePool::Stay next = come(*pool, 0, 5);
  EXPECT_FALSE(pool->hold(0, stay)) << "though the page is here again";
  EXPECT_TRUE(pool->hold(0, next));
  pool->let_go(0, next);
  EXPECT_TRUE(pool->close(next, 0));
}

// Guests store a byte of theirs and mark it, as long as the page takes them; each stay that was
// closed must hold all that was marked, and nothing may come to it any more.
TEST(PageGuests, NoByteComesToAPageThatWasClosed) {
  constexpr int kGuests = 3, kStays = 300;
  const auto pool = make_pool({kPage, 1, kGuests});
  std::atomic<bool> end = false;
  std::atomic<int64_t> stored = 0, found = 0;
  const auto fill = [&](int guest) {
    for (uint32_t n = 0; !end; ++n) {
      const auto [pinning, stay] = pool->pin(7);
      if (pinning != PagePool::Pinning::pinned) continue;
      pool->come_as_guest(guest, stay);
      pool->unpin(stay, 0);
      while (!end && pool->hold(guest, stay)) {
        const Off at = guest + kGuests * Off(n++ % 64);
        std::memset(pool->memory(stay) + at, guest + 1, 1);
        const int64_t newly = pool->dirty(stay).mark(Extent{7 * kPage + at, 7 * kPage + at + 1});
        pool->let_go(guest, stay);
        stored += newly;
      }
    }
  };
  std::vector<std::thread> guests;
  guests.reserve(kGuests);
  for (int g = 0; g < kGuests; ++g) guests.emplace_back(fill, g);
  const auto count = [&](const PagePool::Stay& stay) {
    pool->dirty(stay).for_each_extent([&](Extent e) {
      for (Off at = e.begin; at < e.end; ++at, ++found) {
        const Off of_page = at - 7 * kPage;
        EXPECT_EQ(int(pool->memory(stay)[of_page]), int(of_page % kGuests) + 1);
      }
    });
    std::memset(pool->memory(stay), 0, size_t(kPage));
    pool->release(stay, 0);
  };
  for (int stays = 0; stays < kStays;) {
    const auto stay = pool->find(7);
    if (!stay || !pool->close(*stay, 0)) {
      std::this_thread::yield();
      continue;
    }
    count(*stay);
    ++stays;
  }
  end = true;
  for (std::thread& guest : guests) guest.join();
  if (const auto last = pool->find(7); last && pool->close(*last, 0)) count(*last);
  EXPECT_EQ(found, stored);
  EXPECT_GT(stored, 0);
}

}  // namespace
}  // namespace penstock::exec::page_guests_test
