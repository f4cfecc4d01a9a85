// Calls that follow each other in one file, as programs make them: the same views, and of each rank
// as much of its own as it likes. What an earlier call has taught must not be taken for more than
// it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/thread_comm.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::repeated_test {
namespace {

// Units of a tile that ranks share without a gap, and what each brings in each call: whole tiles.
struct Calls {
  std::vector<std::vector<Segment>> blocks;  // by rank
  int64_t extent = 0;
  std::vector<std::vector<StreamRange>> ranges;  // by call and rank
};

Calls deal(Random& random) {
  Calls c;
  const int64_t ranks = draw(random, 1, 4), unit = 1024 * draw(random, 1, 4),
                units = draw(random, ranks, 8);
  c.extent = unit * units;
  c.blocks.resize(size_t(ranks));
  for (int64_t i = 0; i < units; ++i) {
    const int64_t owner = i < ranks ? i : draw(random, 0, ranks - 1);
    c.blocks[size_t(owner)].push_back({i * unit, unit});
  }
  std::vector<int64_t> next(size_t(ranks), 0);  // as with individual pointers, but for some
  for (int call = 0; call < 4; ++call) {
    const int64_t tiles = draw(random, 1, 9);
    c.ranges.emplace_back();
    for (size_t r = 0; r < size_t(ranks); ++r) {
      const int64_t size = unit * int64_t(c.blocks[r].size());
      if (draw(random, 0, 2) == 0) next[r] += draw(random, 0, 3);
      c.ranges.back().push_back({next[r] * size, (next[r] + tiles) * size});
      next[r] += tiles;
    }
  }
  return c;
}

std::byte value_at(Off offset, int call) { return std::byte(offset * 131 + offset / 1024 + call); }

// A rank's part of a call: its data, in the order of its stream.
std::vector<std::byte> data_of(const Calls& c, int call, int rank) {
  std::vector<std::byte> data;
  const StreamRange range = c.ranges[size_t(call)][size_t(rank)];
  for (const Segment& s : expand(c.blocks[size_t(rank)], 0, c.extent, range))
    for (Off at = s.offset; at < s.offset + s.bytes; ++at) data.push_back(value_at(at, call));
  return data;
}

// The file after a call.
void put_into(std::vector<std::byte>& file, const Calls& c, int call) {
  for (size_t r = 0; r < c.blocks.size(); ++r)
    for (const Segment& s : expand(c.blocks[r], 0, c.extent, c.ranges[size_t(call)][r])) {
      file.resize(std::max(file.size(), size_t(s.offset + s.bytes)));
      for (Off at = s.offset; at < s.offset + s.bytes; ++at) file[size_t(at)] = value_at(at, call);
    }
}

void write_all(const Calls& c, const Pipeline::Policy& policy, int64_t& known) {
  const io::TemporaryFile path;
  std::vector<std::byte> expected;
  std::vector<int64_t> seen(c.blocks.size());
  comm::run_thread_team(int(c.blocks.size()), [&](comm::Comm& comm) {
    const auto rank = size_t(comm.rank());
    auto file = io::find_mechanism("pwrite")->open({.path = path.path()}).value();
    Pipeline pipeline(comm, *file, {});
    const auto view = *layout::FileView::make(0, 1, tree_of(c.blocks[rank], c.extent));
    for (int call = 0; call < int(c.ranges.size()); ++call) {
      const std::vector<std::byte> data = data_of(c, call, comm.rank());
      const auto n = int64_t(data.size());
      const WriteRequest request{&view,       c.ranges[size_t(call)][rank],
                                 data.data(), layout::LoopTree::bytes(1),
                                 n,           ErrorClass::none};
      EXPECT_EQ(pipeline.write_all(request, policy).prefix_bytes, n);
      EXPECT_TRUE(comm.barrier());
      if (rank == 0) {
        put_into(expected, c, call);
        EXPECT_TRUE(path.holds(expected)) << "call " << call;
      }
      EXPECT_TRUE(comm.barrier());
    }
    seen[rank] = pipeline.spent_together().traffic.known_pages;
    EXPECT_TRUE(file->close());
  });
  for (const int64_t pages : seen) known += pages;
}

class Repeated : public testing::TestWithParam<const plan::Algorithm*> {};

TEST_P(Repeated, CallsOfOneFileLeaveEachByteThatWasWrittenLast) {
  Random random(20261130);
  int64_t known = 0;
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Calls c = deal(random);
    const int writers = int(draw(random, 0, 1));
    const Exchange* const exchange = exchanges()[size_t(i) % exchanges().size()];
    const plan::Parameters parameters{.writers = writers, .cycle_bytes = 32 << 10};
    write_all(c, {GetParam(), parameters, nullptr, exchange}, known);
  }
  const bool follows = GetParam()->exchanges && cycles_end_in_file(*GetParam());
  EXPECT_EQ(known > 0, follows) << "else the test tests nothing";
}

INSTANTIATE_TEST_SUITE_P(Every, Repeated,
                         testing::ValuesIn(plan::algorithms().begin(), plan::algorithms().end()),
                         [](const auto& a) { return std::string(a.param->name); });

}  // namespace
}  // namespace penstock::exec::repeated_test
