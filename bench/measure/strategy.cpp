// The table of strategies. Those that the engine cannot do yet are listed with its reason, and work
// when it can.
#include "strategy.hpp"

#include <algorithm>
#include <array>

#include "base/units.hpp"

namespace penstock::measure {
namespace {

constexpr std::array kStrategies = {
    Strategy{"S1A", "own files, own syncs", "individual + none + MECHANISM + SYNC", "every",
             Files::per_worker, Access::independent, 1},
    Strategy{"S1B", "own files, one sync at a time on a node",
             "individual + none + MECHANISM + SYNC", "coordinated", Files::per_worker,
             Access::independent, 1},
    Strategy{"S2", "a designated writer that also computes",
             "designated_writer + messages + MECHANISM + SYNC", "every", Files::shared,
             Access::collective, 2},
    Strategy{"S2DT", "S2, strided data sent by derived datatypes",
             "designated_writer + messages(pack=datatype) + MECHANISM + SYNC", "every",
             Files::shared, Access::collective, 2},
    Strategy{"S3", "a dedicated writer that does not compute",
             "dedicated_writer + messages + MECHANISM + SYNC", "every", Files::shared,
             Access::collective, 2, true},
    Strategy{"S3DT", "S3, strided data sent by derived datatypes",
             "dedicated_writer + messages(pack=datatype) + MECHANISM + SYNC", "every",
             Files::shared, Access::collective, 2, true},
    Strategy{"S5", "S2 and a thread that syncs behind the writer",
             "designated_writer + messages + MECHANISM + SYNC", "background", Files::shared,
             Access::collective, 2},
};

void replace(std::string& text, std::string_view word, std::string_view by) {
  text.replace(text.find(word), word.size(), by);
}

}  // namespace

std::span<const Strategy> strategies() { return kStrategies; }

const Strategy* find_strategy(std::string_view name) {
  const auto found = std::ranges::find(kStrategies, name, &Strategy::name);
  return found == kStrategies.end() ? nullptr : &*found;
}

std::string method_text(const Strategy& strategy, std::string_view mechanism,
                        int64_t syncsize_bytes) {
  std::string text(strategy.method);
  replace(text, "MECHANISM", mechanism);
  replace(text, "SYNC",
          syncsize_bytes == 0 ? "none"
                              : std::string(strategy.sync) + "=" + std::to_string(syncsize_bytes));
  return text;
}

std::string why_unavailable(const Strategy& strategy) {
  const auto method = engine::parse_method(method_text(strategy, "pwrite", kMiB));
  return method ? "" : method.error().message();
}

}  // namespace penstock::measure
