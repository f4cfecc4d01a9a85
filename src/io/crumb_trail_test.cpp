// Crumbs that are written one by one, where the file is already: from the sixteenth on by no call
// of write(2), whatever becomes of the file and whoever else writes. Where the file ends, by calls.
#include "io/crumb_trail.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "io/counted_file.hpp"
#include "io/kernel_answers.hpp"
#include "io/mappable_directory.hpp"
#include "io/temporary_file.hpp"
#include "io/tiny_disk.hpp"

namespace penstock::io::crumb_trail_test {
namespace {

using Bytes = std::vector<std::byte>;

// The number of the first piece from which on a trail of such pieces goes on; -1: it never does.
int begins_at(Trail& trail, Off begin, Off block, Off stride, int count) {
  int first = -1;
  for (int i = 0; i < count; ++i) {
    const Off at = begin + i * stride;
    if (!trail.goes_on({at, at + block}))
      first = -1;
    else if (first < 0)
      first = i;
  }
  return first;
}
int begins_at(Off block, Off stride, Writers writers = Writers::several) {
  Trail trail{writers};
  return begins_at(trail, 1000, block, stride, 500);
}

TEST(Trails, AreSixteenShortPiecesNearEachOther) {
  EXPECT_EQ(begins_at(48, 400), 15);
  EXPECT_EQ(begins_at(48, 48), 15);
  EXPECT_EQ(begins_at(1, 2040), 15);
}

TEST(Trails, HaveTwoPiecesForEachPage) {
  EXPECT_EQ(begins_at(48, 2500), -1);
  EXPECT_EQ(begins_at(4095, 4095), -1);
}

TEST(Trails, HaveEightForEachPageWhereNobodyElseHoldsTheFilesLock) {
  EXPECT_EQ(begins_at(48, 400, Writers::one), 15);
  EXPECT_EQ(begins_at(48, 600, Writers::one), -1);
}

TEST(Trails, AreNotOfLongPiecesNorFarFromEachOther) {
  EXPECT_EQ(begins_at(4096, 4096), -1);
  EXPECT_EQ(begins_at(8, 5000), -1);
}

TEST(Trails, LeadForwards) {
  Trail trail{Writers::several};
  for (Off i = 500; i > 0; --i) EXPECT_FALSE(trail.goes_on({i * 400, i * 400 + 48}));
}

TEST(Trails, ASecondOneIsBelievedSooner) {
  Trail trail{Writers::several};
  EXPECT_EQ(begins_at(trail, 0, 48, 400, 50), 15);
  EXPECT_EQ(begins_at(trail, 1'000'000, 48, 400, 50), 2);
}

TEST(Trails, AreForgottenAfterSomeShortOnes) {
  Trail trail{Writers::several};
  EXPECT_EQ(begins_at(trail, 0, 48, 400, 50), 15);
  for (Off jump = 1; jump < 5; ++jump) EXPECT_FALSE(trail.goes_on({jump << 20, (jump << 20) + 8}));
  EXPECT_EQ(begins_at(trail, 100'000'000, 48, 400, 50), 15);
}

class TrailFiles : public ::testing::Test {
 protected:
  explicit TrailFiles(const std::string& directory = mappable_directory()) : file_(directory) {}
  void SetUp() override { answers = {}; }
  void TearDown() override { answers = {}; }

  std::unique_ptr<CountedFile> open(OpenRequest request = {}) {
    request.path = file_.path();
    return CountedFile::open(request);
  }
  void resize(Off size) {
    ASSERT_EQ(::truncate(file_.path().c_str(), size), 0);
    model_.resize(size_t(size));
  }

  // Without holes.
  void fill(Off size) {
    resize(size);
    const Bytes zeros(size_t(size), std::byte{0});
    auto file = open();
    ASSERT_FALSE(file->write(zeros, 0));
  }

  // One piece of the rank's, as exec does it, with bytes of its own.
  void put(MechanismFile& file, Extent e) {
    Bytes bytes(size_t(e.size()));
    for (std::byte& b : bytes) b = std::byte(random_());
    if (!file.store_next(trail_, bytes, e.begin)) EXPECT_FALSE(file.write(bytes, e.begin));
    if (model_.size() < size_t(e.end)) model_.resize(size_t(e.end));
    std::ranges::copy(bytes, model_.begin() + e.begin);
  }
  void put(MechanismFile& file, Off begin, Off block, Off stride, int count) {
    for (int i = 0; i < count; ++i) put(file, {begin + i * stride, begin + i * stride + block});
  }

