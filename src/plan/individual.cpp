// individual: every rank writes its own bytes, and none is sent. Its cycles are equal pieces of the
// rank's stream (chaarawi-2009, 3.3); scheduled (at_once) a rank writes one of them at its turn,
// and only so many ranks have their turn at a time (exec/turns.hpp).
#include <algorithm>
#include <utility>

#include "plan/algorithm.hpp"
#include "plan/writers.hpp"

namespace penstock::plan {
namespace {

class IndividualPlan final : public Plan {
 public:
  IndividualPlan(const Team& team, Crowd crowd, int64_t cycle_bytes)
      : ranks_(team.ranks), crowd_(std::move(crowd)), cycle_bytes_(cycle_bytes) {
    int64_t most = 0;
    for (const RankClass& c : crowd_.classes()) most = std::max(most, c.summary.bytes);
    cycle_bytes_ = std::max(cycle_bytes_, divide_up(most, kMostCycles));
    cycles_ = int(divide_up(most, cycle_bytes_));
  }

  int writers() const noexcept override { return ranks_; }
  int writer_rank(int writer) const noexcept override { return writer; }
  std::optional<int> writer_of(int rank) const noexcept override { return rank; }
  int cycles(int writer) const noexcept override {
    return cycles_of(crowd_.summary(writer), writer).end;
  }
  int cycles() const noexcept override { return cycles_; }
  // Where the stream is cut in the file depends on the view: the rank's whole extent is the bound.
  Extent extent(int writer, int) const override { return crowd_.summary(writer).extent(); }
  int64_t page_bytes() const noexcept override { return crowd_.bounds().size(); }
  bool owns_blocks() const noexcept override { return false; }
  bool exchanges() const noexcept override { return false; }

  IntRange cycles_of(const Summary& s, int) const override {
    return {0, int(divide_up(s.bytes, cycle_bytes_))};
  }
  IntRange writers_of(const Summary& s, int rank, int) const override {
    return s.empty() ? IntRange{} : IntRange{rank, rank + 1};
  }
  IntRange reached(const Summary& s, int rank) const override { return writers_of(s, rank, 0); }
  StreamRange part(const layout::FileView&, StreamRange own, int rank, int writer,
                   int cycle) const override {
    if (writer != rank) return {own.begin, own.begin};
    return own.intersect(
        StreamRange::of(capped_sum(own.begin, cycle * cycle_bytes_), cycle_bytes_));
  }

 private:
  int ranks_;
  Crowd crowd_;
  int64_t cycle_bytes_;
  int cycles_ = 0;
};

Result<std::unique_ptr<const Plan>> place_individual(const Parameters& p, const Team& team,
                                                     const Crowd& crowd, const layout::Geometry&) {
  if (p.writers != 0 && p.writers != team.ranks)
    return fail(
        ErrorClass::argument, "individual",
        "writers must be left out, since every rank writes, got " + std::to_string(p.writers));
  if (p.at_once < 0)
    return fail(ErrorClass::argument, "individual",
                "at_once must not be negative, got " + std::to_string(p.at_once));
  return std::make_unique<const IndividualPlan>(
      team, crowd, p.cycle_bytes > 0 ? p.cycle_bytes : kDefaultCycleBytes);
}

}  // namespace

const Algorithm& individual_algorithm() {
  static constexpr OptionInfo kOptions[] = {
      {"cycle", "bytes that a rank writes at a time"},
      {"at_once", "ranks that write at a time; 0: all of them"}};
  static const Algorithm a{.name = "individual",
                           .summary = "every rank writes its own bytes",
                           .source = "chaarawi-2009",
                           .needs = Needs::nothing,
                           .owns_blocks = false,
                           .exchanges = false,
                           .options = kOptions,
                           .place = &place_individual};
  return a;
}

}  // namespace penstock::plan
