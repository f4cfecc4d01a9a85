// A rank's own bytes, staged piece by piece and written by the I/O thread: independent non-blocking
// writes, and collective ones without an exchange.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/pipeline.hpp"
#include "exec/since_sync.hpp"
#include "exec/staged_pages.hpp"
#include "exec/user_data.hpp"
#include "io/sync_policy.hpp"

namespace penstock::exec {

// What became of staged pieces, of one call's stream or of one call's after the other's;
// thread-safe. Whose syncs: the file's, or nullptr.
class StreamAccount {
 public:
  void accepted(int64_t bytes);
  // Before a piece is written, and before what was lost is told: what syncs have done meanwhile
  // that others asked for. A policy's that fails takes all that was written since the last that
  // succeeded.
  void settle(const io::FileSync* sync);
  // Piece after piece. What its outcome says is missing beyond the end of `piece` is told by the
  // call.
  void wrote(const io::FileSync* sync, const layout::FileView& view, StreamRange piece,
             const WriteOutcome& outcome, const Spent& spent);
  void lost(const layout::FileView& view, StreamRange range, const Error& why);

  StagedNotes notes() const;
  int64_t failures() const noexcept { return failures_.load(std::memory_order_acquire); }
  // Of one call's stream: the first byte that is not in the file; `end` when all are.
  int64_t first_missing(int64_t end) const;

 private:
  void follow_syncs(const io::FileSync& sync, const layout::FileView& view, StreamRange piece,
                    const WriteOutcome& outcome);
  void take_back(const SinceSync::Bytes& uncertain, const Error& why);
  void add_missing(const layout::FileView& view, StreamRange range, const Error& why);
  void add_lost(Extent where, int64_t bytes, const Error& why);

  mutable std::mutex mutex_;
  StagedNotes notes_;                  // but for the failures
  std::atomic<int64_t> failures_ = 0;  // asked for by every call
  std::optional<int64_t> first_missing_;
  SinceSync since_sync_;
  std::optional<int64_t> first_unsynced_;  // of the stream, where since_sync_ has any of it
};

struct StreamTarget {
  io::MechanismFile& file;
  io::FileSync* sync;  // or nullptr
};

// A piece of a stream on its way.
class StagedPiece final : public Staged {
 public:
  explicit StagedPiece(Retired<StagedPiece>& pool) : pool_(pool) {}
  void assign(const StreamTarget& target, std::shared_ptr<StreamAccount> account,
              const layout::FileView& view, StreamRange range);
  void write() noexcept override;
  void retire() noexcept override;

 private:
  Retired<StagedPiece>& pool_;
  std::optional<StreamTarget> target_;
  std::shared_ptr<StreamAccount> account_;
  layout::FileView view_;  // its own: the file's may change before this is written
  StreamRange range_;
};

struct StagedStream {
  int64_t bytes = 0;          // staged or written, from the beginning of the range
  int64_t last = 0;           // the number of the last piece in the lane; 0: none
  std::optional<Error> mine;  // why not all of it
};

// Returns when every byte of the range is copied, which waits for earlier pieces to be written when
// the bound is reached; or, where the machine has no memory for a copy, written. The account must
// outlive what is staged.
StagedStream stage_stream(const StagingArea& area, const StreamTarget& target,
                          std::shared_ptr<StreamAccount> account, const layout::FileView& view,
                          StreamRange own, UserData& data, PhaseTimes& times);

}  // namespace penstock::exec
