// What a mechanism takes is in its descriptor; what `direct` needs besides is an algorithm.
#include "engine/mechanism_options.hpp"

#include <utility>
#include <vector>

#include "base/units.hpp"
#include "engine/method_part.hpp"
#include "engine/nearest.hpp"

namespace penstock::engine {
namespace {

constexpr int64_t kLeastWindow = int64_t{64} << 10, kMostWindow = int64_t{1} << 40;

bool is_window(int64_t bytes) {
  return bytes >= kLeastWindow && bytes <= kMostWindow && bytes % kPageStep == 0;
}

std::string name_of(const Method& m) { return std::string(m.mechanism->name); }

std::vector<std::string_view> options_of(const io::Mechanism& mechanism) {
  std::vector<std::string_view> names;
  if (mechanism.takes_direct) names.push_back("direct");
  if (mechanism.takes_registered) names.push_back("registered");
  if (mechanism.takes_window) names.push_back("window");
  if (mechanism.default_depth > 0) names.push_back("depth");
  return names;
}

Result<void> require_taken(std::string_view key, const Method& m) {
  const std::vector<std::string_view> valid = options_of(*m.mechanism);
  for (const std::string_view name : valid)
    if (name == key) return {};
  if (valid.empty())
    return refuse("mechanism " + name_of(m) + " takes no options, got " + quote(key) +
                  "; leave it out");
  return refuse("option of " + name_of(m) + ": " + not_known(key, valid));
}

Result<void> set_flag(std::string_view key, std::string_view value, bool& flag) {
  if (std::exchange(flag, true)) return refuse(std::string(key) + " is given twice");
  if (!value.empty()) return refuse(std::string(key) + " takes no value, got " + quote(value));
  return {};
}

Result<void> set_direct(std::string_view value, Method& m) {
  if (m.direct != io::Direct::never) return refuse("direct is given twice");
  if (!value.empty() && value != "cold")
    return refuse("direct takes no value, or cold, got " + quote(value));
  m.direct = value.empty() ? io::Direct::always : io::Direct::when_cold;
  return {};
}

// A window of a cycle is what there is without the option.
Result<void> set_window(std::string_view value, Method& m) {
  if (m.window_bytes != io::kWindowOfCycle) return refuse("window is given twice");
  const bool of_file = value == "file";
  const int64_t bytes = of_file ? io::kWindowOfFile : parse_size(value, "window").value_or(0);
  if (!of_file && !is_window(bytes))
    return refuse("window must be file, or a multiple of 4096 bytes between " +
                  format_size(kLeastWindow) + " and " + format_size(kMostWindow) + ", got " +
                  quote(value));
  m.window_bytes = bytes;
  return {};
}

Result<void> set_depth(std::string_view value, Method& m) {
  if (m.depth != 0) return refuse("depth is given twice");
  return read_integer("depth", value).and_then(check_depth).map([&](int n) { m.depth = n; });
}

// As they are spelled; what is left to the mechanism is not among them.
std::vector<std::string> asked_for(const Method& m) {
  std::vector<std::string> options;
  if (m.direct == io::Direct::always) options.emplace_back("direct");
  if (m.direct == io::Direct::when_cold) options.emplace_back("direct=cold");
  if (m.registered) options.emplace_back("registered");
  if (m.window_bytes != io::kWindowOfCycle)
    options.push_back("window=" + (m.window_bytes == io::kWindowOfFile
                                       ? std::string("file")
                                       : format_size(m.window_bytes)));
  if (m.depth != 0) options.push_back("depth=" + std::to_string(m.depth));
  return options;
}

// Ranks of several nodes that share a block would write it two ways at once, and lose bytes; while
// memory is cold only local files are written so.
Result<void> check_direct(const Method& m) {
  if (m.direct == io::Direct::when_cold && !m.mechanism->takes_cold)
    return refuse("direct=cold needs mechanism pwrite, got " + name_of(m) +
                  ", which takes direct without a value");
  if (m.direct != io::Direct::always || (m.algorithm != nullptr && m.algorithm->owns_blocks))
    return {};
  const std::string got = m.algorithm == nullptr
                              ? "auto, which may choose one that does not"
                              : std::string(m.algorithm->name) + ", whose ranks may share one";
  return refuse("direct needs an algorithm that owns whole blocks, such as two_phase, got " + got);
}

}  // namespace

Result<void> set_mechanism_option(std::string_view key, std::string_view value, Method& method) {
  if (auto taken = require_taken(key, method); !taken) return taken;
  if (key == "direct") return set_direct(value, method);
  if (key == "registered") return set_flag(key, value, method.registered);
  return key == "window" ? set_window(value, method) : set_depth(value, method);
}

std::string spell_mechanism(const Method& method) {
  std::string options;
  for (const std::string& option : asked_for(method))
    options += (options.empty() ? "" : ", ") + option;
  return name_of(method) + (options.empty() ? "" : "(" + options + ")");
}

Result<void> check_mechanism_options(const Method& method) {
  for (const std::string_view option : asked_for(method))
    if (auto taken = require_taken(option.substr(0, option.find('=')), method); !taken)
      return taken;
  if (method.depth != 0)
    if (auto depth = check_depth(method.depth); !depth)
      return tl::unexpected(std::move(depth).error());
  return check_direct(method);
}

Result<int> check_depth(int64_t depth) {
  if (depth < 1 || depth > kMaxDepth)
    return refuse("depth must be between 1 and " + std::to_string(kMaxDepth) + ", got " +
                  std::to_string(depth));
  return int(depth);
}

}  // namespace penstock::engine
