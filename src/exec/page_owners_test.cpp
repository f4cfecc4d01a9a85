// Who writes a file page that many ranks fill: its owner, whatever the pattern and however little
// room there is, on one node and between two; and somebody, where the owner has no thread or its
// process has died.
#include "exec/page_owners.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/behind_for_tests.hpp"
#include "io/eventually.hpp"
#include "io/forwarding_file.hpp"
#include "io/held_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::page_owners_test {
namespace {

constexpr int64_t kPage = 4096, kLoad = 2048;

// Which ranks wrote to each page of the file, seen at the file.
class PageWriters {
 public:
  void wrote(int rank, Extent where) {
    const std::lock_guard lock(mutex_);
    for (int64_t page = where.begin / kPage; page * kPage < where.end; ++page)
      writers_[page].insert(rank);
  }
  int64_t with_several() const {
    const std::lock_guard lock(mutex_);
    return std::ranges::count_if(writers_, [](const auto& w) { return w.second.size() > 1; });
  }
  int64_t not_by_owner(int ranks) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::count_if(
        writers_, [&](const auto& w) { return w.second != std::set{int(w.first % ranks)}; });
  }
  // Of one and the same node, of two that have consecutive blocks of ranks.
  int64_t with_several_of_a_node(int ranks) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::count_if(writers_, [&](const auto& w) {
      const int64_t first = std::ranges::count_if(w.second, [&](int r) { return 2 * r < ranks; });
      return first > 1 || std::ssize(w.second) - first > 1;
    });
  }
  size_t pages() const {
    const std::lock_guard lock(mutex_);
    return writers_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<int64_t, std::set<int>> writers_;
};

class WitnessedFile final : public io::ForwardingFile {
 public:
  WitnessedFile(std::unique_ptr<io::MechanismFile> inner, int rank, PageWriters& writers)
      : ForwardingFile(std::move(inner)), rank_(rank), writers_(writers) {}
  std::optional<io::Fault> write(std::span<const std::byte> bytes, Off offset) override {
    writers_.wrote(rank_, {offset, offset + Off(bytes.size())});
    return inner().write(bytes, offset);
  }

 private:
  const int rank_;
  PageWriters& writers_;
};

// Its writes are noted down.
class Rank {
 public:
  Rank(comm::Comm& comm, std::unique_ptr<io::MechanismFile> file, WriteBehindShape shape,
       PageWriters& writers, Thread thread = Thread::runs)
      : rank_(comm, std::make_unique<WitnessedFile>(std::move(file), comm.rank(), writers), shape,
              thread) {}
  BehindRank* operator->() { return &rank_; }

 private:
  BehindRank rank_;
};

std::unique_ptr<io::MechanismFile> open(const io::TemporaryFile& path) {
  return io::find_mechanism("pwrite")->open({path.path()}).value();
}

// --- Who owns which page ---

// Of the even pages of a file that eight ranks wrote from two nodes, on the node of the even ranks.
TEST(PageOwners, AreTheRanksWhereverTheirNodesAre) {
  constexpr int kRanks = 8, kHere = 4;
  auto segment = comm::make_thread_segment(PageOwners::bytes_for(kRanks)).value();
  std::vector<std::unique_ptr<PageOwners>> members;
  for (int i = 0; i < kHere; ++i)
    members.push_back(
        std::make_unique<PageOwners>(segment, 0, kRanks, 2 * (kHere - 1 - i), std::nullopt));
  for (auto& member : members) member->all_have_joined();
  for (int64_t page = 0; page < 64; page += 2) {
    const int owner = members[0]->owner_of(page);
    for (auto& member : members) {
      EXPECT_EQ(member->owner_of(page), owner);
      EXPECT_EQ(member->mine() == owner, &member - &members[0] == kHere - 1 - page % kRanks / 2);
    }
  }
  EXPECT_GE(members[0]->owner_of(1), 0);  // of the other node, but here
}

// --- Every page has one writer ---

// offset, n
using Write = std::function<void(Off, int64_t)>;

// Calls `to` for all that `rank` brings; all ranks together fill [0, bytes).
struct Pattern {
  const char* name;
  int64_t (*bytes)(int ranks);
  void (*each)(int rank, int ranks, const Write& to);
};

