// A rank that loses its core in the middle of PagePool::release(), while others take the slot: the
// one place there where the kernel is likely to take it is the waking of those who wait for the
// lock. The linker hands all calls of syscall() here to __wrap_syscall (CMakeLists.txt).
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "comm/shared_segment.hpp"
#include "exec/page_pool.hpp"

namespace {

enum class Releasing : uint8_t { runs, stands, goes_on };
std::atomic<Releasing> releasing{Releasing::runs};
std::atomic<const void*> lock_word{nullptr};
thread_local bool is_releasing = false;

void stand_after_waking(const void* word) {
  auto seen = Releasing::runs;
  if (!is_releasing || word != lock_word) return;
  if (!releasing.compare_exchange_strong(seen, Releasing::stands)) return;
  while (releasing != Releasing::goes_on) ::usleep(100);
}

}  // namespace

extern "C" {
long __real_syscall(long number, ...);  // NOLINT: the linker's names
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {  // NOLINT
  const long result = __real_syscall(number, a, b, c, d, e, f);
  if (number == SYS_futex && b == FUTEX_WAKE) stand_after_waking(reinterpret_cast<void*>(a));
  return result;
}
}

namespace penstock::exec::page_pool_left_test {
namespace {

constexpr int64_t kPage = 4096;

PagePool::Stay pinned_and_closed(PagePool& pool, int64_t page) {
  const auto [pinning, stay] = pool.pin(page);
  EXPECT_EQ(pinning, PagePool::Pinning::pinned);
  pool.unpin(stay, 0);
  EXPECT_TRUE(pool.close(stay, 0));
  return stay;
}

// Whoever looks for a page wants the lock, so that release() sometimes wakes somebody.
class Looker {
 public:
  explicit Looker(PagePool& pool)
      : thread_([this, &pool] {
          while (!ended_) (void)pool.find(99);
        }) {}
  Looker(const Looker&) = delete;
  ~Looker() {
    ended_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

TEST(PagePoolLeft, TheNextStayOfASlotHasNotLeftBeforeItLeaves) {
  const PoolShape shape{kPage, 4};
  const auto segment = *comm::make_thread_segment(PagePool::bytes_for(shape));
  lock_word = segment->memory().data();
  auto pool = PagePool::make(segment, shape).value();
  pool->add_slot(0);
  std::thread releaser([&] {
    while (releasing == Releasing::runs) {
      const PagePool::Stay stay = pinned_and_closed(*pool, 0);
      is_releasing = true;
      pool->release(stay, 0);
      is_releasing = false;
    }
  });
  {
    const Looker looker(*pool);
    while (releasing != Releasing::stands) ::usleep(100);
  }
  const PagePool::Stay next = pinned_and_closed(*pool, 1);
  EXPECT_FALSE(pool->wait_until_left(next)) << "its page is in the pool";
  pool->release(next, 0);
  EXPECT_TRUE(pool->wait_until_left(next));
  releasing = Releasing::goes_on;
  releaser.join();
  EXPECT_TRUE(pool->wait_until_left(next)) << "who was late has not set it back";
}

}  // namespace
}  // namespace penstock::exec::page_pool_left_test
