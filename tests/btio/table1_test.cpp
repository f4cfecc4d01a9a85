// liao-2007's table 1: how many writes rank 0 issues in BT-IO, classes B and C, 16 to 64 ranks.
// They are made, not computed: real calls of an open file, which counts them, with the grid that
// the program of bench/btio has. Nothing is written: the mechanism is null.
//
// PENSTOCK_TEST_OUTPUTS says how many arrays the collective writes append; else it is a tenth of
// the paper's 40, whose gigabytes take seconds for each number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "btio/grid.h"
#include "comm/thread_comm.hpp"
#include "engine/file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine {
namespace {

constexpr int64_t kWord = sizeof(double);

struct Case {
  const char* name;
  int ranks;
  int64_t independent;  // the paper's count
};

constexpr Case kTable[] = {
    {"B", 16, 104040},
    {"B", 25, 83240},
    {"B", 36, 69360},
    {"B", 49, 59400},
    {"B", 64, 52000},
    // The paper prints 209910 at 25 ranks; 40 outputs of the 5249 rows that its grid has are
    // 209960.
    {"C", 16, 262440},
    {"C", 25, 209960},
    {"C", 36, 174960},
    {"C", 49, 150000},
    {"C", 64, 131240},
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name << " on " << c.ranks; }

std::string title(const testing::TestParamInfo<Case>& info) {
  return std::string(info.param.name) + "_" + std::to_string(info.param.ranks);
}

class Table1 : public testing::TestWithParam<Case> {
 protected:
  BtioGrid grid(int rank) const { return btio_grid(kind_.edge, btio_root(GetParam().ranks), rank); }
  int64_t array_bytes() const { return btio_array_words(kind_.edge) * kWord; }

  OpenInfo info(const std::string& method) const {
    OpenInfo info;
    info.path = path_.path();
    info.writable = true;
    info.may_defer = true;
    info.config.method = *parse_method(method);
    return info;
  }

