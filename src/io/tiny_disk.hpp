// For tests: a disk that fills, a tmpfs of 64 KiB that is mounted for one test.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace penstock::io {

template <class Base = ::testing::Test>
class OnATinyDisk : public Base {
 protected:
  void SetUp() override {
    Base::SetUp();
    if (::geteuid() != 0) GTEST_SKIP() << "mounting a tmpfs needs root";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    if (::mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=64k") != 0)
      GTEST_SKIP() << "mounting a tmpfs is refused here: " << std::strerror(errno);
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount(directory_.c_str());
    ::rmdir(directory_.c_str());
    Base::TearDown();
  }

  std::string directory_ = ::testing::TempDir() + "penstock-tiny-XXXXXX";

 private:
  bool mounted_ = false;
};

}  // namespace penstock::io
