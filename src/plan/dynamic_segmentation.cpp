// dynamic_segmentation: ranks are divided into groups, and in each cycle a group's writer collects
// the bytes of its group that are next in the file, about as many in every cycle (chaarawi-2009,
// 2.1). With one writer the file is written in order; with several, groups may interleave.
//
// A cycle ends at a cut, a file offset. Cut k is the last unit boundary below which the group has
// at most k cycles' bytes, so every cut follows from the members' views alone and the number of
// cycles from the sum of their bytes. A view's bytes below an offset are arithmetic, so the writer
// finds a cut by bisection, without a walk over blocks.
#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "plan/groups.hpp"

namespace penstock::plan {
namespace {

// The bytes of a group below a file offset. Offsets that are asked for after advance() do not lie
// below it again, so that members that have ended are looked at no more.
class Below {
 public:
  explicit Below(std::span<const Part> members) {
    for (const Part& m : members) members_.push_back({&m, m.view.extent_of(m.own)});
    std::ranges::sort(members_, {}, [](const Member& m) { return m.extent.begin; });
  }

  int64_t count(Off offset) const {
    int64_t sum = ended_;
    for (size_t i = first_; i < members_.size() && members_[i].extent.begin < offset; ++i)
      sum += below(members_[i], offset);
    return sum;
  }
  void advance(Off offset) {
    for (; first_ < members_.size() && members_[first_].extent.end <= offset; ++first_)
      ended_ += members_[first_].part->own.size();
  }

 private:
  struct Member {
    const Part* part;
    Extent extent;
  };
  static int64_t below(const Member& m, Off offset) {
    const StreamRange own = m.part->own;
    if (offset >= m.extent.end) return own.size();
    return std::clamp(m.part->view.position_at(offset), own.begin, own.end) - own.begin;
  }

  std::vector<Member> members_;  // by where they begin
  size_t first_ = 0;             // those before it have ended
  int64_t ended_ = 0;            // their bytes
};

// The largest offset below which there are at most `bytes`, about `step` behind `from`. REQUIRES
// that there are no more below `from`, and more below `end`.
Off last_holding(const Below& below, int64_t bytes, Off from, Off end, int64_t step) {
  Off low = from, high = end;
  // Invariant: at most `bytes` lie below `low`, and more below `high`.
  for (; step < high - low; step = capped_sum(step, step)) {
    const Off probe = low + step;
    if (below.count(probe) > bytes) {
      high = probe;
      break;
    }
    low = probe;
  }
  while (high - low > 1) {
    const Off middle = low + (high - low) / 2;
    (below.count(middle) > bytes ? high : low) = middle;
  }
  return low;
}

class DynamicSegmentationPlan final : public GroupPlan {
 public:
  DynamicSegmentationPlan(const Groups& groups, Crowd crowd, int64_t cycle_bytes, int64_t unit)
      : GroupPlan(groups, std::move(crowd)), cycle_bytes_(cycle_bytes), unit_(unit) {
    for (int g = 0; g < groups_.count(); ++g) cycles_ = std::max(cycles_, cycles(g));
  }

  int cycles(int writer) const noexcept override {
    return int(divide_up(total(writer).bytes, cycle_bytes_));
  }
  int cycles() const noexcept override { return cycles_; }
  Extent extent(int writer, int cycle) const override {
    const Known* known = find(writer);
    return known != nullptr ? known->extent(cycle) : total(writer).hull;
  }
  // A cut on a unit boundary leaves less than a unit of the file to the next cycle.
  int64_t page_bytes() const noexcept override { return cycle_bytes_ + unit_; }
  bool owns_blocks() const noexcept override { return writers() == 1; }

  IntRange cycles_of(const Summary& s, int rank) const override {
    if (s.empty()) return {};
    const int writer = groups_.of(rank);
    const Known* known = find(writer);
    if (known == nullptr) return {0, cycles(writer)};
    return {known->cycle_at(s.lo), known->cycle_at(s.hi - 1) + 1};
  }
  StreamRange part(const layout::FileView& view, StreamRange own, int rank, int writer,
                   int cycle) const override {
    if (own.empty() || groups_.of(rank) != writer) return {own.begin, own.begin};
    if (const Known* known = find(writer)) return view.clip(own, known->extent(cycle));
    assert(cuts(writer) == 0);
    return cycle == 0 ? own : StreamRange{own.begin, own.begin};
  }

