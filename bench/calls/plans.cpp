// What a plan costs a rank in each call: what is known of all ranks, and who writes what. Prints
// microseconds for numbers of ranks, each rank with records of one size, dealt to the ranks.
//
//   build/release/bench/plan-cost
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "layout/file_view.hpp"
#include "plan/algorithm.hpp"
#include "plan/summary.hpp"

namespace penstock {
namespace {

constexpr int kTimes = 2000;

template <class Body>
double microseconds(Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) body();
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  return all.count() / kTimes * 1e6;
}

std::vector<plan::Summary> records(int ranks) {
  const auto tile = layout::LoopTree::resized(layout::LoopTree::bytes(100), 0, 100 * ranks);
  std::vector<plan::Summary> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto view = layout::FileView::make(100 * rank, 1, tile.value());
    all.push_back(plan::summarise(view.value(), {0, 1 << 20}, 64));
  }
  return all;
}

void print(int ranks) {
  const std::vector<plan::Summary> summaries = records(ranks);
  const plan::Crowd crowd = plan::Crowd::from(summaries);
  const plan::Team team{.ranks = ranks, .nodes = 4, .cores_per_node = 4};
  std::printf("%6d ranks: summaries %.2f", ranks,
              microseconds([&] { (void)plan::Crowd::from(summaries); }));
  for (const plan::Algorithm* a : plan::algorithms()) {
    if (!a->exchanges) continue;
    const double each = microseconds([&] { (void)a->place({}, team, crowd, {}); });
    std::printf(", %s %.2f", std::string(a->name).c_str(), each);
  }
  std::puts("");
}

}  // namespace
}  // namespace penstock

int main() {
  for (const int ranks : {4, 64, 1024, 16384}) penstock::print(ranks);
}