  const BtioClass kind_ = *btio_class(GetParam().name);
  const io::TemporaryFile path_;
};

// ---- independent ----

Write row_write(const std::vector<double>& memory, int64_t place_words, int64_t points) {
  Write w;
  w.kind = CallKind::write_at;
  w.position_bytes = place_words * kWord;
  w.memory = memory.data();
  w.memory_type = layout::LoopTree::bytes(BTIO_WORDS * kWord);
  w.memory_count = points;
  return w;
}

int64_t write_rows(File& file, const BtioGrid& grid, int64_t output,
                   const std::vector<double>& memory) {
  const int64_t array = output * btio_array_words(grid.edge);
  int64_t bytes = 0;
  for (int c = 0; c < grid.cells; ++c) {
    const BtioCell& cell = grid.cell[c];
    for (int z = 0; z < cell.count[0]; ++z)
      for (int y = 0; y < cell.count[1]; ++y) {
        const int64_t place = array + btio_row_place(&grid, &cell, z, y);
        const WriteResult result = file.write(row_write(memory, place, cell.count[2]));
        if (result.agreed != ErrorClass::none) return -1;
        bytes += result.bytes;
      }
  }
  return bytes;
}

TEST_P(Table1, RankZeroIssuesThePapersIndependentWrites) {
  OpenInfo opened = info("two_phase + shm + null");
  opened.config.write_behind_limit_bytes = 1 << 20;  // per rank: pages leave all the time
  comm::run_thread_team(GetParam().ranks, [&](comm::Comm& comm) {
    const auto file = File::open(comm::borrow(comm), opened);
    const BtioGrid mine = grid(comm.rank());
    const int64_t expected = comm.rank() == 0 ? GetParam().independent : 0;
    const std::vector<double> memory(size_t(kind_.edge * BTIO_WORDS));
    int64_t bytes = 0;
    for (int o = 0; comm.rank() == 0 && o < kind_.outputs; ++o)
      bytes += write_rows(*file, mine, o, memory);
    const Counters counted = file->snapshot().sum;
    EXPECT_EQ(counted.calls[size_t(CallKind::write_at)], expected);
    EXPECT_EQ(counted.contiguous_calls, expected);
    EXPECT_EQ(counted.staged_bytes, bytes) << "they go behind, as in the paper";
    FileReport report;
    EXPECT_EQ(file->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(bytes, kind_.outputs * btio_rank_words(&mine) * kWord);
    EXPECT_EQ(report.sum.engine_bytes, bytes);
    EXPECT_EQ(report.sum.calls[size_t(CallKind::write_at)], expected);
  });
}

// ---- collective ----

int64_t outputs_asked(const BtioClass& kind) {
  const char* const asked = std::getenv("PENSTOCK_TEST_OUTPUTS");
  return asked != nullptr ? std::atoll(asked) : kind.outputs / 10;
}

layout::LoopTree::Field cell_in_file(const BtioGrid& grid, const BtioCell& cell) {
  const int64_t point = BTIO_WORDS * kWord, line = grid.edge * point;
  const auto rows = *layout::LoopTree::strided(cell.count[1], 1, line,
                                               layout::LoopTree::bytes(cell.count[2] * point));
  return {btio_row_place(&grid, &cell, 0, 0) * kWord, 1,
          *layout::LoopTree::strided(cell.count[0], 1, grid.edge * line, rows)};
}

layout::FileView view_of(const BtioGrid& grid) {
  std::vector<layout::LoopTree::Field> cells;
  for (int c = 0; c < grid.cells; ++c) cells.push_back(cell_in_file(grid, grid.cell[c]));
  const auto array = *layout::LoopTree::resized(*layout::LoopTree::structure(cells), 0,
                                                btio_array_words(grid.edge) * kWord);
  return *layout::FileView::make(0, kWord, array);
}

// Each rank writes its file domain by one call, as ROMIO's two-phase does: 40 of them for 40
// arrays.
TEST_P(Table1, EveryRankWritesOncePerCollectiveOutput) {
  const int64_t outputs = outputs_asked(kind_), ranks = GetParam().ranks;
  const int64_t cycle_mib = array_bytes() / ranks / (1 << 20) + 3;
  const OpenInfo opened = info("two_phase(writers=" + std::to_string(ranks) +
                               ", cycle=" + std::to_string(cycle_mib) + "MiB) + shm + null");
  comm::run_thread_team(GetParam().ranks, [&](comm::Comm& comm) {
    const auto file = File::open(comm::borrow(comm), opened);
    const BtioGrid mine = grid(comm.rank());
    file->set_view(view_of(mine), "");
    const std::vector<double> memory(size_t(btio_rank_words(&mine)));
    Write w;
    w.kind = CallKind::write_at_all;
    w.memory = memory.data();
    w.memory_type = layout::LoopTree::bytes(kWord);
    w.memory_count = int64_t(memory.size());
    for (int64_t o = 0; o < outputs; ++o) {
      w.position_bytes = o * w.memory_count * kWord;
      EXPECT_EQ(file->write_all(w).agreed, ErrorClass::none);
    }
    const Counters counted = file->snapshot().sum;
    EXPECT_EQ(counted.calls[size_t(CallKind::write_at_all)], outputs);
    EXPECT_EQ(counted.file_writes, outputs);
    FileReport report;
    EXPECT_EQ(file->close(report), ErrorClass::none);
    if (comm.rank() == 0) {
      EXPECT_EQ(report.sum.engine_bytes, outputs * array_bytes());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Of, Table1, testing::ValuesIn(kTable), title);

// ---- the grid itself ----

// Every point of the grid belongs to one cell of one rank.
TEST(Grid, IsCutWithoutGapsAndOverlaps) {
  for (const auto& [edge, cells] : {std::pair{12, 1}, {12, 3}, {24, 4}, {64, 3}, {102, 4}}) {
    std::vector<int> owners(size_t(edge) * edge * edge);
    for (int rank = 0; rank < cells * cells; ++rank) {
      const BtioGrid grid = btio_grid(edge, cells, rank);
      for (int c = 0; c < cells; ++c)
        for (int z = 0; z < grid.cell[c].count[0]; ++z)
          for (int y = 0; y < grid.cell[c].count[1]; ++y) {
            const int64_t at = btio_row_place(&grid, &grid.cell[c], z, y) / BTIO_WORDS;
            for (int x = 0; x < grid.cell[c].count[2]; ++x) ++owners[size_t(at + x)];
          }
    }
    EXPECT_EQ(std::ranges::count(owners, 1), int64_t(owners.size())) << edge << " by " << cells;
  }
}

TEST(Grid, HasOneCellOfARankInEveryLayerOfEveryDirection) {
  for (int rank = 0; rank < 25; ++rank) {
    const BtioGrid grid = btio_grid(102, 5, rank);
    for (int d = 0; d < 3; ++d) {
      std::vector<int> starts, expected;
      for (int c = 0; c < 5; ++c) {
        starts.push_back(grid.cell[c].start[d]);
        expected.push_back(btio_cell_start(102, 5, c));
      }
      std::ranges::sort(starts);
      EXPECT_EQ(starts, expected) << "rank " << rank << ", direction " << d;
    }
  }
}

TEST(Grid, NeedsASquareNumberOfRanks) {
  EXPECT_EQ(btio_root(1), 1);
  EXPECT_EQ(btio_root(49), 7);
  EXPECT_EQ(btio_root(0), 0);
  EXPECT_EQ(btio_root(8), 0);
  EXPECT_EQ(btio_class("D"), nullptr);
}

}  // namespace
}  // namespace penstock::engine
