// One lock; a bell for the thread, which other processes ring too, and a condition for who waits
// for room or for an end.
#include "exec/stager.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/extent.hpp"

namespace penstock::exec {
namespace {

// More would be searched for longer than a page takes to be made.
constexpr size_t kMostIdle = 64;
constexpr std::chrono::hours kNothingDue{1};

}  // namespace

// --- Memory ---

Result<AlignedBuffer> Stager::memory(int64_t bytes, int64_t limit_bytes) {
  const int64_t size = align_up(std::max<int64_t>(bytes, 1), int64_t(AlignedBuffer::kAlignment));
  std::unique_lock lock(mutex_);
  const int64_t turn = asked_++;
  progress_.wait(lock, [&] {
    const bool room = held_bytes_ + size <= limit_bytes || (queue_.empty() && !writing_);
    return turn == answered_ && room;
  });
  ++answered_;
  progress_.notify_all();
  AlignedBuffer memory = take_idle(size_t(size));
  if (memory.size() == 0) make_room(size, limit_bytes);
  if (auto got = reserve_(memory, size_t(size)); !got)
    return tl::unexpected(std::move(got).error());
  held_bytes_ += int64_t(memory.size());
  return memory;
}

// Of this very size, so that the bound holds; without memory when there is none.
AlignedBuffer Stager::take_idle(size_t bytes) {
  const auto found = std::ranges::find(idle_, bytes, &AlignedBuffer::size);
  if (found == idle_.end()) return {};
  AlignedBuffer memory = std::move(*found);
  std::swap(*found, idle_.back());
  idle_.pop_back();
  idle_bytes_ -= int64_t(bytes);
  return memory;
}

// What is kept warm makes way for what is needed.
void Stager::make_room(int64_t bytes, int64_t limit_bytes) {
  while (!idle_.empty() && held_bytes_ + idle_bytes_ + bytes > limit_bytes) {
    idle_bytes_ -= int64_t(idle_.back().size());
    idle_.pop_back();
  }
}

void Stager::rest() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
  idle_bytes_ = 0;
  rests_ = true;
  if (bell_ != nullptr) bell_->hide();
}

void Stager::give_back(AlignedBuffer memory) {
  const std::lock_guard lock(mutex_);
  take_back(std::move(memory));
}

// REQUIRES mutex_. Of the I/O thread, too, where nobody would catch it: what there is no memory to
// remember is freed.
void Stager::take_back(AlignedBuffer memory) noexcept {
  const auto bytes = int64_t(memory.size());
  held_bytes_ -= bytes;
  if (bytes > 0 && idle_.size() < kMostIdle) {
    try {
      idle_.push_back(std::move(memory));
      idle_bytes_ += bytes;
    } catch (const std::bad_alloc&) {
    }
  }
  progress_.notify_all();
}

// --- Writes ---

int64_t Stager::stage(Lane& lane, std::unique_ptr<Staged> staged) {
  std::unique_lock lock(mutex_);
  const bool has_thread = ensure_thread();
  const int64_t number = ++lane.staged_;
  if (has_thread) {
    staged->lane_ = &lane;
    queue_.push(std::move(staged));
    ring();
    return number;
  }
  lock.unlock();
  AlignedBuffer memory = write_and_retire(std::move(staged));
  lock.lock();
  take_back(std::move(memory));
  ++lane.written_;
  progress_.notify_all();
  return number;
}

void Stager::wait(const Lane& lane, int64_t number) {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return lane.written_ >= number; });
}

void Stager::drain(const Lane& lane) {
  std::unique_lock lock(mutex_);
  const int64_t number = lane.staged_;
  progress_.wait(lock, [&] { return lane.written_ >= number; });
}

bool Stager::is_drained(const Lane& lane) const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && lane.written_ >= lane.staged_;
}

int64_t Stager::waiting() const {
  const std::lock_guard lock(mutex_);
  return asked_ - answered_;
}

int64_t Stager::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

std::string Stager::degraded() const {
  const std::lock_guard lock(mutex_);
  return degraded_;
}

// --- The thread ---

// REQUIRES mutex_.
bool Stager::ensure_thread() {
  if (thread_ || !degraded_.empty()) return thread_.has_value();
  if (const Result<pthread_t> started = start(); started)
    thread_ = *started;
  else
    degraded_ =
        "the I/O thread could not be started, so non-blocking writes return with their "
        "bytes in the file: " +
        started.error().message();
  return thread_.has_value();
}

Result<pthread_t> Stager::start() {
  bell_ = Bell::make();
  if (bell_ == nullptr) return os_error("mmap", "the I/O thread's bell", ENOMEM);
  return start_(&run_thread, this);
}

