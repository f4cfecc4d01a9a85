#include "io/probe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "io/temporary_file.hpp"

namespace penstock::io::probe_test {
namespace {

class Probe : public ::testing::Test {
 protected:
  void SetUp() override { fd_ = ::open(file_.path().c_str(), O_RDWR | O_CLOEXEC); }
  void TearDown() override { ::close(fd_); }
  TemporaryFile file_;
  int fd_ = -1;
};

TEST_F(Probe, NamesTheFileSystemAndGivesAUsableGeometry) {
  const auto fs = probe(fd_);
  ASSERT_TRUE(fs) << fs.error().message();
  EXPECT_FALSE(fs->type.empty());
  EXPECT_EQ(fs->geometry.page_bytes, ::sysconf(_SC_PAGESIZE));
  EXPECT_GE(fs->geometry.block_bytes, 512);
  EXPECT_EQ(fs->geometry.unit() % fs->geometry.page_bytes, 0);
}

TEST_F(Probe, MemoryIsALocalFileSystem) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
  const TemporaryFile file("/dev/shm");
  const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
  const auto fs = probe(fd);
  ::close(fd);
  ASSERT_TRUE(fs);
  EXPECT_EQ(fs->type, "tmpfs");
  EXPECT_EQ(fs->geometry.sharing, layout::Sharing::any);
  EXPECT_EQ(fs->geometry.stripe_bytes, 0);
}

TEST_F(Probe, AnUnknownFileSystemIsTakenForShared) {
  // procfs stands for "not in the table".
  const int fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const auto fs = probe(fd);
  ::close(fd);
  ASSERT_TRUE(fs);
  EXPECT_EQ(fs->type, "0x9fa0");
  EXPECT_EQ(fs->geometry.sharing, layout::Sharing::unit_keeps_node);
  EXPECT_FALSE(fs->is_coherent());
}

TEST_F(Probe, ABadDescriptorIsAnError) {
  EXPECT_FALSE(probe(-1));
  EXPECT_FALSE(identify(-1));
  EXPECT_FALSE(unwritten_bytes(-1));
}

TEST_F(Probe, TwoDescriptorsOfOneFileAreIdentical) {
  const int again = ::open(file_.path().c_str(), O_RDONLY | O_CLOEXEC);
  const TemporaryFile other;
  const int another = ::open(other.path().c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(identify(fd_).value(), identify(again).value());
  EXPECT_NE(identify(fd_).value(), identify(another).value());
  EXPECT_EQ(identify("/proc/self/fd/" + std::to_string(fd_)).value(), identify(fd_).value());
  EXPECT_FALSE(identify(std::string("/nowhere/at/all")));
  ::close(again);
  ::close(another);
}

TEST_F(Probe, CountsDirtyPagesUntilTheyAreSynced) {
  if (!unwritten_bytes(fd_)) GTEST_SKIP() << "this kernel has no cachestat";
  if (probe(fd_)->type == "tmpfs") GTEST_SKIP() << "pages of tmpfs are always dirty";
  EXPECT_EQ(unwritten_bytes(fd_), 0);
  const std::vector<char> data(1 << 16, 'x');
  ASSERT_EQ(::pwrite(fd_, data.data(), data.size(), 0), ssize_t(data.size()));
  EXPECT_EQ(unwritten_bytes(fd_), 1 << 16);
  ASSERT_EQ(::fsync(fd_), 0);
  EXPECT_EQ(unwritten_bytes(fd_), 0);
}

}  // namespace
}  // namespace penstock::io::probe_test
