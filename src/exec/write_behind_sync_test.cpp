// Writes behind under a sync policy: whose bytes a sync that fails may have lost, and in whose
// counts they are.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>

#include "comm/thread_comm.hpp"
#include "exec/behind_for_tests.hpp"
#include "exec/blocks.hpp"
#include "exec/write_behind.hpp"
#include "io/faulty.hpp"
#include "io/forwarding_file.hpp"
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
    if (++writes_ != nth_) return writes_ % every_ == 0;
    if (before_failing) before_failing();
    return os_error("fdatasync", "out", EIO);
  }
  void fail() { note_failure(os_error("fdatasync", "out", EIO).value()); }

  std::function<void()> before_failing;

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
// full; with the third a sync fails.
TEST(WriteBehind, ASyncThatFailsLosesAPageThatHasLeftSinceTheLastOne) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    const auto file = open(path.path());
    SyncFails sync(*file, 3, 100);
    const auto behind = WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value();
    const Blocks few(kSmallPage, 10, 10, 1), pages(0, kSmallPage, kSmallPage, 3);
    EXPECT_EQ(behind->write({*file, &sync}, few.request()).prefix_bytes, 10);
    EXPECT_EQ(behind->write({*file, &sync}, pages.request()).prefix_bytes, 0);
    behind->flush({*file, nullptr});
    const StagedNotes notes = behind->notes();
    EXPECT_EQ(notes.written_bytes, 10) << "these twice";
    EXPECT_EQ(notes.lost_bytes, kSmallPage);
    EXPECT_EQ(notes.lost, (std::vector<Extent>{{0, 3 * kSmallPage}})) << "around what was told";
  });
}

// A page that waits in memory is none of a sync's.
TEST(WriteBehind, ASyncThatFailsTakesNoPageThatWaitsOutOfTheCounts) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    const auto file = open(path.path());
    SyncFails sync(*file, 1, 100);
    const auto behind = WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value();
    const Blocks few(kSmallPage, 10, 10, 1), page(0, kSmallPage, kSmallPage, 1);
    EXPECT_EQ(behind->write({*file, &sync}, few.request()).prefix_bytes, 10);
    EXPECT_EQ(behind->write({*file, &sync}, page.request()).prefix_bytes, 0);
    behind->flush({*file, nullptr});
    EXPECT_EQ(behind->notes().written_bytes, 10);
    EXPECT_EQ(behind->notes().lost_bytes, 0);
  });
}

// One handle of a rank by itself, whose sync policy fails after the nth page that has left.
class SyncsBehind : public testing::Test {
 protected:
  static constexpr int64_t kPiece = 100;

  struct Handle {
    io::MechanismFile& file;
    SyncFails sync;
    std::unique_ptr<WriteBehind> behind;

    // A piece of a page, which leaves.
    void write_page(Off page) {
      const layout::FileView view;
      const Off at = page * kSmallPage;
      const auto bytes = bytes_at(at, kPiece);
      behind->write({file, &sync},
                    {&view, {at, at + kPiece}, bytes.data(), layout::LoopTree::bytes(1), kPiece});
      behind->flush({file, &sync});
    }
  };

  template <class Body>
  static void with_handle(int nth, int every, Body&& body) {
    const io::TemporaryFile path;
    comm::run_thread_team(1, [&](comm::Comm& comm) {
      const auto file = open(path.path());
      body(Handle{*file, SyncFails(*file, nth, every),
                  WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value()});
    });
  }
};

TEST_F(SyncsBehind, LoseWhatHasLeftSinceTheLastOneThatSucceeded) {
  with_handle(5, 2, [](Handle handle) {
    for (Off page = 0; page < 4; ++page) handle.write_page(page);
    EXPECT_EQ(handle.behind->notes().lost_bytes, 0);
    handle.write_page(9);  // right behind a sync
    EXPECT_EQ(handle.behind->notes().lost_bytes, kPiece);
    EXPECT_EQ(handle.behind->notes().written_bytes, 4 * kPiece);
  });
  with_handle(6, 4, [](Handle handle) {
    for (Off page = 0; page < 6; ++page) handle.write_page(page);
    const StagedNotes notes = handle.behind->notes();
    EXPECT_EQ(notes.lost_bytes, 2 * kPiece);
    EXPECT_EQ(notes.written_bytes, 4 * kPiece);
    for (Off page = 6; page < 8; ++page) handle.write_page(page);
    EXPECT_EQ(handle.behind->notes().lost_bytes, 2 * kPiece) << "they are lost once";
  });
}

