// FaultyReads: a file's reads, failing on purpose. For tests of what is above.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <utility>

#include "io/reader.hpp"

namespace penstock::io {

struct ReadFaultPlan {
  int read_errno = 0;  // 0: reads do not fail
  int nth_read = 0;    // counted from 1; 0: none fails by its number
  // The read that touches this file byte fails, and everything before the byte is read.
  Off at_offset = std::numeric_limits<Off>::max();
  // The file seems to end here, though its size says otherwise: it was cut meanwhile.
  Off ends_at = std::numeric_limits<Off>::max();
  int size_errno = 0;  // 0: size() does not fail
};

class FaultyReads final : public ReadableFile {
 public:
  FaultyReads(std::unique_ptr<ReadableFile> inner, const ReadFaultPlan& plan)
      : inner_(std::move(inner)), plan_(plan) {}

  Readout read(std::span<std::byte> into, Off offset) override {
    const Off end = offset + Off(into.size());
    Off stop = std::clamp(plan_.ends_at, offset, end);
    bool fails = false;
    if (plan_.read_errno != 0) {
      if (++reads_ == plan_.nth_read) stop = offset, fails = true;
      if (plan_.at_offset >= offset && plan_.at_offset < stop) stop = plan_.at_offset, fails = true;
    }
    Readout got = inner_->read(into.first(size_t(stop - offset)), offset);
    if (fails && !got.error)
      got.error = os_error("pread", "made to fail", plan_.read_errno).value();
    return got;
  }

  Result<int64_t> size() override {
    if (plan_.size_errno != 0) return os_error("fstat", "made to fail", plan_.size_errno);
    return inner_->size();
  }
  int fd() const noexcept override { return inner_->fd(); }

 private:
  std::unique_ptr<ReadableFile> inner_;
  ReadFaultPlan plan_;
  std::atomic<int> reads_ = 0;
};

}  // namespace penstock::io
