// The file of the asynchronous mechanisms over a queue that does what a test says: pieces that come
// back late, short, failed or never. What the real queues leave in the file is in
// mechanism_test.cpp; full disks and limits are in async_faults_test.cpp.
#include "io/async_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>

#include "base/aligned_buffer.hpp"
#include "io/temporary_file.hpp"

namespace penstock::io::async_file_test {
namespace {

using Bytes = std::vector<std::byte>;

int64_t write_now(const WriteRequest& r, size_t n) {
  return ::syscall(SYS_pwrite64, r.fd, r.bytes.data(), n, r.offset);
}

int64_t write_whole(const WriteRequest& r) { return write_now(r, r.bytes.size()); }

// What the next queue does, and what it saw.
struct Script {
  std::function<int64_t(const WriteRequest&)> outcome = &write_whole;
  size_t taken_at_a_time = 1000;
  bool opens = true;
  int waits_before_it_breaks = 1'000'000;

  bool registers = true;

  size_t most_under_way = 0;
  std::vector<Off> started;
  std::vector<int> buffers;  // of those started
  std::array<std::span<std::byte>, kQueueBuffers> known;
  int registrations = 0;
};
Script script;

// The newest piece comes back first, one at a time.
class ScriptedQueue final : public WriteQueue {
 public:
  static Result<std::unique_ptr<WriteQueue>> open(int) {
    if (!script.opens) return os_error("open queue", "by the script", EAGAIN);
    return std::unique_ptr<WriteQueue>(std::make_unique<ScriptedQueue>());
  }
  ~ScriptedQueue() override { EXPECT_TRUE(under_way_.empty()); }

  size_t start(std::span<const WriteRequest> requests) override {
    const size_t n = std::min(requests.size(), script.taken_at_a_time);
    for (const WriteRequest& r : requests.first(n)) {
      for (const WriteRequest& other : under_way_) EXPECT_NE(other.token, r.token);
      under_way_.push_back(r);
      script.started.push_back(r.offset);
      script.buffers.push_back(r.buffer);
      expect_in_buffer(r);
    }
    script.most_under_way = std::max(script.most_under_way, under_way_.size());
    return n;
  }

  Result<size_t> wait(std::span<Completion> done) override {
    EXPECT_FALSE(under_way_.empty());
    if (--script.waits_before_it_breaks < 0) return os_error("wait", "by the script", EBADF);
    const WriteRequest r = under_way_.back();
    under_way_.pop_back();
    done[0] = {r.token, script.outcome(r)};
    return 1;
  }

  Result<void> register_memory(int buffer, std::span<std::byte> memory) override {
    for (const WriteRequest& r : under_way_) EXPECT_NE(r.buffer, buffer);
    if (memory.empty()) script.known[size_t(buffer)] = {};
    if (memory.empty()) return {};
    ++script.registrations;
    if (!script.registers) return os_error("register", "by the script", ENOMEM);
    script.known[size_t(buffer)] = memory;
    return {};
  }

 private:
  static void expect_in_buffer(const WriteRequest& r) {
    if (r.buffer < 0) return;
    const std::span<std::byte> known = script.known.at(size_t(r.buffer));
    EXPECT_GE(r.bytes.data(), known.data());
    EXPECT_LE(r.bytes.data() + r.bytes.size(), known.data() + known.size());
  }

  std::vector<WriteRequest> under_way_;
};

class AsyncFiles : public ::testing::Test {
 protected:
  void SetUp() override { script = {}; }

  std::unique_ptr<MechanismFile> open(int depth = 4) {
    return open_async({.path = file_.path(), .depth = depth}, 1, &ScriptedQueue::open).value();
  }

  std::unique_ptr<MechanismFile> open_registered() {
    return open_async({.path = file_.path(), .depth = 4, .registered = true}, 1,
                      &ScriptedQueue::open)
        .value();
  }
  static bool all_named_a_buffer() {
    return std::ranges::all_of(script.buffers, [](int b) { return b >= 0; });
  }

  // Every second page of `where` is dirty, or all of it.
  std::vector<Extent> submit(MechanismFile& file, Extent where, bool holes) {
    std::vector<Extent> dirty;
    if (!holes) dirty.push_back(where);
    for (Off at = where.begin; holes && at < where.end; at += 8192)
      dirty.push_back({at, std::min(at + 4096, where.end)});
    const Lease lease = file.lease(where).value();
    for (size_t i = 0; i < lease.memory.size(); ++i) lease.memory[i] = byte(where.begin + Off(i));
    file.submit(lease, dirty);
    return dirty;
  }

