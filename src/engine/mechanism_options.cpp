// What a mechanism takes is in its descriptor; what `direct` needs besides is an algorithm.
#include "engine/mechanism_options.hpp"

#include <charconv>
#include <vector>

#include "engine/nearest.hpp"

namespace penstock::engine {
namespace {

tl::unexpected<Error> refuse(std::string detail) {
  return fail(ErrorClass::argument, "method", std::move(detail));
}

std::string name_of(const Method& m) { return std::string(m.mechanism->name); }

std::vector<std::string_view> options_of(const io::Mechanism& mechanism) {
  std::vector<std::string_view> names;
  if (mechanism.takes_direct) names.push_back("direct");
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

Result<void> set_direct(std::string_view value, Method& m) {
  if (m.direct) return refuse("direct is given twice");
  if (!value.empty()) return refuse("direct takes no value, got " + quote(value));
  m.direct = true;
  return {};
}

Result<void> set_depth(std::string_view value, Method& m) {
  if (m.depth != 0) return refuse("depth is given twice");
  int64_t depth = 0;
  const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), depth);
  if (code != std::errc() || stop != value.data() + value.size())
    return refuse("depth must be an integer, got " + quote(value));
  return check_depth(depth).map([&](int checked) { m.depth = checked; });
}

// Ranks that share a block would write it two ways at once, and lose bytes.
Result<void> check_direct(const Method& m) {
  if (!m.direct || (m.algorithm != nullptr && m.algorithm->owns_blocks)) return {};
  const std::string got = m.algorithm == nullptr
                              ? "auto, which may choose one that does not"
                              : std::string(m.algorithm->name) + ", whose ranks may share one";
  return refuse("direct needs an algorithm that owns whole blocks, such as two_phase, got " + got);
}

}  // namespace

Result<void> set_mechanism_option(std::string_view key, std::string_view value, Method& method) {
  if (auto taken = require_taken(key, method); !taken) return taken;
  return key == "direct" ? set_direct(value, method) : set_depth(value, method);
}

std::string spell_mechanism(const Method& method) {
  std::string options = method.direct ? "direct" : "";
  if (method.depth != 0)
    options += (options.empty() ? "depth=" : ", depth=") + std::to_string(method.depth);
  return name_of(method) + (options.empty() ? "" : "(" + options + ")");
}

Result<void> check_mechanism_options(const Method& method) {
  if (method.direct)
    if (auto taken = require_taken("direct", method); !taken) return taken;
  if (method.depth != 0) {
    if (auto taken = require_taken("depth", method); !taken) return taken;
    if (auto depth = check_depth(method.depth); !depth)
      return tl::unexpected(std::move(depth).error());
  }
  return check_direct(method);
}

Result<int> check_depth(int64_t depth) {
  if (depth < 1 || depth > kMaxDepth)
    return refuse("depth must be between 1 and " + std::to_string(kMaxDepth) + ", got " +
                  std::to_string(depth));
  return int(depth);
}

}  // namespace penstock::engine