// BT-IO: an array of n^3 cells of 40 bytes, written again and again, one behind the other. Of a
// square number of ranks, each has a block on every diagonal, and writes it row by row.
constexpr int64_t kGrid = 12, kCell = 40, kArrays = 3, kArray = kGrid * kGrid * kGrid * kCell;

void write_diagonals(int rank, int ranks, const Write& to) {
  const int q = int(std::lround(std::sqrt(ranks)));
  const int64_t side = kGrid / q;
  for (int64_t array = 0; array < kArrays; ++array)
    for (int c = 0; c < q; ++c) {
      const int64_t x = (rank / q + c) % q * side, y = (rank % q + c) % q * side, z = c * side;
      for (int64_t k = z; k < z + side; ++k)
        for (int64_t j = y; j < y + side; ++j)
          to(array * kArray + ((k * kGrid + j) * kGrid + x) * kCell, side * kCell);
    }
}

constexpr int64_t kTurns = 512;

void write_turns(int rank, int ranks, const Write& to) {
  for (int64_t i = 0; i < kTurns; ++i) to((i * ranks + rank) * 64, 64);
}

// Contiguous shares that begin and end inside pages, with whole pages in between.
void write_shares(int rank, int, const Write& to) { to(rank * (5 * kPage + 100), 5 * kPage + 100); }

constexpr Pattern kPatterns[] = {
    {"BtIo", [](int) { return kArrays * kArray; }, &write_diagonals},
    {"Turns", [](int ranks) { return ranks * kTurns * 64; }, &write_turns},
    {"Shares", [](int ranks) { return ranks * (5 * kPage + 100); }, &write_shares}};

using Case = std::tuple<int, int64_t, const Pattern*, FullPage>;  // ranks, limit per rank
class OnePage : public testing::TestWithParam<Case> {};

