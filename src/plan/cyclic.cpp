// cyclic: the file is cut into stripes, and stripe i belongs to writer i mod W (the file pages of
// liao-2007; the cyclic distribution of barro-2002). Stripes are numbered from the beginning of the
// file and W follows the team alone, so that a stripe keeps its writer from call to call: no other
// rank, and no other node, ever touches it. A stripe is written in cycles of its own: two stripes
// are never one extent, so a cycle is at most a stripe, and a stripe larger than the cycle is
// written piece by piece.
#include <algorithm>
#include <string>

#include "plan/writers.hpp"

namespace penstock::plan {
namespace {

// In a plan the first stripe that somebody touches is stripe 0, and its owner is writer 0. A row is
// one stripe of every writer.
class CyclicPlan final : public Plan {
 public:
  CyclicPlan(WriterRanks owners, Extent bounds, int64_t stripe_bytes, int64_t page_bytes)
      : owners_(owners),
        bounds_(bounds),
        stripe_bytes_(stripe_bytes),
        page_bytes_(page_bytes),
        pages_(int(divide_up(stripe_bytes, page_bytes))),
        first_(bounds.begin / stripe_bytes),
        stripes_(bounds.empty() ? 0 : stripe_at(bounds.end - 1) + 1),
        cycles_(count_cycles()) {}

  int writers() const noexcept override { return owners_.writers(); }
  int writer_rank(int writer) const noexcept override {
    return owners_.rank_of((first_owner() + writer) % writers());
  }
  std::optional<int> writer_of(int rank) const noexcept override {
    const std::optional<int> owner = owners_.writer_at(rank);
    if (!owner) return std::nullopt;
    return (*owner - first_owner() + writers()) % writers();
  }

  // The same for all that have a stripe, though the last row may hold none for some: a writer's
  // domain then reaches to the end of the file, and whoever touches two rows may name every writer.
  int cycles(int writer) const noexcept override { return writer < stripes_ ? cycles_ : 0; }
  int cycles() const noexcept override { return cycles_; }
  Extent extent(int writer, int cycle) const override {
    const int64_t stripe = first_ + int64_t{cycle / pages_} * writers() + writer;
    const Extent whole = Extent::of(capped_product(stripe, stripe_bytes_), stripe_bytes_);
    const Off begin = capped_sum(whole.begin, cycle % pages_ * page_bytes_);
    return whole.intersect(Extent::of(begin, page_bytes_)).intersect(bounds_);
  }
  int64_t page_bytes() const noexcept override { return std::min(page_bytes_, bounds_.size()); }
  bool owns_blocks() const noexcept override { return true; }
  bool exchanges() const noexcept override { return true; }

  IntRange cycles_of(const Summary& s, int) const override {
    if (s.empty()) return {};
    const int64_t first = stripe_at(s.lo), last = stripe_at(s.hi - 1);
    const int begin = first_cycle(first), end = first_cycle(last) + pages_;
    if (first == last) return {begin + page_at(s.lo), begin + page_at(s.hi - 1) + 1};
    return {begin, std::min(end, cycles_)};
  }
  IntRange writers_of(const Summary& s, int, int cycle) const override {
    if (s.empty()) return {};
    const int64_t dealt = int64_t{cycle / pages_} * writers();  // stripes in the rows before
    const int64_t first = std::max<int64_t>(stripe_at(s.lo) - dealt, 0);
    const int64_t last = std::min<int64_t>(stripe_at(s.hi - 1) - dealt, writers() - 1);
    if (first > last) return {};
    IntRange w{int(first), int(last) + 1};
    if (!extent(w.begin, cycle).overlaps(s.extent())) ++w.begin;
    if (w.begin < w.end && !extent(w.end - 1, cycle).overlaps(s.extent())) --w.end;
    return w;
  }
  IntRange reached(const Summary& s, int) const override {
    if (s.empty()) return {};
    const int64_t first = stripe_at(s.lo), last = stripe_at(s.hi - 1);
    if (first / writers() != last / writers()) return {0, writers()};
    return {int(first % writers()), int(last % writers()) + 1};
  }
  StreamRange part(const layout::FileView& view, StreamRange own, int, int writer,
                   int cycle) const override {
    return view.clip(own, extent(writer, cycle));
  }

 private:
  int first_owner() const noexcept { return int(first_ % owners_.writers()); }
  int64_t stripe_at(Off offset) const noexcept { return offset / stripe_bytes_ - first_; }
  int page_at(Off offset) const noexcept { return int(offset % stripe_bytes_ / page_bytes_); }
  // Of a stripe's row.
  int first_cycle(int64_t stripe) const noexcept {
    return int(stripe / owners_.writers()) * pages_;
  }

  int count_cycles() const noexcept {
    if (bounds_.empty()) return 0;
    const int64_t last = stripes_ - 1;
    const bool alone_in_row = last % owners_.writers() == 0;
    return first_cycle(last) + (alone_in_row ? page_at(bounds_.end - 1) + 1 : pages_);
  }

  WriterRanks owners_;
  Extent bounds_;
  int64_t stripe_bytes_, page_bytes_;
  int pages_;        // of a stripe
  int64_t first_;    // number in the file of this plan's stripe 0
  int64_t stripes_;  // from the first that somebody touches to the last
  int cycles_;
};

// As given, else the file system's own, else what a writer collects at a time anyway: smaller ones
// would cost what decision 0010 tells of smaller cycles, and where the file system has no stripes
// they would gain nothing. Whole units; and over an extent that is nearly all holes never so small
// that they could not be counted.
int64_t stripe_of(const Parameters& p, const layout::Geometry& geometry, int64_t share_bytes) {
  const int64_t own = geometry.stripe_bytes > 0 ? geometry.stripe_bytes : kDefaultCycleBytes;
  const int64_t stripe = p.stripe_bytes > 0 ? p.stripe_bytes : own;
  return align_up(std::max(stripe, divide_up(share_bytes, kMostCycles)), geometry.unit());
}

Result<std::unique_ptr<const Plan>> place_cyclic(const Parameters& p, const Team& team,
                                                 const Crowd& crowd,
                                                 const layout::Geometry& geometry) {
  if (p.writers < 0)
    return fail(ErrorClass::argument, "cyclic",
                "writers must be at least 1, got " + std::to_string(p.writers));
  // The extent of a call has no say in how many write: a stripe would change its owner.
  const int writers = p.writers > 0 ? std::min(p.writers, team.ranks) : default_writers(team);
  const int64_t share_bytes = divide_up(crowd.bounds().size(), writers);
  const int64_t stripe = stripe_of(p, geometry, share_bytes);
  const int64_t page = std::min(stripe, page_of(p.cycle_bytes, geometry, share_bytes));
  return std::make_unique<const CyclicPlan>(WriterRanks(team, writers), crowd.bounds(), stripe,
                                            page);
}

}  // namespace

const Algorithm& cyclic_algorithm() {
  static constexpr OptionInfo kOptions[] = {
      {"writers", "ranks that own stripes, at most all; by default one per core, up to 4 per node"},
      {"stripe",
       "bytes dealt to a writer at a time; by default the file system's stripe, or 16MiB"},
      {"cycle", "bytes that a writer collects and writes at a time, at most a stripe"}};
  static const Algorithm a{
      .name = "cyclic",
      .summary = "stripe i of the file belongs to writer i mod W, in every call",
      .source = "liao-2007, barro-2002",
      .needs = Needs::summaries,
      .owns_blocks = true,
      .keeps_writers = true,
      .exchanges = true,
      .options = kOptions,
      .place = &place_cyclic};
  return a;
}

}  // namespace penstock::plan
