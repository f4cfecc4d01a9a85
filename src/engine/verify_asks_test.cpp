// --verify where ranks that may have written what differs cannot be asked: nobody guesses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "engine/verify.hpp"
#include "exec/random_case.hpp"
#include "io/reader.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::verify_asks_test {
namespace {

// So many collectives succeed, and then none.
class Failing final : public comm::Borrowed {
 public:
  Failing(comm::Comm& owner, int succeed) : Borrowed(owner), left_(succeed) {}
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return fails() ? failure() : Borrowed::allgather(mine, all);
  }
  Result<void> all_max(std::span<int64_t> values) override {
    return fails() ? failure() : Borrowed::all_max(values);
  }

 private:
  bool fails() { return left_-- <= 0; }
  static Result<void> failure() {
    return tl::unexpected(Error{ErrorClass::communication, 0, "allgather", "a rank is gone"});
  }
  int left_;
};

// How much all bring together at once.
class Measured final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    most_bytes = std::max(most_bytes, all.size());
    ++allgathers;
    return Borrowed::allgather(mine, all);
  }
  size_t most_bytes = 0;
  int allgathers = 0;
};

constexpr int64_t kBytes = 1000;

// Each rank wrote a part of the file, of which nothing is there, or which is read as `from` says.
Verification checked(comm::Comm& comm, io::ReadableFile* from = nullptr,
                     const layout::FileView& view = {}, int64_t bytes = kBytes,
                     bool excused = false) {
  const io::TemporaryFile file;
  const auto verifier = std::make_shared<Verifier>();
  const std::vector<std::byte> data(size_t(bytes), std::byte{1});
  const Off at = comm.rank() * bytes;
  const Verifier::Call call(verifier.get());
  call.ended({&view, {at, at + bytes}, data.data(), layout::LoopTree::bytes(1), bytes}, true);
  VerifiedTogether together;
  together.opened(comm.size(), comm.size());
  together.add(verifier);
  const auto readable = io::open_for_reading(file.path());
  return verifier->check(comm, from != nullptr ? from : readable->get(), together, excused);
}

// As after MPI_File_set_size: whatever the others wrote, all that differs is unverified.
TEST(VerifyAsks, NobodyIsAskedWhereTheAnswerDecidesNothing) {
  comm::run_thread_team(2, [](comm::Comm& comm) {
    Measured measured(comm);
    const Verification v = checked(measured, nullptr, {}, kBytes, comm.rank() == 1);
    EXPECT_EQ(v.unverified_bytes, kBytes);
    EXPECT_EQ(v.unasked_bytes, 0);
    EXPECT_EQ(measured.allgathers, 0);
  });
}

// One collective says that some differ; then come their number, their places and the answers.
TEST(VerifyAsks, WhatDiffersIsToldAndIsNoDamageWhereSomebodyCannotBeAsked) {
  comm::run_thread_team(2, [](comm::Comm& comm) {
    for (const int collectives : {0, 1, 2, 3}) {
      Failing failing(comm, collectives);
      const Verification v = checked(failing);
      EXPECT_EQ(v.unverified_bytes, kBytes) << collectives;
      EXPECT_EQ(v.unasked_bytes, kBytes) << collectives;
      EXPECT_EQ(v.mismatched_bytes, 0) << collectives;
    }
    EXPECT_EQ(checked(comm).mismatched_bytes, kBytes);
  });
}

// The rest of such a write is asked about. To ask piece by piece about what has no place never
// ended.
TEST(VerifyAsks, WhatLiesBehindTheLastOffsetIsUnverifiedAndNotAskedAbout) {
  const auto view = layout::FileView::make(kLastOff - 4, 1, layout::LoopTree::bytes(1)).value();
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    const int64_t in_the_file = comm.rank() == 0 ? 4 : 0;
    const Verification v = checked(comm, nullptr, view);
    EXPECT_EQ(v.mismatched_bytes, in_the_file);
    EXPECT_EQ(v.unverified_bytes, kBytes - in_the_file);
    EXPECT_EQ(v.verified_bytes, 0);
  });
}

// Every rank holds what all ask about: one asks about less at once where there are more.
TEST(VerifyAsks, AboutNoMoreAtOnceThanRanksHaveMemoryForHoweverManyTheyAre) {
  constexpr int kRanks = 32;
  constexpr int64_t kPieces = 3000;
  const auto every_other_byte =
      layout::FileView::make(0, 1, *layout::LoopTree::resized(layout::LoopTree::bytes(1), 0, 2))
          .value();
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    Measured measured(comm);
    const int64_t bytes = comm.rank() == 0 ? kPieces : 0;
    EXPECT_EQ(checked(measured, nullptr, every_other_byte, bytes).mismatched_bytes, bytes);
    EXPECT_EQ(measured.allgathers, 2);
    EXPECT_LE(measured.most_bytes, size_t{1} << 20);
  });
}

// What cannot be read is no damage.
class Unreadable final : public io::ReadableFile {
 public:
  io::Readout read(std::span<std::byte>, Off) override {
    return {0, os_error("pread", "a test", ESTALE).value()};
  }
  Result<int64_t> size() override { return kBytes; }
  int fd() const noexcept override { return -1; }
};

TEST(VerifyAsks, WhatCannotBeReadIsUnverifiedAndSaysWhy) {
  comm::run_thread_team(1, [](comm::Comm& comm) {
    Unreadable file;
    const Verification v = checked(comm, &file);
    EXPECT_EQ(v.unverified_bytes, kBytes);
    EXPECT_EQ(v.mismatched_bytes, 0);
    ASSERT_TRUE(v.why_unread);
    EXPECT_EQ(v.why_unread->sys_errno, ESTALE);
  });
}

}  // namespace
}  // namespace penstock::engine::verify_asks_test
