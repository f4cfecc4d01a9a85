// Every algorithm run backwards, on threads, against the file's own bytes: what is read, how much
// of it where the file ends, what is told when a read fails, and how the file was asked.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "comm/thread_comm.hpp"
#include "exec/random_case.hpp"
#include "exec/read_pipeline.hpp"
#include "io/faulty_reads.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::read_test {
namespace {

constexpr std::byte kUntouched{0xA5};

struct Variant {
  const plan::Algorithm* algorithm;
  plan::Parameters parameters;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const plan::Algorithm* a : plan::algorithms()) {
    all.push_back({a, {}});
    if (!a->exchanges) continue;
    all.push_back({a, plan::taken_by(*a, {1, 4096})});
    all.push_back({a, plan::taken_by(*a, {2, 8192})});
    if (plan::takes(*a, "writer")) all.push_back({a, {0, 4096, 0, 1}});
    if (plan::takes(*a, "stripe")) all.push_back({a, {3, 4096, 12288}});
  }
  return all;
}

void fill_file(const std::string& path, int64_t bytes) {
  std::vector<char> text(static_cast<size_t>(bytes));
  for (size_t i = 0; i < text.size(); ++i) text[i] = char(value_at(Off(i)));
  std::ofstream(path, std::ios::binary).write(text.data(), std::streamsize(bytes));
}

// A rank's memory as it must be after the first `count` bytes of its stream were read.
std::vector<std::byte> memory_after(const RankCase& c, int64_t count) {
  std::vector<std::byte> memory(c.memory.size(), kUntouched);
  layout::Cursor places(c.memory_type, 0, c.memory_count);
  for (const Segment& s : c.segments)
    for (Off at = s.offset; at < s.offset + s.bytes && count > 0; ++at, --count)
      memory[size_t(places.next(1).offset)] = value_at(at);
  return memory;
}

// The bytes of a rank that lie before the end of the file.
int64_t bytes_there(const RankCase& c, int64_t file_bytes) {
  int64_t n = 0;
  for (const Segment& s : c.segments) n += std::clamp<int64_t>(file_bytes - s.offset, 0, s.bytes);
  return n;
}

ReadRequest request_of(const RankCase& c, std::vector<std::byte>& memory) {
  return {&c.view, c.range, memory.data(), c.memory_type, c.memory_count, ErrorClass::none};
}

struct Told {
  ReadOutcome outcome;
  std::vector<std::byte> memory;
};

// Each rank reads its case, twice with one pipeline, and must be told the same both times.
std::vector<Told> read_all(const Variant& v, const std::vector<RankCase>& cases,
                           const std::string& path,
                           const std::vector<io::ReadFaultPlan>& faults = {}) {
  std::vector<Told> told(cases.size());
  comm::run_thread_team(int(cases.size()), [&](comm::Comm& comm) {
    const auto rank = size_t(comm.rank());
    const RankCase& c = cases[rank];
    auto opened = io::open_for_reading(path);
    ASSERT_TRUE(opened) << opened.error().message();
    std::unique_ptr<io::ReadableFile> file = *std::move(opened);
    if (!faults.empty()) file = std::make_unique<io::FaultyReads>(std::move(file), faults[rank]);
    ReadPipeline pipeline(comm, *file, {});
    for (int again = 0; again < (faults.empty() ? 2 : 1); ++again) {
      const int64_t described = pipeline.spent().descriptions;
      std::vector<std::byte> memory(c.memory.size(), kUntouched);
      const ReadOutcome outcome =
          pipeline.read_all(request_of(c, memory), {v.algorithm, v.parameters, nullptr, nullptr});
      EXPECT_EQ(outcome.algorithm, v.algorithm);
      if (again == 1) {
        EXPECT_EQ(pipeline.spent().descriptions, described);
        EXPECT_EQ(outcome.prefix_bytes, told[rank].outcome.prefix_bytes);
        EXPECT_TRUE(memory == told[rank].memory);
      }
      told[rank] = {outcome, std::move(memory)};
    }
  });
  return told;
}

int64_t draw_size(Random& random, const std::vector<RankCase>& cases) {
  Off end = 0;
  for (const RankCase& c : cases)
    for (const Segment& s : c.segments) end = std::max(end, s.offset + s.bytes);
  const int64_t kind = draw(random, 0, 3);
  if (kind == 0) return end + draw(random, 0, 5000);
  return kind == 1 ? draw(random, 0, std::min<Off>(end, 20)) : draw(random, 0, end);
}

