// For tests: one rank of a file whose independent writes go behind, with its I/O thread or without.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ticks.hpp"
#include "exec/random_case.hpp"
#include "exec/stager.hpp"
#include "exec/write_behind.hpp"

namespace penstock::exec {

enum class Thread : uint8_t { runs, none };

class BehindRank : public Chore {
 public:
  BehindRank(comm::Comm& comm, std::unique_ptr<io::MechanismFile> file, WriteBehindShape shape,
             Thread thread)
      : file_(std::move(file)),
        behind_(WriteBehind::make(
                    comm, shape, {},
                    thread == Thread::runs ? stager_.bell() : std::optional<Bell::Address>())
                    .value()) {
    if (thread == Thread::runs) EXPECT_TRUE(stager_.add(*this));
  }
  ~BehindRank() override {
    stager_.remove(*this);
    EXPECT_TRUE(file_->close());
  }

  void run(Why why) noexcept override {
    behind_->serve_asked(target());
    if (why == Why::due) behind_->serve_older(target(), 60);
  }

  WriteOutcome write(const WriteRequest& request) { return behind_->write(target(), request); }
  WriteOutcome write(std::span<const std::byte> bytes, Off offset,
                     Returns returns = Returns::soon) {
    const auto n = int64_t(bytes.size());
    const layout::FileView view;
    WriteRequest request{&view, {offset, offset + n}, bytes.data(), layout::LoopTree::bytes(1), n};
    request.returns = returns;
    return write(request);
  }
  // The short way. Whether it was taken.
  bool add(const layout::Run& run, std::span<const std::byte> bytes) {
    EXPECT_EQ(run.bytes(), int64_t(bytes.size()));
    return behind_->add(target(), run, bytes.data(), ticks(), Returns::soon).has_value();
  }
  bool add(std::span<const std::byte> bytes, Off offset) {
    const auto n = int64_t(bytes.size());
    return add(layout::Run{offset, n, n, 1}, bytes);
  }
  // What belongs there.
  void write_at(Off offset, int64_t n) {
    EXPECT_EQ(write(bytes_at(offset, n), offset).prefix_bytes, n);
  }
  void flush() { behind_->flush(target()); }
  void flush_together() { behind_->flush_together(target()); }
  void let_others_complete() { behind_->let_others_complete(target()); }
  StagedNotes notes() const { return behind_->notes(); }
  int pages_in_memory() const { return behind_->pages_in_memory(); }

 private:
  WriteBehind::Target target() { return {*file_, nullptr}; }

  const std::unique_ptr<io::MechanismFile> file_;
  Stager stager_;
  const std::unique_ptr<WriteBehind> behind_;
};

}  // namespace penstock::exec
