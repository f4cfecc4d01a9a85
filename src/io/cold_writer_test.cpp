// What goes past the page cache while memory is cold is in the file like all else, wherever it
// lies and in whatever memory; and who stores into pages of the file does not meet it.
#include "io/cold_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <random>
#include <thread>
#include <vector>

#include "base/file_limit_for_tests.hpp"
#include "io/counted_file.hpp"
#include "io/mappable_directory.hpp"
#include "io/probe.hpp"
#include "io/range_lock.hpp"
#include "io/temporary_file.hpp"
#include "io/ways.hpp"

namespace penstock::io::cold_writer_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(size_t n, unsigned seed) {
  Bytes all(n);
  std::mt19937 random(seed);
  for (std::byte& b : all) b = std::byte(random());
  return all;
}

class ColdFiles : public ::testing::Test {
 protected:
  std::unique_ptr<CountedFile> open() {
    auto file =
        CountedFile::open({.path = file_.path(), .direct = Direct::when_cold, .cold = kAlwaysCold});
    const Bytes first = bytes_of(4096, 1);  // now it is
    EXPECT_FALSE(file->write(first, 0));
    model_ = first;
    return file;
  }

  void put(MechanismFile& file, Off at, const Bytes& bytes, size_t from = 0) {
    const std::span<const std::byte> all = std::span(bytes).subspan(from);
    const auto fault = file.write(all, at);
    ASSERT_FALSE(fault) << fault->error.message();
    remember(at, all);
  }
  void remember(Off at, std::span<const std::byte> bytes) {
    model_.resize(std::max(model_.size(), size_t(at) + bytes.size()));
    std::copy(bytes.begin(), bytes.end(), model_.begin() + at);
  }

  bool goes_past() {
    const int fd = ::open(file_.path().c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) return false;
    const bool in_memory = probe(fd).value().is_memory();
    ::close(fd);
    return !in_memory;
  }

  TemporaryFile file_{mappable_directory()};
  Bytes model_;
};