void expect_read(const std::vector<RankCase>& cases, const std::vector<Told>& told,
                 int64_t file_bytes) {
  for (size_t r = 0; r < cases.size(); ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    const int64_t there = bytes_there(cases[r], file_bytes);
    EXPECT_EQ(told[r].outcome.agreed, ErrorClass::none);
    EXPECT_EQ(told[r].outcome.prefix_bytes, there);
    EXPECT_TRUE(told[r].memory == memory_after(cases[r], there));
  }
}

std::string name_of(const testing::TestParamInfo<Variant>& info) {
  const plan::Parameters& p = info.param.parameters;
  return std::string(info.param.algorithm->name) + "_w" + std::to_string(p.writers) + "_c" +
         std::to_string(p.cycle_bytes) + "_s" + std::to_string(p.stripe_bytes) + "_r" +
         std::to_string(p.writer);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 3;
#else
constexpr uint64_t kSeeds = 12;
#endif

class Reads : public testing::TestWithParam<Variant> {};

TEST_P(Reads, BringEveryByteOfRandomViewsUpToTheEndOfTheFile) {
  for (const int ranks : {1, 2, 3, 4, 8})
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", seed " + std::to_string(seed));
      Random random(seed * 1000 + uint64_t(ranks));
      const std::vector<RankCase> cases = draw_team(random, ranks, draw(random, 0, 2) == 0);
      const io::TemporaryFile file;
      const int64_t bytes = draw_size(random, cases);
      fill_file(file.path(), bytes);
      expect_read(cases, read_all(GetParam(), cases, file.path()), bytes);
      if (HasFailure()) return;
    }
}

// --- Faults ---

io::ReadFaultPlan draw_fault(Random& random) {
  constexpr int kErrnos[] = {EIO, ENOMEM, EACCES};
  io::ReadFaultPlan f;
  switch (draw(random, 0, 4)) {
    case 0:
      return f;
    case 1:
      f.ends_at = draw(random, 0, 60000);
      return f;
    case 2:
      f.nth_read = int(draw(random, 1, 4));
      break;
    default:
      f.at_offset = draw(random, 0, 60000);
  }
  f.read_errno = kErrnos[draw(random, 0, 2)];
  return f;
}

// Whatever happened, what a rank is told to have is what the file holds.
void expect_true(const std::vector<RankCase>& cases, const std::vector<Told>& told,
                 int64_t file_bytes) {
  bool somebody_failed = false;
  for (const Told& t : told) somebody_failed = somebody_failed || t.outcome.mine.has_value();
  for (size_t r = 0; r < cases.size(); ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    const ReadOutcome& o = told[r].outcome;
    EXPECT_EQ(o.agreed, told[0].outcome.agreed);
    EXPECT_EQ(o.agreed != ErrorClass::none, somebody_failed);
    ASSERT_LE(o.prefix_bytes, bytes_there(cases[r], file_bytes));
    layout::Cursor places(cases[r].memory_type, 0, cases[r].memory_count);
    const std::vector<std::byte> wanted = memory_after(cases[r], o.prefix_bytes);
    for (int64_t i = 0; i < o.prefix_bytes; ++i) {
      const auto at = size_t(places.next(1).offset);
      ASSERT_EQ(told[r].memory[at], wanted[at]) << "stream byte " << i;
    }
  }
}

TEST_P(Reads, TellEveryRankTheSameClassAndItsOwnTrueCount) {
  for (const int ranks : {1, 2, 3, 4, 8})
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", seed " + std::to_string(seed));
      Random random(seed * 77 + uint64_t(ranks));
      const std::vector<RankCase> cases = draw_team(random, ranks, true);
      const io::TemporaryFile file;
      const int64_t bytes = draw_size(random, cases);
      fill_file(file.path(), bytes);
      std::vector<io::ReadFaultPlan> faults;
      for (int r = 0; r < ranks; ++r) faults.push_back(draw_fault(random));
      expect_true(cases, read_all(GetParam(), cases, file.path(), faults), bytes);
      if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Every, Reads, testing::ValuesIn(variants()), name_of);

// --- How the file is asked ---

// Rank r of n has the blocks r, r + n, r + 2n, ... of `block` bytes; `every` of them are apart.
RankCase blocks_case(int rank, int64_t block, int64_t every, int64_t count) {
  RankCase c;
  c.view = *layout::FileView::make(rank * block, 1, tree_of({{0, block}}, every * block));
  c.range = {0, count * block};
  for (int64_t i = 0; i < count; ++i) c.segments.push_back({(i * every + rank) * block, block});
  c.memory_count = count * block;
  c.memory.resize(size_t(count * block));
  return c;
}

