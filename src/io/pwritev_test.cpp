// pwritev where the kernel says no, and how few calls it takes. This program defines pwritev(2)
// itself, so that a test decides what a call meets.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "io/mechanism.hpp"
#include "io/temporary_file.hpp"

namespace {

ssize_t real_pwritev(int fd, const iovec* pieces, int count, off_t at) {
  return ::syscall(SYS_pwritev, fd, pieces, long(count), long(at), 0L);
}

// What the next calls meet; the n-th call is number n.
struct Interposition {
  ssize_t (*call)(int number, int fd, const iovec* pieces, int count, off_t at) = nullptr;
  int calls = 0;
} interposed;

// At most `bytes` of the pieces.
ssize_t short_pwritev(int fd, const iovec* pieces, int count, off_t at, size_t bytes) {
  std::vector<iovec> first(pieces, pieces + count);
  for (iovec& v : first) {
    v.iov_len = std::min(v.iov_len, bytes);
    bytes -= v.iov_len;
  }
  return real_pwritev(fd, first.data(), count, at);
}

int fail_with(int sys_errno) {
  errno = sys_errno;
  return -1;
}

}  // namespace

extern "C" ssize_t pwritev(int fd, const iovec* pieces, int count, off_t at) {
  ++interposed.calls;
  if (interposed.call == nullptr) return real_pwritev(fd, pieces, count, at);
  return interposed.call(interposed.calls, fd, pieces, count, at);
}

namespace penstock::io::pwritev_test {
namespace {

using Bytes = std::vector<std::byte>;

class Pwritev : public ::testing::Test {
 protected:
  void SetUp() override { interposed = {}; }
  void TearDown() override { interposed = {}; }

  // `n` pieces of `bytes` each, backwards in memory; the file must hold expected_.
  std::vector<std::span<const std::byte>> pieces_of(size_t n, size_t bytes) {
    memory_.resize(n * bytes);
    for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = std::byte(i * 7 + i / 256);
    std::vector<std::span<const std::byte>> pieces;
    for (size_t i = n; i-- > 0;) {
      pieces.push_back(std::span(memory_).subspan(i * bytes, bytes));
      expected_.insert(expected_.end(), pieces.back().begin(), pieces.back().end());
    }
    return pieces;
  }

  TemporaryFile path_;
  std::unique_ptr<MechanismFile> file_ =
      find_mechanism("pwritev")->open({.path = path_.path()}).value();
  Bytes memory_, expected_;
};

TEST_F(Pwritev, OneCallCarriesAsManyPiecesAsTheKernelTakes) {
  EXPECT_TRUE(file_->gathers());
  EXPECT_FALSE(file_->write_pieces(pieces_of(kGatheredPieces, 10), 0));
  EXPECT_EQ(interposed.calls, 1);
  EXPECT_EQ(path_.contents(), expected_);
}

TEST_F(Pwritev, MorePiecesTakeMoreCalls) {
  EXPECT_FALSE(file_->write_pieces(pieces_of(2 * kGatheredPieces + 1, 3), 0));
  EXPECT_EQ(interposed.calls, 3);
  EXPECT_EQ(path_.contents(), expected_);
}

TEST_F(Pwritev, NoPiecesOrEmptyOnesTakeNoCall) {
  EXPECT_FALSE(file_->write_pieces({}, 0));
  EXPECT_FALSE(file_->write_pieces(std::vector<std::span<const std::byte>>(3), 0));
  EXPECT_FALSE(file_->write({}, 0));
  EXPECT_EQ(interposed.calls, 0);
}

TEST_F(Pwritev, DirtyExtentsThatTouchAreOneWrite) {
  const Lease lease = file_->lease({0, 20480}).value();
  std::fill(lease.memory.begin(), lease.memory.end(), std::byte{'x'});
  const Extent dirty[] = {{0, 4096}, {4096, 4097}, {4097, 8192}, {8200, 12288}, {12288, 20480}};
  file_->submit(lease, dirty);
  EXPECT_FALSE(file_->reap());
  EXPECT_EQ(interposed.calls, 2);
  Bytes expected(20480, std::byte{'x'});
  std::fill_n(expected.begin() + 8192, 8, std::byte{0});
  EXPECT_EQ(path_.contents(), expected);
}

TEST_F(Pwritev, ShortWritesAreContinuedInsideAPiece) {
  interposed.call = [](int, int fd, const iovec* v, int count, off_t at) {
    return short_pwritev(fd, v, count, at, 1000);
  };
  EXPECT_FALSE(file_->write_pieces(pieces_of(30, 301), 0));
  EXPECT_EQ(interposed.calls, 10);
  EXPECT_EQ(path_.contents(), expected_);
}

TEST_F(Pwritev, ShortWritesThatEndWithAPieceAreContinuedWithTheNext) {
  interposed.call = [](int, int fd, const iovec* v, int count, off_t at) {
    return short_pwritev(fd, v, count, at, 500);
  };
  EXPECT_FALSE(file_->write_pieces(pieces_of(20, 250), 0));
  EXPECT_EQ(interposed.calls, 10);
  EXPECT_EQ(path_.contents(), expected_);
}

TEST_F(Pwritev, AnInterruptedCallIsRepeated) {
  interposed.call = [](int number, int fd, const iovec* v, int count, off_t at) -> ssize_t {
    if (number % 2 == 1) return fail_with(EINTR);
    return short_pwritev(fd, v, count, at, 700);
  };
  EXPECT_FALSE(file_->write_pieces(pieces_of(7, 200), 0));
  EXPECT_EQ(interposed.calls, 4);
  EXPECT_EQ(path_.contents(), expected_);
}

TEST_F(Pwritev, AnErrorAfterPartOfThePiecesNamesTheFirstMissingByte) {
  interposed.call = [](int number, int fd, const iovec* v, int count, off_t at) -> ssize_t {
    if (number == 3) return fail_with(ENOSPC);
    return short_pwritev(fd, v, count, at, 1000);
  };
  const auto fault = file_->write_pieces(pieces_of(30, 301), 50);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
  EXPECT_EQ(fault->error.operation, "pwritev");
  EXPECT_EQ(fault->first_missing, 2050);
  EXPECT_NE(fault->error.message().find("offset 2050"), std::string::npos);
  Bytes expected(50);
  expected.insert(expected.end(), expected_.begin(), expected_.begin() + 2000);
  EXPECT_EQ(path_.contents(), expected);
}

TEST_F(Pwritev, ACallThatReturnsZeroIsAnErrorNotALoop) {
  interposed.call = [](int, int, const iovec*, int, off_t) -> ssize_t { return 0; };
  const auto fault = file_->write_pieces(pieces_of(2, 10), 100);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::io);
  EXPECT_EQ(fault->first_missing, 100);
  EXPECT_EQ(interposed.calls, 1);
}

TEST_F(Pwritev, AFaultEndsASubmissionAndNotTheFile) {
  interposed.call = [](int, int fd, const iovec* v, int count, off_t at) -> ssize_t {
    return at >= 8192 ? fail_with(EIO) : real_pwritev(fd, v, count, at);
  };
  const Extent dirty[] = {{0, 4096}, {8192, 8200}, {9000, 9001}};
  file_->submit(file_->lease({0, 12288}).value(), dirty);
  const auto fault = file_->reap();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->first_missing, 8192);
  EXPECT_EQ(interposed.calls, 2) << "nothing is written behind the first fault";
  interposed.call = nullptr;
  file_->submit(file_->lease({0, 12288}).value(), dirty);
  EXPECT_FALSE(file_->reap());
}

}  // namespace
}  // namespace penstock::io::pwritev_test
