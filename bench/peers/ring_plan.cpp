// A page that is filled without a hole is one piece. The few others (where an iteration's bytes are
// not one range, as when everybody appends to a block of his own) are cut at their holes.
#include "ring_plan.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace penstock::peers {
namespace {

// As int64_t, so that one reduction does for all: sums first, then maxima.
struct Sums {
  int64_t bytes = 0, ranks = 0;
};
struct Maxima {
  int64_t minus_begin = std::numeric_limits<int64_t>::min();
  int64_t end = std::numeric_limits<int64_t>::min();
  int64_t rank = -1;
};

struct Owned {
  Extent extent;
  int64_t rank = 0;
};

StreamRange part_of(const layout::FileView& view, StreamRange mine, Extent extent) {
  return mine.empty() ? StreamRange{mine.begin, mine.begin} : view.clip(mine, extent);
}

// The ranges of the file that a stream range names, joined where they touch within a page.
void add_extents(const layout::FileView& view, StreamRange range, int64_t rank, int64_t page_bytes,
                 std::vector<Owned>& out) {
  auto cursor = view.cursor();
  cursor.seek(range.begin);
  while (cursor.position() < range.end) {
    const layout::Run run = cursor.next(range.end - cursor.position());
    for (int64_t i = 0; i < run.count; ++i) {
      const Off begin = run.offset + i * run.stride;
      if (!out.empty() && out.back().extent.end == begin && begin % page_bytes != 0)
        out.back().extent.end = begin + run.block;
      else
        out.push_back({{begin, begin + run.block}, rank});
    }
  }
}

std::vector<Owned> all_of(MPI_Comm comm, int ranks, const std::vector<Owned>& mine) {
  std::vector<int> counts(size_t(ranks), 0), places(size_t(ranks), 0);
  const int bytes = int(mine.size() * sizeof(Owned));
  MPI_Allgather(&bytes, 1, MPI_INT, counts.data(), 1, MPI_INT, comm);
  for (int r = 1; r < ranks; ++r) places[size_t(r)] = places[size_t(r - 1)] + counts[size_t(r - 1)];
  std::vector<Owned> all(size_t(places.back() + counts.back()) / sizeof(Owned));
  MPI_Allgatherv(mine.data(), bytes, MPI_BYTE, all.data(), counts.data(), places.data(), MPI_BYTE,
                 comm);
  std::sort(all.begin(), all.end(),
            [](const Owned& a, const Owned& b) { return a.extent.begin < b.extent.begin; });
  return all;
}

// Extents of one page, ascending, to pieces.
void join(std::span<const Owned> extents, int64_t page_bytes, std::vector<Piece>& out) {
  for (size_t i = 0; i < extents.size();) {
    Extent extent = extents[i].extent;
    std::vector<int64_t> ranks = {extents[i].rank};
    const Off page_end = align_down(extent.begin, page_bytes) + page_bytes;
    for (++i; i < extents.size() && extents[i].extent.begin == extent.end && extent.end < page_end;
         ++i) {
      extent.end = extents[i].extent.end;
      if (std::find(ranks.begin(), ranks.end(), extents[i].rank) == ranks.end())
        ranks.push_back(extents[i].rank);
    }
    out.push_back({extent, uint32_t(ranks.size()), {int(ranks.front()), 0, 0}});
  }
}

}  // namespace

struct Planner::Share {
  Extent extent;
  int64_t bytes = 0, ranks = 0, rank = -1;
  bool whole() const { return bytes == extent.size(); }
};

Planner::Planner(MPI_Comm comm, const PlanShape& shape, const layout::FileView& view)
    : comm_(comm), shape_(shape), view_(view) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
}

std::vector<Planner::Share> Planner::shares(StreamRange mine) const {
  const auto pages = size_t(divide_up(shape_.file_bytes, shape_.page_bytes));
  std::vector<Sums> sums(pages);
  std::vector<Maxima> maxima(pages);
  for (size_t p = 0; p < pages; ++p) {
    const Extent page{Off(p) * shape_.page_bytes, Off(p + 1) * shape_.page_bytes};
    const StreamRange part = part_of(view_, mine, page);
    if (part.empty()) continue;
    const Extent extent = view_.extent_of(part);
    sums[p] = {part.size(), 1};
    maxima[p] = {-extent.begin, extent.end, rank_};
  }
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), int(2 * pages), MPI_INT64_T, MPI_SUM, comm_);
  MPI_Allreduce(MPI_IN_PLACE, maxima.data(), int(3 * pages), MPI_INT64_T, MPI_MAX, comm_);
  std::vector<Share> out;
  for (size_t p = 0; p < pages; ++p)
    if (sums[p].bytes > 0)
      out.push_back(
          {{-maxima[p].minus_begin, maxima[p].end}, sums[p].bytes, sums[p].ranks, maxima[p].rank});
  return out;
}

std::vector<Piece> Planner::cut(const std::vector<Share>& pages, StreamRange mine) const {
  std::vector<Piece> pieces;
  std::vector<Owned> extents;
  for (const Share& page : pages) {
    if (page.whole())
      pieces.push_back({page.extent, uint32_t(page.ranks), {int(page.rank), 0, 0}});
    else if (const StreamRange part = part_of(view_, mine, page.extent); !part.empty())
      add_extents(view_, part, rank_, shape_.page_bytes, extents);
  }
  join(all_of(comm_, ranks_, extents), shape_.page_bytes, pieces);
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.extent.begin < b.extent.begin; });
  return pieces;
}

// Pieces of several ranks go round the writers; each writer's go round its pages.
void Planner::assign(std::vector<Piece>& pieces) {
  for (Piece& piece : pieces) {
    if (piece.arrivals < 2) continue;
    const int64_t turn = dealt_ / shape_.writers;
    piece.slot = {int(dealt_ % shape_.writers), int(turn % shape_.slots),
                  uint32_t(turn / shape_.slots)};
    ++dealt_;
  }
}

void Planner::flatten(IterationPlan& plan, StreamRange mine) const {
  auto cursor = view_.cursor();
  cursor.seek(mine.begin);
  for (size_t p = 0; p < plan.pieces.size(); ++p) {
    const StreamRange part = part_of(view_, mine, plan.pieces[p].extent);
    if (part.empty()) continue;
    Work work{int(p), plan.runs.size(), 0, part.begin - mine.begin, part.size()};
    while (cursor.position() < part.end)
      plan.runs.push_back(cursor.next(part.end - cursor.position()));
    work.end = plan.runs.size();
    plan.works.push_back(work);
  }
}

IterationPlan Planner::next() {
  const StreamRange mine{iteration_ * shape_.bytes_per_iteration,
                         (iteration_ + 1) * shape_.bytes_per_iteration};
  ++iteration_;
  IterationPlan plan;
  plan.pieces = cut(shares(mine), mine);
  assign(plan.pieces);
  for (size_t p = 0; p < plan.pieces.size(); ++p)
    if (plan.pieces[p].arrivals > 1 && plan.pieces[p].slot.owner == rank_)
      plan.owned.push_back(int(p));
  flatten(plan, mine);
  return plan;
}

}  // namespace penstock::peers
