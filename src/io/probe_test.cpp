#include "io/probe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <vector>

#include "io/temporary_file.hpp"

namespace penstock::io::probe_test {
namespace {

class Probe : public ::testing::Test {
 protected:
  void SetUp() override { fd_ = ::open(file_.path().c_str(), O_RDWR | O_CLOEXEC); }
  void TearDown() override { ::close(fd_); }

  void write_at(Off offset, Off bytes) {
    const std::vector<char> data(size_t(bytes), 'x');
    ASSERT_EQ(::pwrite(fd_, data.data(), data.size(), offset), bytes);
  }

  TemporaryFile file_;
  int fd_ = -1;
};

// Where the file system takes the mark.
TEST_F(Probe, AFileThatIsMarkedSynchronousIsSo) {
  int flags = 0;
  EXPECT_FALSE(probe(fd_)->is_synchronous);
  const bool has_marks = ::ioctl(fd_, FS_IOC_GETFLAGS, &flags) == 0;
  flags |= FS_SYNC_FL;
  const bool is_marked = has_marks && ::ioctl(fd_, FS_IOC_SETFLAGS, &flags) == 0;
  EXPECT_EQ(probe(fd_)->is_synchronous, is_marked);
}

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
  EXPECT_FALSE(about_unwritten(-1));
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

class DirtyPages : public Probe {
 protected:
  void SetUp() override {
    Probe::SetUp();
    if (!about_unwritten(fd_)) GTEST_SKIP() << "needs cachestat(2) of Linux 6.5, and not overlayfs";
    if (probe(fd_)->type == "tmpfs") GTEST_SKIP() << "pages of tmpfs are always dirty";
  }
};

TEST_F(DirtyPages, AreCountedUntilTheyAreSynced) {
  EXPECT_EQ(about_unwritten(fd_)->bytes, 0);
  write_at(0, 1 << 16);
  EXPECT_EQ(about_unwritten(fd_)->bytes, 1 << 16);
  EXPECT_FALSE(about_unwritten(fd_)->estimated);
  ASSERT_EQ(::fsync(fd_), 0);
  EXPECT_EQ(about_unwritten(fd_)->bytes, 0);
}

// Rewritten in the middle: of 96 MiB the half is dirty.
TEST_F(DirtyPages, OfALargeFileAreEstimated) {
  const Off file_bytes = 96 << 20;
  write_at(0, file_bytes);
  ASSERT_EQ(::fsync(fd_), 0);
  EXPECT_EQ(about_unwritten(fd_)->bytes, 0);
  for (int tries = 0; tries < 10; ++tries) {  // the kernel may write some of it meanwhile
    write_at(file_bytes / 4, file_bytes / 2);
    if (unwritten_bytes(fd_) == file_bytes / 2) break;
  }
  const Unwritten now = about_unwritten(fd_).value();
  EXPECT_TRUE(now.estimated);
  EXPECT_EQ(unwritten_bytes(fd_), file_bytes / 2);
  EXPECT_NEAR(double(now.bytes), double(file_bytes) / 2, double(file_bytes) / 16);
}

// Written over or not is not to be told from its length.
TEST_F(DirtyPages, OfADeviceAreNotBoundByItsLength) {
  const int device = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(device, 0);
  const std::optional<Unwritten> there = about_unwritten(device);
  ::close(device);
  if (!there) GTEST_SKIP() << "devices lie on a file system that tells nothing";
  EXPECT_GT(there->of_bytes, 0);
}

TEST_F(DirtyPages, OfALargeFileWithHolesAreAllCounted) {
  write_at((Off{1} << 30) + 4096, 1 << 16);
  EXPECT_EQ(about_unwritten(fd_)->bytes, 1 << 16);
  EXPECT_FALSE(about_unwritten(fd_)->estimated);
}

}  // namespace
}  // namespace penstock::io::probe_test
