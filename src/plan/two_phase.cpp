// two_phase: the extent that all ranks touch is cut into one even, contiguous
// file domain per writer; bytes are exchanged, then written (Thakur, Gropp, Lusk 1999). Cuts
// fall on the geometry's unit, so each unit has one writer.
#include <algorithm>
#include <string>

#include "plan/writers.hpp"

namespace penstock::plan {
namespace {

// A domain smaller than this costs more in messages than its writer saves.
constexpr int64_t kLeastDomainBytes = int64_t{64} << 10;

class TwoPhasePlan final : public Plan {
 public:
  TwoPhasePlan(WriterRanks ranks, Extent bounds, const layout::Geometry& geometry,
               int64_t cycle_bytes)
      : ranks_(ranks),
        bounds_(bounds),
        base_(align_down(bounds.begin, geometry.unit())),
        domain_bytes_(
            std::max(geometry.unit(),
                     align_up(divide_up(bounds.end - base_, ranks.writers()), geometry.unit()))),
        cycle_bytes_(page_of(cycle_bytes, geometry, domain_bytes_)) {}

  int writers() const noexcept override { return ranks_.writers(); }
  int writer_rank(int writer) const noexcept override { return ranks_.rank_of(writer); }
  std::optional<int> writer_of(int rank) const noexcept override { return ranks_.writer_at(rank); }

  int cycles(int writer) const noexcept override {
    return int(divide_up(domain(writer).size(), cycle_bytes_));
  }
  int cycles() const noexcept override {
    return cycles(0);
  }  // only the last domains can be shorter
  Extent extent(int writer, int cycle) const override {
    const Extent d = domain(writer);
    const Off begin = capped_sum(d.begin, cycle * cycle_bytes_);
    return d.intersect(Extent::of(begin, cycle_bytes_)).intersect(bounds_);
  }
  int64_t page_bytes() const noexcept override {
    return std::min({cycle_bytes_, domain_bytes_, bounds_.size()});
  }
  bool owns_blocks() const noexcept override { return true; }
  bool exchanges() const noexcept override { return true; }

  IntRange cycles_of(const Summary& s, int) const override {
    if (s.empty()) return {};
    const int first = writer_at(s.lo), last = writer_at(s.hi - 1);
    if (first != last) return {0, cycles()};
    return {cycle_at(s.lo), cycle_at(s.hi - 1) + 1};
  }
  IntRange writers_of(const Summary& s, int, int cycle) const override {
    if (s.empty()) return {};
    IntRange w{writer_at(s.lo), writer_at(s.hi - 1) + 1};
    if (!extent(w.begin, cycle).overlaps(s.extent())) ++w.begin;
    if (w.begin < w.end && !extent(w.end - 1, cycle).overlaps(s.extent())) --w.end;
    return w;
  }
  IntRange reached(const Summary& s, int) const override {
    return s.empty() ? IntRange{} : IntRange{writer_at(s.lo), writer_at(s.hi - 1) + 1};
  }
  StreamRange part(const layout::FileView& view, StreamRange own, int, int writer,
                   int cycle) const override {
    return view.clip(own, extent(writer, cycle));
  }

 private:
  Extent domain(int writer) const noexcept {
    const Off begin = std::min(capped_sum(base_, writer * domain_bytes_), bounds_.end);
    return {begin, std::min(capped_sum(begin, domain_bytes_), bounds_.end)};
  }
  int writer_at(Off offset) const noexcept { return int((offset - base_) / domain_bytes_); }
  int cycle_at(Off offset) const noexcept {
    return int((offset - base_) % domain_bytes_ / cycle_bytes_);
  }

  WriterRanks ranks_;
  Extent bounds_;
  Off base_;
  int64_t domain_bytes_, cycle_bytes_;
};

// A small extent is not worth every writer's messages.
int useful_writers(const Team& team, Extent bounds) {
  const int64_t useful = std::max<int64_t>(1, bounds.size() / kLeastDomainBytes);
  return int(std::min<int64_t>(useful, default_writers(team)));
}

Result<std::unique_ptr<const Plan>> place_two_phase(const Parameters& p, const Team& team,
                                                    const Crowd& crowd,
                                                    const layout::Geometry& geometry) {
  if (p.writers < 0)
    return fail(ErrorClass::argument, "two_phase",
                "writers must be at least 1, got " + std::to_string(p.writers));
  const Extent bounds = crowd.bounds();
  // More writers than ranks were asked for where a job is small: all ranks write.
  const int writers =
      p.writers > 0 ? std::min(p.writers, team.ranks) : useful_writers(team, bounds);
  return std::make_unique<const TwoPhasePlan>(WriterRanks(team, writers), bounds, geometry,
                                              p.cycle_bytes);
}

}  // namespace

const Algorithm& two_phase_algorithm() {
  static constexpr OptionInfo kOptions[] = {
      {"writers", "ranks that write, at most all; by default one per core, up to 4 per node"},
      {"cycle", "bytes that a writer collects and writes at a time"}};
  static const Algorithm a{.name = "two_phase",
                           .summary = "even contiguous file domains, aligned to blocks or stripes",
                           .source = "ROMIO; barro-2002, chaarawi-2009",
                           .needs = Needs::bounds,
                           .owns_blocks = true,
                           .exchanges = true,
                           .options = kOptions,
                           .place = &place_two_phase};
  return a;
}

}  // namespace penstock::plan
