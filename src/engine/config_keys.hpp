// The settings: one table that files, variables, options and dumps share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config.hpp"

namespace penstock::engine {

enum class Type : uint8_t { text, integer, size, flag };

struct Key {
  std::string_view name;
  const char* variable;
  const char* option;  // as people write it
  Type type;
  bool in_file;   // at top level of a file
  bool per_file;  // in a [[file]] table
  Result<void> (*set)(std::string_view value, Config&);
  std::string (*show)(const Config&);  // in TOML's spelling
};

// In the order in which they are applied: a method before the options that refine it.
std::span<const Key> keys();
const Key* find_key(std::string_view name);

// Sets it and remembers who said so. The error names the source.
Result<void> assign(const Assignment& assignment, Config& config);

tl::unexpected<Error> refuse_config(std::string detail);
// "1", "0", "true", "false".
Result<bool> parse_flag(std::string_view what, std::string_view value);

// What a file's text says, checked value by value, applied to nothing yet.
struct Parsed {
  std::vector<Assignment> settings;  // in the order of keys()
  std::vector<FileRule> files;
  std::vector<ProgramPattern> leave_alone;
  std::vector<std::string> options;  // of a resolved configuration: keys that were options
};
Result<Parsed> parse_toml(std::string_view text, const std::string& name, Layer layer);
// `{method = "auto", ...}`: what resolved_toml writes.
Result<Parsed> parse_resolved(std::string_view text);
Result<void> apply_parsed(Parsed parsed, Config& config);

// A string in TOML's spelling.
std::string toml_string(std::string_view text);

}  // namespace penstock::engine
