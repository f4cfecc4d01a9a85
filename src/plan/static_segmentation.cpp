// static_segmentation: in each cycle every rank of a group sends its writer a segment, the same
// number of bytes of its own stream (chaarawi-2009, 2.2; the paper has one writer, several were its
// future work). Nobody needs to know where the others' bytes lie and all links are used in every
// cycle, but a writer jumps in the file: right where that costs nothing.
#include <algorithm>
#include <string>
#include <utility>

#include "plan/groups.hpp"

namespace penstock::plan {
namespace {

class StaticSegmentationPlan final : public GroupPlan {
 public:
  StaticSegmentationPlan(const Groups& groups, Crowd crowd, int64_t segment_bytes)
      : GroupPlan(groups, std::move(crowd)), segment_bytes_(segment_bytes) {
    for (const RankClass& c : crowd_.classes())
      cycles_ = std::max(cycles_, segments_of(c.summary.bytes));
  }

  int cycles(int writer) const noexcept override { return segments_of(total(writer).most_of_rank); }
  int cycles() const noexcept override { return cycles_; }
  // Where segments end in the file depends on the views: the group's whole extent is the bound.
  Extent extent(int writer, int) const override { return total(writer).hull; }
  int64_t page_bytes() const noexcept override { return groups_.most_members() * segment_bytes_; }
  bool owns_blocks() const noexcept override { return false; }

  IntRange cycles_of(const Summary& s, int) const override { return {0, segments_of(s.bytes)}; }
  StreamRange part(const layout::FileView&, StreamRange own, int rank, int writer,
                   int cycle) const override {
    if (groups_.of(rank) != writer) return {own.begin, own.begin};
    return own.intersect(
        StreamRange::of(capped_sum(own.begin, cycle * segment_bytes_), segment_bytes_));
  }
  // Segments follow each other without a gap, wherever their bytes belong.
  int next_cycle(const layout::FileView&, StreamRange own, int, int writer,
                 int from) const override {
    return from < segments_of(own.size()) ? from : cycles(writer);
  }

 private:
  int segments_of(int64_t bytes) const noexcept { return int(divide_up(bytes, segment_bytes_)); }

  int64_t segment_bytes_;
  int cycles_ = 0;
};

// An even share of the cycle for each rank of a group, in whole blocks where there is room for
// them; and never so little that the cycles could not be counted.
int64_t segment_of(const Parameters& p, const Groups& groups, const Crowd& crowd, int64_t block) {
  int64_t most = 0;
  for (const RankClass& c : crowd.classes()) most = std::max(most, c.summary.bytes);
  const int members = groups.most_members();
  const int64_t share = std::max<int64_t>(1, group_cycle_of(p.cycle_bytes, members) / members);
  return std::max(share < block ? share : align_down(share, block), divide_up(most, kMostCycles));
}

Result<std::unique_ptr<const Plan>> place_static_segmentation(const Parameters& p, const Team& team,
                                                              const Crowd& crowd,
                                                              const layout::Geometry& geometry) {
  const Result<Groups> groups = groups_of("static_segmentation", p, team);
  if (!groups) return tl::unexpected(groups.error());
  const int64_t block = geometry.block();
  return std::make_unique<const StaticSegmentationPlan>(*groups, crowd,
                                                        segment_of(p, *groups, crowd, block));
}

}  // namespace

const Algorithm& static_segmentation_algorithm() {
  static constexpr OptionInfo kOptions[] = {
      {"writers", "groups of ranks, at most all; by default one per core, up to 4 per node"},
      {"cycle",
       "bytes that a group's writer collects and writes at a time, shared evenly by the "
       "group's ranks; by default 16MiB, or 1MiB for each rank of a larger group"}};
  static const Algorithm a{.name = "static_segmentation",
                           .summary = "every rank sends its writer as many bytes in each cycle",
                           .source = "chaarawi-2009",
                           .needs = Needs::summaries,
                           .owns_blocks = false,
                           .exchanges = true,
                           .scatters = true,
                           .options = kOptions,
                           .place = &place_static_segmentation};
  return a;
}

}  // namespace penstock::plan
