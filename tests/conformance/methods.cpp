// The methods that conformance runs under MPI, a line each as Penstock spells them: all
// combinations of the five choices that go together and that this machine has.
//
//   methods            the whole product
//   methods --pairs    as few as still bring each pair of choices together
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/method_product.hpp"
#include "exec/pairwise.hpp"

namespace penstock {
namespace {

using engine::Combination;

// No two families share a word then: `none` is an exchange and a sync.
Combination with_families(const Combination& choices) {
  Combination named;
  for (size_t i = 0; i < choices.size(); ++i) named.push_back(std::to_string(i) + " " + choices[i]);
  return named;
}

// What several combinations come to (an exchange that is named with what sends nothing) is one.
std::vector<Combination> legal_product() {
  std::vector<Combination> legal;
  std::set<std::string> spelled;
  for (const Combination& choices : engine::method_product())
    if (const auto method = engine::parse_method(engine::text_of(choices)))
      if (spelled.insert(engine::to_string(*method)).second) legal.push_back(choices);
  return legal;
}

std::vector<Combination> pairs_of(const std::vector<Combination>& all) {
  std::vector<Combination> named, some;
  for (const Combination& choices : all) named.push_back(with_families(choices));
  for (const size_t i : exec::pairwise(named)) some.push_back(all[i]);
  return some;
}

void print(const Combination& choices) {
  std::puts(engine::to_string(*engine::parse_method(engine::text_of(choices))).c_str());
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  const bool pairs = argc == 2 && std::string_view(argv[1]) == "--pairs";
  if (argc > 1 && !pairs) {
    std::fprintf(stderr, "methods: takes --pairs or nothing, got %s\n", argv[1]);
    return 2;
  }
  const std::vector<Combination> all = legal_product();
  for (const Combination& choices : pairs ? pairs_of(all) : all) print(choices);
  return 0;
}
