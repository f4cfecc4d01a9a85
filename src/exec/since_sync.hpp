// What one handle has put into its file since the last sync of its policy that succeeded: what the
// next one may lose, whatever write it followed. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "base/extent.hpp"

namespace penstock::exec {

class SinceSync {
 public:
  struct Bytes {
    Extent hull;
    int64_t count = 0;
  };

  void wrote(Extent where, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ = {hull_of(bytes_.hull, where), bytes_.count + bytes};
    ++writes_;
  }
  // To be asked before a sync begins.
  int64_t writes() const {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  // That sync has succeeded. What came meanwhile is not known to be in it: then all is kept.
  void synced(int64_t writes) {
    const std::lock_guard lock(mutex_);
    if (writes == writes_) begin_anew();
  }
  // A sync has failed: all of it is uncertain.
  Bytes take() {
    const std::lock_guard lock(mutex_);
    return begin_anew();
  }
  // Another number each time that it began anew.
  int64_t turn() const {
    const std::lock_guard lock(mutex_);
    return turn_;
  }

 private:
  Bytes begin_anew() {
    ++turn_;
    return std::exchange(bytes_, {});
  }

  mutable std::mutex mutex_;
  Bytes bytes_;
  int64_t writes_ = 0, turn_ = 0;
};

}  // namespace penstock::exec