// How a team of `ranks` asked for their blocks; each must have got them.
ReadSpent ask(const char* algorithm, int ranks, const std::vector<RankCase>& cases,
              const io::ReadFaultPlan& fault = {}, plan::Parameters parameters = {}) {
  const io::TemporaryFile file;
  fill_file(file.path(), 4 << 20);
  std::vector<ReadSpent> spent(static_cast<size_t>(ranks));
  comm::run_thread_team(ranks, [&](comm::Comm& comm) {
    const RankCase& c = cases[size_t(comm.rank())];
    io::FaultyReads reads(io::open_for_reading(file.path()).value(), fault);
    ReadPipeline pipeline(comm, reads, {});
    std::vector<std::byte> memory(c.memory.size(), kUntouched);
    const ReadOutcome out = pipeline.read_all(
        request_of(c, memory), {plan::find_algorithm(algorithm), parameters, nullptr, nullptr});
    EXPECT_EQ(out.agreed, ErrorClass::none);
    EXPECT_EQ(out.prefix_bytes, c.range.size());
    EXPECT_TRUE(memory == memory_after(c, c.range.size()));
    spent[size_t(comm.rank())] = pipeline.spent();
  });
  ReadSpent sum;
  for (const ReadSpent& s : spent) {
    sum.file.reads += s.file.reads;
    sum.file.bytes += s.file.bytes;
    sum.messages += s.messages;
  }
  return sum;
}

std::vector<RankCase> team_of_blocks(int ranks, int64_t block, int64_t every, int64_t count) {
  std::vector<RankCase> cases;
  for (int r = 0; r < ranks; ++r) cases.push_back(blocks_case(r, block, every, count));
  return cases;
}

TEST(ReadTogether, InterleavedBlocksAreReadOnceAndInOnePieceForEachCycle) {
  const ReadSpent spent = ask("two_phase", 4, team_of_blocks(4, 1000, 4, 200), {}, {1, 256 << 10});
  EXPECT_EQ(spent.file.bytes, 4 * 200 * 1000);
  EXPECT_EQ(spent.file.reads, divide_up(4 * 200 * 1000, 256 << 10));
  EXPECT_GT(spent.messages, 0);
}

TEST(ReadTogether, TheSameBytesForAllAreReadOnce) {
  std::vector<RankCase> cases(4, blocks_case(0, 100000, 1, 1));
  const ReadSpent spent = ask("two_phase", 4, cases, {}, {1, 0});
  EXPECT_EQ(spent.file.bytes, 100000);
  EXPECT_EQ(spent.file.reads, 1);
}

TEST(ReadTogether, SmallHolesAreReadOverAndLargeOnesAreNot) {
  const ReadSpent small = ask("two_phase", 2, team_of_blocks(2, 1000, 5, 100), {}, {1, 0});
  EXPECT_EQ(small.file.reads, 1);
  EXPECT_EQ(small.file.bytes, 99 * 5000 + 2000);
  const ReadSpent large = ask("two_phase", 2, team_of_blocks(2, 8 << 10, 5, 50), {}, {1, 0});
  EXPECT_EQ(large.file.reads, 50);
  EXPECT_EQ(large.file.bytes, 50 * 2 * (8 << 10));
}

TEST(ReadTogether, AHoleThatCannotBeReadIsNobodysLoss) {
  io::ReadFaultPlan fault;
  fault.read_errno = EIO;
  fault.at_offset = 3 * 5000 + 3500;  // between the blocks
  const ReadSpent spent = ask("two_phase", 2, team_of_blocks(2, 1000, 5, 100), fault, {1, 0});
  EXPECT_EQ(spent.file.reads, 1 + 100);
}

TEST(ReadByItself, LargeBlocksGoStraightToMemoryAndSmallOnesThroughWindows) {
  const ReadSpent large = ask("individual", 2, team_of_blocks(2, 100 << 10, 2, 10));
  EXPECT_EQ(large.file.reads, 2 * 10);
  EXPECT_EQ(large.file.bytes, 2 * 10 * (100 << 10));
  EXPECT_EQ(large.messages, 0);
  const ReadSpent small = ask("individual", 2, team_of_blocks(2, 1 << 10, 2, 1024));
  EXPECT_LE(small.file.reads, 2 * 3);
  EXPECT_LE(small.file.bytes, 2 * (2 << 20));
}