TEST_P(OnePage, HasOneWriter) {
  const auto [ranks, limit, pattern, full] = GetParam();
  const io::TemporaryFile path;
  PageWriters writers;
  comm::run_thread_team(
      ranks, [&, ranks = ranks, limit = limit, pattern = pattern, full = full](auto& comm) {
        Rank rank(comm, open(path), {kPage, limit, full}, writers);
        pattern->each(comm.rank(), ranks, [&](Off at, int64_t n) { rank->write_at(at, n); });
        if (comm.rank() == 0) rank->flush();  // alone, while others still write
        EXPECT_TRUE(comm.barrier());
        rank->flush();
        EXPECT_EQ(rank->notes().taken_over, 0);
        EXPECT_TRUE(comm.barrier());
      });
  const int64_t bytes = pattern->bytes(ranks);
  EXPECT_EQ(writers.with_several(), 0);
  if (pattern->each != &write_shares && full == FullPage::by_owner)
    EXPECT_EQ(writers.not_by_owner(ranks), 0);
  EXPECT_EQ(writers.pages(), size_t((bytes + kPage - 1) / kPage));
  EXPECT_TRUE(path.holds(bytes_at(0, bytes)));
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const auto [ranks, limit, pattern, full] = info.param;
  return pattern->name + std::to_string(ranks) + (limit == 0 ? "" : "InFourPages") +
         (full == FullPage::by_owner ? "ByOwner" : "ByRanks");
}
// What is full or wanted leaves, and what is not is wanted soon where there are four pages for all.
constexpr int64_t kRoom[] = {0, 1};
constexpr FullPage kFull[] = {FullPage::by_owner, FullPage::by_ranks};
INSTANTIATE_TEST_SUITE_P(Squares, OnePage,
                         testing::Combine(testing::Values(1, 4, 9, 16), testing::ValuesIn(kRoom),
                                          testing::Values(&kPatterns[0]), testing::ValuesIn(kFull)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Many, OnePage,
                         testing::Combine(testing::Values(1, 2, 4, 9, 16), testing::ValuesIn(kRoom),
                                          testing::Values(&kPatterns[1], &kPatterns[2]),
                                          testing::ValuesIn(kFull)),
                         name_of);

// --- Between two nodes ---

// A rank there. Its thread writes its pages, and takes in what comes for them.
class NodeRank final : public Chore {
 public:
  NodeRank(comm::Comm& comm, const io::TemporaryFile& path, const WriteBehindShape& shape,
           PageWriters& writers)
      : file_(open(path), comm.rank(), writers),
        behind_(WriteBehind::make(comm, shape, {}, stager_.bell()).value()),
        receives_(shape.progress != Progress::calls) {
    EXPECT_TRUE(stager_.add(*this));
  }
  ~NodeRank() override {
    stager_.remove(*this);
    EXPECT_TRUE(file_.close());
  }

  void run(Why why) noexcept override {
    const WriteBehind::Target by_thread{file_, nullptr, &stager_};
    behind_->serve_asked(by_thread);
    if (why == Why::due && receives_) behind_->step(by_thread);
  }
  std::chrono::microseconds pause() const noexcept override {
    return std::chrono::microseconds{200};
  }

  void write_at(Off offset, int64_t n) {
    const std::vector<std::byte> bytes = bytes_at(offset, n);
    const layout::FileView view;
    const WriteRequest request{
        &view, {offset, offset + n}, bytes.data(), layout::LoopTree::bytes(1), n};
    EXPECT_EQ(behind_->write(target(), request).prefix_bytes, n);
  }
  void flush() { behind_->flush(target()); }
  void flush_together() { behind_->flush_together(target()); }
  void let_old_leave() { behind_->serve_older(target(), 0); }
  int64_t taken_over() const { return behind_->notes().taken_over; }

 private:
  WriteBehind::Target target() { return {file_, nullptr}; }

  WitnessedFile file_;
  Stager stager_;
  const std::unique_ptr<WriteBehind> behind_;
  const bool receives_;
};

using NodesCase = std::tuple<Progress, int, int64_t, const Pattern*, FullPage>;
class OnePageOfTwoNodes : public testing::TestWithParam<NodesCase> {};

// Where all bytes of a page reach its owner, that is its writer: by the thread always, else as long
// as nothing has to leave before a collective call. What has to, leaves by its own node, so that
// the page may have a writer on each node, and no more.
TEST_P(OnePageOfTwoNodes, HasOneWriterOrOneOnEachNodeWhereBytesMustLeaveBefore) {
  const auto [progress, ranks, limit, pattern, full] = GetParam();
  const bool by_thread = progress == Progress::thread;
  const WriteBehindShape shape{.page_bytes = kPage,
                               .limit_bytes_per_rank = limit,
                               .full = full,
                               .progress = progress,
                               .load_bytes = kLoad};
  const io::TemporaryFile path;
  PageWriters writers;
  comm::run_thread_team(ranks,
                        [&, ranks = ranks, pattern = pattern](comm::Comm& comm) {
                          NodeRank rank(comm, path, shape, writers);
                          pattern->each(comm.rank(), ranks,
                                        [&](Off at, int64_t n) { rank.write_at(at, n); });
                          if (by_thread && comm.rank() == 0) rank.flush();  // others still write
                          EXPECT_TRUE(comm.barrier());
                          rank.flush_together();
                          EXPECT_EQ(rank.taken_over(), 0);
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2});
  const int64_t bytes = pattern->bytes(ranks);
  const bool reach_owners = by_thread || limit == 0;
  if (reach_owners) EXPECT_EQ(writers.with_several(), 0);
  if (reach_owners && pattern->each != &write_shares && full == FullPage::by_owner)
    EXPECT_EQ(writers.not_by_owner(ranks), 0);
  EXPECT_EQ(writers.with_several_of_a_node(ranks), 0);
  EXPECT_EQ(writers.pages(), size_t((bytes + kPage - 1) / kPage));
  EXPECT_TRUE(path.holds(bytes_at(0, bytes)));
}

std::string name_of_nodes(const testing::TestParamInfo<NodesCase>& info) {
  const auto [progress, ranks, limit, pattern, full] = info.param;
  return std::string(pattern->name) + std::to_string(ranks) + "By_" + to_string(progress) +
         (limit == 0 ? "" : "InFourPages") + (full == FullPage::by_owner ? "ByOwner" : "ByRanks");
}
INSTANTIATE_TEST_SUITE_P(Squares, OnePageOfTwoNodes,
                         testing::Combine(testing::ValuesIn(kProgresses), testing::Values(4),
                                          testing::ValuesIn(kRoom), testing::Values(&kPatterns[0]),
                                          testing::ValuesIn(kFull)),
                         name_of_nodes);
INSTANTIATE_TEST_SUITE_P(Many, OnePageOfTwoNodes,
                         testing::Combine(testing::ValuesIn(kProgresses), testing::Values(2, 3, 4),
                                          testing::ValuesIn(kRoom),
                                          testing::Values(&kPatterns[1], &kPatterns[2]),
                                          testing::ValuesIn(kFull)),
                         name_of_nodes);

// Half of each page's bytes get old before the others come.
class OldPageOfTwoNodes : public testing::TestWithParam<Progress> {};

TEST_P(OldPageOfTwoNodes, HasOneWriterByTheThreadAndElseOneOnEachNode) {
  constexpr int kRanks = 4;
  const bool by_thread = GetParam() == Progress::thread;
  const WriteBehindShape shape{
      .page_bytes = kPage, .full = FullPage::by_owner, .progress = GetParam(), .load_bytes = kLoad};
  const io::TemporaryFile path;
  PageWriters writers;
  comm::run_thread_team(kRanks,
                        [&](comm::Comm& comm) {
                          NodeRank rank(comm, path, shape, writers);
                          for (const int64_t half : {0, 1}) {
                            for (int64_t i = half; i < kTurns; i += 2)
                              rank.write_at((i * kRanks + comm.rank()) * 64, 64);
                            if (half == 0) rank.let_old_leave();
                          }
                          EXPECT_TRUE(comm.barrier());
                          rank.flush_together();
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2});
  if (by_thread) EXPECT_EQ(writers.not_by_owner(kRanks), 0);
  if (GetParam() == Progress::calls) EXPECT_GT(writers.with_several(), 0) << "it is not promised";
  EXPECT_EQ(writers.with_several_of_a_node(kRanks), 0);
  EXPECT_TRUE(path.holds(bytes_at(0, kRanks * kTurns * 64)));
}

INSTANTIATE_TEST_SUITE_P(Every, OldPageOfTwoNodes, testing::ValuesIn(kProgresses),
                         [](const auto& tested) { return to_string(tested.param); });

// --- The thread ---

TEST(PageOwners, AFullPageLeavesThoughNobodyCalls) {
  const io::TemporaryFile path;
  PageWriters writers;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Rank rank(comm, open(path), {kPage, 0, FullPage::by_owner}, writers);
    if (comm.rank() == 0)
      for (Off at = 0; at < 2 * kPage; at += 64) rank->write_at(at, 64);
    EXPECT_TRUE(comm.barrier());
    EXPECT_TRUE(io::eventually([&] { return path.contents() == bytes_at(0, 2 * kPage); }));
    EXPECT_TRUE(comm.barrier());
  });
  EXPECT_EQ(writers.not_by_owner(2), 0);
}

