// Blocks of a file that are reserved before their bytes come through the page cache
// (docs/decisions/0056-blocks-first.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/extent.hpp"

namespace penstock::io {

// Of one file. May be asked by several threads at once.
class BlockReserve {
 public:
  static constexpr int64_t kLeast = int64_t{64} << 10;  // below, the call costs more than it saves

  // Every byte of `where` is about to be written, here or by others. The file grows by none of it.
  // Where it is not possible, or would not pay, nothing happens: the writes tell what they lack.
  void before_writing(int fd, Extent where) noexcept;
  // From now on nothing is reserved.
  void refuse() noexcept { worth_ = Worth::no; }

 private:
  enum class Worth : uint8_t { unknown, yes, no };
  void look_at(int fd) noexcept;
  bool has(Extent where) noexcept;
  void remember(Extent where) noexcept;

  std::atomic<Worth> worth_ = Worth::unknown;
  // Before this the file had blocks for all of its bytes when it was looked at.
  std::atomic<Off> settled_ = 0;
  std::mutex mutex_;
  Extent reserved_;  // the last call's: the parts of what was reserved together need no call
};

}  // namespace penstock::io
