// What pages of independent writes take where memory is limited, and where there is none.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/behind_for_tests.hpp"
#include "exec/write_behind.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::write_behind_memory_test {
namespace {

constexpr int64_t kSmallPage = 4096;

std::unique_ptr<io::MechanismFile> open(const std::string& path) {
  return io::find_mechanism("pwrite")->open({.path = path}).value();
}

// Other files may have taken it since this one was opened. With 13 pages the quarter is used up.
TEST(WriteBehind, PagesTakeAQuarterOfWhatALimitLeavesByNow) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    BehindRank rank(
        comm, open(path.path()),
        {.page_bytes = kSmallPage,
         .limit_bytes_per_rank = 64 * kSmallPage,
         .memory_left = [](int64_t) { return std::optional<int64_t>(40 * kSmallPage); }},
        Thread::none);
    for (int64_t page = 0; page < 60; ++page) rank.write_at(page * kSmallPage, kSmallPage / 2);
    EXPECT_EQ(rank.pages_in_memory(), 13);
    rank.flush();
  });
  for (int64_t page = 0; page < 60; ++page)
    ASSERT_EQ(path.contents()[size_t(page * kSmallPage)], value_at(page * kSmallPage));
}

// Once it is spent there is no memory for a page.
class SpentSegment final : public comm::SharedSegment {
 public:
  SpentSegment(std::shared_ptr<comm::SharedSegment> real, const bool& spent)
      : SharedSegment(real->memory()), real_(std::move(real)), spent_(spent) {}
  Result<void> populate(size_t at, size_t bytes) override {
    if (spent_) return os_error("posix_fallocate", "the test", ENOSPC);
    return real_->populate(at, bytes);
  }

 private:
  std::shared_ptr<comm::SharedSegment> real_;
  const bool& spent_;
};

class SpentMachine final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<std::shared_ptr<comm::SharedSegment>> shared_segment(
      const comm::SegmentShape& shape) override {
    auto real = Borrowed::shared_segment(shape);
    if (!real) return real;
    return std::shared_ptr<comm::SharedSegment>(std::make_shared<SpentSegment>(*real, spent));
  }
  bool spent = false;
};

TEST(WriteBehindMemory, WhereALimitLeavesNoneAndThereIsNoneToShareNothingIsAccepted) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& owner) {
    SpentMachine comm(owner);
    BehindRank rank(comm, open(path.path()),
                    {.page_bytes = kSmallPage,
                     .limit_bytes_per_rank = 64 * kSmallPage,
                     .memory_left = [](int64_t) { return std::optional<int64_t>(0); }},
                    Thread::none);
    comm.spent = true;
    EXPECT_EQ(rank.write(bytes_at(0, 100), 0).prefix_bytes, 0) << "the caller writes";
    EXPECT_EQ(rank.notes().without_memory, 1);
  });
}

}  // namespace
}  // namespace penstock::exec::write_behind_memory_test