TEST(PageOwners, AWriteThatFillsAPageDoesNotWaitForTheFile) {
  const io::TemporaryFile path;
  PageWriters writers;
  io::Hold hold;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, std::make_unique<io::HeldFile>(open(path), hold),
              {kPage, 0, FullPage::by_owner}, writers);
    for (Off at = 0; at < 3 * kPage; at += 64) rank->write_at(at, 64);
    hold.wait_until_someone_waits();
    EXPECT_EQ(hold.passed(), 0);
    hold.open();
    rank->flush();
  });
  EXPECT_TRUE(path.holds(bytes_at(0, 3 * kPage)));
}

// --- Without it ---

TEST(PageOwners, PagesOfARankWithoutAThreadAreWrittenByOthersWhoSaySo) {
  const io::TemporaryFile path;
  PageWriters writers;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Rank rank(comm, open(path), {kPage, 1}, writers,
              comm.rank() == 0 ? Thread::runs : Thread::none);
    if (comm.rank() == 0) {
      for (int64_t page = 0; page < 8; ++page) rank->write_at(page * kPage + 5, kPage - 5);
      rank->flush();
      EXPECT_EQ(rank->notes().taken_over, 4);
    }
    EXPECT_TRUE(comm.barrier());
  });
  EXPECT_EQ(path.contents().size(), size_t(8 * kPage));
}

