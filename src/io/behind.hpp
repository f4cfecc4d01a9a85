// BehindFile: any mechanism's file, written by a thread of its own. What is submitted is copied
// from the caller's hands into the thread's, page by page, and the caller goes on.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "io/io_thread.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"

namespace penstock::io {

// Leases are the inner file's own, so that windows and registered buffers are filled in place. The
// thread submits and reaps them, in order, and syncs where the policy asks for it: whoever reaps
// here learns of each page how it went, and when. It starts with start() and ends with this object,
// after all that was submitted.
class BehindFile : public MechanismFile {
 public:
  // `start`: for tests.
  explicit BehindFile(MechanismFile& inner, StartThread start = &start_io_thread);
  ~BehindFile() override;

  // Starts the thread unless it runs. Without it nothing may be submitted.
  Result<void> start();
  // Told of every page by the thread; nullptr: nobody is. REQUIRES that nothing is submitted.
  void set_sync(FileSync* sync) noexcept { sync_ = sync; }
  // What the policy said to the page that was reaped last, unless nobody was told.
  const std::optional<Result<bool>>& synced() const noexcept { return synced_; }

  Result<Lease> lease(Extent where) override { return inner_.lease(where); }
  void submit(Lease lease, std::span<const Extent> dirty) override;
  std::optional<Fault> reap() override;
  int slots() const noexcept override { return inner_.slots(); }
  bool starts_writes() const noexcept override { return true; }
  bool stores_in_place() const noexcept override { return inner_.stores_in_place(); }
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) override {
    return inner_.use_memory(buffers);
  }
  bool has_lost_memory() override { return inner_.has_lost_memory(); }
  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return inner_.write(bytes, offset);
  }
  std::optional<Fault> write_pieces(std::span<const std::span<const std::byte>> pieces,
                                    Off offset) override {
    return inner_.write_pieces(pieces, offset);
  }
  bool gathers() const noexcept override { return inner_.gathers(); }
  int64_t wanted_bytes() const noexcept override { return inner_.wanted_bytes(); }
  void reserve(Extent where) override { inner_.reserve(where); }
  Result<void> sync(SyncKind kind) override { return inner_.sync(kind); }
  Result<void> close() override;
  int64_t cold_bytes() const noexcept override { return inner_.cold_bytes(); }
  int fd() const noexcept override { return inner_.fd(); }
  std::string degraded() const override { return inner_.degraded(); }

 private:
  struct Page {
    Lease lease;
    std::vector<Extent> dirty;  // kept for the pages that follow
    std::optional<Fault> fault;
    std::optional<Result<bool>> synced;
  };
  enum class Step : uint8_t { submit, reap, end };

  static void* run_thread(void* self);
  Step next_step();
  void submit_one();
  void reap_one();
  void stop();
  Page& page(int64_t number) noexcept { return pages_[size_t(number) % pages_.size()]; }

  MechanismFile& inner_;
  const StartThread start_;
  FileSync* sync_ = nullptr;
  std::optional<Result<bool>> synced_;
  std::optional<pthread_t> thread_;

  // Pages are numbered in the order of submission. Invariant:
  // reaped_ <= written_ <= begun_ <= submitted_ <= reaped_ + slots(). The thread alone touches
  // pages [written_, submitted_), the caller alone the others.
  std::vector<Page> pages_;
  std::mutex mutex_;  // of all that follows; held for no longer than it takes to look
  std::condition_variable news_, done_;  // for the thread, for the caller
  int64_t submitted_ = 0, begun_ = 0, written_ = 0, reaped_ = 0;
  bool stop_ = false;
};

}  // namespace penstock::io
