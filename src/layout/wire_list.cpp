#include "layout/wire_list.hpp"

#include <string>

#include "layout/list_node.hpp"

namespace penstock::layout {

tl::unexpected<Error> malformed(const char* why) {
  return fail(ErrorClass::argument, "loop tree", std::string("malformed description: ") + why);
}

Result<Placed> segments_from(const WireList& places, const WireList& starts, size_t n) {
  if (NodePtr kept = keep_list(places.kept(n), starts.kept(n + 1), nullptr)) return placed(0, kept);
  for (size_t i = 0; i < n; ++i) {
    const Wide length = starts[i + 1] - starts[i];
    const bool fit = fits(places[i]) && fits(length) && fits(places[i] + length);
    if (length < 1 || !fit) return malformed("a segment");
  }
  return make_stretches(n, [&](size_t i) {
    return Stretch{Off(places[i]), int64_t(starts[i + 1] - starts[i])};
  });
}

Result<Placed> blocks_from(const WireList& places, size_t n, const NodePtr& child) {
  if (NodePtr kept = keep_list(places.kept(n), {}, child)) return placed(0, kept);
  for (size_t i = 0; i < n; ++i)
    if (!fits(places[i]) || !fits(places[i] + child->span)) return malformed("an entry");
  const auto at = [&](size_t i) { return Stretch{Off(places[i]), child->size}; };
  return child->kind == NodeKind::bytes ? make_stretches(n, at) : make_copies(n, child, at);
}

}  // namespace penstock::layout
