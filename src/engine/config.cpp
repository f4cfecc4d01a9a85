// From a TOML file and variables to a Config. Every value becomes text first, so that a key means
// the same in a file, in a variable and in a hint.
#include "engine/config.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/units.hpp"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace penstock::engine {
namespace {

tl::unexpected<Error> refuse(std::string detail) {
  return fail(ErrorClass::argument, "configuration", std::move(detail));
}

// ---- one setter per key, from text

Result<void> set_flag(bool& flag, std::string_view key, std::string_view value) {
  const bool yes = value == "1" || value == "true", no = value == "0" || value == "false";
  if (!yes && !no)
    return refuse(std::string(key) + " must be 1 or 0 (true or false), got " + quote(value));
  flag = yes;
  return {};
}

Result<void> set_method(std::string_view value, Config& c) {
  if (value == "off" || value == "observe") {
    c.mode = value == "off" ? Mode::off : Mode::observe;
    return {};
  }
  return parse_method(value).map([&](const Method& m) {
    c.mode = Mode::serve;
    c.method = m;
  });
}

Result<void> set_writers(std::string_view value, Config& c) {
  int64_t n = 0;
  const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (code != std::errc() || stop != value.data() + value.size())
    return refuse("writers must be an integer, got " + quote(value));
  return check_writers(n).map([&](int writers) { c.method.parameters.writers = writers; });
}

Result<void> set_cycle(std::string_view value, Config& c) {
  return parse_size(value, "cycle").and_then(check_cycle).map([&](int64_t bytes) {
    c.method.parameters.cycle_bytes = bytes;
  });
}

Result<void> set_log_dir(std::string_view value, Config& c) {
  constexpr size_t kLongest = 3840;  // leaves room for the log's name within PATH_MAX
  if (value.size() > kLongest) return refuse("log_dir is too long: " + quote(value));
  if (value.find('\0') != std::string_view::npos)
    return refuse("log_dir must not contain a NUL character");
  c.log_dir = value;
  return {};
}

enum class Type : uint8_t { text, integer, size, flag };

struct Key {
  std::string_view name;
  const char* variable;
  Type type;
  bool in_file;
  Result<void> (*set)(std::string_view value, Config&);
};

// In the order in which they are applied: a method before the options that refine it.
constexpr std::array<Key, 9> kKeys = {{
    {"method", "PENSTOCK_METHOD", Type::text, true, &set_method},
    {"writers", "PENSTOCK_WRITERS", Type::integer, true, &set_writers},
    {"cycle", "PENSTOCK_CYCLE", Type::size, true, &set_cycle},
    {"require", "PENSTOCK_REQUIRE", Type::flag, true,
     [](std::string_view v, Config& c) { return set_flag(c.require, "require", v); }},
    {"verify", "PENSTOCK_VERIFY", Type::flag, true,
     [](std::string_view v, Config& c) { return set_flag(c.verify, "verify", v); }},
    {"quiet", "PENSTOCK_QUIET", Type::flag, true,
     [](std::string_view v, Config& c) { return set_flag(c.quiet, "quiet", v); }},
    {"log", "PENSTOCK_LOG", Type::flag, true,
     [](std::string_view v, Config& c) { return set_flag(c.log, "log", v); }},
    {"log_dir", "PENSTOCK_LOG_DIR", Type::text, true, &set_log_dir},
    // Only the launcher knows it, so a file cannot say it.
    {"all_ranks", "PENSTOCK_ALL_RANKS", Type::flag, false,
     [](std::string_view v, Config& c) { return set_flag(c.all_ranks, "all_ranks", v); }},
}};

std::vector<std::string_view> file_keys() {
  std::vector<std::string_view> names;
  for (const Key& k : kKeys)
    if (k.in_file) names.push_back(k.name);
  return names;
}

// ---- TOML

const char* type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

const char* wanted(Type t) {
  switch (t) {
    case Type::text:
      return "a string";
    case Type::integer:
      return "an integer";
    case Type::size:
      return "a size such as \"16MiB\", or an integer of bytes";
    case Type::flag:
      return "true or false";
  }
  return "?";
}

// The value as apply_setting takes it; nullopt when its type is not the key's.
std::optional<std::string> as_text(const toml::node& node, Type type) {
  const auto* text = node.as_string();
  const auto* integer = node.as_integer();
  const auto* flag = node.as_boolean();
  if (text != nullptr && (type == Type::text || type == Type::size)) return text->get();
  if (integer != nullptr && (type == Type::integer || type == Type::size))
    return std::to_string(integer->get());
  if (flag != nullptr && type == Type::flag) return flag->get() ? "1" : "0";
  return std::nullopt;
}

Result<void> apply_node(const Key& key, const toml::node& node, Config& config) {
  const std::optional<std::string> text = as_text(node, key.type);
  if (!text)
    return refuse(std::string(key.name) + " must be " + wanted(key.type) + ", got " +
                  type_name(node));
  return key.set(*text, config);
}

Result<void> apply_table(const toml::table& table, Config& config) {
  const std::vector<std::string_view> valid = file_keys();
  for (const auto& [key, value] : table)
    if (std::find(valid.begin(), valid.end(), key.str()) == valid.end())
      return refuse("key " + not_known(key.str(), valid));
  Config changed = config;
  for (const Key& key : kKeys) {
    const toml::node* node = key.in_file ? table.get(key.name) : nullptr;
    if (node == nullptr) continue;
    if (auto applied = apply_node(key, *node, changed); !applied) return applied;
  }
  if (auto legal = check(changed.method); !legal) return legal;
  config = std::move(changed);
  return {};
}

// The parser builds a nested table for each dot of a key and frees them recursively, so that a file
// of dots would overflow the stack. Our keys have none.
bool too_many_dots(std::string_view text) {
  constexpr auto kMost = 512;
  return std::count(text.begin(), text.end(), '.') > kMost;
}

Result<void> parse_and_apply(std::string_view text, Config& config) {
  const toml::parse_result parsed = toml::parse(text);
  if (parsed) return apply_table(parsed.table(), config);
  const toml::parse_error& e = parsed.error();
  return refuse("line " + std::to_string(e.source().begin.line) + ": " +
                std::string(e.description()));
}

// ---- the file

constexpr size_t kLargestFile = size_t(kMiB);

tl::unexpected<Error> cannot_read(const std::string& path, int sys_errno) {
  return os_error("configuration",
                  "PENSTOCK_CONFIG names \"" + path +
                      "\", which cannot be read; name a readable TOML file or unset the variable",
                  sys_errno);
}

// Reads until the end, or one byte more than is allowed.
Result<std::string> read_limited(int fd, const std::string& path) {
  std::string text(kLargestFile + 1, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t n = ::read(fd, text.data() + have, text.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read(path, errno);
    if (n == 0) break;
    have += size_t(n);
  }
  if (have > kLargestFile)
    return refuse("PENSTOCK_CONFIG names \"" + path + "\", which is larger than 1MiB");
  text.resize(have);
  return text;
}

Result<std::string> read_config_file(const std::string& path) {
  // O_NONBLOCK: a named pipe would otherwise stop the job before it begins.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return cannot_read(path, errno);
  struct stat file {};
  const bool regular = ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
  Result<std::string> text =
      regular ? read_limited(fd, path)
              : refuse("PENSTOCK_CONFIG names \"" + path + "\", which is not a regular file");
  ::close(fd);
  return text;
}

Result<void> apply_file(const std::string& path, Config& config) {
  Result<std::string> text = read_config_file(path);
  if (!text) return tl::unexpected(std::move(text).error());
  return apply_toml(*text, config).map_error([&](Error e) {
    e.detail = path + ": " + e.detail;
    return e;
  });
}

// ---- the variables

std::optional<std::string> value_of(const GetVariable& get, const char* name) {
  const char* value = get(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<bool> flag_of(const GetVariable& get, const char* name) {
  bool flag = false;
  const auto value = value_of(get, name);
  if (value)
    if (auto set = set_flag(flag, name, *value); !set)
      return tl::unexpected(std::move(set).error());
  return flag;
}

Result<void> apply_variables(const GetVariable& get, Config& config) {
  for (const Key& key : kKeys) {
    const auto value = value_of(get, key.variable);
    if (!value) continue;
    auto applied = key.set(*value, config).map_error([&](Error e) {
      e.detail = std::string(key.variable) + ": " + e.detail;
      return e;
    });
    if (!applied) return applied;
  }
  return check(config.method);
}

Result<Config> load_enabled(const GetVariable& get) {
  Config config;
  if (const auto path = value_of(get, "PENSTOCK_CONFIG"))
    if (auto applied = apply_file(*path, config); !applied)
      return tl::unexpected(std::move(applied).error());
  if (auto applied = apply_variables(get, config); !applied)
    return tl::unexpected(std::move(applied).error());
  const Result<bool> observe = flag_of(get, "PENSTOCK_OBSERVE");
  if (!observe) return tl::unexpected(observe.error());
  if (*observe && config.mode == Mode::serve) config.mode = Mode::observe;
  return config;
}

}  // namespace

Result<void> apply_setting(std::string_view name, std::string_view value, Config& config) {
  std::vector<std::string_view> valid;
  for (const Key& key : kKeys) {
    if (key.name == name) return key.set(value, config);
    valid.push_back(key.name);
  }
  return refuse("key " + not_known(name, valid));
}

Result<void> apply_toml(std::string_view text, Config& config) {
  if (text.size() > kLargestFile) return refuse("larger than 1MiB");
  if (too_many_dots(text)) return refuse("more dots than any configuration needs");
  try {
    return parse_and_apply(text, config);
  } catch (const std::exception& e) {  // the parser's allocations
    return fail(ErrorClass::no_memory, "configuration", e.what());
  }
}

Result<Config> load_config(const GetVariable& get) {
  const Result<bool> disabled = flag_of(get, "PENSTOCK_DISABLE");
  if (!disabled) return tl::unexpected(disabled.error());
  if (!*disabled) return load_enabled(get);
  Config off;  // a true no-op: no file is read, no other variable can be wrong
  off.mode = Mode::off;
  return off;
}

}  // namespace penstock::engine
