// Draws operation by operation, beside a model: what the standard leaves open, and writes that
// would leave bytes unknown, are drawn again.
#include "draw.hpp"

#include <algorithm>

#include "model.hpp"
#include "random.hpp"

namespace suite {
namespace {

class Draw {
 public:
  Draw(uint64_t seed, int ranks)
      : random_({seed, uint64_t(ranks), 0x415}), ranks_(ranks), model_(ranks) {
    history_.ranks = ranks;
    span_ = random_.one_of<int64_t>({5000, 40000, 300000, 7000000});
    unit_ = random_.one_of<int64_t>({8, 40, 512, 4096, 20000});
  }

  History whole() {
    try_for([&] { return open(); });
    for (const int64_t n = random_.between(8, 40); tries_ < 200 && count() < n; ++tries_) step();
    return std::move(history_);
  }

 private:
  int64_t count() const { return int64_t(history_.ops.size()); }

  void step() {
    const int64_t dice = random_.between(1, 100);
    if (dice <= 7) return try_for([&] { return ordered(); });
    if (dice <= 45) return try_for([&] { return data("write"); });
    if (dice <= 63) return try_for([&] { return data("read"); });
    if (dice <= 70) return try_for([&] { return view(); });
    if (dice <= 77) return try_for([&] { return seek(); });
    if (dice <= 80) return try_for([&] { return Op{"size", handle(), who(), "-", {}}; });
    if (dice <= 84) return try_for([&] { return open(); });
    if (dice <= 87) return try_for([&] { return Op{"close", handle(), kAll, "-", {}}; });
    if (dice <= 89) return try_for([&] { return Op{"sync", handle(), kAll, "-", {}}; });
    if (dice <= 91) return try_for([&] { return Op{"meet", 0, kAll, "-", {}}; });
    if (dice <= 94) return resize();
    add({"point", 0, kAll, "-", {}});
  }

  // Changing a size conflicts with nearly everything.
  void resize() {
    add({"point", 0, kAll, "-", {}});
    const char* const verb = random_.chance(70) ? "set_size" : "preallocate";
    try_for([&] { return Op{verb, handle(), kAll, "-", {{random_.between(0, span_)}}}; });
    add({"point", 0, kAll, "-", {}});
  }

  template <class Make>
  void try_for(Make&& make) {
    for (int i = 0; i < 12; ++i) {
      const Op op = make();
      if (model_.runs(op) && !model_.conflicts(op)) return add(op);
    }
  }

  void add(const Op& op) {
    model_.apply(op, 0);
    history_.ops.push_back(op);
  }

  int handle() {
    // Most histories keep to one handle, so that what it writes is deferred.
    const int drawn = int(random_.between(0, kHandles - 1));
    return random_.chance(70) ? drawn & ~1 : drawn;
  }
  int who() { return int(random_.between(0, ranks_ - 1)); }

  // A file's second handle is mostly each rank's own, as PnetCDF has them.
  Op open() {
    const int h = handle();
    const bool own = h % 2 == 1 && random_.chance(60);
    const char* const mode = random_.one_of<const char*>({"w", "w", "rw", "rw", "r"});
    return {"open", h, kAll, own ? "own" : mode, {}};
  }

  // By turns of a block each, with or without holes; or all through the same; or anywhere.
  Op view() {
    const auto etype = random_.one_of<int64_t>({1, 4, 8});
    const int64_t block = random_.between(1, std::max<int64_t>(1, unit_ / etype));
    const int64_t hole = random_.chance(50) ? 0 : random_.between(0, 2 * block);
    const int64_t begin = random_.chance(50) ? 0 : random_.between(0, 1000);
    Op op{"view", handle(), kAll, std::to_string(etype), {}};
    const bool plain = random_.chance(25), alike = random_.chance(20);
    for (int r = 0; r < ranks_; ++r)
      op.pieces.push_back(
          plain ? Piece{begin, 1, 1}
                : Piece{begin + (alike ? 0 : r) * block * etype, block, block * ranks_ + hole});
    return op;
  }

  int64_t size() {
    const int64_t dice = random_.between(1, 100);
    if (dice <= 3) return 0;
    if (dice <= 50) return random_.between(1, std::min<int64_t>(unit_, 64));
    if (dice <= 90) return random_.between(1, unit_);
    return random_.between(1, 24000);
  }

  // In units of which each has one rank, so that ranks seldom want the same bytes.
  Piece piece(int h, int rank, bool own_stripe) {
    const View& v = model_.handle(h).views[size_t(rank)];
    const int64_t n = size();
    if (!v.is_contiguous())
      return {random_.between(0, span_ / v.stride * v.block / v.etype),
              (n + v.etype - 1) / v.etype};
    if (!own_stripe) return {random_.between(0, span_) / v.etype, n / v.etype};
    const int64_t turn = random_.between(0, span_ / unit_ / ranks_);
    const int64_t begin = (turn * ranks_ + rank) * unit_;
    return {begin / v.etype, std::min(n, unit_) / v.etype};
  }

  Op data(const std::string& verb) {
    const int h = handle();
    if (!model_.is_open(h)) return {"none", h, 0, "-", {}};
    const bool together = random_.chance(35), own_stripe = random_.chance(75);
    Op op{verb + (random_.chance(65) ? "_at" : "") + (together ? "_all" : ""),
          h,
          together ? kAll : who(),
          form(verb, together),
          {}};
    for (int r = 0; r < ranks_; ++r)
      if (op.concerns(r)) op.pieces.push_back(piece(h, r, own_stripe));
    return op;
  }

  // Each behind the lower ranks', from where the shared pointer is or is sent to before.
  Op ordered() {
    const int h = handle();
    if (!model_.has_shared_pointer(h)) return {"none", h, 0, "-", {}};
    const int64_t etype = model_.handle(h).views.front().etype;
    if (random_.chance(30))
      return {"seek_shared", h, kAll, "set", {{random_.between(0, span_ / etype)}}};
    Op op{"write_ordered", h, kAll, random_.chance(60) ? "now" : "split", {}};
    for (int r = 0; r < ranks_; ++r) op.pieces.push_back({0, (size() + etype - 1) / etype});
    return op;
  }

  std::string form(const std::string& verb, bool together) {
    if (random_.chance(60)) return "now";
    if (together && random_.chance(50)) return "split";
    return verb == "write" ? "later" : "now";
  }

  Op seek() {
    const std::string from = random_.one_of<const char*>({"set", "set", "cur", "end"});
    const int64_t to =
        from == "set" ? random_.between(0, span_ / 8) : random_.between(-unit_, unit_);
    return {"seek", handle(), from == "end" ? kAll : who(), from, {{to}}};
  }

  Random random_;
  const int ranks_;
  Model model_;
  History history_;
  int64_t span_ = 0, unit_ = 0;
  int tries_ = 0;
};

}  // namespace

History draw_history(uint64_t seed, int ranks) { return Draw(seed, ranks).whole(); }

}  // namespace suite