// Rank 0 is in the call already when rank 1 makes the file longer and comes.
TEST(ReadTogether, ARankFindsWhatItWroteJustBeforeItCame) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto reads = io::open_for_reading(file.path()).value();
    ReadPipeline pipeline(comm, *reads, {});
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      fill_file(file.path(), 1000);
    }
    std::vector<std::byte> memory(1000, kUntouched);
    const layout::FileView view;
    const ReadOutcome out = pipeline.read_all(
        {&view, {0, 1000}, memory.data(), layout::LoopTree::bytes(1), 1000, ErrorClass::none},
        {plan::find_algorithm("two_phase"), {}, nullptr, nullptr});
    EXPECT_EQ(out.agreed, ErrorClass::none);
    EXPECT_EQ(out.prefix_bytes, 1000);
  });
}

TEST(ReadTogether, ARankWithBadArgumentsStillTakesPartAndAllAreTold) {
  const io::TemporaryFile file;
  fill_file(file.path(), 3000);
  for (const char* algorithm : {"two_phase", "individual"})
    comm::run_thread_team(3, [&](comm::Comm& comm) {
      auto reads = io::open_for_reading(file.path()).value();
      ReadPipeline pipeline(comm, *reads, {});
      std::vector<std::byte> memory(1000, kUntouched);
      const layout::FileView view;
      ReadRequest request{&view,         {comm.rank() * 1000, comm.rank() * 1000 + 1000},
                          memory.data(), layout::LoopTree::bytes(1),
                          1000,          ErrorClass::none};
      if (comm.rank() == 1) request.argument_error = ErrorClass::argument;
      const ReadOutcome out =
          pipeline.read_all(request, {plan::find_algorithm(algorithm), {}, nullptr, nullptr});
      EXPECT_EQ(out.agreed, ErrorClass::argument);
      EXPECT_EQ(out.prefix_bytes, comm.rank() == 1 ? 0 : 1000);
      EXPECT_EQ(memory[7], comm.rank() == 1 ? kUntouched : value_at(comm.rank() * 1000 + 7));
    });
}

// In its first call, with bytes that are packed to be sent.
TEST(ReadTogether, ARankWithBadArgumentsStillReadsForTheOthers) {
  constexpr int kRanks = 4;
  for (int bad = 0; bad < kRanks; ++bad) {
    Random random(7);
    const auto cases = draw_team(random, kRanks, true);
    const io::TemporaryFile file;
    fill_file(file.path(), 200000);
    comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
      auto reads = io::open_for_reading(file.path()).value();
      ReadPipeline pipeline(comm, *reads, {});
      const RankCase& c = cases[size_t(comm.rank())];
      std::vector<std::byte> memory(size_t(c.range.size()), kUntouched);
      const bool is_bad = comm.rank() == bad;
      const ReadOutcome out =
          pipeline.read_all({&c.view, c.range, memory.data(), layout::LoopTree::bytes(1),
                             c.range.size(), is_bad ? ErrorClass::argument : ErrorClass::none},
                            {plan::find_algorithm("two_phase"), {2, 4096}, nullptr, nullptr});
      EXPECT_EQ(out.agreed, ErrorClass::argument);
      size_t at = 0;
      for (const Segment& s : c.segments)
        for (int64_t i = 0; i < s.bytes; ++i, ++at)
          ASSERT_EQ(memory[at], is_bad ? kUntouched : value_at(s.offset + i)) << "byte " << at;
    });
  }
}

TEST(ReadTogether, ASizeThatCannotBeHadIsToldToAll) {
  const io::TemporaryFile file;
  fill_file(file.path(), 3000);
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    io::ReadFaultPlan fault;
    if (comm.rank() == 0) fault.size_errno = EIO;
    io::FaultyReads reads(io::open_for_reading(file.path()).value(), fault);
    ReadPipeline pipeline(comm, reads, {});
    std::vector<std::byte> memory(1000, kUntouched);
    const layout::FileView view;
    const ReadOutcome out = pipeline.read_all(
        {&view, {0, 1000}, memory.data(), layout::LoopTree::bytes(1), 1000, ErrorClass::none},
        {plan::find_algorithm("two_phase"), {}, nullptr, nullptr});
    EXPECT_EQ(out.agreed, ErrorClass::io);
    EXPECT_EQ(out.prefix_bytes, 0);
    EXPECT_EQ(memory, std::vector<std::byte>(1000, kUntouched));
  });
}

}  // namespace
}  // namespace penstock::exec::read_test
