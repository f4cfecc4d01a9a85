// Bounded memory between writes and their files, and the I/O thread that empties it: what is staged
// enters its file in the order in which it was staged, while the program computes.
//
// One for all files of a process, so that the bound is the process's and there is one thread. It
// starts with the first bytes that are staged and ends with the last file.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/bell.hpp"
#include "base/error.hpp"
#include "io/io_thread.hpp"

namespace penstock::exec {

// How much may be staged where nobody says it.
inline constexpr int64_t kStagedLimitBytes = int64_t{256} << 20;

// One file's staged writes, in order.
class StagedLane {
  friend class Stager;
  int64_t staged_ = 0, written_ = 0;  // how many; guarded by the stager's mutex
};

// Bytes, and how they enter their file.
class Staged {
 public:
  virtual ~Staged() = default;
  // By the I/O thread: no MPI call. A failure is noted where whoever waits will look.
  virtual void write() noexcept = 0;
  // Its last call, by whoever wrote it: it belongs to nobody else then.
  virtual void retire() noexcept { delete this; }

  AlignedBuffer memory;  // of Stager::memory(), or none; given back after write()

 private:
  friend class Stager;
  friend class StagedQueue;
  StagedLane* lane_ = nullptr;
  std::unique_ptr<Staged> next_;
};

// First in, first out. Allocates nothing.
class StagedQueue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void push(std::unique_ptr<Staged> staged) noexcept {
    Staged* const added = staged.get();
    (empty() ? first_ : last_->next_) = std::move(staged);
    last_ = added;
  }
  // REQUIRES !empty().
  std::unique_ptr<Staged> pop() noexcept {
    std::unique_ptr<Staged> oldest = std::move(first_);
    first_ = std::move(oldest->next_);
    return oldest;
  }

 private:
  std::unique_ptr<Staged> first_;
  Staged* last_ = nullptr;
};

// What has been written and is used again, so that staging allocates nothing. Thread-safe; must
// outlive what was taken from it.
template <class T>
class Retired {
 public:
  // nullptr: there is none.
  std::unique_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<T> taken = std::move(idle_.back());
    idle_.pop_back();
    return taken;
  }
  // Frees it where there is no memory to remember it.
  void give_back(std::unique_ptr<T> idle) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      idle_.push_back(std::move(idle));
    } catch (const std::bad_alloc&) {
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;
};

// What the I/O thread does beside its writes.
class Chore {
 public:
  enum class Why : uint8_t {
    called,  // the bell was rung, for this or for something else
    due,     // pause() has passed
  };
  virtual ~Chore() = default;
  // No MPI call, but for loads between nodes (exec/shipping.hpp). What is `due` may wait for
  // another rank's I/O thread, if it does answer_calls() meanwhile; what is `called` waits for
  // devices only, and may be in the middle of any that is due.
  virtual void run(Why why) noexcept = 0;
  // After this one was due, until the next one is.
  virtual std::chrono::microseconds pause() const noexcept {
    return std::chrono::milliseconds{500};
  }
};

// Thread-safe. What waits here waits for the I/O thread alone, and that waits for devices, and for
// I/O threads of other ranks, which do so too; but while it waits for these, it does for any file
// what they may wait for: there is no circle.
class Stager {
 public:
  using Lane = StagedLane;

  // As of AlignedBuffer.
  using Reserve = Result<void> (*)(AlignedBuffer& memory, size_t bytes);

  // Both for tests. Where no thread can be started, stage() writes before it returns.
  explicit Stager(io::StartThread start = &io::start_io_thread, Reserve reserve = &reserve_memory)
      : start_(start), reserve_(reserve) {}
  ~Stager();
  Stager(const Stager&) = delete;

  // Memory for at least `bytes`. Waits until they fit beside all that is held, in `limit_bytes`;
  // but never when nothing is being written, so a piece of more than the limit comes through alone.
  // Who asks first gets it first: small pieces do not keep a large one waiting.
  Result<AlignedBuffer> memory(int64_t bytes, int64_t limit_bytes);
  // Without a file nothing is left but a thread that sleeps: no memory that is kept warm, and no
  // descriptor. REQUIRES that nothing is staged and that there is no chore.
  void rest();
  // Of memory() and not staged after all.
  void give_back(AlignedBuffer memory);
  // Returns the number of this write in its lane. The lane must live until that was written.
  int64_t stage(Lane& lane, std::unique_ptr<Staged> staged);
  // Until the lane's first `number` writes are over, whatever became of them.
  void wait(const Lane& lane, int64_t number);
  void drain(const Lane& lane);
  bool is_drained(const Lane& lane) const;  // waits for nobody: false where it cannot be told

  // Starts the thread, and says where others ring for it. nullopt: there is none.
  std::optional<Bell::Address> bell();
  // Likewise. false: there is none, and the chore will not be done.
  bool add(Chore& chore);
  // Returns when it is not being done, and never will be again. Harmless when it was not added.
  void remove(Chore& chore);
  // By the thread, in a chore that waits for other ranks: what each chore does when it is called.
  void answer_calls();

  int64_t waiting() const;       // for memory
  int64_t held_bytes() const;    // given out and not yet written
  std::string degraded() const;  // why there is no thread; empty when there may be one

 private:
  using Clock = std::chrono::steady_clock;

  static void* run_thread(void* self);
  void sleep(std::unique_lock<std::mutex>& lock, Bell& bell, uint32_t heard);
  void write_next(std::unique_lock<std::mutex>& lock);
  void do_chores(std::unique_lock<std::mutex>& lock);
  void put_off(Chore& chore);
  Clock::duration until_next_chore() const;
  void write_until_stopped();
  static AlignedBuffer write_and_retire(std::unique_ptr<Staged> staged);
  bool ensure_thread();
  void take_fresh_bell();
  void ring() noexcept;
  Result<pthread_t> start();
  AlignedBuffer take_idle(size_t bytes);
  void make_room(int64_t bytes, int64_t limit_bytes);
  void take_back(AlignedBuffer memory) noexcept;

  static Result<void> reserve_memory(AlignedBuffer& memory, size_t bytes) {
    return memory.reserve(bytes);
  }

  const io::StartThread start_;
  const Reserve reserve_;
  mutable std::mutex mutex_;  // of all that follows; held for no longer than it takes to look
  std::condition_variable progress_;
  std::shared_ptr<Bell> bell_;       // the thread's, as long as there is one
  std::shared_ptr<Bell> sleeps_by_;  // an earlier one, where it may still sleep by that
  bool rests_ = false;
  StagedQueue queue_;
  bool writing_ = false;  // what was at the head of the queue
  struct Duty {
    Chore* chore;
    Clock::time_point due;
  };
  std::vector<Duty> duties_;
  const Chore* doing_ = nullptr;
  const Chore* answering_ = nullptr;  // in the middle of it
  int64_t asked_ = 0, answered_ = 0;  // for memory
  int64_t held_bytes_ = 0, idle_bytes_ = 0;
  std::vector<AlignedBuffer> idle_;  // kept warm
  std::optional<pthread_t> thread_;
  bool stop_ = false;
  std::string degraded_;
};

}  // namespace penstock::exec
