// What a configuration means for one program and one file: fnmatch(3) without flags, so that * also
// matches slashes.
#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "engine/absolute_path.hpp"
#include "engine/config_keys.hpp"

namespace penstock::engine {
namespace {

std::string base_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool matches(const std::string& glob, const std::string& text) {
  return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

// As `absolute`, without "//", "." and what ".." takes back; links are not looked at.
std::string shortest(const std::string& absolute) {
  if (!absolute.starts_with('/')) return absolute;  // where we are cannot be found out
  std::vector<std::string_view> names;
  for (std::string_view left = absolute; !left.empty();) {
    const std::string_view name = left.substr(0, left.find('/'));
    left.remove_prefix(std::min(left.size(), name.size() + 1));
    if (name == ".." && !names.empty()) names.pop_back();
    if (!name.empty() && name != "." && name != "..") names.push_back(name);
  }
  std::string path;
  for (const std::string_view name : names) path.append("/").append(name);
  return path;
}

bool names_file(const std::string& glob, const std::string& path) {
  if (glob.find('/') == std::string::npos) return matches(glob, base_name(path));
  return matches(glob, path) || matches(glob, shortest(absolute_path(path)));
}

bool names_program(const std::string& glob, const std::string& path) {
  if (path.empty()) return false;
  if (glob.find('/') == std::string::npos) return matches(glob, base_name(path));
  return path.starts_with('/') && matches(glob, path);
}

bool option_chose_method(const Config& config) {
  return std::any_of(config.options.begin(), config.options.end(),
                     [](const Assignment& a) { return a.key == "method" || a.key == "observe"; });
}

Result<void> apply_rule(const FileRule& rule, Config& config) {
  for (const Assignment& a : rule.settings) {
    if (auto done = assign(a, config); !done) return done;
    if (config.mode != Mode::off) continue;
    // One file cannot switch the job's Penstock off: the ranks still meet when it is opened.
    config.mode = Mode::observe;
    config.left_alone =
        "left alone by [[file]] " + quote(rule.patterns.front()) + " (" + rule.source + ")";
  }
  return {};
}

}  // namespace

std::string why_left_alone(const Config& config, const std::vector<std::string>& program) {
  if (option_chose_method(config)) return "";
  for (const ProgramPattern& pattern : config.leave_alone)
    for (const std::string& name : program)
      if (names_program(pattern.glob, name))
        return "program " + base_name(name) + " is left alone (leave_alone has \"" + pattern.glob +
               "\", " + pattern.source + ")";
  return "";
}

Result<Config> for_file(const Config& config, const std::string& path) {
  Config one = config;
  if (config.mode != Mode::serve) return one;  // who observes the job observes every file
  for (const FileRule& rule : config.files) {
    const bool named = std::any_of(rule.patterns.begin(), rule.patterns.end(),
                                   [&](const std::string& glob) { return names_file(glob, path); });
    if (!named) continue;
    if (auto done = apply_rule(rule, one); !done) return tl::unexpected(std::move(done).error());
  }
  if (auto done = apply_options_again(one); !done) return tl::unexpected(std::move(done).error());
  if (auto legal = check(one.method); !legal) return tl::unexpected(std::move(legal).error());
  return one;
}

Result<void> apply_options_again(Config& config) {
  const std::vector<Assignment> options = config.options;
  for (const Assignment& a : options)
    if (auto done = assign(a, config); !done) return done;
  return {};
}

}  // namespace penstock::engine