// Two processes as the two ranks of a node, of which the second is killed.
class OfTwo final : public comm::Borrowed {
 public:
  struct Shared {
    std::atomic<int> arrived, killable;
  };
  OfTwo(comm::Comm& alone, int rank, Shared& shared, std::shared_ptr<comm::SharedSegment> segment)
      : Borrowed(alone), rank_(rank), shared_(shared), segment_(std::move(segment)) {}
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return 2; }
  Result<std::shared_ptr<comm::SharedSegment>> shared_segment(const comm::SegmentShape&) override {
    return segment_;
  }
  Result<void> all_max(std::span<int64_t>) override {
    ++shared_.arrived;
    while (shared_.arrived < 2) ::usleep(100);
    return {};
  }

 private:
  const int rank_;
  Shared& shared_;
  const std::shared_ptr<comm::SharedSegment> segment_;
};

// Runs `first` here and `second` in a process that is to say when it can be killed.
template <class First, class Second>
void with_a_rank_that_dies(First&& first, Second&& second) {
  const std::string name = comm::unused_segment_name("test");
  auto segment = comm::make_segment(name, size_t{1} << 20).value();
  comm::forget_segment_name(name);
  void* const at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *static_cast<OfTwo::Shared*>(at);
  const auto alone = std::move(comm::make_thread_team(1).front());
  const pid_t child = ::fork();
  if (child == 0) {
    OfTwo comm(*alone, 1, shared, segment);
    second(comm, shared.killable);
    ::pause();
  }
  OfTwo comm(*alone, 0, shared, segment);
  first(comm, [&] {
    EXPECT_TRUE(io::eventually([&] { return shared.killable != 0; }));
    ::kill(child, SIGKILL);  // and not waited for: it stays a zombie
  });
  ::waitpid(child, nullptr, 0);
  ::munmap(at, 4096);
}

constexpr WriteBehindShape kFour{kPage, 2 * kPage, FullPage::by_owner};  // pages of both together

TEST(PageOwners, PagesOfADeadRankAreWrittenByTheOthersWithItsBytes) {
  const io::TemporaryFile path;
  PageWriters writers;
  with_a_rank_that_dies(
      [&](comm::Comm& comm, auto&& kill) {
        Rank rank(comm, open(path), kFour, writers);
        rank->write_at(0, 100);
        rank->write_at(kPage, 100);
        kill();
        rank->flush();
        EXPECT_EQ(rank->notes().taken_over, 1);
        for (int64_t page = 0; page < 12; ++page)
          rank->write_at(page * kPage + 200, 50);  // needs room
        rank->flush();
        EXPECT_EQ(rank->notes().taken_over, 1 + 6);
      },
      [&](comm::Comm& comm, std::atomic<int>& killable) {
        Rank rank(comm, open(path), kFour, writers);
        rank->write_at(kPage + 100, 100);
        killable = 1;
        ::pause();
      });
  const std::vector<std::byte> file = path.contents();
  ASSERT_EQ(file.size(), size_t(11 * kPage + 250));
  for (const Off at : {Off{0}, Off{99}, kPage, kPage + 100, kPage + 199, 11 * kPage + 249})
    EXPECT_EQ(file[size_t(at)], value_at(at)) << at;
}

TEST(PageOwners, APageThatItsWriterDiedOverIsWrittenAgain) {
  const io::TemporaryFile path;
  PageWriters writers;
  with_a_rank_that_dies(
      [&](comm::Comm& comm, auto&& kill) {
        Rank rank(comm, open(path), kFour, writers);
        kill();
        rank->write_at(kPage + 100, 100);  // waits for the page that is on its way
        rank->flush();
        EXPECT_GE(rank->notes().taken_over, 1);
      },
      [&](comm::Comm& comm, std::atomic<int>& killable) {
        io::Hold hold;
        Rank rank(comm, std::make_unique<io::HeldFile>(open(path), hold), kFour, writers);
        for (Off at = kPage; at < 2 * kPage; at += 64) rank->write_at(at, 64);
        hold.wait_until_someone_waits();
        killable = 1;
        ::pause();
      });
  const std::vector<std::byte> file = path.contents();
  ASSERT_EQ(file.size(), size_t(2 * kPage));
  for (Off at = kPage; at < 2 * kPage; ++at) ASSERT_EQ(file[size_t(at)], value_at(at)) << at;
}

}  // namespace
}  // namespace penstock::exec::page_owners_test
