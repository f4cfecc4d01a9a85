// Where extents are cut for direct writes, how a file system's answer is taken, and that a refusal
// costs nothing but the page cache. What every direct mechanism leaves in the file is in
// mechanism_test.cpp.
#include "io/direct.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/aligned_buffer.hpp"
#include "io/probe.hpp"
#include "io/temporary_file.hpp"

namespace penstock::io::direct_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counting_bytes(size_t n) {
  Bytes b(n);
  for (size_t i = 0; i < n; ++i) b[i] = std::byte(i * 5 + i / 251);
  return b;
}

RC_GTEST_PROP(DirectParts, CoverTheExtentInOrderAndOnlyWholeUnitsAreDirect, ()) {
  const Off unit = Off{1} << *rc::gen::inRange(9, 17);
  const Off begin = *rc::gen::inRange<Off>(0, 1 << 20), size = *rc::gen::inRange<Off>(1, 1 << 20);
  Off at = begin;
  for (const auto& [where, way] : cut_for_direct({begin, begin + size}, unit)) {
    RC_ASSERT(where.begin == at);
    RC_ASSERT(where.end >= at);
    at = where.end;
    const bool whole_units = where.begin % unit == 0 && where.end % unit == 0;
    RC_ASSERT(way == Way::buffered || whole_units);
    RC_ASSERT(way == Way::direct || where.size() < 2 * unit);  // no whole unit is left out
  }
  RC_ASSERT(at == begin + size);
}

TEST(DirectParts, HeadMiddleAndTail) {
  const auto parts = cut_for_direct({5000, 20000}, 4096);
  EXPECT_EQ(parts[0].where, (Extent{5000, 8192}));
  EXPECT_EQ(parts[1].where, (Extent{8192, 16384}));
  EXPECT_EQ(parts[2].where, (Extent{16384, 20000}));
  EXPECT_EQ(parts[0].way, Way::buffered);
  EXPECT_EQ(parts[1].way, Way::direct);
  EXPECT_EQ(parts[2].way, Way::buffered);
}

TEST(DirectParts, WithoutAUnitEverythingIsBuffered) {
  EXPECT_EQ(cut_for_direct({4096, 8192}, 0)[0].way, Way::buffered);
  EXPECT_EQ(cut_for_direct({4096, 8192}, 0)[0].where, (Extent{4096, 8192}));
}

// Of the file system of the tests' directory, which may have none.
class DirectFiles : public ::testing::Test {
 protected:
  std::unique_ptr<MechanismFile> open(std::string_view mechanism = "pwrite") {
    return find_mechanism(mechanism)
        ->open({.path = file_.path(), .direct = Direct::always})
        .value();
  }

  void write(MechanismFile& file, Extent where, const Bytes& data) {
    auto lease = file.lease(where).value();
    std::copy_n(data.begin() + where.begin, where.size(), lease.memory.begin());
    file.submit(lease, {&where, 1});
    const auto fault = file.reap();
    EXPECT_FALSE(fault) << fault->error.message();
  }

  TemporaryFile file_;
};

