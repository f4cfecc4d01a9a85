// Pages go round in a ring: the caller submits at its head, the thread follows, the caller reaps.
#include "io/behind.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace penstock::io {
namespace {

// Of these extents, before `end`.
int64_t bytes_before(std::span<const Extent> extents, Off end) {
  int64_t bytes = 0;
  for (const Extent e : extents) bytes += std::max<int64_t>(0, std::min(e.end, end) - e.begin);
  return bytes;
}

}  // namespace

BehindFile::BehindFile(MechanismFile& inner, StartThread start)
    : inner_(inner), start_(start), pages_(size_t(inner.slots())) {}

BehindFile::~BehindFile() { stop(); }

Result<void> BehindFile::start() {
  if (thread_) return {};
  stop_ = false;
  const Result<pthread_t> started = start_(&run_thread, this);
  if (!started) return tl::unexpected(started.error());
  thread_ = *started;
  return {};
}

// --- The caller ---

void BehindFile::submit(Lease lease, std::span<const Extent> dirty) {
  if (dirty.empty()) return inner_.submit(lease, dirty);
  assert(thread_);
  assert(submitted_ < reaped_ + int64_t(pages_.size()));
  Page& p = page(submitted_);
  p.lease = lease;
  p.dirty.assign(dirty.begin(), dirty.end());
  const std::lock_guard lock(mutex_);
  ++submitted_;
  news_.notify_one();
}

std::optional<Fault> BehindFile::reap() {
  synced_.reset();
  std::unique_lock lock(mutex_);
  if (reaped_ == submitted_) return std::nullopt;
  done_.wait(lock, [this] { return reaped_ < written_; });
  Page& p = page(reaped_++);
  synced_ = std::exchange(p.synced, std::nullopt);
  return std::exchange(p.fault, std::nullopt);
}

Result<void> BehindFile::close() {
  stop();
  return inner_.close();
}

void BehindFile::stop() {
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    news_.notify_one();
  }
  ::pthread_join(*std::exchange(thread_, std::nullopt), nullptr);
}

// --- The thread ---

void* BehindFile::run_thread(void* self) {
  auto& file = *static_cast<BehindFile*>(self);
  for (Step step = file.next_step(); step != Step::end; step = file.next_step()) {
    if (step == Step::submit)
      file.submit_one();
    else
      file.reap_one();
  }
  return nullptr;
}

// Where submit() writes, the caller hears of a page before the next one is written: it waits for
// the slot. Where it only starts writes, what is submitted begins before what is under way is
// waited for.
BehindFile::Step BehindFile::next_step() {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [this] { return written_ < submitted_ || stop_; });
  const bool begins = begun_ < submitted_, waits = written_ < begun_;
  if (begins && (!waits || inner_.starts_writes())) return Step::submit;
  return waits ? Step::reap : Step::end;
}

// Only this thread changes begun_ and written_, so it may look at them without the lock.
void BehindFile::submit_one() {
  const Page& p = page(begun_);
  inner_.submit(p.lease, p.dirty);
  const std::lock_guard lock(mutex_);
  ++begun_;
}

void BehindFile::reap_one() {
  Page& p = page(written_);
  p.fault = inner_.reap();
  const Off end = p.fault ? p.fault->first_missing : p.lease.where.end;
  const int64_t bytes = bytes_before(p.dirty, end);
  if (sync_ != nullptr && bytes > 0)
    p.synced = sync_->wrote({p.dirty.front().begin, p.dirty.back().end}, bytes);
  const std::lock_guard lock(mutex_);
  ++written_;
  done_.notify_one();
}

}  // namespace penstock::io
