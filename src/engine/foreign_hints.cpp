// One function per hint, each with its limits; and the way back, by asking a plan.
#include "engine/foreign_hints.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "base/units.hpp"
#include "engine/method.hpp"
#include "engine/select.hpp"
#include "plan/groups.hpp"

namespace penstock::engine {
namespace {

constexpr std::array kForeignKeys = {"cb_nodes", "cb_buffer_size", "romio_cb_write",
                                     "striping_unit", "striping_factor"};

std::string lower(std::string text) {
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class Foreign {
 public:
  Foreign(const HintValues& given, Config& config) : given_(given), config_(config) {}

  // ROMIO's switch between collective buffering and every rank by itself.
  void collective_buffering() {
    const auto value = given_.find("romio_cb_write");
    if (value == given_.end() || lower(value->second) == "automatic") return;
    const std::string word = lower(value->second);
    if (word != "enable" && word != "disable")
      return ignore("romio_cb_write", "it must be enable, disable or automatic");
    Method changed = config_.method;
    if (changed.algorithm != nullptr) return;  // the configuration names one
    changed.algorithm = plan::find_algorithm(word == "enable" ? "two_phase" : "individual");
    if (auto legal = check(changed); !legal) return ignore("romio_cb_write", legal.error().detail);
    config_.method = as_spelled(std::move(changed));
  }

  // A file striped over so many devices is written by as many ranks, where nobody says how many:
  // each then has devices of its own.
  void writers() {
    const auto nodes = number("cb_nodes", kMaxWriters);
    const auto factor = striping("striping_factor", kMaxWriters);
    int& writers = config_.method.parameters.writers;
    if (writers != 0 || is_left_to_the_team() || !open_to("writers")) return;
    if (!nodes && factor) config_.striping_factor = int(*factor);
    writers = int(nodes ? *nodes : factor.value_or(0));
  }

  void cycle() {
    const auto bytes = number("cb_buffer_size", INT64_MAX);
    int64_t& cycle = config_.method.parameters.cycle_bytes;
    if (!bytes || cycle != 0 || !open_to("cycle")) return;
    cycle = std::clamp(align_down(*bytes, kPageStep), kPageStep, plan::kMaxCycleBytes);
  }

  void stripes() {
    if (const auto bytes = striping("striping_unit", plan::kMaxCycleBytes))
      config_.striping_unit_bytes = *bytes;
  }

 private:
  // Who says 0 has said it.
  bool is_left_to_the_team() const {
    return std::ranges::any_of(
        config_.given, [](const Assignment& a) { return a.key == "writers" && a.value == "0"; });
  }

  bool open_to(std::string_view option) const {
    const plan::Algorithm* a = config_.method.algorithm;
    return a == nullptr || plan::takes(*a, option);
  }

  // What parallel file systems take for "your own": nobody asks for anything.
  std::optional<int64_t> striping(const char* key, int64_t most) {
    const auto value = given_.find(key);
    if (value != given_.end() && (value->second == "0" || value->second == "-1")) return {};
    return number(key, most);
  }

  std::optional<int64_t> number(const char* key, int64_t most) {
    const auto value = given_.find(key);
    if (value == given_.end()) return {};
    const auto n = parse_size(value->second, key);
    if (n && *n >= 1 && *n <= most) return *n;
    ignore(key, "it must be a number from 1" +
                    (most == INT64_MAX ? std::string(" on") : " to " + std::to_string(most)));
    return {};
  }

  void ignore(const char* key, const std::string& why) {
    config_.ignored_hints.push_back("hint " + std::string(key) + "=" +
                                    quote(given_.find(key)->second) + " is ignored: " + why);
  }

  const HintValues& given_;
  Config& config_;
};

}  // namespace

std::span<const char* const> foreign_hints() { return kForeignKeys; }

void apply_foreign_hints(const HintValues& given, Config& config) {
  Foreign hints(given, config);
  hints.collective_buffering();  // first: what an algorithm does not take, the others leave
  hints.writers();
  hints.cycle();
  hints.stripes();
}

HintValues hints_in_effect(const Config& config, const plan::Team& team,
                           const layout::Geometry& geometry) {
  const plan::Algorithm* named = fixed(config.method.algorithm, team, geometry);
  const plan::Algorithm& algorithm = named != nullptr ? *named : exchanging(team, geometry);
  plan::Parameters p = config.method.parameters;
  p.cycle_bytes = exec::cycle_for(p.cycle_bytes, algorithm, config.method.exchange, team);
  HintValues told;
  told["romio_cb_write"] =
      named == nullptr ? "automatic" : (named->exchanges ? "enable" : "disable");
  if (geometry.stripe_bytes > 0) told["striping_unit"] = std::to_string(geometry.unit());
  if (config.striping_factor > 0) told["striping_factor"] = std::to_string(config.striping_factor);

  // The plan of a call that is large enough for every writer and a full cycle.
  const plan::Summary large{.lo = 0, .hi = kGiB, .bytes = kGiB};
  const auto crowd = plan::Crowd::from_classes({{0, team.ranks, large, kGiB}}, team.ranks);
  const auto plan = algorithm.place(plan::taken_by(algorithm, p), team, crowd, geometry);
  if (!plan) return told;
  const int writers = (*plan)->writers();
  told["cb_nodes"] = std::to_string(writers);
  const int64_t cycle = algorithm.scatters
                            ? plan::group_cycle_of(p.cycle_bytes, divide_up(team.ranks, writers))
                            : plan::page_of(p.cycle_bytes, geometry, 0);
  told["cb_buffer_size"] = std::to_string(std::min((*plan)->extent(0, 0).size(), cycle));
  return told;
}

}  // namespace penstock::engine
