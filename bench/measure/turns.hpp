// Threads of a rank make collective file calls one after the other, in the same order on every
// rank: ROMIO holds one lock for the whole process while it waits for other ranks, so threads that
// entered in different orders would wait for each other for ever.
#pragma once

#include <condition_variable>
#include <mutex>

namespace penstock::measure {

class Turns {
 public:
  explicit Turns(int threads) : threads_(threads) {}

  // While it lives, it is this thread's turn. Every thread takes as many turns as every other.
  class Turn {
   public:
    // `turns` may be nullptr: then nobody waits.
    Turn(Turns* turns, int thread) : turns_(turns) {
      if (turns_ == nullptr) return;
      std::unique_lock lock(turns_->mutex_);
      turns_->changed_.wait(lock, [&] { return turns_->next_ == thread; });
    }
    ~Turn() {
      if (turns_ == nullptr) return;
      {
        const std::lock_guard lock(turns_->mutex_);
        turns_->next_ = (turns_->next_ + 1) % turns_->threads_;
      }
      turns_->changed_.notify_all();
    }
    Turn(const Turn&) = delete;

   private:
    Turns* turns_;
  };

 private:
  int threads_, next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace penstock::measure
