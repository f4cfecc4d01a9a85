// When a write fails somewhere, every rank is told the same, and its count is the
// longest prefix of its own bytes that really is in the file. Nobody hangs (ctest's time limit).
#include <gtest/gtest.h>

#include <cerrno>

#include "comm/thread_comm.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "io/faulty.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::truth_test {
namespace {

struct Told {
  ErrorClass agreed = ErrorClass::none;
  int64_t prefix_bytes = 0;
  bool had_error_itself = false;
};

void expect_others_intact(const std::vector<RankCase>& cases, const std::vector<std::byte>& file) {
  const std::vector<std::byte> whole = expectation(cases);
  ASSERT_LE(file.size(), whole.size());
  for (size_t i = 0; i < file.size(); ++i) {
    const bool intact = file[i] == whole[i] || file[i] == kBackground ||
                        (i >= kBackgroundBytes && file[i] == std::byte{0});
    ASSERT_TRUE(intact) << "byte " << i;
  }
}

struct Way {
  const plan::Algorithm* algorithm;
  const Exchange* exchange;
  int nodes = 1;
};

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const plan::Algorithm* a : plan::algorithms())
    for (const Exchange* e : exchanges())
      for (int nodes = 1; nodes <= (e->outbox_bytes > 0 ? 2 : 1); ++nodes)
        if (a->exchanges || e == exchanges().front()) all.push_back({a, e, nodes});
  return all;
}

std::vector<Told> run(const Way& way, const plan::Parameters& parameters,
                      const std::vector<RankCase>& cases, const std::string& path,
                      const std::vector<io::FaultPlan>& faults, int bad_arguments = -1) {
  std::vector<Told> told(cases.size());
  const auto body = [&](comm::Comm& comm) {
    const auto rank = size_t(comm.rank());
    const RankCase& c = cases[rank];
    auto inner = io::find_mechanism("pwrite")->open({path, 4096});
    ASSERT_TRUE(inner);
    io::FaultyFile file(*std::move(inner), faults[rank]);
    Pipeline pipeline(comm, file, {});
    const WriteRequest request{
        &c.view,         c.range,
        c.memory.data(), c.memory_type,
        c.memory_count,  comm.rank() == bad_arguments ? ErrorClass::argument : ErrorClass::none};
    const WriteOutcome out =
        pipeline.write_all(request, {way.algorithm, parameters, nullptr, way.exchange});
    told[rank] = {out.agreed, out.prefix_bytes, out.mine.has_value()};
    (void)file.close();
  };
  const int ranks = int(cases.size());
  comm::run_thread_team(ranks, body, {.nodes = std::min(way.nodes, ranks), .used_segments = true});
  return told;
}

void check(const std::vector<RankCase>& cases, const std::vector<Told>& told,
           const std::vector<std::byte>& file) {
  bool somebody_failed = false;
  for (const Told& t : told) {
    EXPECT_EQ(t.agreed, told[0].agreed);
    somebody_failed = somebody_failed || t.had_error_itself;
  }
  EXPECT_EQ(told[0].agreed != ErrorClass::none, somebody_failed);
  for (size_t r = 0; r < cases.size(); ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    EXPECT_EQ(told[r].prefix_bytes, prefix_in_file(cases[r], file));
    if (!somebody_failed) {
      EXPECT_EQ(told[r].prefix_bytes, cases[r].range.size());
    }
  }
  expect_others_intact(cases, file);
}

