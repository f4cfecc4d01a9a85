// The default method while memory is cold: whichever way bytes go, they are in the file, and the
// job log counts those that went past the page cache.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/probe.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_cold_test {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kEach = 300'000;

bool goes_past(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  if (fd < 0) return false;
  const bool in_memory = io::probe(fd).value().is_memory();
  ::close(fd);
  return !in_memory;
}

std::vector<char> bytes_of(int rank) {
  std::vector<char> bytes(kEach);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i * 7 + size_t(rank) * 31 + 1);
  return bytes;
}

// By two collective calls, the second of blocks that interleave, and an independent one.
FileReport write_by(comm::Comm& comm, const std::string& path) {
  OpenInfo info = info_for(path);
  info.config.method.mechanism = &pwrite_in_the_cold();
  auto f = File::open(comm::borrow(comm), info);
  EXPECT_TRUE(f->served()) << f->why_unserved();
  const std::vector<char> data = bytes_of(comm.rank());
  EXPECT_EQ(f->write_all(write_of(data, comm.rank() * kEach, CallKind::write_at_all)).bytes, kEach);
  const Off second = kRanks * kEach;
  f->set_view(*layout::FileView::make(
                  second + comm.rank() * 1000, 1,
                  *layout::LoopTree::resized(layout::LoopTree::bytes(1000), 0, kRanks * 1000)),
              "");
  EXPECT_EQ(f->write_all(write_of(data, 0)).bytes, kEach);
  f->set_view(*layout::FileView::make(0, 1, layout::LoopTree::bytes(1)), "");
  const Off third = 2 * second + comm.rank() * kEach;
  EXPECT_EQ(f->write(write_of(data, third, CallKind::write_at)).bytes, kEach);
  FileReport report;
  EXPECT_EQ(f->close(report), ErrorClass::none);
  return report;
}

TEST(FilesInColdMemory, HaveAllBytesAndCountThoseThatWentPastThePageCache) {
  const io::TemporaryFile file;
  int64_t cold_bytes = -1;
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    const FileReport report = write_by(comm, file.path());
    if (comm.rank() == 0) cold_bytes = report.sum.cold_bytes;
  });
  const std::vector<std::byte> got = file.contents();
  ASSERT_EQ(got.size(), size_t(3 * kRanks * kEach));
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::vector<char> data = bytes_of(rank);
    for (int64_t i = 0; i < kEach; ++i) {
      const auto b = std::byte(data[size_t(i)]);
      const int64_t second = (kRanks * (i / 1000) + rank) * 1000 + i % 1000;
      ASSERT_EQ(got[size_t(rank * kEach + i)], b);
      ASSERT_EQ(got[size_t(kRanks * kEach + second)], b);
      ASSERT_EQ(got[size_t((2 * kRanks + rank) * kEach + i)], b);
    }
  }
  if (goes_past(file.path())) EXPECT_GT(cold_bytes, kRanks * kEach);
}

}  // namespace
}  // namespace penstock::engine::file_cold_test