TEST_F(ColdFiles, HaveWhatWasWrittenWhereverItLies) {
  auto file = open();
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const Bytes bytes = bytes_of(1 + random() % 200'000, unsigned(i));
    put(*file, Off(random() % 2'000'000), bytes, random() % std::min<size_t>(bytes.size(), 5000));
  }
  if (goes_past()) EXPECT_GT(file->cold_bytes(), 1'000'000);
  EXPECT_TRUE(file->sync(SyncKind::full));
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(ColdFiles, TakeMoreThanABufferAtOnce) {
  auto file = open();
  put(*file, 4099, bytes_of(2 * Bounce::kBytes + 12'345, 3));
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(ColdFiles, AreWrittenBySeveralThreads) {
  auto file = open();
  constexpr int kThreads = 4;
  constexpr size_t kEach = 1'000'003;
  std::vector<Bytes> parts;
  for (int i = 0; i < kThreads; ++i) parts.push_back(bytes_of(kEach, unsigned(i) + 11));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (size_t at = 0; at < kEach; at += 100'000) {
        const size_t n = std::min<size_t>(100'000, kEach - at);
        EXPECT_FALSE(file->write(std::span(parts[size_t(i)]).subspan(at, n),
                                 Off(4096 + size_t(i) * kEach + at)));
      }
    });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < kThreads; ++i) remember(Off(4096 + size_t(i) * kEach), parts[size_t(i)]);
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(ColdFiles, WantLargeWritesOnceItPays) {
  auto file = open();
  EXPECT_EQ(file->wanted_bytes(), 0) << "a trial touches no more memory than it must";
  put(*file, 4096, bytes_of(20'000, 2));
  if (goes_past()) EXPECT_EQ(file->wanted_bytes(), int64_t(Bounce::kBytes));
  EXPECT_TRUE(file->close());
}

TEST_F(ColdFiles, SayOfMemoryThatCannotBeReadWhatIsInTheFile) {
  auto file = open();
  constexpr size_t kGood = 64 << 10, kBad = 64 << 10;
  void* const pages =
      ::mmap(nullptr, kGood + kBad, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const memory = static_cast<std::byte*>(pages);
  std::fill_n(memory, kGood, std::byte{7});
  ASSERT_EQ(::mprotect(memory + kGood, kBad, PROT_NONE), 0);
  for (const size_t shift : {size_t{0}, size_t{16}}) {
    const auto fault = file->write({memory + shift, kGood + kBad - shift}, 4096);
    ASSERT_TRUE(fault) << shift;
    EXPECT_EQ(fault->error.sys_errno, EFAULT);
    EXPECT_LE(fault->first_missing, Off(4096 + kGood - shift));
  }
  EXPECT_TRUE(file->close());
  ::munmap(pages, kGood + kBad);
}

TEST_F(ColdFiles, AreNotMappedWhereSomebodyWritesPast) {
  auto file = open();
  put(*file, 4096, Bytes(1'000'000));
  auto mapped = find_mechanism("mmap")->open({.path = file_.path()}).value();
  const int other = ::open(file_.path().c_str(), O_WRONLY | O_CLOEXEC);
  const Extent where{65'536, 131'072};
  const auto fill = [&](std::byte with) {
    Lease lease = mapped->lease(where).value();
    std::ranges::fill(lease.memory, with);
    mapped->submit(lease, {&where, 1});
    EXPECT_FALSE(mapped->reap());
    remember(where.begin, Bytes(size_t(where.size()), with));
  };
  {
    const RangeLock held(other, {100'000, 100'001});
    ASSERT_TRUE(held.held());
    fill(std::byte{1});
    EXPECT_TRUE(file_.holds(model_)) << "by a write";
  }
  fill(std::byte{2});
  EXPECT_TRUE(file_.holds(model_));
  EXPECT_TRUE(mapped->close());
  EXPECT_TRUE(file->close());
  ::close(other);
}

TEST_F(ColdFiles, OfWhichAnotherHoldsARangeGoThroughThePageCacheThere) {
  auto file = open();
  const int other = ::open(file_.path().c_str(), O_RDWR | O_CLOEXEC);
  {
    const RangeLock held(other, {100'000, 100'001});
    ASSERT_TRUE(held.held());
    put(*file, 4096, bytes_of(200'000, 4));
    EXPECT_EQ(file->cold_bytes(), 0);
  }
  put(*file, 4096, bytes_of(200'000, 5));
  if (goes_past()) EXPECT_GT(file->cold_bytes(), 0);
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model_));
  ::close(other);
}

TEST_F(ColdFiles, PagesAreNotMadeReadyForStoresWhereSomebodyWritesPast) {
  auto file = open();
  put(*file, 4096, Bytes(1'000'000));
  const int other = ::open(file_.path().c_str(), O_WRONLY | O_CLOEXEC);
  CrumbTrail trail{Writers::several};
  const Bytes piece = bytes_of(48, 6);
  const auto stored = [&](Off from) {
    int n = 0;
    for (Off at = from; at < from + 100 * 400; at += 400) {
      if (file->store_next(trail, piece, at))
        ++n;
      else
        EXPECT_FALSE(file->write(piece, at));
      remember(at, piece);
    }
    return n;
  };
  {
    const RangeLock held(other, {300'000, 800'000});
    ASSERT_TRUE(held.held());
    EXPECT_EQ(stored(400'000), 0);
  }
  EXPECT_GT(stored(20'000), 0);
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model_));
  ::close(other);
}

// Pages that are made ready ahead of a trail and lie where another writes are written back with
// what they had.
TEST_F(ColdFiles, LoseNothingToATrailThatEndsWhereTheyBegin) {
  constexpr Off kTrail = 64 << 10, kSecond = 300 << 10, kEnd = kTrail + kSecond;
  auto past = open();
  put(*past, 0, Bytes(size_t(kEnd)));
  auto trail_file = CountedFile::open({.path = file_.path()});
  const Bytes crumb = bytes_of(48, 1);
  std::atomic<bool> done = false;
  std::thread trailing([&] {
    while (!done) {
      CrumbTrail trail{Writers::several};
      for (Off at = 0; at + 48 <= kTrail; at += 400)
        if (!trail_file->store_next(trail, crumb, at)) EXPECT_FALSE(trail_file->write(crumb, at));
    }
  });
  for (Off at = 0; at + 48 <= kTrail; at += 400) remember(at, crumb);
  for (unsigned round = 0; round < 50; ++round) {
    const Bytes second = bytes_of(size_t(kSecond), round);
    put(*past, kTrail, second);
    EXPECT_TRUE(past->sync(SyncKind::full)) << round;
    const Bytes now = file_.contents();
    EXPECT_TRUE(std::ranges::equal(std::span(now).subspan(size_t(kTrail)), second)) << round;
  }
  done = true;
  trailing.join();
  EXPECT_TRUE(file_.holds(model_));
  EXPECT_TRUE(trail_file->close());
  EXPECT_TRUE(past->close());
}

TEST_F(ColdFiles, AreAsLongAsWhatWasWritten) {
  auto file = open();
  for (const Off end : {Off{70'001}, Off{200'003}, Off{300'001}}) {
    put(*file, Off(model_.size()), bytes_of(size_t(end) - model_.size(), 8));
    EXPECT_EQ(file_.contents().size(), size_t(end));
  }
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(ColdFiles, BeyondTheLimitOfAFileSayWhichByteIsTheFirstThatIsMissing) {
  auto file = open();
  const Bytes bytes = bytes_of(100'000, 9);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const auto fault = [&] {
    const LargestFile limit(50'000);
    return file->write(bytes, 4096);
  }();
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::file_too_large);
  EXPECT_EQ(fault->first_missing, 50'000);
  remember(4096, std::span(bytes).first(50'000 - 4096));
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file_.holds(model_));
}

TEST_F(ColdFiles, LeaveNoDescriptor) {
  const auto count = [] {
    int n = 0;
    for (int fd = 0; fd < 256; ++fd) n += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return n;
  };
  const int before = count();
  auto file = open();
  put(*file, 4096, bytes_of(100'000, 10));
  EXPECT_TRUE(file->close());
  file.reset();
  EXPECT_EQ(count(), before);
}

// It takes direct writes since Linux 6.6, and they end where all others do.
TEST(ColdFilesInMemory, AreNotPastIt) {
  const TemporaryFile memory("/dev/shm");
  const auto file =
      CountedFile::open({.path = memory.path(), .direct = Direct::when_cold, .cold = kAlwaysCold});
  const Bytes bytes = bytes_of(100'000, 12);
  EXPECT_FALSE(file->write(bytes, 0));
  EXPECT_EQ(file->cold_bytes(), 0);
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(memory.holds(bytes));
}

TEST(RangeLocks, AreOfOneOpenFileAtATimeAndGoneAtTheEnd) {
  const TemporaryFile file;
  const int a = ::open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  const int b = ::open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  {
    const RangeLock first(a, {0, 100}), beside(b, {100, 200}), second(b, {99, 150});
    EXPECT_TRUE(first.held());
    EXPECT_TRUE(beside.held());
    EXPECT_FALSE(second.held());
    EXPECT_FALSE(RangeLock(a, {5, 5}).held()) << "nothing";
  }
  EXPECT_TRUE(RangeLock(b, {0, 200}).held());
  ::close(a);
  ::close(b);
}

TEST(Bounces, AreKeptFromOneToTheNext) {
  const std::byte* first = nullptr;
  {
    const Bounce one;
    first = one.memory().data();
    ASSERT_EQ(one.memory().size(), Bounce::kBytes);
    const Bounce other;
    EXPECT_NE(other.memory().data(), first);
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 4096, 0u);
  const Bounce again, another;
  EXPECT_TRUE(again.memory().data() == first || another.memory().data() == first);
}

}  // namespace
}  // namespace penstock::io::cold_writer_test
