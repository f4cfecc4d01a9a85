// The settings one by one. Every value becomes text first, so that a key means the same in a file,
// in a variable, in an option and in a hint.
#include "engine/config.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/units.hpp"
#include "engine/config_keys.hpp"

namespace penstock::engine {
namespace {

// ---- one setter per key, from text

Result<void> set_flag(bool& flag, std::string_view key, std::string_view value) {
  return parse_flag(key, value).map([&](bool yes) { flag = yes; });
}

bool was_said(std::string_view key, const Config& c) {
  return std::ranges::any_of(c.given, [&](const Assignment& a) { return a.key == key; });
}

// Of a method that another replaces, what no later word has changed.
void take_back(const WriteBehindOptions& w, Config& c) {
  if (!was_said("write_behind", c)) c.write_behind = WriteBehind::automatic;
  if (w.page_bytes != 0 && !was_said("write_behind_page", c)) c.write_behind_page_bytes = 0;
  if (w.limit_bytes != 0 && !was_said("write_behind_limit", c)) c.write_behind_limit_bytes = 0;
  if (w.seconds != 0 && !was_said("write_behind_seconds", c)) c.write_behind_seconds = 0;
}

// A method named write_behind says what it has to say of these; later words win.
void set_write_behind(const WriteBehindOptions& w, Config& c) {
  c.write_behind = WriteBehind::automatic;
  if (w.page_bytes != 0) c.write_behind_page_bytes = w.page_bytes;
  if (w.limit_bytes != 0) c.write_behind_limit_bytes = w.limit_bytes;
  if (w.seconds != 0) c.write_behind_seconds = w.seconds;
}

Result<void> set_method(std::string_view value, Config& c) {
  if (value == "off" || value == "observe") {
    c.mode = value == "off" ? Mode::off : Mode::observe;
    return {};
  }
  return parse_method(value).map([&](const Method& m) {
    c.mode = Mode::serve;
    if (c.method.write_behind) take_back(*c.method.write_behind, c);
    c.method = m;
    c.left_alone.clear();
    if (m.write_behind) set_write_behind(*m.write_behind, c);
  });
}

// What is off stays off, where one layer says both.
Result<void> set_observe(std::string_view value, Config& c) {
  bool observe = false;
  return parse_flag("observe", value).map([&](bool yes) {
    observe = yes;
    if (observe && c.mode == Mode::serve) c.mode = Mode::observe;
  });
}

Result<void> set_writers(std::string_view value, Config& c) {
  int64_t n = 0;
  const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (code != std::errc() || stop != value.data() + value.size())
    return refuse_config("writers must be an integer, got " + quote(value));
  return check_writers(n).map([&](int writers) { c.method.parameters.writers = writers; });
}

Result<void> set_cycle(std::string_view value, Config& c) {
  return parse_size(value, "cycle").and_then(check_cycle).map([&](int64_t bytes) {
    c.method.parameters.cycle_bytes = bytes;
  });
}

Result<void> set_read(std::string_view value, Config& c) {
  if (value != "engine" && value != "pass")
    return refuse_config("read must be engine or pass, got " + quote(value));
  c.reads = value == "engine" ? Reads::engine : Reads::pass;
  return {};
}

Result<void> set_write_behind(std::string_view value, Config& c) {
  if (value != "auto" && value != "off")
    return refuse_config("write_behind must be auto or off, got " + quote(value));
  c.write_behind = value == "auto" ? WriteBehind::automatic : WriteBehind::off;
  return {};
}

Result<void> set_write_behind_seconds(std::string_view value, Config& c) {
  int64_t n = 0;
  const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (code != std::errc() || stop != value.data() + value.size())
    return refuse_config("write_behind_seconds must be an integer, got " + quote(value));
  return check_behind_seconds(n).map([&](int seconds) { c.write_behind_seconds = seconds; });
}

Result<void> set_visibility(std::string_view value, Config& c) {
  if (value != "immediate" && value != "relaxed")
    return refuse_config("visibility must be immediate or relaxed, got " + quote(value));
  c.visibility = value == "relaxed" ? Visibility::relaxed : Visibility::immediate;
  return {};
}

Result<void> set_write_behind_page(std::string_view value, Config& c) {
  return parse_size(value, "write_behind_page").and_then(check_behind_page).map([&](int64_t n) {
    c.write_behind_page_bytes = n;
  });
}

Result<void> set_write_behind_limit(std::string_view value, Config& c) {
  return parse_size(value, "write_behind_limit").and_then(check_behind_limit).map([&](int64_t n) {
    c.write_behind_limit_bytes = n;
  });
}

Result<void> set_write_behind_subbuffer(std::string_view value, Config& c) {
  return parse_size(value, "write_behind_subbuffer")
      .and_then(check_behind_subbuffer)
      .map([&](int64_t n) { c.write_behind_load_bytes = n; });
}

Result<void> set_write_behind_progress(std::string_view value, Config& c) {
  const auto progress = exec::progress_named(value);
  if (!progress)
    return refuse_config("write_behind_progress must be calls, thread or rma, got " + quote(value));
  c.write_behind_progress = *progress;
  return {};
}

Result<void> set_log_dir(std::string_view value, Config& c) {
  constexpr size_t kLongest = 3840;  // leaves room for the log's name within PATH_MAX
  if (value.size() > kLongest) return refuse_config("log_dir is too long: " + quote(value));
  if (value.find('\0') != std::string_view::npos)
    return refuse_config("log_dir must not contain a NUL character");
  c.log_dir = value;
  return {};
}

// ---- and one that shows it

std::string spell(bool flag) { return flag ? "true" : "false"; }

std::string show_method(const Config& c) {
  if (c.mode == Mode::off) return "\"off\"";
  if (c.mode == Mode::observe) return "\"observe\"";
  return toml_string(to_string(c.method));
}

std::string show_size(int64_t bytes) { return bytes == 0 ? "0" : toml_string(format_size(bytes)); }

std::string show_writers(const Config& c) {
  return c.method.parameters.writers == 0 ? "" : std::to_string(c.method.parameters.writers);
}

std::string show_cycle(const Config& c) {
  const int64_t bytes = c.method.parameters.cycle_bytes;
  return bytes == 0 ? "" : show_size(bytes);
}

constexpr std::array<Key, 18> kKeys = {{
    {"method", "PENSTOCK_METHOD", "--method", Type::text, true, true, &set_method, &show_method},
    {"observe", "PENSTOCK_OBSERVE", "--observe", Type::flag, false, false, &set_observe,
     [](const Config& c) { return spell(c.mode == Mode::observe); }},
    {"writers", "PENSTOCK_WRITERS", "--writers", Type::integer, true, true, &set_writers,
     &show_writers},
    {"cycle", "PENSTOCK_CYCLE", "--cycle", Type::size, true, true, &set_cycle, &show_cycle},
    {"read", "PENSTOCK_READ", "PENSTOCK_READ", Type::text, true, true, &set_read,
     [](const Config& c) { return toml_string(c.reads == Reads::engine ? "engine" : "pass"); }},
    {"write_behind", "PENSTOCK_WRITE_BEHIND", "PENSTOCK_WRITE_BEHIND", Type::text, true, true,
     &set_write_behind,
     [](const Config& c) {
       return toml_string(c.write_behind == WriteBehind::automatic ? "auto" : "off");
     }},
    {"write_behind_page", "PENSTOCK_WRITE_BEHIND_PAGE", "PENSTOCK_WRITE_BEHIND_PAGE", Type::size,
     true, true, &set_write_behind_page,
     [](const Config& c) { return show_size(c.write_behind_page_bytes); }},
    {"write_behind_limit", "PENSTOCK_WRITE_BEHIND_LIMIT", "PENSTOCK_WRITE_BEHIND_LIMIT", Type::size,
     true, true, &set_write_behind_limit,
     [](const Config& c) { return show_size(c.write_behind_limit_bytes); }},
    {"write_behind_seconds", "PENSTOCK_WRITE_BEHIND_SECONDS", "PENSTOCK_WRITE_BEHIND_SECONDS",
     Type::integer, true, true, &set_write_behind_seconds,
     [](const Config& c) { return std::to_string(c.write_behind_seconds); }},
    {"write_behind_progress", "PENSTOCK_WRITE_BEHIND_PROGRESS", "PENSTOCK_WRITE_BEHIND_PROGRESS",
     Type::text, true, true, &set_write_behind_progress,
     [](const Config& c) { return toml_string(to_string(c.write_behind_progress)); }},
    {"write_behind_subbuffer", "PENSTOCK_WRITE_BEHIND_SUBBUFFER", "PENSTOCK_WRITE_BEHIND_SUBBUFFER",
     Type::size, true, true, &set_write_behind_subbuffer,
     [](const Config& c) { return show_size(c.write_behind_load_bytes); }},
    {"visibility", "PENSTOCK_VISIBILITY", "PENSTOCK_VISIBILITY", Type::text, true, true,
     &set_visibility,
     [](const Config& c) {
       return toml_string(c.visibility == Visibility::relaxed ? "relaxed" : "immediate");
     }},
    {"require", "PENSTOCK_REQUIRE", "--require", Type::flag, true, false,
     [](std::string_view v, Config& c) { return set_flag(c.require, "require", v); },
     [](const Config& c) { return spell(c.require); }},
    {"verify", "PENSTOCK_VERIFY", "--verify", Type::flag, true, true,
     [](std::string_view v, Config& c) { return set_flag(c.verify, "verify", v); },
     [](const Config& c) { return spell(c.verify); }},
    {"quiet", "PENSTOCK_QUIET", "--quiet", Type::flag, true, false,
     [](std::string_view v, Config& c) { return set_flag(c.quiet, "quiet", v); },
     [](const Config& c) { return spell(c.quiet); }},
    {"log", "PENSTOCK_LOG", "--no-log", Type::flag, true, false,
     [](std::string_view v, Config& c) { return set_flag(c.log, "log", v); },
     [](const Config& c) { return spell(c.log); }},
    {"log_dir", "PENSTOCK_LOG_DIR", "--log-dir", Type::text, true, false, &set_log_dir,
     [](const Config& c) { return toml_string(c.log_dir); }},
    // Only the launcher knows it, so a file cannot say it.
    {"all_ranks", "PENSTOCK_ALL_RANKS", "--all-ranks", Type::flag, false, false,
     [](std::string_view v, Config& c) { return set_flag(c.all_ranks, "all_ranks", v); },
     [](const Config& c) { return spell(c.all_ranks); }},
}};

void forget(std::string_view key, Config& config) {
  std::erase_if(config.given, [&](const Assignment& a) { return a.key == key; });
}

void forget_what_it_says(const WriteBehindOptions& w, Config& config) {
  forget("write_behind", config);
  if (w.page_bytes != 0) forget("write_behind_page", config);
  if (w.limit_bytes != 0) forget("write_behind_limit", config);
  if (w.seconds != 0) forget("write_behind_seconds", config);
}

// The last word only; a method takes its options' earlier words with it.
void remember(const Assignment& assignment, Config& config) {
  forget(assignment.key, config);
  if (assignment.key == "method")
    for (const char* option : {"writers", "cycle", "observe"}) forget(option, config);
  if (assignment.key == "method" && config.method.write_behind)
    forget_what_it_says(*config.method.write_behind, config);
  config.given.push_back(assignment);
}

bool was_off_before(Layer layer, const Config& config) {
  if (config.mode != Mode::off) return false;
  return std::any_of(config.given.begin(), config.given.end(),
                     [&](const Assignment& a) { return a.key == "method" && a.layer < layer; });
}

}  // namespace

std::span<const Key> keys() { return kKeys; }

const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys)
    if (key.name == name) return &key;
  return nullptr;
}

