// Crumbs are stored through windows: by no call of write(2), into no byte of a gap, to the last
// byte and no further; and by calls where that cannot be.
#include "io/crumbs.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>
#include <thread>

#include "io/counted_file.hpp"
#include "io/kernel_answers.hpp"
#include "io/mappable_directory.hpp"
#include "io/temporary_file.hpp"
#include "io/tiny_disk.hpp"

namespace penstock::io::crumbs_test {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Extent> comb(Off begin, Off block, Off stride, int count) {
  std::vector<Extent> all;
  for (int i = 0; i < count; ++i) all.push_back({begin + i * stride, begin + i * stride + block});
  return all;
}

Stretch stretch_of(const std::vector<Extent>& extents) { return first_stretch(extents); }

TEST(Crumbs, AreShortAndCloseToEachOther) {
  const Stretch found = stretch_of(comb(100, 48, 400, 1000));
  EXPECT_EQ(found.count, 1000U);
  EXPECT_TRUE(found.crumbs);
}

TEST(Crumbs, AreMoreThanAWriteForEachPageOfMemory) {
  EXPECT_TRUE(stretch_of(comb(0, 100, 2000, 1000)).crumbs);
  EXPECT_FALSE(stretch_of(comb(0, 100, 3000, 1000)).crumbs);
  EXPECT_EQ(stretch_of(comb(0, 100, 3000, 1000)).count, 1000U);
}

TEST(Crumbs, AreSoManyThatAWindowPays) {
  EXPECT_TRUE(stretch_of(comb(0, 8, 64, 16)).crumbs);
  EXPECT_FALSE(stretch_of(comb(0, 8, 64, 15)).crumbs);
}

TEST(Crumbs, ExtentsThatTouchAreOneWriteAndNoCrumbs) {
  const Stretch found = stretch_of(comb(0, 64, 64, 1000));
  EXPECT_EQ(found.count, 1000U);
  EXPECT_FALSE(found.crumbs);
}

TEST(Crumbs, EndBeforeALongExtentAndBeforeALongGap) {
  for (const Extent other : {Extent{8000, 20000}, Extent{20000, 20010}}) {
    std::vector<Extent> extents = comb(0, 48, 400, 20);
    extents.push_back(other);
    EXPECT_EQ(stretch_of(extents).count, 20U);
    EXPECT_TRUE(stretch_of(extents).crumbs);
  }
}

TEST(Crumbs, ALongExtentIsTakenAlone) {
  const Stretch found = stretch_of({{0, 3000}, {3000, 9000}, {9100, 9110}});
  EXPECT_EQ(found.count, 2U);
  EXPECT_FALSE(found.crumbs);
}

TEST(Crumbs, OfAVeryLongStretchOneWindowTakesAPart) {
  const std::vector<Extent> extents = comb(0, 48, 400, 30'000);
  const Stretch found = stretch_of(extents);
  EXPECT_TRUE(found.crumbs);
  EXPECT_LT(found.count, extents.size());
  EXPECT_GT(found.count, 10'000U);
}

class CrumbFiles : public ::testing::Test {
 protected:
  explicit CrumbFiles(const std::string& directory = mappable_directory()) : file_(directory) {}
  void SetUp() override { answers = {}; }
  void TearDown() override { answers = {}; }

  std::unique_ptr<CountedFile> open(OpenRequest request = {}) {
    request.path = file_.path();
    return CountedFile::open(request);
  }

  Off size() const {
    struct stat s {};
    EXPECT_EQ(::stat(file_.path().c_str(), &s), 0);
    return s.st_size;
  }

  static Bytes random_bytes(size_t n, unsigned seed) {
    std::minstd_rand random(seed);
    Bytes b(n);
    for (std::byte& x : b) x = std::byte(random());
    return b;
  }

  // Puts the extents of `data`, which begins at byte 0 of the file, into file and model.
  static std::optional<Fault> write(MechanismFile& file, const Bytes& data,
                                    const std::vector<Extent>& dirty, Bytes& model) {
    const Extent all{0, Off(data.size())};
    const auto fault = file.write_extents({all, data}, dirty);
    if (model.size() < size_t(dirty.back().end)) model.resize(size_t(dirty.back().end));
    for (const Extent e : dirty)
      std::copy(data.begin() + e.begin, data.begin() + e.end, model.begin() + e.begin);
    return fault;
  }

  TemporaryFile file_;
};

TEST_F(CrumbFiles, AreWrittenByNoCallAndToTheLastByte) {
  auto file = open();
  Bytes model;
  const auto crumbs = comb(777, 48, 400, 2000);
  EXPECT_FALSE(write(*file, random_bytes(1'000'000, 1), crumbs, model));
  EXPECT_EQ(file->writes, 0);
  EXPECT_GT(answers.populated, 0);
  EXPECT_EQ(size(), crumbs.back().end);
  EXPECT_TRUE(file_.holds(model));
  EXPECT_EQ(file->degraded(), "");
  EXPECT_TRUE(file->sync(SyncKind::full));
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model));
}

TEST_F(CrumbFiles, OfALeaseGoTheSameWay) {
  auto file = open();
  const Extent where{4096, 1'052'672};
  const auto dirty = comb(where.begin + 5, 100, 1000, 1000);
  const Lease lease = file->lease(where).value();
  const Bytes data = random_bytes(size_t(where.size()), 2);
  std::ranges::copy(data, lease.memory.begin());
  file->submit(lease, dirty);
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(file->writes, 0);
  Bytes model(size_t(dirty.back().end));
  for (const Extent e : dirty)
    std::copy(data.begin() + (e.begin - where.begin), data.begin() + (e.end - where.begin),
              model.begin() + e.begin);
  EXPECT_TRUE(file_.holds(model));
}

TEST_F(CrumbFiles, GapsKeepTheirBytes) {
  auto file = open();
  Bytes model;
  EXPECT_FALSE(write(*file, random_bytes(300'000, 3), {{0, 300'000}}, model));
  EXPECT_EQ(file->writes, 1);
  EXPECT_FALSE(write(*file, random_bytes(500'000, 4), comb(1, 30, 150, 3000), model));
  EXPECT_EQ(file->writes, 1);
  EXPECT_TRUE(file_.holds(model));
}

TEST_F(CrumbFiles, AmongOtherExtentsOnlyTheOthersAreCalls) {
  auto file = open();
  Bytes model;
  std::vector<Extent> dirty = {{0, 10'000}, {20'000, 40'000}};
  for (const Extent e : comb(40'100, 48, 400, 100)) dirty.push_back(e);
  dirty.push_back({200'000, 200'001});
  EXPECT_FALSE(write(*file, random_bytes(200'001, 5), dirty, model));
  EXPECT_EQ(file->writes, 3);
  EXPECT_TRUE(file_.holds(model));
}

TEST_F(CrumbFiles, AgreeWithAModelOnRandomExtents) {
  std::minstd_rand random(6);
  auto file = open();
  Bytes model;
  for (unsigned round = 0; round < 60; ++round) {
    std::vector<Extent> dirty;
    const auto most = 1 + random() % (round % 3 == 0 ? 9000 : 300);
    for (Off at = Off(random() % 100'000); at < 400'000 && dirty.size() < 1000;) {
      const Off end = at + 1 + Off(random() % most);
      dirty.push_back({at, end});
      at = end + Off(random() % 4 == 0 ? 0 : random() % most);
    }
    if (dirty.empty()) continue;
    EXPECT_FALSE(write(*file, random_bytes(size_t(dirty.back().end), round), dirty, model));
  }
  EXPECT_GT(answers.populated, 0);
  EXPECT_TRUE(file_.holds(model));
}

// Read, filled in and written back, the gaps would bring old bytes over the other's new ones.
TEST_F(CrumbFiles, TakeNothingOfWhatAnotherWritesIntoTheGaps) {
  const Bytes mine(400'000, std::byte{'m'}), theirs(400'000, std::byte{'t'});
  const auto my_extents = comb(0, 50, 100, 3999), their_extents = comb(50, 50, 100, 3999);
  for (int round = 0; round < 20; ++round) {
    auto me = open();
    auto they = open();
    std::thread other([&] {
      for (const Extent e : their_extents)
        EXPECT_FALSE(they->write(std::span(theirs).first(size_t(e.size())), e.begin));
    });
    EXPECT_FALSE(me->write_extents({{0, 400'000}, mine}, my_extents));
    other.join();
    EXPECT_EQ(me->writes, 0);
    const Bytes got = file_.contents();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], i % 100 < 50 ? mine[i] : theirs[i]) << "byte " << i;
    ASSERT_EQ(::truncate(file_.path().c_str(), 0), 0);
  }
}

TEST_F(CrumbFiles, WhereWritesHaveToBeOnTheDeviceEachIsACallAndThatIsSaid) {
  auto file = open({.written = Written::through});
  Bytes model;
  EXPECT_EQ(file->degraded(), "");
  EXPECT_FALSE(write(*file, random_bytes(40'000, 7), comb(0, 48, 400, 100), model));
  EXPECT_EQ(file->writes, 100);
  EXPECT_EQ(answers.populated, 0);
  EXPECT_NE(file->degraded().find("on the device"), std::string::npos) << file->degraded();
  EXPECT_TRUE(file_.holds(model));
}

TEST_F(CrumbFiles, AFileSystemWithoutFallocateIsAskedOnceAndThatIsSaid) {
  auto file = open();
  Bytes model;
  answers.fallocate_errno = EOPNOTSUPP;
  EXPECT_FALSE(write(*file, random_bytes(40'000, 8), comb(0, 48, 400, 100), model));
  answers = {};
  EXPECT_FALSE(write(*file, random_bytes(40'000, 9), comb(0, 48, 400, 100), model));
  EXPECT_EQ(file->writes, 200);
  EXPECT_NE(file->degraded().find("short pieces"), std::string::npos) << file->degraded();
  EXPECT_TRUE(file_.holds(model));
}

// Also where a file is best written by pages: xfs says so whatever its blocks are.
TEST_F(CrumbFiles, WhereBlocksAreSmallerThanAPageEachIsACallAndThatIsSaid) {
  auto file = open();
  Bytes model;
  answers.allocation_bytes = 1024;
  EXPECT_FALSE(write(*file, random_bytes(40'000, 12), comb(0, 48, 400, 100), model));
  EXPECT_EQ(file->writes, 100);
  EXPECT_EQ(answers.populated, 0);
  EXPECT_NE(file->degraded().find("smaller than a page"), std::string::npos) << file->degraded();
  EXPECT_TRUE(file_.holds(model));
}

TEST_F(CrumbFiles, AKernelThatCannotPopulateIsNotTrusted) {
  auto file = open();
  Bytes model;
  answers.madvise_errno = EINVAL;
  EXPECT_FALSE(write(*file, random_bytes(40'000, 10), comb(0, 48, 400, 100), model));
  EXPECT_EQ(file->writes, 100);
  EXPECT_TRUE(file_.holds(model));
}

// What fails for one window is tried again for the next, and write(2) has the last word.
TEST_F(CrumbFiles, WithoutRoomForAWindowEachIsACallAndNothingIsSaid) {
  auto file = open();
  Bytes model;
  answers.fallocate_errno = ENOSPC;
  EXPECT_FALSE(write(*file, random_bytes(40'000, 11), comb(0, 48, 400, 100), model));
  EXPECT_EQ(file->writes, 100);
  answers = {};
  EXPECT_FALSE(write(*file, random_bytes(40'000, 12), comb(0, 48, 400, 100), model));
  EXPECT_EQ(file->writes, 100);
  EXPECT_EQ(file->degraded(), "");
  EXPECT_TRUE(file_.holds(model));
}

TEST_F(CrumbFiles, TheFileThatIsOpenIsStoredIntoWhereverItsNameLeadsNow) {
  auto file = open();
  const std::string elsewhere = file_.path() + ".moved";
  ASSERT_EQ(::rename(file_.path().c_str(), elsewhere.c_str()), 0);
  const TemporaryFile another(mappable_directory());
  ASSERT_EQ(::link(another.path().c_str(), file_.path().c_str()), 0);
  Bytes model;
  EXPECT_FALSE(write(*file, random_bytes(40'000, 13), comb(0, 48, 400, 100), model));
  EXPECT_EQ(file->writes, 0);
  EXPECT_TRUE(another.holds({}));
  ASSERT_EQ(::rename(elsewhere.c_str(), file_.path().c_str()), 0);
  EXPECT_TRUE(file_.holds(model));
}

class CrumbsOnATinyDisk : public OnATinyDisk<> {};

TEST_F(CrumbsOnATinyDisk, SayNoSpaceAndTheExactPrefix) {
  const TemporaryFile target(directory_);
  auto file = CountedFile::open({.path = target.path()});
  const auto dirty = comb(0, 48, 400, 1000);
  const Bytes data(400'000, std::byte{'x'});
  const auto fault = file->write_extents({{0, 400'000}, data}, dirty);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
  EXPECT_GT(fault->first_missing, 32'768);
  EXPECT_LE(fault->first_missing, 65'600);
  const Bytes got = target.contents();
  for (const Extent e : dirty)
    for (Off at = e.begin; at < std::min(e.end, fault->first_missing); ++at)
      ASSERT_EQ(got[size_t(at)], std::byte{'x'}) << at;
  EXPECT_TRUE(file->close());
}

}  // namespace
}  // namespace penstock::io::crumbs_test
