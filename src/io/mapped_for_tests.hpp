// For tests of mmap: a file on a file system that can be mapped, and what is mapped of it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/kernel_answers.hpp"
#include "io/mappable_directory.hpp"
#include "io/mechanism.hpp"
#include "io/temporary_file.hpp"

namespace penstock::io {

namespace mapped {

using Bytes = std::vector<std::byte>;

inline Bytes counting_bytes(size_t n) {
  Bytes b(n);
  for (size_t i = 0; i < n; ++i) b[i] = std::byte(i * 7 + i / 256);
  return b;
}

class MappedTest : public ::testing::Test {
 protected:
  explicit MappedTest(const std::string& directory = mappable_directory()) : file_(directory) {}
  void SetUp() override { answers = {}; }
  void TearDown() override { answers = {}; }

  std::unique_ptr<MechanismFile> open() {
    return find_mechanism("mmap")->open({.path = file_.path()}).value();
  }

  void put(const Bytes& data) {
    const int fd = ::open(file_.path().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(fd, data.data(), data.size(), 0), ssize_t(data.size()));
    ::close(fd);
  }
  void resize(Off size) { ASSERT_EQ(::truncate(file_.path().c_str(), size), 0); }

  struct stat status() const {
    struct stat s {};
    EXPECT_EQ(::stat(file_.path().c_str(), &s), 0);
    return s;
  }

  static void store(const Lease& lease, Extent e, std::byte value) {
    std::fill_n(lease.memory.begin() + (e.begin - lease.where.begin), e.size(), value);
  }

  // Stores to the dirty extents, submits them and reaps.
  static std::optional<Fault> write(MechanismFile& file, Extent where,
                                    const std::vector<Extent>& dirty, std::byte value) {
    const Lease lease = file.lease(where).value();
    for (const Extent e : dirty) store(lease, e, value);
    file.submit(lease, dirty);
    return file.reap();
  }

  bool is_mapped() const { return mappings() > 0; }
  int mappings() const {
    int n = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find(file_.path()) != std::string::npos) ++n;
    return n;
  }

  TemporaryFile file_;
};

inline constexpr std::byte kX{'x'};

}  // namespace mapped
}  // namespace penstock::io
