// Memory of a collective write follows the buffers and not the blocks: a list of them would be four
// times the bound. PENSTOCK_TEST_BLOCKS says how many blocks each rank has. Memory of --verify
// follows the open handles and not the closed ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::memory_test {
namespace {

constexpr int kRanks = 2;
constexpr int64_t kBlockBytes = 8;
// Two pages of 1 MiB and 16 chunks of 256 KiB of each rank; 4 MiB for stacks and the rest.
constexpr int64_t kBoundBytes = kRanks * (int64_t{6} << 20) + (int64_t{4} << 20);

int64_t blocks() {
  const char* const asked = std::getenv("PENSTOCK_TEST_BLOCKS");
  return asked == nullptr ? 4'000'000 : std::atoll(asked);
}

int64_t of_status(const std::string& key) {  // bytes
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::atoll(line.c_str() + key.size()) * 1024;
  return -1;
}

// Where it is refused, the peak may be one of before: too large, never too small.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

int64_t number_of(int64_t i, int rank) { return i * kRanks + rank; }

void write_blocks(comm::Comm& comm, const std::string& path, const char* method,
                  int64_t& grown_bytes) {
  const auto tile = *layout::LoopTree::strided(blocks(), 1, kBlockBytes * kRanks,
                                               layout::LoopTree::bytes(kBlockBytes));
  std::vector<int64_t> data(static_cast<size_t>(blocks()));
  for (int64_t i = 0; i < blocks(); ++i) data[size_t(i)] = number_of(i, comm.rank());
  ASSERT_TRUE(comm.barrier());
  int64_t before = 0;
  if (comm.rank() == 0) {
    forget_peak();
    before = of_status("VmRSS:");
  }
  ASSERT_TRUE(comm.barrier());

  OpenInfo info;
  info.path = path;
  info.writable = true;
  info.config.method = *parse_method(method);
  const auto f = File::open(comm::borrow(comm), info);
  ASSERT_TRUE(f->served()) << f->why_unserved();
  f->set_view(*layout::FileView::make(comm.rank() * kBlockBytes, kBlockBytes, tile), "");
  Write w;
  w.kind = CallKind::write_at_all;
  w.memory = data.data();
  w.memory_type = layout::LoopTree::bytes(kBlockBytes);
  w.memory_count = blocks();
  EXPECT_EQ(f->write_all(w).agreed, ErrorClass::none);
  FileReport report;
  EXPECT_EQ(f->close(report), ErrorClass::none);
  ASSERT_TRUE(comm.barrier());
  if (comm.rank() == 0) grown_bytes = of_status("VmHWM:") - before;
  ASSERT_TRUE(comm.barrier());
}

void expect_grown(int64_t bytes, int64_t bound_bytes) {
  testing::Test::RecordProperty("grown_bytes", std::to_string(bytes));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need their own
  EXPECT_LE(bytes, bound_bytes);
#endif
}

void expect_numbers(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  int64_t number = 0;
  for (int64_t i = 0; i < blocks() * kRanks; ++i) {
    ASSERT_TRUE(file.read(reinterpret_cast<char*>(&number), sizeof number)) << "block " << i;
    ASSERT_EQ(number, i);
  }
}

class Memory : public testing::TestWithParam<const char*> {};

TEST_P(Memory, OfMillionsOfBlocksIsThatOfTheBuffers) {
  const io::TemporaryFile path;
  int64_t grown_bytes = -1;
  comm::run_thread_team(
      kRanks, [&](comm::Comm& comm) { write_blocks(comm, path.path(), GetParam(), grown_bytes); });
  expect_numbers(path.path());
  EXPECT_GE(grown_bytes, 0);
  expect_grown(grown_bytes, kBoundBytes);
}

INSTANTIATE_TEST_SUITE_P(Of, Memory,
                         testing::Values("two_phase(writers=2, cycle=1MiB) + messages",
                                         "two_phase(writers=2, cycle=1MiB) + shm",
                                         "dynamic_segmentation(writers=1, cycle=1MiB)"));

std::unique_ptr<File> open_alone(const OpenInfo& info) {
  return File::open(std::move(comm::make_thread_team(1).front()), info);
}

void write_and_close(File& file, const std::vector<char>& data) {
  EXPECT_EQ(file.write(write_of(data, 0, CallKind::write_at)).agreed, ErrorClass::none);
  FileReport report;
  EXPECT_EQ(file.close(report), ErrorClass::none);
  EXPECT_EQ(report.verified_bytes, int64_t(data.size()));
}

// Each leaves checksums of an eighth of what it wrote.
TEST(MemoryOfVerify, DoesNotGrowByHandlesThatWereClosedBesideAnOpenOne) {
  constexpr int64_t kBytes = int64_t{4} << 20, kRounds = 32;
  const io::TemporaryFile path;
  OpenInfo info = info_for(path.path());
  info.config.verify = true;
  const std::vector<char> data(kBytes, 'a');
  const auto first = open_alone(info);
  info.beside = {first.get()};
  int64_t before = 0;
  for (int64_t round = 0; round < kRounds; ++round) {
    write_and_close(*open_alone(info), data);
    if (round == 0) before = of_status("VmRSS:");
  }
  expect_grown(of_status("VmRSS:") - before, kRounds * kBytes / 8 / 4);
  write_and_close(*first, data);
}

}  // namespace
}  // namespace penstock::engine::memory_test