TEST_F(SyncsBehind, LoseNothingThatTheProgramHasSynced) {
  with_handle(3, 100, [](Handle handle) {
    handle.write_page(0);
    handle.write_page(1);
    EXPECT_TRUE(handle.sync.sync(io::SyncKind::full));
    handle.write_page(2);
    EXPECT_EQ(handle.behind->notes().lost_bytes, kPiece);
    EXPECT_EQ(handle.behind->notes().written_bytes, 2 * kPiece);
  });
}

// A collective write of the handle, say, or the policy's own thread.
TEST_F(SyncsBehind, OfOthersThatFailLoseWhatHadLeftBefore) {
  with_handle(100, 100, [](Handle handle) {
    handle.write_page(0);
    EXPECT_TRUE(handle.sync.sync(io::SyncKind::full));
    handle.write_page(1);
    handle.sync.fail();
    handle.write_page(2);
    const StagedNotes notes = handle.behind->notes();
    EXPECT_EQ(notes.lost_bytes, kPiece);
    EXPECT_EQ(notes.lost, (std::vector<Extent>{{kSmallPage, kSmallPage + kPiece}}));
    EXPECT_EQ(notes.written_bytes, 2 * kPiece);
  });
}

TEST_F(SyncsBehind, OfOthersThatFailLoseNothingThatWasCertainBefore) {
  with_handle(100, 100, [](Handle handle) {
    handle.write_page(0);
    EXPECT_TRUE(handle.sync.sync(io::SyncKind::full));
    handle.sync.fail();
    handle.write_page(1);
    EXPECT_EQ(handle.behind->notes().lost_bytes, 0);
    EXPECT_EQ(handle.behind->notes().written_bytes, 2 * kPiece);
  });
}

TEST_F(SyncsBehind, ThatFailAfterTheLastWriteAreSettledWithTheProgramsSync) {
  with_handle(100, 100, [](Handle handle) {
    handle.write_page(0);
    handle.sync.fail();
    EXPECT_FALSE(handle.sync.sync(io::SyncKind::full));
    handle.behind->settle({handle.file, &handle.sync});
    EXPECT_EQ(handle.behind->notes().lost_bytes, kPiece);
  });
}

// Something happens when the bytes are in the file, before anybody has noted that.
class WritesAndThen final : public io::ForwardingFile {
 public:
  using ForwardingFile::ForwardingFile;
  std::optional<io::Fault> write(std::span<const std::byte> bytes, Off offset) override {
    auto fault = ForwardingFile::write(bytes, offset);
    if (then) then();
    return fault;
  }

  std::function<void()> then;
};

TEST_F(SyncsBehind, ThatFailWhileAPageIsWrittenLoseThatPage) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    WritesAndThen file(open(path.path()));
    Handle handle{file, SyncFails(file, 100, 100),
                  WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value()};
    file.then = [&] { handle.sync.fail(); };
    handle.write_page(0);
    file.then = nullptr;
    EXPECT_TRUE(!handle.sync.sync(io::SyncKind::full));
    handle.write_page(1);
    EXPECT_EQ(handle.behind->notes().lost_bytes, kPiece);
    EXPECT_EQ(handle.behind->notes().written_bytes, kPiece);
  });
}

// While a whole page's sync is asked for, that of a page which leaves fails: these bytes are lost
// once, and the call's own are told by the call.
TEST_F(SyncsBehind, OfTwoThatFailAtOnceTheBytesAreLostOnce) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    const auto file = open(path.path());
    SyncFails sync(*file, 3, 100);
    const auto behind = WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value();
    sync.before_failing = [&] {
      sync.fail();
      const Blocks piece(100 * kSmallPage, 10, 10, 1);
      behind->write({*file, &sync}, piece.request());
      behind->flush({*file, &sync});
    };
    const Blocks pages(0, kSmallPage, 2 * kSmallPage, 3);
    const WriteOutcome out = behind->write({*file, &sync}, pages.request());
    EXPECT_EQ(out.agreed, ErrorClass::io);
    const StagedNotes notes = behind->notes();
    EXPECT_GE(notes.written_bytes, 0);
    EXPECT_EQ(notes.accepted_bytes - notes.written_bytes, notes.lost_bytes);
  });
}

}  // namespace
}  // namespace penstock::exec::write_behind_sync_test