TEST_F(DirectFiles, AreAsLongAsWhatWasWritten) {
  const Bytes data = counting_bytes(300'001);
  auto file = open();
  write(*file, {70'001, 200'003}, data);
  EXPECT_EQ(file_.contents().size(), 200'003u);
  write(*file, {200'003, 300'001}, data);
  EXPECT_EQ(file_.contents().size(), 300'001u);
  write(*file, {0, 70'001}, data);
  EXPECT_TRUE(file->close());
  EXPECT_EQ(file_.contents(), data);
}

TEST_F(DirectFiles, LeaseMemoryThatAgreesWithTheFileOffset) {
  auto file = open();
  if (!file->degraded().empty()) GTEST_SKIP() << file->degraded();
  for (const Off begin : {Off{0}, Off{4096}, Off{4099}, Off{70'001}}) {
    const Lease lease = file->lease({begin, begin + 10'000}).value();
    EXPECT_EQ(lease.memory.size(), 10'000u);
    EXPECT_EQ((reinterpret_cast<uintptr_t>(lease.memory.data()) - uintptr_t(begin)) % 4096, 0u);
    file->submit(lease, {});
  }
}

// By the count of the page cache, at once: of the whole units nothing is there to be written back.
TEST_F(DirectFiles, LeaveNothingButTheEndsInThePageCache) {
  const Bytes data = counting_bytes(4 << 20);
  auto file = open();
  if (!file->degraded().empty()) GTEST_SKIP() << file->degraded();
  const FileSystem fs = probe(file->fd()).value();
  if (fs.type == "tmpfs") GTEST_SKIP() << "a tmpfs is its page cache";
  write(*file, {1000, Off(data.size()) - 1000}, data);
  const auto dirty = about_unwritten(file->fd());
  if (!dirty) GTEST_SKIP() << "needs cachestat(2) of Linux 6.5, and not overlayfs";
  EXPECT_LE(dirty->bytes,
            2 * std::max<int64_t>(2 * ::sysconf(_SC_PAGESIZE), fs.geometry.block_bytes));
  EXPECT_TRUE(file->close());
}

// Its addresses need not agree with the file's offsets, which a device may ask for.
TEST_F(DirectFiles, WriteMemoryThatIsNoLeasesThroughThePageCache) {
  const Bytes data = counting_bytes(1 << 20);
  auto file = open();
  if (!file->degraded().empty()) GTEST_SKIP() << file->degraded();
  AlignedBuffer memory;
  ASSERT_TRUE(memory.reserve(data.size()));
  std::ranges::copy(data, memory.data());
  const Extent where{1, 1 + Off(data.size())};
  EXPECT_FALSE(file->write_extents({where, memory.first(data.size())}, {&where, 1}));
  EXPECT_EQ(file->degraded(), "");
  const auto dirty = about_unwritten(file->fd());
  if (dirty && probe(file->fd()).value().type != "tmpfs") EXPECT_GE(dirty->bytes, Off(data.size()));
  EXPECT_TRUE(file->close());
}

TEST_F(DirectFiles, WriteTheSameWithEveryMechanismOverBytesThatAreStillInThePageCache) {
  Bytes model = counting_bytes(3 << 20);
  for (const Mechanism* m : mechanisms()) {
    if (!m->takes_direct || (m->unavailable != nullptr && !m->unavailable().empty())) continue;
    auto file = open(m->name);
    std::reverse(model.begin(), model.end());
    EXPECT_FALSE(file->write(model, 0));  // buffered, dirty
    const Extent where{12'345, 2'345'678};
    for (Off at = where.begin; at < where.end; ++at) model[size_t(at)] ^= std::byte{0x55};
    write(*file, where, model);
    EXPECT_EQ(file_.contents(), model) << m->name;
    EXPECT_TRUE(file->close());
  }
}

// procfs has no O_DIRECT.
TEST(DirectFile, SaysThatTheFileSystemRefusesAndIsServedBuffered) {
  auto file = DirectFile::open({.path = "/proc/self/comm", .direct = Direct::always});
  if (!file) GTEST_SKIP() << file.error().message();
  EXPECT_EQ((*file)->unit_bytes(), 0);
  EXPECT_NE((*file)->degraded().find("O_DIRECT is refused"), std::string::npos);
  EXPECT_NE((*file)->degraded().find("through the page cache"), std::string::npos);
  EXPECT_EQ((*file)->memory_shift(4099), 0u);
  EXPECT_TRUE((*file)->close());
}

TEST(DirectFile, WithoutDirectNothingIsSaid) {
  const TemporaryFile temporary;
  auto file = DirectFile::open({.path = temporary.path()}).value();
  EXPECT_EQ(file->unit_bytes(), 0);
  EXPECT_EQ(file->degraded(), "");
}

}  // namespace
}  // namespace penstock::io::direct_test
