// The layers, lowest first. Only here is it known that a variable may really be an option
// (PENSTOCK_OPTIONS), and that a run may have been resolved elsewhere (PENSTOCK_RESOLVED).
#include <dlfcn.h>
#include <errno.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "engine/config_files.hpp"
#include "engine/config_keys.hpp"

namespace penstock::engine {
namespace {

constexpr std::string_view kPrefix = "PENSTOCK_";

// Variables that are no settings: for people, and among ourselves.
constexpr std::array<std::string_view, 5> kOthers = {"PENSTOCK_CONFIG", "PENSTOCK_DISABLE",
                                                     "PENSTOCK_ISOLATED", "PENSTOCK_NATIVE_DIR",
                                                     "PENSTOCK_JOB_ID"};
constexpr std::array<std::string_view, 6> kOurs = {"PENSTOCK_OPTIONS",     "PENSTOCK_RESOLVED",
                                                   "PENSTOCK_SUITE_RUN",   "PENSTOCK_SEEDED_FAULT",
                                                   "PENSTOCK_DEMO_INSIDE", "PENSTOCK_BASE_PYTHON"};
constexpr std::string_view kTests = "PENSTOCK_TEST_";

class Loader {
 public:
  explicit Loader(const Surroundings& surroundings) : s_(surroundings) {}
  Result<Config> load();
  Config load_in_spite();

 private:
  std::string value_of(std::string_view name) const {
    const auto found = s_.variables.find(name);
    return found == s_.variables.end() ? std::string() : found->second;  // empty: unset
  }
  bool is_option(const char* variable) const;
  Result<bool> flag_of(const char* name) const;
  bool off_outright() const;
  Result<void> apply_file(const Candidate& candidate);
  void take_in_spite(const Candidate& candidate);
  Result<void> apply_resolved();
  Result<void> apply_variables(Layer layer);
  Result<void> apply_variable(const Key& key, Layer layer);
  Result<void> apply_layers();
  Result<void> check_whole() const;
  Result<void> check_names();
  Result<void> settle();

