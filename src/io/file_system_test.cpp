// What a file system is asked for is done, or its refusal is said: on the one that the tests' files
// lie on. tests/fs/product.py runs this on several.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/aligned_buffer.hpp"
#include "io/mechanism.hpp"
#include "io/probe.hpp"
#include "io/temporary_file.hpp"
#include "io/ways.hpp"

namespace penstock::io::file_system_test {
namespace {

constexpr size_t kBytes = 1 << 20;

class FileSystems : public ::testing::Test {
 protected:
  std::string type() const {
    const int fd = ::open(file_.path().c_str(), O_RDONLY | O_CLOEXEC);
    const std::string type = probe(fd).value().type;
    ::close(fd);
    return type;
  }

  // Asked without Penstock: whether a write past the page cache succeeds, and reads through it see
  // that.
  bool takes_direct_writes() const {
    const int fd = ::open(file_.path().c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
    if (fd < 0) return false;
    AlignedBuffer memory;
    EXPECT_TRUE(memory.reserve(kBytes));
    bool taken = true;
    for (const std::byte value : {std::byte{1}, std::byte{2}}) {
      std::fill_n(memory.data(), kBytes, value);
      taken = taken && ::pwrite(fd, memory.data(), kBytes, 0) == ssize_t(kBytes) &&
              file_.contents() == std::vector<std::byte>(kBytes, value);
    }
    ::close(fd);
    return taken;
  }

  // Through a lease; what is said afterwards.
  std::string write(const Mechanism& m, const OpenRequest& way, std::byte value) {
    auto file = m.open(request_for(file_.path(), way)).value();
    const Extent all{0, Off(kBytes)};
    const Lease lease = file->lease(all).value();
    std::ranges::fill(lease.memory, value);
    file->submit(lease, {&all, 1});
    const auto fault = file->reap();
    EXPECT_FALSE(fault) << fault->error.message();
    const std::string said = file->degraded();
    EXPECT_TRUE(file->close());
    EXPECT_EQ(file_.contents(), std::vector<std::byte>(kBytes, value)) << m.name;
    return said;
  }

  TemporaryFile file_;
};

// Who names a directory names its file system too, and tests no other unawares.
TEST_F(FileSystems, TheFilesLieOnTheOneThatWasNamed) {
  const char* named = std::getenv("PENSTOCK_TEST_FS");
  EXPECT_EQ(type(), named == nullptr ? type() : named);
}

TEST_F(FileSystems, DirectIsDoneOrItsRefusalIsSaid) {
  const bool taken = takes_direct_writes();
  int n = 0;
  for (const Mechanism* m : mechanisms()) {
    if (!m->takes_direct || (m->unavailable != nullptr && !m->unavailable().empty())) continue;
    const std::string said = write(*m, {.direct = Direct::always}, std::byte(++n));
    if (taken)
      EXPECT_EQ(said, "") << m->name << " on " << type();
    else
      EXPECT_NE(said.find("written through the page cache"), std::string::npos)
          << m->name << " on " << type() << ": " << said;
  }
  EXPECT_GE(n, 2);
}

TEST_F(FileSystems, OnlyOnesThatOverwriteInPlaceAreMappedAndOthersAreNamed) {
  constexpr std::array kInPlace = {"ext4", "xfs", "tmpfs"};
  const bool in_place = std::ranges::find(kInPlace, type()) != kInPlace.end();
  ASSERT_EQ(::truncate(file_.path().c_str(), off_t(kBytes)), 0);
  for (const int64_t window : {kWindowOfCycle, kWindowOfFile}) {
    const std::string said =
        write(*find_mechanism("mmap"), {.window_bytes = window}, std::byte{'m'});
    if (in_place)
      EXPECT_EQ(said, "") << type();
    else
      EXPECT_NE(said.find("a page of " + type() + " may find no space"), std::string::npos) << said;
  }
}

TEST_F(FileSystems, DirtyPagesAreCountedOrNotSpokenOf) {
  const int fd = ::open(file_.path().c_str(), O_WRONLY | O_CLOEXEC);
  const std::vector<std::byte> bytes(kBytes, std::byte{'d'});
  ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
  const auto told = about_unwritten(fd);
  const bool in_memory = type() == "tmpfs" || type() == "ramfs";
  if (told && !in_memory) EXPECT_EQ(told->bytes, int64_t(kBytes)) << type();
  ::close(fd);
}

// An old kernel and a low limit on locked memory refuse it, no file system does.
TEST_F(FileSystems, MemoryIsRegisteredWhateverTheFileSystem) {
  const Mechanism& uring = *find_mechanism("uring");
  if (const std::string why = uring.unavailable(); !why.empty()) GTEST_SKIP() << why;
  const std::string said = write(uring, {.registered = true}, std::byte{'r'});
  EXPECT_TRUE(said.empty() || said.find("Linux 5.13") != std::string::npos ||
              said.find("ulimit -l") != std::string::npos)
      << said;
}

}  // namespace
}  // namespace penstock::io::file_system_test