  TemporaryFile file_;
  CrumbTrail trail_{Writers::several};
  Bytes model_;
  std::minstd_rand random_{1};
};

// A store into a page that is ready is no fault, so the kernel notes no time.
TEST_F(TrailFiles, AreNewerThanWhatWasCopiedBeforeTheLastStore) {
  fill(1'000'000);
  auto file = open();
  put(*file, 0, 48, 400, 20);  // the 16th makes 32 KiB ready
  const int64_t writes = file->writes;
  constexpr time_t kCopied = 1'000'000'000;
  const timespec copied[] = {{0, UTIME_OMIT}, {kCopied, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, file_.path().c_str(), copied, 0), 0);
  put(*file, 20 * 400, 48, 400, 10);
  EXPECT_EQ(file->writes, writes) << "stored, all of them";
  trail_.let_go();
  struct stat there {};
  ASSERT_EQ(::stat(file_.path().c_str(), &there), 0);
  EXPECT_GT(there.st_mtim.tv_sec, kCopied);
  EXPECT_TRUE(file->close());
}

TEST_F(TrailFiles, InsideTheFileAreWrittenByNoCall) {
  fill(1'000'000);
  auto file = open();
  put(*file, 777, 48, 400, 2000);
  EXPECT_EQ(file->writes, 15);
  EXPECT_TRUE(file_.holds(model_));
  EXPECT_TRUE(file->sync(SyncKind::full));
  put(*file, 777 + 800'000, 48, 400, 100);
  EXPECT_EQ(file->writes, 15) << "and goes on after a sync";
  trail_.let_go();
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, PagesAreMadeReadyInStepsThatGrow) {
  resize(10 << 20);
  auto file = open();
  const double begin_s = now_s();
  put(*file, 0, 48, 400, 20'000);  // 8 MB
  // Who loses its core for that long has rested, and pages are made ready anew.
  const int rests = int((now_s() - begin_s) / 0.01);
  EXPECT_GT(answers.fallocated, 20);
  EXPECT_LT(answers.fallocated, 60 + rests) << "256 KiB at a time, soon";
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, WhoMakesTheFileLongerWritesAndTheFileEndsWithTheLastByte) {
  auto file = open();
  put(*file, 5, 48, 400, 1000);
  EXPECT_EQ(file->writes, 1000);
  EXPECT_EQ(answers.populated, 0);
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, TheLastBytesOfTheFileAreWrittenByCalls) {
  fill(400'010);
  auto file = open();
  put(*file, 0, 48, 400, 1100);
  EXPECT_LT(file->writes, 300);
  EXPECT_TRUE(file_.holds(model_));
}

// A store behind the end would be a signal.
TEST_F(TrailFiles, AFileThatIsCutShortMeanwhileIsWrittenByCalls) {
  resize(1'000'000);
  auto file = open();
  put(*file, 0, 48, 400, 500);
  resize(0);
  const int before = file->writes;
  put(*file, 200'000, 48, 400, 500);
  EXPECT_EQ(file->writes - before, 500);
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, AgreeWithAModelOnRandomPieces) {
  resize(300'000);
  auto file = open();
  Off at = 0;
  for (int i = 0; i < 30'000; ++i) {
    const auto dice = random_() % 1000;
    if (dice < 3) at = Off(random_() % 400'000);
    if (dice == 3) resize(Off(random_() % 500'000));
    if (dice == 4) trail_.let_go();
    const Off size = 1 + Off(random_() % (dice < 10 ? 9000 : 300));
    put(*file, {at, at + size});
    at += size + Off(random_() % (i % 20'000 < 10'000 ? 100 : 2000));
    if (at > 600'000) at = 0;
  }
  EXPECT_GT(answers.populated, 100);
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, TakeNothingOfWhatAnotherWritesIntoTheGaps) {
  constexpr int kPieces = 4000;
  // Else who has lost its core near the end finds too little left to make ready.
  fill(Off(kPieces) * 100 + CrumbTrail::kLeastReady);
  auto mine = open(), theirs = open();
  const Bytes m(50, std::byte{'m'}), t(50, std::byte{'t'});
  std::thread other([&] {
    for (Off i = 0; i < kPieces; ++i) EXPECT_FALSE(theirs->write(t, i * 100 + 50));
  });
  for (Off i = 0; i < kPieces; ++i)
    if (!mine->store_next(trail_, m, i * 100)) EXPECT_FALSE(mine->write(m, i * 100));
  other.join();
  EXPECT_EQ(mine->writes, 15);
  const Bytes got = file_.contents();
  for (size_t i = 0; i < size_t(kPieces) * 100; ++i)
    ASSERT_EQ(got[i], std::byte(i % 100 < 50 ? 'm' : 't')) << "byte " << i;
}

TEST_F(TrailFiles, AfterARestPagesAreMadeReadyAnew) {
  fill(1'000'000);
  auto file = open();
  put(*file, 0, 48, 400, 20);
  const int before = answers.fallocated;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  put(*file, 20 * 400, 48, 400, 1);
  EXPECT_EQ(answers.fallocated, before + 1);
  EXPECT_EQ(file->writes, 15);
  EXPECT_TRUE(file_.holds(model_));
}

// As when somebody has made the file immutable, or its blocks a hole on a full disk.
TEST_F(TrailFiles, PagesThatTakeNoStoreAnyMoreAreFoundOutBeforeIt) {
  fill(1'000'000);
  auto file = open();
  put(*file, 0, 48, 400, 20);
  EXPECT_EQ(file->writes, 15);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // for longer than it is trusted
  answers.madvise_errno = EFAULT;
  put(*file, 20 * 400, 48, 400, 10);
  EXPECT_EQ(file->writes, 25);
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, WhereWritesHaveToBeOnTheDeviceOrGoPastTheCacheEachIsACall) {
  resize(1'000'000);
  for (const OpenRequest& request :
       {OpenRequest{.written = Written::through}, OpenRequest{.direct = Direct::always}}) {
    auto file = open(request);
    if (request.direct == Direct::always && !file->degraded().empty())
      continue;  // this one is not direct
    put(*file, 0, 48, 400, 100);
    EXPECT_EQ(file->writes, 100);
  }
  EXPECT_EQ(answers.populated, 0);
  EXPECT_TRUE(file_.holds(model_));
}

// Their blocks would be reserved, and nobody gives them back.
TEST_F(TrailFiles, ShortOnesTakeNoRoomInHoles) {
  constexpr int kClusters = 50;
  resize(Off(kClusters) << 17);
  auto file = open();
  for (int i = 0; i < kClusters; ++i) put(*file, Off(i) << 17, 100, 200, 20);
  EXPECT_EQ(answers.populated, 0);
  struct stat there {};
  ASSERT_EQ(::stat(file_.path().c_str(), &there), 0);
  EXPECT_LE(there.st_blocks * 512, kClusters * kPageStep);
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, LongOnesTakeNoMoreInHolesThanIsStoredTo) {
  resize(10 << 20);
  auto file = open();
  put(*file, 0, 48, 400, 1000);
  EXPECT_LT(file->writes, 200);
  struct stat there {};
  ASSERT_EQ(::stat(file_.path().c_str(), &there), 0);
  EXPECT_LE(there.st_blocks * 512, 2 * 400'000 + kPageStep);
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, WithoutRoomEachIsACallAndRoomIsLookedForSeldom) {
  resize(1'000'000);
  auto file = open();
  answers.fallocate_errno = ENOSPC;
  put(*file, 0, 48, 400, 1000);
  EXPECT_EQ(file->writes, 1000);
  EXPECT_LT(answers.fallocated, 30);
  answers = {};
  put(*file, 400'000, 48, 400, 1000);
  EXPECT_LT(file->writes, 1100) << "and there is some again";
  EXPECT_EQ(file->degraded(), "");
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(TrailFiles, AFileSystemWithoutFallocateIsAskedOnceAndNothingIsSaid) {
  resize(1'000'000);
  auto file = open();
  answers.fallocate_errno = EOPNOTSUPP;
  put(*file, 0, 48, 400, 1000);
  EXPECT_EQ(file->writes, 1000);
  EXPECT_EQ(answers.fallocated, 1);
  EXPECT_EQ(file->degraded(), "") << "they are calls of the program's";
  EXPECT_TRUE(file_.holds(model_));
}

class TrailsOnATinyDisk : public OnATinyDisk<> {};

// 256 KiB for a sparse file of 400 KB: what is stored has a block, what has none is an error.
TEST_F(TrailsOnATinyDisk, SayNoSpaceAndKeepWhatTheySaidWasWritten) {
  ASSERT_EQ(::mount("tmpfs", directory_.c_str(), "tmpfs", MS_REMOUNT, "size=256k"), 0);
  const TemporaryFile target(directory_);
  ASSERT_EQ(::truncate(target.path().c_str(), 400'000), 0);
  auto file = CountedFile::open({.path = target.path()});
  const Bytes piece(48, std::byte{'x'});
  CrumbTrail trail{Writers::several};
  Off written = 0;
  std::optional<Fault> fault;
  for (; !fault; written += 400)
    if (!file->store_next(trail, piece, written)) fault = file->write(piece, written);
  EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
  EXPECT_GT(written, 200'000);
  EXPECT_LT(file->writes, written / 400 - 200);
  const Bytes got = target.contents();
  for (Off at = 0; at < written - 400; ++at)
    ASSERT_EQ(got[size_t(at)], std::byte(at % 400 < 48 ? 'x' : 0)) << at;
  trail.let_go();
  EXPECT_TRUE(file->close());
}

}  // namespace
}  // namespace penstock::io::crumb_trail_test
