// One page after the other, from the first file byte of the call to the last.
#include "plan/one_writer.hpp"

#include <algorithm>
#include <string>

#include "plan/writers.hpp"

namespace penstock::plan {
namespace {

class OneWriterPlan final : public Plan {
 public:
  OneWriterPlan(int rank, Extent bounds, const layout::Geometry& geometry, int64_t cycle_bytes)
      : rank_(rank),
        bounds_(bounds),
        base_(align_down(bounds.begin, geometry.unit())),
        page_bytes_(page_of(cycle_bytes, geometry, bounds.end - base_)),
        cycles_(bounds.empty() ? 0 : cycle_at(bounds.end - 1) + 1) {}

  int writers() const noexcept override { return 1; }
  int writer_rank(int) const noexcept override { return rank_; }
  std::optional<int> writer_of(int rank) const noexcept override {
    return rank == rank_ ? std::optional(0) : std::nullopt;
  }

  int cycles(int) const noexcept override { return cycles_; }
  int cycles() const noexcept override { return cycles_; }
  Extent extent(int, int cycle) const override {
    const Off begin = capped_sum(base_, cycle * page_bytes_);
    return Extent::of(begin, page_bytes_).intersect(bounds_);
  }
  int64_t page_bytes() const noexcept override { return std::min(page_bytes_, bounds_.size()); }
  bool owns_blocks() const noexcept override { return true; }
  bool exchanges() const noexcept override { return true; }

  IntRange cycles_of(const Summary& s, int) const override {
    return s.empty() ? IntRange{} : IntRange{cycle_at(s.lo), cycle_at(s.hi - 1) + 1};
  }
  IntRange writers_of(const Summary& s, int, int) const override { return reached(s, 0); }
  IntRange reached(const Summary& s, int) const override {
    return s.empty() ? IntRange{} : IntRange{0, 1};
  }
  StreamRange part(const layout::FileView& view, StreamRange own, int, int,
                   int cycle) const override {
    return view.clip(own, extent(0, cycle));
  }

 private:
  int cycle_at(Off offset) const noexcept { return int((offset - base_) / page_bytes_); }

  int rank_;
  Extent bounds_;
  Off base_;
  int64_t page_bytes_;
  int cycles_;
};

}  // namespace

Result<std::unique_ptr<const Plan>> place_one_writer(const char* algorithm, const Parameters& p,
                                                     const Team& team, const Crowd& crowd,
                                                     const layout::Geometry& geometry) {
  if (p.writers > 1)
    return fail(
        ErrorClass::argument, algorithm,
        "writers must be left out, since one rank writes, got " + std::to_string(p.writers));
  if (p.writer < 0)
    return fail(ErrorClass::argument, algorithm,
                "writer must be a rank, got " + std::to_string(p.writer));
  // A file may be opened by fewer ranks than the job has: then the last of them writes.
  return std::make_unique<const OneWriterPlan>(std::min(p.writer, team.ranks - 1), crowd.bounds(),
                                               geometry, p.cycle_bytes);
}

}  // namespace penstock::plan