  const Surroundings& s_;
  Config config_;
};

// PENSTOCK_OPTIONS is "METHOD,LOG_DIR": the variables that penstock-exec and `penstock run` set for
// options.
bool Loader::is_option(const char* variable) const {
  const std::string listed = value_of("PENSTOCK_OPTIONS") + ",";
  const std::string name = std::string(variable).substr(kPrefix.size()) + ",";
  const size_t at = listed.find(name);
  return at == 0 || listed.find(std::string(",").append(name)) != std::string::npos;
}

Result<bool> Loader::flag_of(const char* name) const {
  const std::string value = value_of(name);
  return value.empty() ? Result<bool>(false) : parse_flag(name, value);
}

// "off" that no other layer can take back: then no file is read, and none can be wrong.
bool Loader::off_outright() const {
  if (s_.reader == Surroundings::Reader::c_api) return false;
  if (value_of("PENSTOCK_METHOD") != "off") return false;
  return is_option("PENSTOCK_METHOD") ||
         (!is_option("PENSTOCK_OBSERVE") && !is_option("PENSTOCK_CONFIG"));
}

Result<void> Loader::apply_file(const Candidate& candidate) {
  const auto text = read_trusted(candidate);
  if (!text) return tl::unexpected(text.error());
  if (!*text) return {};
  auto parsed = parse_toml(**text, candidate.path, candidate.layer);
  if (!parsed) return tl::unexpected(std::move(parsed).error());
  return apply_parsed(*std::move(parsed), config_);
}

Result<void> Loader::apply_resolved() {
  const std::string text = value_of("PENSTOCK_RESOLVED");
  if (text.empty()) return {};
  auto parsed = parse_resolved(text);
  if (!parsed) return tl::unexpected(std::move(parsed).error());
  return apply_parsed(*std::move(parsed), config_);
}

// The variables proper, or those that stand for options.
Result<void> Loader::apply_variables(Layer layer) {
  for (const Key& key : keys())
    if (auto done = apply_variable(key, layer); !done) return done;
  return {};
}

Result<void> Loader::apply_variable(const Key& key, Layer layer) {
  const std::string value = value_of(key.variable);
  const bool option = is_option(key.variable);
  if (value.empty() || option != (layer == Layer::option)) return {};
  const Assignment one{std::string(key.name), value, option ? key.option : key.variable, layer};
  if (auto done = assign(one, config_); !done) return done;
  if (option) config_.options.push_back(one);
  return {};
}

Result<void> Loader::apply_layers() {
  const bool config_is_option = is_option("PENSTOCK_CONFIG");
  const std::vector<Candidate> files = candidates(s_, config_is_option);
  if (auto r = apply_resolved(); !r) return r;
  for (const Candidate& file : files)
    if (file.layer < Layer::variable)
      if (auto r = apply_file(file); !r) return r;
  if (auto r = apply_variables(Layer::variable); !r) return r;
  for (const Candidate& file : files)
    if (file.layer > Layer::variable)
      if (auto r = apply_file(file); !r) return r;
  return apply_variables(Layer::option);
}

// Values were checked one by one; here is what must fit together.
Result<void> Loader::check_whole() const {
  std::string who;
  for (const Assignment& a : config_.given)
    if (a.key == "method" || a.key == "writers" || a.key == "cycle")
      who += (who.empty() ? "" : " and ") + a.source;
  if (auto legal = check(config_.method); !legal)
    return legal.map_error([&](Error e) {
      if (!who.empty()) e.detail = who + ": " + e.detail;
      return e;
    });
  for (const FileRule& rule : config_.files) {
    Config one = config_;
    for (const Assignment& a : rule.settings)
      if (auto done = assign(a, one); !done) return done;
    auto legal = apply_options_again(one).and_then([&] { return check(one.method); });
    if (legal) continue;
    return legal.map_error([&](Error e) {
      e.detail = rule.source + ": [[file]]: " + e.detail;
      return e;
    });
  }
  return {};
}

bool is_known(std::string_view name) {
  const auto is = [&](std::string_view other) { return other == name; };
  return name.starts_with(kTests) || std::any_of(kOthers.begin(), kOthers.end(), is) ||
         std::any_of(kOurs.begin(), kOurs.end(), is) ||
         std::any_of(keys().begin(), keys().end(), [&](const Key& k) { return is(k.variable); });
}

// A variable may come from a module or a newer Penstock, so it does not stop a job; but it is said.
Result<void> Loader::check_names() {
  if (!value_of("PENSTOCK_RESOLVED").empty()) return {};  // the launcher said it
  std::vector<std::string_view> valid(kOthers.begin(), kOthers.end());
  for (const Key& key : keys()) valid.emplace_back(key.variable);
  for (const auto& [name, value] : s_.variables) {
    if (!name.starts_with(kPrefix) || is_known(name)) continue;
    const std::string near = nearest(name, valid);
    const std::string text = "the variable " + quote(name) + " is not known and has no effect" +
                             (near.empty() ? "" : "; did you mean " + near + "?");
    if (config_.require) return refuse_config(text);
    config_.notices.push_back(text);
  }
  return {};
}

// A file is one node's: ranks elsewhere may have read another one, and would wait for ever for a
// rank that is off in a collective of theirs. So such a rank takes part and takes nothing over.
void meet_the_others(Config& config) {
  if (!config.quiet) config.notices.push_back(config.left_alone);
  config.mode = Mode::observe;
  config.log = false;
  config.quiet = true;
}

Result<void> Loader::settle() {
  if (s_.reader == Surroundings::Reader::c_api) return {};
  config_.left_alone = why_left_alone(config_, s_.program);
  bool by_file = !config_.left_alone.empty();
  for (const Assignment& a : config_.given) {
    if (config_.mode != Mode::off || by_file || a.key != "method") continue;
    config_.left_alone = "method is off (" + a.source + "): all MPI-IO goes to the MPI library";
    by_file = a.layer != Layer::variable && a.layer != Layer::option;
  }
  if (config_.left_alone.empty() && config_.mode == Mode::observe && config_.require)
    return refuse_config("method is observe, which takes over nothing, but require is set");
  if (config_.left_alone.empty()) return {};
  if (by_file && config_.require)
    return refuse_config(config_.left_alone + ", but require is set; --method auto overrides it");
  config_.mode = Mode::off;
  if (by_file && s_.reader == Surroundings::Reader::rank) meet_the_others(config_);
  return {};
}

Result<Config> Loader::load() {
  const Result<bool> disabled = s_.secure ? true : flag_of("PENSTOCK_DISABLE");
  if (!disabled) return tl::unexpected(disabled.error());
  if (*disabled) {  // a true no-op: no file is read, no other variable can be wrong
    config_.mode = Mode::off;
    return config_;
  }
  if (off_outright()) {
    const bool option = is_option("PENSTOCK_METHOD");
    return assign({"method", "off", option ? "--method" : "PENSTOCK_METHOD",
                   option ? Layer::option : Layer::variable},
                  config_)
        .and_then([&] { return settle(); })
        .map([&] { return config_; });
  }
  if (auto flag = flag_of("PENSTOCK_ISOLATED"); !flag) return tl::unexpected(flag.error());
  auto done = apply_layers()
                  .and_then([&] { return check_whole(); })
                  .and_then([&] { return check_names(); })
                  .and_then([&] { return settle(); });
  if (!done) return tl::unexpected(std::move(done).error());
  return config_;
}

constexpr std::array<std::string_view, 4> kInSpite = {"all_ranks", "require", "log", "log_dir"};

bool holds_in_spite(std::string_view key) {
  return std::ranges::find(kInSpite, key) != kInSpite.end();
}

void Loader::take_in_spite(const Candidate& candidate) {
  const auto text = read_trusted(candidate);
  if (!text || !*text) return;
  const auto parsed = parse_toml(**text, candidate.path, candidate.layer);
  if (!parsed) return;
  for (const Assignment& a : parsed->settings)
    if (holds_in_spite(a.key)) (void)assign(a, config_);
}

// Each by itself: whichever is wrong stays as it is by default, and so does a file's that cannot be
// understood.
Config Loader::load_in_spite() {
  (void)apply_resolved();
  const std::vector<Candidate> files = candidates(s_, is_option("PENSTOCK_CONFIG"));
  for (const Layer layer : {Layer::variable, Layer::option}) {
    for (const Candidate& file : files)
      if ((file.layer < Layer::variable) == (layer == Layer::variable)) take_in_spite(file);
    for (const Key& key : keys())
      if (holds_in_spite(key.name)) (void)apply_variable(key, layer);
  }
  Config some;
  some.all_ranks = config_.all_ranks;
  some.require = config_.require;
  some.log = config_.log;
  some.log_dir = config_.log_dir;
  return some;
}

std::string link_target(const char* path) {
  char target[4096];
  const ssize_t n = ::readlink(path, target, sizeof target);
  return n > 0 && size_t(n) < sizeof target ? std::string(target, size_t(n)) : std::string();
}

std::string own_directory() {
  Dl_info own;
  if (::dladdr(reinterpret_cast<const void*>(&load_config), &own) == 0) return "";
  const std::string path = own.dli_fname == nullptr ? "" : own.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

Surroundings this_process() {
  Surroundings s;
  s.secure = ::getauxval(AT_SECURE) != 0;
  if (s.secure) return s;
  for (char** v = environ; v != nullptr && *v != nullptr; ++v) {
    const std::string_view text(*v);
    const std::string_view name = text.substr(0, text.find('='));
    if (name.size() == text.size()) continue;
    if (name.starts_with(kPrefix) || name == "HOME" || name == "XDG_CONFIG_HOME")
      s.variables.emplace(name, text.substr(name.size() + 1));
  }
  char directory[4096];
  if (::getcwd(directory, sizeof directory) != nullptr) s.directory = directory;
  s.library_directory = own_directory();
  s.program = {link_target("/proc/self/exe"), program_invocation_name};
  s.user = ::geteuid();
  return s;
}

Result<Config> load_config(const Surroundings& surroundings) { return Loader(surroundings).load(); }

Config load_config_in_spite(const Surroundings& surroundings) {
  return Loader(surroundings).load_in_spite();
}

std::vector<ConfigFile> config_files(const Surroundings& surroundings) {
  std::vector<ConfigFile> all;
  for (const Candidate& c : candidates(surroundings, false)) {
    ConfigFile file{c.path, c.layer, true, ""};
    const auto text = read_trusted(c);
    if (!text) {
      file.problem = text.error().message();
    } else if (!*text) {
      file.exists = false;
    } else if (const auto parsed = parse_toml(**text, c.path, c.layer); !parsed) {
      file.problem = parsed.error().message();
    }
    all.push_back(std::move(file));
  }
  return all;
}

}  // namespace penstock::engine
