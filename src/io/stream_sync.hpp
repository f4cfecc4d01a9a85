// Write-back that a thread starts behind the writers, so that the device begins early and works
// evenly, instead of when the kernel's dirty limits are reached. Nothing is durable by it.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "io/nudged_thread.hpp"
#include "io/sync_count.hpp"
#include "io/sync_policy.hpp"

namespace penstock::io {

// sync_file_range(2) does not wait for the bytes, but where the device's queue is full it waits for
// room in it; hence the thread: a writer never goes at the device's pace. The thread starts at the
// first write that is due and ends at close, which waits for one piece at most. A sync starts what
// the thread has not come to. What could not be written back is told by the next wrote(), once,
// too.
class StreamSync final : public FileSync {
 public:
  // if_it_syncs: as sync_habit() says at each write, and long runs only.
  enum class Streams : uint8_t { always, if_it_syncs };

  // REQUIRES every_bytes > 0. `start`: for tests.
  StreamSync(MechanismFile& file, int64_t every_bytes, Streams streams,
             StartThread start = &start_io_thread)
      : FileSync(file),
        due_(every_bytes),
        streams_(streams),
        thread_([this] { stream(); }, start) {}
  ~StreamSync() override { stop(); }  // before what they use goes

  Result<bool> wrote(Extent where, int64_t bytes) override;  // never true
  int64_t piece_bytes() const noexcept override;
  SyncNotes notes() const override;

 protected:
  Result<void> sync_now(SyncKind kind) override;
  Result<void> sync_at_close() override;
  void note_asked() override;

 private:
  Extent take_of_run(Extent where);
  int64_t collect(Extent where, int64_t bytes);
  int64_t least_run_bytes() const noexcept;
  void drop_pending();  // all of it is pushed
  Extent take_piece();
  bool start_piece();
  void start_the_rest();
  int64_t pieces_left() const;  // 0 where they are not worth it
  int64_t most_bytes_of_piece() const noexcept;
  bool wanted() const noexcept;
  void stream();
  void stop();
  void give_up(int sys_errno);
  void note_lost(Extent piece, int sys_errno);
  std::optional<Error> take_untold();

  DueBytes due_;
  const Streams streams_;
  std::atomic<bool> wrote_ = false, synced_ = false;  // by the program, since it was opened

  mutable std::mutex mutex_;   // of what follows; not held in system calls
  Extent run_;                 // the last writes, as far as they followed each other
  Off run_collected_ = 0;      // the part of it that is pending or started ends there
  Extent pending_;             // written, and its write-back not started
  int64_t pending_bytes_ = 0;  // that came since there was nothing pending
  std::optional<Error> untold_;
  std::string refused_;

  std::atomic<bool> closing_ = false;
  NudgedThread thread_;
};

}  // namespace penstock::io