  int cuts(int writer) const noexcept override { return std::max(0, cycles(writer) - 1); }
  std::vector<Off> find_cuts(int writer, std::span<const Part> senders) const override {
    const Extent hull = total(writer).hull;
    const int count = cuts(writer);
    std::vector<Off> found;
    found.reserve(size_t(count));
    Below below(senders);
    Off last = hull.begin;
    for (int k = 1; k <= count; ++k) {
      last = last_holding(below, k * cycle_bytes_, last, hull.end, cycle_bytes_);
      below.advance(last);
      found.push_back(align_down(last, unit_));
    }
    return found;
  }
  std::unique_ptr<const Plan> with_cuts(int writer, std::vector<Off> cuts) const override {
    auto plan = std::make_unique<DynamicSegmentationPlan>(*this);
    plan->known_.push_back(
        {writer, total(writer).hull, std::make_shared<const std::vector<Off>>(std::move(cuts))});
    return plan;
  }

 private:
  // The cuts of a writer.
  struct Known {
    int writer;
    Extent hull;
    std::shared_ptr<const std::vector<Off>> cuts;

    Extent extent(int cycle) const noexcept {
      const auto k = size_t(cycle);
      const Off begin = k == 0 ? hull.begin : (*cuts)[k - 1];
      const Off end = k == cuts->size() ? hull.end : (*cuts)[k];
      return Extent{begin, end}.intersect(hull);
    }
    int cycle_at(Off offset) const noexcept {
      return int(std::ranges::upper_bound(*cuts, offset) - cuts->begin());
    }
  };

  const Known* find(int writer) const noexcept {
    for (const Known& k : known_)
      if (k.writer == writer) return &k;
    return nullptr;
  }

  int64_t cycle_bytes_;
  int64_t unit_;
  int cycles_ = 0;
  std::vector<Known> known_;  // a rank of a job knows its own writer's
};

// So many cuts are kept and told for a call, half a MiB; where there would be more, cycles grow.
constexpr int64_t kMostCuts = int64_t{1} << 16;

int64_t cycle_of(const Parameters& p, const Groups& groups, const Crowd& crowd) {
  int64_t most = 0;
  for (int g = 0; g < groups.count(); ++g)
    most = std::max(most, total_of(crowd, groups.members(g)).bytes);
  return std::max(group_cycle_of(p.cycle_bytes, groups.most_members()), divide_up(most, kMostCuts));
}

Result<std::unique_ptr<const Plan>> place_dynamic_segmentation(const Parameters& p,
                                                               const Team& team, const Crowd& crowd,
                                                               const layout::Geometry& geometry) {
  const Result<Groups> groups = groups_of("dynamic_segmentation", p, team);
  if (!groups) return tl::unexpected(groups.error());
  const int64_t block = geometry.block();
  return std::make_unique<const DynamicSegmentationPlan>(*groups, crowd,
                                                         cycle_of(p, *groups, crowd), block);
}

}  // namespace

const Algorithm& dynamic_segmentation_algorithm() {
  static constexpr OptionInfo kOptions[] = {
      {"writers", "groups of ranks, at most all; by default one per core, up to 4 per node"},
      {"cycle",
       "bytes that a group's writer collects and writes at a time; by default 16MiB, or "
       "1MiB for each rank of a larger group"}};
  static const Algorithm a{.name = "dynamic_segmentation",
                           .summary = "a group's writer collects what is next in the file",
                           .source = "chaarawi-2009",
                           .needs = Needs::cuts,
                           .owns_blocks = false,
                           .exchanges = true,
                           .scatters = true,
                           .options = kOptions,
                           .place = &place_dynamic_segmentation};
  return a;
}

}  // namespace penstock::plan
