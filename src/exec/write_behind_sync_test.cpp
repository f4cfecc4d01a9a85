// Writes behind under a sync policy: whose bytes a sync that fails may have lost, and in whose
// counts they are.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "comm/thread_comm.hpp"
#include "exec/behind_for_tests.hpp"
#include "exec/blocks.hpp"
#include "exec/write_behind.hpp"
#include "io/faulty.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::write_behind_sync_test {
namespace {

constexpr int64_t kSmallPage = 4096;

std::unique_ptr<io::MechanismFile> open(const std::string& path, const io::FaultPlan& faults = {}) {
  return std::make_unique<io::FaultyFile>(
      io::find_mechanism("pwrite")->open({.path = path}).value(), faults);
}

// After each write of a page, and never well.
class FailingSync final : public io::FileSync {
 public:
  using FileSync::FileSync;
  Result<bool> wrote(Extent, int64_t) override { return os_error("fdatasync", "out", EIO); }
};

// Of the middle piece a part fails before: it is not lost twice.
TEST(WriteBehind, ASyncThatFailsLosesTheBytesThatWereAcceptedAndNoHoles) {
  constexpr int64_t kPiece = 100;
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    const auto file = open(path.path(), {.at_offset = 2050, .write_errno = ENOSPC});
    FailingSync sync(*file);
    const WriteBehind::Target target{*file, &sync};
    const auto behind = WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value();
    const auto beside = behind->beside();
    const layout::FileView view;
    for (const Off at : {Off{0}, Off{2000}, Off{3000}}) {
      const auto bytes = bytes_at(at, kPiece);
      behind->write(target,
                    {&view, {at, at + kPiece}, bytes.data(), layout::LoopTree::bytes(1), kPiece});
    }
    behind->flush(target);
    const StagedNotes notes = behind->notes();
    EXPECT_EQ(notes.lost_bytes, 3 * kPiece);
    EXPECT_EQ(notes.written_bytes, 0);
    EXPECT_EQ(notes.failures, 2);
    ASSERT_TRUE(notes.failure);
    EXPECT_EQ(notes.failure->operation, "fdatasync");
  });
}

// After some writes, and after the nth it fails.
class SyncFails final : public io::FileSync {
 public:
  SyncFails(io::MechanismFile& file, int nth, int every)
      : FileSync(file), nth_(nth), every_(every) {}
  Result<bool> wrote(Extent, int64_t) override {
    if (++writes_ == nth_) return os_error("fdatasync", "out", EIO);
    return writes_ % every_ == 0;
  }

 private:
  const int nth_, every_;
  int writes_ = 0;
};

TEST(WriteBehind, ASyncThatFailsTakesWholePagesOfTheCallOutOfItsCount) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    const auto file = open(path.path());
    SyncFails sync(*file, 4, 2);
    const auto behind = WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value();
    const Blocks pages(0, kSmallPage, 2 * kSmallPage, 5);
    const WriteOutcome out = behind->write({*file, &sync}, pages.request());
    EXPECT_EQ(out.agreed, ErrorClass::io);
    EXPECT_EQ(out.prefix_bytes, 2 * kSmallPage);
    EXPECT_EQ(behind->notes().written_bytes, 2 * kSmallPage);
    EXPECT_FALSE(behind->notes().failure) << "told already";
  });
}

// The second of three pages goes into the pool, where it has bytes already, and leaves when it is
// full.
TEST(WriteBehind, ASyncThatFailsTakesNoPageThatWaitsOutOfTheCounts) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    const auto file = open(path.path());
    SyncFails sync(*file, 3, 100);
    const auto behind = WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value();
    const Blocks few(kSmallPage, 10, 10, 1), pages(0, kSmallPage, kSmallPage, 3);
    EXPECT_EQ(behind->write({*file, &sync}, few.request()).prefix_bytes, 10);
    EXPECT_EQ(behind->write({*file, &sync}, pages.request()).prefix_bytes, 0);
    behind->flush({*file, nullptr});
    EXPECT_EQ(behind->notes().written_bytes, kSmallPage + 10) << "these twice";
  });
}

}  // namespace
}  // namespace penstock::exec::write_behind_sync_test
