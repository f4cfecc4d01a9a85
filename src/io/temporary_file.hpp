// For tests: an empty file that is removed at the end, and the plain reader that every test of a
// mechanism takes for the truth. PENSTOCK_TEST_DIR says on which file system.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace penstock::io {

inline std::string test_directory() {
  const char* asked = std::getenv("PENSTOCK_TEST_DIR");
  return asked == nullptr ? ::testing::TempDir() : asked;
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& directory = test_directory()) {
    path_ = directory + (directory.back() == '/' ? "" : "/") + "penstock-XXXXXX";
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0) << path_;
    ::close(fd);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

  std::vector<std::byte> contents() const {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_GE(fd, 0) << path_;
    std::vector<std::byte> all(size_t(::lseek(fd, 0, SEEK_END)));
    EXPECT_EQ(::pread(fd, all.data(), all.size(), 0), ssize_t(all.size()));
    ::close(fd);
    return all;
  }

  // std::equal looks at std::byte one by one, and takes its time in tests, which are not optimised.
  bool holds(const std::vector<std::byte>& expected) const {
    const std::vector<std::byte> all = contents();
    return all.size() == expected.size() &&
           (all.empty() || std::memcmp(all.data(), expected.data(), all.size()) == 0);
  }

 private:
  std::string path_;
};

}  // namespace penstock::io