tl::unexpected<Error> refuse_config(std::string detail) {
  return fail(ErrorClass::argument, "configuration", std::move(detail));
}

bool is_yes(std::string_view value) { return value == "1" || value == "true"; }
bool is_no(std::string_view value) { return value == "0" || value == "false"; }

Result<bool> parse_flag(std::string_view what, std::string_view value) {
  if (!is_yes(value) && !is_no(value))
    return refuse_config(std::string(what) + " must be 1 or 0 (true or false), got " +
                         quote(value));
  return is_yes(value);
}

Result<void> assign(const Assignment& a, Config& config) {
  const Key& key = *find_key(a.key);
  // A later layer's "observe" is later than an earlier one's "off".
  if (key.name == "observe" && is_yes(a.value) && was_off_before(a.layer, config))
    config.mode = Mode::serve;
  auto set = key.set(a.value, config).map_error([&](Error e) {
    if (!a.source.empty()) e.detail = a.source + ": " + e.detail;
    return e;
  });
  if (set) remember(a, config);
  return set;
}

Result<void> apply_setting(std::string_view name, std::string_view value, Config& config) {
  std::vector<std::string_view> valid;
  for (const Key& key : kKeys) {
    if (key.name == name)
      return assign({std::string(name), std::string(value), "", Layer::hint}, config);
    valid.push_back(key.name);
  }
  return refuse_config("key " + not_known(name, valid));
}

const char* to_string(Layer layer) noexcept {
  switch (layer) {
    case Layer::builtin:
      return "default";
    case Layer::system:
      return "system";
    case Layer::prefix:
      return "prefix";
    case Layer::user:
      return "user";
    case Layer::project:
      return "project";
    case Layer::named_file:
      return "PENSTOCK_CONFIG";
    case Layer::resolved:
      return "penstock run";
    case Layer::variable:
      return "variable";
    case Layer::config_option:
      return "--config";
    case Layer::hint:
      return "hint";
    case Layer::option:
      return "option";
  }
  return "?";
}

}  // namespace penstock::engine
