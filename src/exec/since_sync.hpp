// What one handle has put into its file since the last sync that succeeded: what the next one of
// the policy may lose, whatever write it follows. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/extent.hpp"
#include "io/sync_policy.hpp"

namespace penstock::exec {

class SinceSync {
 public:
  struct Bytes {
    Extent hull;
    int64_t count = 0;
    int64_t turn = 0;  // they were noted in
  };

  // Before more is written: what succeeded meanwhile is certain, and where a sync of the policy has
  // failed meanwhile, whoever asked for it, all is uncertain and given.
  Bytes settle(const io::SyncMarks& marks) {
    const std::lock_guard lock(mutex_);
    const int64_t fresh = marks.failures - failures_;
    if (fresh <= 0) {
      if (marks.good > begun_) begin_anew();
      return {};
    }
    failures_ = marks.failures;
    // Of several the first may have come before the sync that succeeded.
    const bool certain = fresh == 1 && marks.good_before_failure > begun_;
    const Bytes taken = begin_anew();
    return certain ? Bytes() : taken;
  }
  // `begun`: syncs, when these were in the file. Returns the turn that they are noted in.
  int64_t wrote(Extent where, int64_t bytes, int64_t begun) {
    const std::lock_guard lock(mutex_);
    bytes_.hull = hull_of(bytes_.hull, where);
    bytes_.count += bytes;
    begun_ = std::max(begun_, begun);
    ++writes_;
    return bytes_.turn;
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return bytes_.count == 0;
  }
  // To be asked before a sync begins.
  int64_t writes() const {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  // That sync has succeeded, and none has failed since settle(), but the caller's own that came
  // after it. What came meanwhile is not known to be in it: then all is kept.
  void synced(int64_t writes, const io::SyncMarks& marks, bool then_failed = false) {
    const std::lock_guard lock(mutex_);
    if (writes == writes_ && marks.failures - int64_t(then_failed) == failures_) begin_anew();
  }
  // A sync of the policy has failed: all of it is uncertain.
  Bytes take(const io::SyncMarks& marks) {
    const std::lock_guard lock(mutex_);
    failures_ = std::max(failures_, marks.failures);
    return begin_anew();
  }

 private:
  Bytes begin_anew() {
    begun_ = 0;
    return std::exchange(bytes_, Bytes{.hull = {}, .turn = bytes_.turn + 1});
  }

  mutable std::mutex mutex_;
  Bytes bytes_;
  int64_t begun_ = 0;  // of syncs, when the last of them was written
  int64_t writes_ = 0, failures_ = 0;
};

}  // namespace penstock::exec
