// The kernel itself says no to the asynchronous mechanisms, and to direct writes: a limit on file
// size, a disk that fills. Whatever came first, the first missing byte is told.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/file_limit_for_tests.hpp"
#include "io/mechanism.hpp"
#include "io/temporary_file.hpp"
#include "io/ways.hpp"

namespace penstock::io::async_faults_test {
namespace {

using Bytes = std::vector<std::byte>;

struct Tried {
  const Mechanism* mechanism;
  OpenRequest way;
};

std::vector<Tried> all_ways() {
  std::vector<Tried> all;
  for (const Mechanism* m : mechanisms()) {
    if (m->default_depth > 0) all.push_back({m, {.depth = 1}});
    for (const OpenRequest& way : ways_of(*m))
      if (m->default_depth > 0 || way.direct != Direct::never) all.push_back({m, way});
  }
  return all;
}

Bytes counting_bytes(size_t n) {
  Bytes b(n);
  for (size_t i = 0; i < n; ++i) b[i] = std::byte(i * 7 + i / 256);
  return b;
}

class AsyncFaults : public ::testing::TestWithParam<Tried> {
 protected:
  void SetUp() override {
    const Mechanism& m = *GetParam().mechanism;
    if (m.unavailable == nullptr) return;
    if (const std::string why = m.unavailable(); !why.empty())
      GTEST_SKIP() << m.name << ": " << why;
  }

  std::unique_ptr<MechanismFile> open(const TemporaryFile& file) {
    const Tried& t = GetParam();
    return t.mechanism->open(request_for(file.path(), t.way)).value();
  }

  // Two pages under way at a time, so that both meet what fails.
  std::pair<std::optional<Fault>, std::optional<Fault>> write_two(MechanismFile& file,
                                                                  const Bytes& data, Off middle) {
    const Extent pages[] = {{0, middle}, {middle, Off(data.size())}};
    for (const Extent& page : pages) {
      const Lease lease = file.lease(page).value();
      std::copy_n(data.begin() + page.begin, page.size(), lease.memory.begin());
      file.submit(lease, {&page, 1});
    }
    auto first = file.reap();
    return {std::move(first), file.reap()};
  }

  static void expect_prefix(const TemporaryFile& file, const Bytes& data, Off end) {
    const Bytes got = file.contents();
    ASSERT_GE(Off(got.size()), end);
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + end, data.begin()));
  }
};

TEST_P(AsyncFaults, AFileSizeLimitGivesFileTooLargeAndTheExactByte) {
  const TemporaryFile target;
  const Bytes data = counting_bytes(6 << 20);
  constexpr Off kLimit = (3 << 20) + 1'234;
  auto file = open(target);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::optional<LargestFile> limit(std::in_place, kLimit);
  const auto [first, second] = write_two(*file, data, (4 << 20) + 5);
  limit.reset();
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->error.error_class, ErrorClass::file_too_large) << first->error.message();
  EXPECT_EQ(first->first_missing, kLimit);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->first_missing, (4 << 20) + 5);
  EXPECT_EQ(Off(target.contents().size()), kLimit);
  expect_prefix(target, data, kLimit);
  EXPECT_FALSE(write_two(*file, data, 1 << 20).second) << "later submissions are tried anew";
  EXPECT_TRUE(file->close());
  EXPECT_EQ(target.contents(), data);
}

TEST_P(AsyncFaults, ADiskThatFillsSaysNoSpaceAndEveryByteBeforeTheFirstMissingOneIsThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a tmpfs needs root";
  std::string directory = ::testing::TempDir() + "penstock-full-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  if (::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=2m") != 0) {
    ::rmdir(directory.c_str());
    GTEST_SKIP() << "mounting a tmpfs is refused here: " << std::strerror(errno);
  }
  {
    const TemporaryFile target(directory);
    const Bytes data = counting_bytes(5 << 20);
    auto file = open(target);
    const auto [first, second] = write_two(*file, data, 4 << 20);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->error.error_class, ErrorClass::no_space) << first->error.message();
    EXPECT_LE(first->first_missing, 2 << 20);
    expect_prefix(target, data, first->first_missing);
    ASSERT_TRUE(second);
    EXPECT_GE(second->first_missing, 4 << 20);
    EXPECT_TRUE(file->close());
  }
  ::umount(directory.c_str());
  ::rmdir(directory.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, AsyncFaults, ::testing::ValuesIn(all_ways()), [](const auto& tested) {
  return name_of_way(*tested.param.mechanism, tested.param.way) +
         (tested.param.way.depth > 0 ? "_depth_1" : "");
});

}  // namespace
}  // namespace penstock::io::async_faults_test
