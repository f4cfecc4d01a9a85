// Fuzzes datatypes: random descriptions decoded and compared with their naive
// typemaps in everything that src/layout promises, descriptions that contradict
// themselves, and loop trees from bytes that no rank has sent.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "layout/layout_checks.hpp"

namespace penstock::layout {
namespace {

std::string check_wire_bytes(std::span<const std::byte> bytes) {
  const auto view = FileView::deserialise(bytes);
  if (view) return oracle::check_any_tree(view->filetype());
  const auto tree = LoopTree::deserialise(bytes);
  return tree ? oracle::check_any_tree(*tree) : "";
}

// A real view with a few of its words replaced: reaches behind the header far more often.
std::string check_damaged_view(oracle::Choices& c) {
  oracle::Generator generate(c);
  const auto tree = decode(generate.type(3).description);
  if (!tree) return "decode: " + tree.error().message();
  const auto view = FileView::make(c.between(0, 9), 1, *tree);
  std::vector<std::byte> wire;
  view ? view->serialise(wire) : tree->serialise(wire);
  const auto words = int64_t(wire.size() / sizeof(int64_t));
  for (int64_t n = c.between(0, 3); n > 0; --n) {
    const int64_t value = c.coin() ? c.wild() : c.byte();
    const auto at = size_t((c.byte() * 256 + c.byte()) % words) * sizeof value;
    std::memcpy(wire.data() + at, &value, sizeof value);
  }
  wire.resize(wire.size() - size_t(c.byte() % 4 == 0 ? c.between(0, 9) : 0));
  return check_wire_bytes(wire);
}

std::string check(std::span<const uint8_t> input) {
  oracle::Choices choices(input);
  const int what = choices.byte() % (oracle::kAspects + 3);
  if (what < oracle::kAspects) return oracle::check_random_type(choices, oracle::Aspect(what));
  if (what == oracle::kAspects) return oracle::check_nonsense(choices);
  if (what == oracle::kAspects + 1) return check_damaged_view(choices);
  return check_wire_bytes(std::as_bytes(input.subspan(input.empty() ? 0 : 1)));
}

}  // namespace
}  // namespace penstock::layout

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string wrong = penstock::layout::check({data, size});
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "decode_fuzz: %s\n", wrong.c_str());
  std::abort();
}