std::optional<Bell::Address> Stager::bell() {
  const std::lock_guard lock(mutex_);
  if (!ensure_thread()) return std::nullopt;
  if (std::exchange(rests_, false)) take_fresh_bell();
  return bell_->address();
}

// REQUIRES mutex_, and a thread. It still sleeps by a bell that nobody finds, until it is rung for
// here: before that it has no chore that others could want. Of two such bells it may sleep by
// either, if it has come round in between.
void Stager::take_fresh_bell() {
  std::shared_ptr<Bell> fresh = Bell::make();
  if (fresh == nullptr) return;
  bell_.swap(fresh);
  if (sleeps_by_ == nullptr)
    sleeps_by_ = std::move(fresh);
  else
    fresh->ring();
}

// REQUIRES mutex_, and a thread.
void Stager::ring() noexcept {
  if (const auto old = std::exchange(sleeps_by_, nullptr)) old->ring();
  bell_->ring();
}

void* Stager::run_thread(void* self) {
  static_cast<Stager*>(self)->write_until_stopped();
  return nullptr;
}

// Its memory, to be taken back. Before its lane is told: who drains may free what it refers to.
AlignedBuffer Stager::write_and_retire(std::unique_ptr<Staged> staged) {
  staged->write();
  AlignedBuffer memory = std::move(staged->memory);
  staged.release()->retire();
  return memory;
}

bool Stager::add(Chore& chore) {
  const std::lock_guard lock(mutex_);
  if (!ensure_thread()) return false;
  duties_.push_back({&chore, Clock::now() + chore.pause()});
  ring();
  return true;
}

void Stager::remove(Chore& chore) {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return doing_ != &chore && answering_ != &chore; });
  std::erase_if(duties_, [&](const Duty& duty) { return duty.chore == &chore; });
  if (doing_ != nullptr) ring();  // a round under way may step over the one behind it
}

Stager::Clock::duration Stager::until_next_chore() const {
  if (duties_.empty()) return kNothingDue;
  const auto next = std::ranges::min(duties_, {}, &Duty::due).due;
  return std::max(next - Clock::now(), Clock::duration(0));
}

void Stager::put_off(Chore& chore) {
  const auto same = std::ranges::find(duties_, &chore, &Duty::chore);
  if (same != duties_.end()) same->due = Clock::now() + chore.pause();
}

void Stager::do_chores(std::unique_lock<std::mutex>& lock) {
  for (size_t i = 0; i < duties_.size(); ++i) {  // some may be removed meanwhile
    Chore* const chore = duties_[i].chore;
    const auto why = Clock::now() >= duties_[i].due ? Chore::Why::due : Chore::Why::called;
    doing_ = chore;
    lock.unlock();
    chore->run(why);
    lock.lock();
    doing_ = nullptr;
    progress_.notify_all();
    if (why == Chore::Why::due) put_off(*chore);
  }
}

void Stager::answer_calls() {
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < duties_.size(); ++i) {  // some may be removed meanwhile
    Chore* const chore = duties_[i].chore;
    answering_ = chore;
    lock.unlock();
    chore->run(Chore::Why::called);
    lock.lock();
    answering_ = nullptr;
    progress_.notify_all();
  }
}

// REQUIRES !queue_.empty().
void Stager::write_next(std::unique_lock<std::mutex>& lock) {
  std::unique_ptr<Staged> next = queue_.pop();
  Lane& lane = *next->lane_;
  writing_ = true;
  lock.unlock();
  AlignedBuffer memory = write_and_retire(std::move(next));
  lock.lock();
  writing_ = false;
  take_back(std::move(memory));
  ++lane.written_;
  progress_.notify_all();
}

// The bell is asked first: what comes after the look at what there is to do rings again.
void Stager::write_until_stopped() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::shared_ptr<Bell> bell = bell_;  // who replaces it, rings it
    const uint32_t heard = bell->rings();
    do_chores(lock);
    if (!queue_.empty())
      write_next(lock);
    else if (stop_)
      return;
    else
      sleep(lock, *bell, heard);
  }
}

void Stager::sleep(std::unique_lock<std::mutex>& lock, Bell& bell, uint32_t heard) {
  const std::chrono::nanoseconds at_most = until_next_chore();
  lock.unlock();
  bell.sleep(heard, at_most);
  lock.lock();
}

// What is still staged is written first.
Stager::~Stager() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (bell_ != nullptr) ring();
  }
  if (thread_) ::pthread_join(*thread_, nullptr);
}

}  // namespace penstock::exec