  static std::byte byte(Off at) { return std::byte(at * 3 + at / 4096 + 1); }

  void expect_in_file(const std::vector<Extent>& dirty) {
    const Bytes got = file_.contents();
    for (const Extent e : dirty) {
      ASSERT_LE(e.end, Off(got.size()));
      for (Off at = e.begin; at < e.end; ++at) ASSERT_EQ(got[size_t(at)], byte(at)) << at;
    }
  }

  TemporaryFile file_;
};

TEST_F(AsyncFiles, AtMostDepthPiecesAreUnderWay) {
  auto file = open(3);
  const auto dirty = submit(*file, {0, 20 * 8192}, true);
  EXPECT_EQ(script.started.size(), 3u) << "submit starts what the depth allows";
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(script.most_under_way, 3u);
  EXPECT_EQ(script.started.size(), 20u);
  expect_in_file(dirty);
  EXPECT_TRUE(file->close());
}

TEST_F(AsyncFiles, SubmitStartsAllOfAPageWithoutHoles) {
  auto file = open(4);
  submit(*file, {0, (10 << 20) + 17}, false);
  EXPECT_EQ(script.started, (std::vector<Off>{0, 3 << 20, 6 << 20, 9 << 20}));
  EXPECT_FALSE(file->reap());
  expect_in_file({{0, (10 << 20) + 17}});
}

TEST_F(AsyncFiles, PiecesEndWhereOffsetsEnd) {
  script.outcome = [](const WriteRequest& r) { return int64_t(r.bytes.size()); };
  auto file = open(4);
  const Extent last{kLastOff - 65536, kLastOff};
  file->submit(file->lease(last).value(), {&last, 1});
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(script.started, (std::vector<Off>{last.begin}));
}

TEST_F(AsyncFiles, ExtentsThatTouchAreOnePiece) {
  auto file = open(4);
  const Extent dirty[] = {{0, 100}, {100, 5000}, {5001, 6000}};
  file->submit(file->lease({0, 8192}).value(), dirty);
  EXPECT_EQ(script.started, (std::vector<Off>{0, 5001}));
  EXPECT_FALSE(file->reap());
}

TEST_F(AsyncFiles, SeveralPagesAreReapedInTheOrderOfTheirSubmission) {
  auto file = open(4);
  const auto first = submit(*file, {0, 40960}, true);
  const auto second = submit(*file, {81920, 122880}, true);
  EXPECT_FALSE(file->reap());
  expect_in_file(first);
  EXPECT_FALSE(file->reap());
  expect_in_file(second);
  EXPECT_FALSE(file->reap()) << "nothing is left";
}

TEST_F(AsyncFiles, WhatComesBackShortIsFinished) {
  script.outcome = [](const WriteRequest& r) { return write_now(r, r.bytes.size() / 3); };
  auto file = open();
  const auto dirty = submit(*file, {4096, 50'001}, true);
  EXPECT_FALSE(file->reap());
  expect_in_file(dirty);
}

TEST_F(AsyncFiles, WhatComesBackInterruptedOrWithNothingIsWrittenAgain) {
  for (const int64_t result : {-EINTR, -EAGAIN, -ECANCELED, -EINVAL, 0}) {
    script.outcome = [result](const WriteRequest&) { return result; };
    auto file = open();
    const auto dirty = submit(*file, {4096, 50'001}, true);
    EXPECT_FALSE(file->reap());
    expect_in_file(dirty);
    ASSERT_EQ(::truncate(file_.path().c_str(), 0), 0);
  }
}

TEST_F(AsyncFiles, AQueueThatTakesNothingIsWrittenPast) {
  script.taken_at_a_time = 0;
  auto file = open();
  const auto dirty = submit(*file, {4096, 50'001}, true);
  EXPECT_FALSE(file->reap());
  expect_in_file(dirty);
  EXPECT_TRUE(script.started.empty());
}

TEST_F(AsyncFiles, AQueueThatTakesOneAtATimeGetsTheOthersLater) {
  script.taken_at_a_time = 1;
  auto file = open();
  const auto dirty = submit(*file, {0, 81920}, true);
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(script.started.size(), dirty.size());
  expect_in_file(dirty);
}

TEST_F(AsyncFiles, WithoutAQueueTheyWriteAllTheSameAndSaySo) {
  script.opens = false;
  auto file = open();
  EXPECT_NE(file->degraded().find("each write blocks: open queue"), std::string::npos);
  const auto dirty = submit(*file, {4096, 50'001}, true);
  EXPECT_FALSE(file->reap());
  expect_in_file(dirty);
  EXPECT_TRUE(file->close());
}

TEST_F(AsyncFiles, ABrokenQueueLosesNothingAndIsNotUsedAgain) {
  script.waits_before_it_breaks = 2;
  auto file = open(4);
  EXPECT_EQ(file->degraded(), "");
  const auto first = submit(*file, {0, 163'840}, true);
  const auto second = submit(*file, {163'840, 200'000}, true);
  EXPECT_FALSE(file->reap());
  EXPECT_NE(file->degraded().find("each write blocks: wait"), std::string::npos);
  const size_t started = script.started.size();
  const auto third = submit(*file, {200'704, 240'000}, true);
  EXPECT_FALSE(file->reap());
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(script.started.size(), started);
  for (const auto& dirty : {first, second, third}) expect_in_file(dirty);
  EXPECT_TRUE(file->close());
}

TEST_F(AsyncFiles, CloseWaitsForWhatIsUnderWay) {
  auto file = open();
  const auto dirty = submit(*file, {0, 81920}, true);
  EXPECT_TRUE(file->close());
  expect_in_file(dirty);
  EXPECT_FALSE(file->reap()) << "and it can be reaped";
}

// After close() every write fails, which is a fault of this submission alone.
TEST_F(AsyncFiles, OfSeveralFailedPiecesTheFirstMissingByteIsTheLowest) {
  auto file = open();
  EXPECT_TRUE(file->close());
  script.outcome = [](const WriteRequest& r) -> int64_t {
    return r.offset % 16384 == 0 ? -EIO : 4096;
  };
  submit(*file, {8192, 81920}, true);
  const auto fault = file->reap();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->first_missing, 16384) << "32768 came back before it";
  EXPECT_EQ(fault->error.sys_errno, EBADF);
}

TEST_F(AsyncFiles, PiecesBehindAFaultAreNotStarted) {
  auto file = open(2);
  EXPECT_TRUE(file->close());
  script.outcome = [](const WriteRequest&) -> int64_t { return -EIO; };
  submit(*file, {0, 20 * 8192}, true);
  const auto fault = file->reap();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->first_missing, 0);
  EXPECT_LE(script.started.size(), 4u);
}

// --- Registered memory

TEST_F(AsyncFiles, MemoryIsRegisteredOnceForAllPagesInIt) {
  auto file = open_registered();
  for (Off at = 0; at < 40 * 65536; at += 2 * 65536) {
    submit(*file, {at, at + 65536}, true);
    submit(*file, {at + 65536, at + 2 * 65536}, true);
    EXPECT_FALSE(file->reap());
    EXPECT_FALSE(file->reap());
  }
  EXPECT_EQ(script.registrations, 2) << "one for each slot";
  EXPECT_TRUE(all_named_a_buffer());
  EXPECT_EQ(file->degraded(), "");
  expect_in_file({{65536, 69632}, {39 * 65536, 39 * 65536 + 4096}});
}

TEST_F(AsyncFiles, MemoryThatGrewIsRegisteredAnew) {
  auto file = open_registered();
  for (const Off size : {Off{8192}, Off{4096}, Off{3 << 20}, Off{8192}}) {
    submit(*file, {0, size}, false);
    EXPECT_FALSE(file->reap());
  }
  EXPECT_EQ(script.registrations, 2);
  EXPECT_TRUE(all_named_a_buffer());
}

TEST_F(AsyncFiles, MemoryThatIsTakenAwayIsNotRegisteredAnyMore) {
  auto file = open_registered();
  AlignedBuffer given;
  ASSERT_TRUE(given.reserve(2 * 65536));
  const std::array buffers = {given.first(65536), std::span(given.data() + 65536, 65536)};
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(file->use_memory(buffers));
    submit(*file, {0, 65536}, false);
    EXPECT_FALSE(file->reap());
    EXPECT_EQ(script.known[0].data(), given.data());
    ASSERT_TRUE(file->use_memory({}));
    EXPECT_TRUE(script.known[0].empty() && script.known[1].empty());
    submit(*file, {65536, 131072}, false);
    EXPECT_FALSE(file->reap());
    EXPECT_NE(script.known[0].data(), given.data());
  }
  EXPECT_TRUE(all_named_a_buffer());
  expect_in_file({{0, 131072}});
}

TEST_F(AsyncFiles, MemoryThatCannotBeRegisteredIsWrittenAllTheSameAndSaid) {
  script.registers = false;
  auto file = open_registered();
  const auto dirty = submit(*file, {4096, 50'001}, true);
  EXPECT_FALSE(file->reap());
  submit(*file, {65536, 131072}, false);
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(script.registrations, 1) << "not tried again";
  EXPECT_TRUE(std::ranges::all_of(script.buffers, [](int b) { return b == -1; }));
  EXPECT_NE(file->degraded().find("memory that is not registered: register"), std::string::npos);
  expect_in_file(dirty);
}

TEST_F(AsyncFiles, NothingIsRegisteredUnlessAsked) {
  auto file = open();
  submit(*file, {0, 65536}, true);
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(script.registrations, 0);
}

// The kernel's own word, for a user who may lock little memory.
TEST_F(AsyncFiles, ALimitOnLockedMemoryIsSaid) {
  const Mechanism& uring = *find_mechanism("uring");
  if (const std::string why = uring.unavailable(); !why.empty()) GTEST_SKIP() << why;
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;
  const TemporaryFile target("/dev/shm");
  ASSERT_EQ(::chmod(target.path().c_str(), 0666), 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit small = before;
  small.rlim_cur = 262'144;
  if (root) {
    ASSERT_EQ(::seteuid(kNobody), 0);  // may not lock what it likes
  }
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &small), 0);
  auto file = uring.open({.path = target.path(), .depth = 2, .registered = true}).value();
  submit(*file, {0, 1 << 20}, false);
  const auto fault = file->reap();
  const std::string said = file->degraded();
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_FALSE(fault);
  if (said.find("each write blocks") != std::string::npos) GTEST_SKIP() << said;
  EXPECT_NE(said.find("not registered"), std::string::npos) << said;
  EXPECT_NE(said.find("ulimit -l"), std::string::npos) << said;
  const Bytes got = target.contents();
  ASSERT_EQ(got.size(), size_t{1} << 20);
  for (Off at = 0; at < 1 << 20; ++at) ASSERT_EQ(got[size_t(at)], byte(at)) << at;
}

// On a kernel that leaves pinned pages to the child, the parent's next bytes would be lost.
TEST_F(AsyncFiles, WhatIsStoredToRegisteredMemoryAfterAForkIsWritten) {
  const Mechanism& uring = *find_mechanism("uring");
  if (const std::string why = uring.unavailable(); !why.empty()) GTEST_SKIP() << why;
  for (const Direct direct : {Direct::never, Direct::always}) {
    auto file = uring.open({.path = file_.path(), .direct = direct, .registered = true}).value();
    submit(*file, {0, 1 << 20}, false);
    EXPECT_FALSE(file->reap());
    const std::string said = file->degraded();
    if (said.find("not registered") != std::string::npos) GTEST_SKIP() << said;
    int hold[2];
    ASSERT_EQ(::pipe(hold), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {  // has all the pages, until the parent is done
      char byte;
      ::close(hold[1]);
      ::_exit(::read(hold[0], &byte, 1) == 0 ? 0 : 1);
    }
    ::close(hold[0]);
    const auto after = submit(*file, {1 << 20, 2 << 20}, false);
    EXPECT_FALSE(file->reap());
    EXPECT_EQ(file->degraded(), said);
    ::close(hold[1]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    expect_in_file(after);
    EXPECT_TRUE(file->close());
    ASSERT_EQ(::truncate(file_.path().c_str(), 0), 0);
  }
}

// A program that forks, and whose child goes on with the file.
TEST_F(AsyncFiles, AChildProcessLeavesItsParentsQueueAlone) {
  for (const Mechanism* m : mechanisms()) {
    if (m->default_depth == 0 || (m->unavailable != nullptr && !m->unavailable().empty())) continue;
    auto file = m->open({.path = file_.path(), .registered = m->takes_registered}).value();
    const auto first = submit(*file, {0, 81920}, true);
    EXPECT_FALSE(file->reap());
    const std::string said = file->degraded();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      submit(*file, {81920, 163'840}, true);
      const bool good = !file->reap() && file->degraded() != said && file->close();
      ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << m->name;
    EXPECT_EQ(file->degraded(), said);
    const auto third = submit(*file, {163'840, 200'000}, true);
    EXPECT_FALSE(file->reap()) << m->name << ": the parent goes on";
    expect_in_file(first);
    expect_in_file(third);
    EXPECT_TRUE(file->close());
    ASSERT_EQ(::truncate(file_.path().c_str(), 0), 0);
  }
}

}  // namespace
}  // namespace penstock::io::async_file_test