// Ranks that take turns do not overlap, so that a byte in the file is its own rank's doing.
void run_case(const Way& way, int ranks, uint64_t seed) {
  Random random(seed);
  const auto cases = draw_team(random, ranks, true);
  const io::TemporaryFile file;
  fill_with_background(file.path());
  std::vector<io::FaultPlan> faults(static_cast<size_t>(ranks));
  const int errnos[] = {ENOSPC, EIO, EDQUOT, EFBIG};
  for (io::FaultPlan& f : faults) {
    if (draw(random, 0, 2) == 0) continue;
    f.write_errno = errnos[draw(random, 0, 3)];
    if (draw(random, 0, 1) == 0) {
      f.nth_write = int(draw(random, 1, 6));
      f.bytes_before_fault = draw(random, 0, 3000);
    } else {
      f.at_offset = draw(random, 0, 60000);
    }
  }
  const plan::Parameters parameters =
      plan::taken_by(*way.algorithm, {int(draw(random, 0, 3)), draw(random, 0, 1) == 0 ? 4096 : 0,
                                      8192, 0, int(draw(random, 0, 3))});
  const auto told = run(way, parameters, cases, file.path(), faults);
  check(cases, told, file.contents());
}

class Truth : public testing::TestWithParam<Way> {};

TEST_P(Truth, EveryRankIsToldTheSameClassAndItsOwnTrueCount) {
  for (const int ranks : {1, 2, 3, 4, 8})
    for (uint64_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", seed " + std::to_string(seed));
      run_case(GetParam(), ranks, seed * 77 + uint64_t(ranks));
      if (HasFailure()) return;
    }
}

// In its first call, with bytes that no writer can receive in place.
TEST_P(Truth, ARankWithBadArgumentsStillWritesWhatOthersBring) {
  constexpr int kRanks = 4;
  const plan::Parameters parameters = plan::taken_by(*GetParam().algorithm, {2, 4096, 4096, 0});
  for (int bad = 0; bad < kRanks; ++bad) {
    SCOPED_TRACE("rank " + std::to_string(bad));
    Random random(7);
    const auto cases = draw_team(random, kRanks, true);
    const io::TemporaryFile file;
    fill_with_background(file.path());
    const std::vector<io::FaultPlan> faults(static_cast<size_t>(kRanks));
    const auto told = run(GetParam(), parameters, cases, file.path(), faults, bad);
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(told[size_t(rank)].agreed, ErrorClass::argument);
      EXPECT_EQ(told[size_t(rank)].prefix_bytes,
                rank == bad ? 0 : cases[size_t(rank)].range.size());
      if (rank != bad) {
        EXPECT_EQ(prefix_in_file(cases[size_t(rank)], file.contents()),
                  cases[size_t(rank)].range.size());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Truth, testing::ValuesIn(ways()), [](const auto& way) {
  return std::string(way.param.algorithm->name) + "_" + std::string(way.param.exchange->name) +
         (way.param.nodes > 1 ? "_n2" : "");
});

TEST(Truth, ARankWithBadArgumentsStillTakesPartAndAllAreTold) {
  const io::TemporaryFile file;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto opened = io::find_mechanism("pwrite")->open({file.path(), 4096});
    ASSERT_TRUE(opened);
    Pipeline pipeline(comm, **opened, {});
    const std::vector<std::byte> data(1000, std::byte(comm.rank() + 1));
    const layout::FileView view;
    WriteRequest request{&view,       {comm.rank() * 1000, comm.rank() * 1000 + 1000},
                         data.data(), layout::LoopTree::bytes(1),
                         1000,        ErrorClass::none};
    if (comm.rank() == 1) request.argument_error = ErrorClass::argument;
    const WriteOutcome out =
        pipeline.write_all(request, {plan::find_algorithm("two_phase"), {}, nullptr});
    EXPECT_EQ(out.agreed, ErrorClass::argument);
    EXPECT_EQ(out.prefix_bytes, comm.rank() == 1 ? 0 : 1000);
    EXPECT_TRUE((*opened)->close());
  });
  const auto contents = file.contents();
  ASSERT_EQ(contents.size(), 3000u);
  EXPECT_EQ(contents[500], std::byte{1});
  EXPECT_EQ(contents[2500], std::byte{3});
}

}  // namespace
}  // namespace penstock::exec::truth_test
