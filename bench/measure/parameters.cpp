// From the command line to parameters: words by CLI11, values and what must fit together here.
#include "parameters.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "engine/mechanism_options.hpp"
#include "engine/nearest.hpp"
#include "strategy.hpp"

namespace penstock::measure {
namespace {

constexpr int kMostThreads = 1024;

tl::unexpected<Error> refuse(std::string detail) {
  return fail(ErrorClass::argument, "option", std::move(detail));
}

const Option& option(std::string_view name) {
  return *std::ranges::find(options(), name, &Option::name);
}

// --- What was typed ---

struct Typed {
  std::map<std::string, std::string, std::less<>> values;  // by option name
  std::map<std::string, bool, std::less<>> flags;
  std::vector<std::string> hints;
  bool list = false, describe = false, check = false;

  bool has(std::string_view name) const {
    const auto found = values.find(name);
    return found != values.end() && !found->second.empty();
  }
  std::string text(std::string_view name) const {
    return has(name) ? values.find(name)->second : std::string(option(name).fallback);
  }
  bool flag(std::string_view name) const {
    const auto found = flags.find(name);
    return found != flags.end() && found->second;
  }
};

void add(CLI::App& app, const Option& o, Typed& typed) {
  const std::string name(o.name);
  const std::string words = (o.ior.empty() ? "" : "-" + std::string(o.ior) + ",") + "--" + name;
  const std::string help(o.help);
  if (o.kind == Kind::flag) {
    app.add_flag(words, typed.flags[name], help);
    return;
  }
  if (o.kind == Kind::list) {
    app.add_option(words, typed.hints, help)->type_name("KEY=VALUE")->allow_extra_args(false);
    return;
  }
  const std::string type = !o.choices.empty()        ? std::string(o.choices)
                           : o.kind == Kind::size    ? "BYTES"
                           : o.kind == Kind::seconds ? "S"
                           : o.kind == Kind::count   ? "N"
                                                     : "TEXT";
  app.add_option(words, typed.values[name], help)
      ->type_name(type)
      ->default_str(std::string(o.fallback));
}

// --- One value ---

Result<int64_t> size_of(const Typed& typed, std::string_view name) {
  return parse_size(typed.text(name), "--" + std::string(name));
}

Result<int64_t> count_of(std::string_view name, const std::string& text, int64_t least,
                         int64_t most) {
  int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && stop == text.data() + text.size() && value >= least && value <= most)
    return value;
  return refuse("--" + std::string(name) + " must be a number from " + std::to_string(least) +
                " to " + std::to_string(most) + ", got \"" + text + "\"");
}

Result<double> seconds_of(const Typed& typed, std::string_view name) {
  const std::string text = typed.text(name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && std::isfinite(value) && value >= 0 && value < 1e6)
    return value;
  return refuse("--" + std::string(name) + " must be seconds, 0 or more, got \"" + text + "\"");
}

// The place of a word among the choices.
Result<int> choice_of(std::string_view name, const std::string& word) {
  std::vector<std::string_view> words;
  std::string_view rest = option(name).choices;
  for (;;) {
    const size_t bar = rest.find('|');
    words.push_back(rest.substr(0, bar));
    if (bar == std::string_view::npos) break;
    rest.remove_prefix(bar + 1);
  }
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return int(found - words.begin());
  return refuse("--" + std::string(name) + " " + engine::not_known(word, words));
}

// --- The parameters, one group after the other ---

class Reader {
 public:
  Reader(const Typed& typed, Workers workers) : t_(typed), workers_(workers) {}

  Result<Parameters> read() {
    using Step = Result<void> (Reader::*)();
    for (const Step step :
         {&Reader::what, &Reader::how_much, &Reader::memory, &Reader::pattern, &Reader::method,
          &Reader::access, &Reader::surroundings, &Reader::hints})
      if (auto ok = (this->*step)(); !ok) return tl::unexpected(ok.error());
    return std::move(p_);
  }

 private:
  template <class T>
  Result<void> choose(std::string_view name, T& into) {
    auto index = choice_of(name, t_.text(name));
    if (!index) return tl::unexpected(index.error());
    into = T(*index);
    note(name, t_.text(name));
    return {};
  }
  Result<void> size(std::string_view name, int64_t& into) {
    auto value = size_of(t_, name);
    if (!value) return tl::unexpected(value.error());
    into = *value;
    note(name, std::to_string(into));
    return {};
  }
  Result<void> seconds(std::string_view name, double& into) {
    auto value = seconds_of(t_, name);
    if (!value) return tl::unexpected(value.error());
    into = *value;
    note(name, nlohmann::json(into).dump());
    return {};
  }
  template <class T>
  Result<void> count(std::string_view name, const std::string& text, int64_t least, int64_t most,
                     T& into) {
    auto value = count_of(name, text, least, most);
    if (!value) return tl::unexpected(value.error());
    into = T(*value);
    note(name, std::to_string(*value));
    return {};
  }
  void note(std::string_view name, std::string value) {
    std::string key(name);
    std::ranges::replace(key, '-', '_');
    p_.resolved.emplace_back(std::move(key), std::move(value));
  }
  // Two options for one thing: the flag must not contradict the option.
  Result<void> same_as(std::string_view flag, std::string_view name, std::string_view value) {
    if (!t_.flag(flag) || !t_.has(name) || t_.text(name) == value) return {};
    return refuse("--" + std::string(flag) + " means --" + std::string(name) + " " +
                  std::string(value) + ", but --" + std::string(name) + " " + t_.text(name) +
                  " was given: leave one out");
  }

  Result<void> what() {
    p_.file = t_.text("file");
    if (p_.file.empty())
      return refuse(
          "--file is missing: name the file that is to be written, on the file system "
          "that is to be measured");
    note("file", p_.file);
    if (auto ok = choose("route", p_.route); !ok) return ok;
    if (p_.route == RouteKind::mpi && workers_ == Workers::threads)
      return refuse(
          "--route mpi needs an MPI program: start penstock-measure-mpich or -openmpi by "
          "its mpiexec");
    if (auto ok = same_as("write", "op", "write"); !ok) return ok;
    if (auto ok = same_as("read", "op", "read"); !ok) return ok;
    if (t_.flag("write") && t_.flag("read"))
      return refuse("--write and --read: one run measures one of them");
    if (auto ok = choose("op", p_.op); !ok) return ok;
    if (t_.flag("read")) {
      p_.op = Op::read;
      p_.resolved.back().second = "read";
    }
    if (p_.op == Op::read && p_.route == RouteKind::engine) return refuse(why_engine_cannot_read());
    return {};
  }

  Result<void> how_much() {
    const std::string threads = t_.has("threads")          ? t_.text("threads")
                                : workers_ == Workers::mpi ? "1"
                                                           : "2";
    if (auto ok = count("threads", threads, 1, kMostThreads, p_.threads); !ok) return ok;
    if (auto ok = count("iters", t_.text("iters"), 1, int64_t{1} << 40, p_.iterations); !ok)
      return ok;
    if (auto ok = size("bufsize", p_.bufsize_bytes); !ok) return ok;
    if (p_.bufsize_bytes < 1) return refuse("--bufsize must be at least 1 byte, got 0");
    if (auto ok = seconds("comptime", p_.compute_s); !ok) return ok;
    if (auto ok = size("syncsize", p_.syncsize_bytes); !ok) return ok;
    p_.sync_each = t_.flag("sync-each");
    note("sync-each", p_.sync_each ? "true" : "false");
    if (p_.op == Op::read && (p_.sync_each || p_.syncsize_bytes > 0))
      return refuse("--op read has nothing to sync: leave --sync-each and --syncsize out");
    if (p_.sync_each && p_.syncsize_bytes > 0)
      return refuse("--sync-each and --syncsize: leave one out");
    if (auto ok = size("winsize", p_.winsize_bytes); !ok) return ok;
    return {};
  }

  Result<void> memory() {
    MemoryShape& m = p_.memory;
    if (auto ok = size("len", m.len_bytes); !ok) return ok;
    if (auto ok = size("stride", m.stride_bytes); !ok) return ok;
    if ((m.len_bytes > 0) != (m.stride_bytes > 0))
      return refuse("--len and --stride belong together: one of them is missing");
    if (m.len_bytes > m.stride_bytes)
      return refuse("--len must be at most --stride, got " + t_.text("len") + " and " +
                    t_.text("stride"));
    constexpr int64_t kLongest = int64_t{1} << 30;
    if (m.stride_bytes > kLongest)
      return refuse("--stride must be at most 1GiB, got " + t_.text("stride"));
    return {};
  }

  Result<void> pattern() {
    int64_t segment = 0;
    if (auto ok = size("segment", segment); !ok) return ok;
    if (segment > 0 && t_.has("pattern"))
      return refuse("--segment is --pattern interleaved:BYTES: leave one out");
    const std::string text =
        segment > 0 ? "interleaved:" + std::to_string(segment) : t_.text("pattern");
    auto choice = parse_pattern(text);
    if (!choice) return tl::unexpected(choice.error());
    p_.pattern = *choice;
    note("pattern", to_string(*choice));
    return {};
  }

  // "S1A", "S1A + pwrite": the strategy, and the mechanism after the plus.
  const Strategy* strategy(std::string& mechanism) const {
    const std::string text = t_.text("method");
    const size_t plus = text.find('+');
    const auto trim = [](std::string s) {
      s.erase(0, s.find_first_not_of(' '));
      return s.erase(s.find_last_not_of(' ') + 1);
    };
    const Strategy* found = find_strategy(trim(text.substr(0, plus)));
    if (found != nullptr && plus != std::string::npos) mechanism = trim(text.substr(plus + 1));
    return found;
  }

  Result<void> method() {
    if (p_.route != RouteKind::engine) return no_method();
    std::string mechanism = "pwrite", text = t_.text("method");
    const Strategy* s = strategy(mechanism);
    if (s != nullptr) {
      p_.strategy = s->name;
      p_.policy_syncs = true;
      p_.dedicated = s->dedicated;
      text = method_text(*s, mechanism, p_.syncsize_bytes);
    }
    auto parsed = engine::parse_method(text);
    if (!parsed) return refuse("--method " + t_.text("method") + ": " + parsed.error().detail);
    p_.method = *parsed;
    if (auto ok = method_options(); !ok) return ok;
    note("method", to_string(p_.method));
    note("strategy", p_.strategy);
    return files(s);
  }

  Result<void> no_method() {
    for (const std::string_view name : {"method", "writers", "cycle", "winsize"})
      if (t_.has(name))
        return refuse("--" + std::string(name) + " is the engine's: it needs --route engine, got " +
                      t_.text("route") + (p_.route == RouteKind::mpi ? "; use --hint" : ""));
    return files(nullptr);
  }

  Result<void> method_options() {
    int64_t writers = 0, cycle = 0;
    if (auto ok = count("writers", t_.text("writers"), 0, engine::kMaxWriters, writers); !ok)
      return ok;
    if (auto ok = size("cycle", cycle); !ok) return ok;
    if (writers > 0) p_.method.parameters.writers = int(writers);
    if (cycle > 0) {
      auto checked = engine::check_cycle(cycle);
      if (!checked) return refuse("--cycle: " + checked.error().detail);
      p_.method.parameters.cycle_bytes = *checked;
    }
    if (p_.winsize_bytes > 0) {
      auto set = engine::set_mechanism_option("window", t_.text("winsize"), p_.method);
      if (!set) return refuse("--winsize " + t_.text("winsize") + ": " + set.error().detail);
    }
    auto fits = engine::check(p_.method);
    return fits ? fits : refuse("--method: " + fits.error().detail);
  }

  Result<void> files(const Strategy* s) {
    if (auto ok = same_as("file-per-worker", "files", "per_worker"); !ok) return ok;
    const std::string_view own =
        s != nullptr && s->files == Files::per_worker ? "per_worker" : "shared";
    std::string text = t_.flag("file-per-worker") ? "per_worker" : t_.text("files");
    if (text.empty()) text = own;
    auto index = choice_of("files", text);
    if (!index) return tl::unexpected(index.error());
    p_.files = Files(*index);
    note("files", text);
    if (s != nullptr && p_.files != s->files)
      return refuse("strategy " + std::string(s->name) + " needs --files " + std::string(own) +
                    ", got " + text);
    return {};
  }

  Result<void> access() {
    if (auto ok = same_as("collective", "access", "collective"); !ok) return ok;
    const Strategy* s = find_strategy(p_.strategy);
    const bool alone =
        p_.route == RouteKind::posix || (s != nullptr && s->access == Access::independent);
    std::string text = t_.flag("collective") ? "collective" : t_.text("access");
    if (text.empty()) text = alone ? "independent" : "collective";
    auto index = choice_of("access", text);
    if (!index) return tl::unexpected(index.error());
    p_.access = Access(*index);
    note("access", text);
    if (p_.dedicated && p_.access == Access::independent)
      return refuse("strategy " + p_.strategy +
                    ": every worker hands its bytes to the writer; leave --access independent out");
    if (p_.route == RouteKind::posix && p_.access == Access::collective)
      return refuse(
          "--access collective: POSIX calls are each worker's own; leave it out, or use "
          "--route engine or mpi");
    return {};
  }

  Result<void> surroundings() {
    if (t_.flag("sync-at-end") && t_.has("end") && t_.text("end") != "sync")
      return refuse("--sync-at-end means --end sync, but --end " + t_.text("end") + " was given");
    if (auto ok = choose("end", p_.end); !ok) return ok;
    if (auto ok = choose("regime", p_.regime); !ok) return ok;
    if (p_.op == Op::write && p_.regime == Regime::dropped)
      return refuse(
          "--regime dropped is for a file that is read: give --op read, or --regime asis");
    if (auto ok = size("warm-memory", p_.warm_memory_bytes); !ok) return ok;
    if (auto ok = choose("page-reports", p_.page_reports); !ok) return ok;
    if (auto ok = size("warm-disk", p_.warm_disk_bytes); !ok) return ok;
    if (auto ok = choose("verify", p_.verify); !ok) return ok;
    if (auto ok = choose("barrier", p_.barrier); !ok) return ok;
    const std::string fill = t_.has("fill") ? t_.text("fill") : p_.compute_s > 0 ? "each" : "once";
    auto index = choice_of("fill", fill);
    if (!index) return tl::unexpected(index.error());
    p_.fill = Fill(*index);
    note("fill", fill);
    if (auto ok = seconds("bins", p_.bin_s); !ok) return ok;
    constexpr double kFinest = 1e-3;
    if (p_.bin_s > 0 && p_.bin_s < kFinest)
      return refuse("--bins must be 0 or at least 0.001 s, got " + t_.text("bins"));
    if (auto ok = seconds("patience", p_.patience_s); !ok) return ok;
    p_.each_call = t_.flag("each-call");
    note("each-call", p_.each_call ? "true" : "false");
    return count("seed", t_.text("seed"), 0, INT64_MAX, p_.seed);
  }

  Result<void> hints() {
    for (const std::string& hint : t_.hints) {
      const size_t equals = hint.find('=');
      if (equals == 0 || equals == std::string::npos)
        return refuse("--hint must be KEY=VALUE, got \"" + hint + "\"");
      p_.hints.emplace_back(hint.substr(0, equals), hint.substr(equals + 1));
    }
    if (p_.route == RouteKind::mpi || p_.hints.empty()) return {};
    return refuse("--hint needs --route mpi, got --route " + t_.text("route"));
  }

  const Typed& t_;
  Workers workers_;
  Parameters p_;
};

const char* to_string(Kind kind) {
  constexpr const char* kNames[] = {"text", "size", "count", "seconds", "choice", "flag", "list"};
  return kNames[size_t(kind)];
}

std::string describe_json(Workers workers) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Option& o : options()) {
    std::string fallback(o.fallback);
    if (o.name == "threads") fallback = workers == Workers::mpi ? "1" : "2";
    nlohmann::ordered_json one;
    one["name"] = o.name;
    one["ior"] = o.ior.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(o.ior);
    one["kind"] = to_string(o.kind);
    one["default"] = fallback.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(fallback);
    one["unit"] = o.unit.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(o.unit);
    one["choices"] = nlohmann::ordered_json::array();
    std::string_view rest = o.choices;
    while (!rest.empty()) {
      const size_t bar = rest.find('|');
      one["choices"].push_back(rest.substr(0, bar));
      rest.remove_prefix(bar == std::string_view::npos ? rest.size() : bar + 1);
    }
    one["help"] = o.help;
    list.push_back(std::move(one));
  }
  return nlohmann::ordered_json{{"schema", "penstock.measure-options/1"}, {"options", list}}.dump();
}

}  // namespace

Request read_command_line(const std::string& program, Workers workers, int argc,
                          const char* const* argv) {
  CLI::App app{"Writes (or reads) one file in one way, and prints one line of JSON about it.",
               program};
  app.set_version_flag("--version", program + " " PENSTOCK_VERSION);
  Typed typed;
  for (const Option& o : options()) add(app, o, typed);
  app.add_flag("--list", typed.list, "routes, strategies, patterns and methods, as JSON");
  app.add_flag("--describe", typed.describe, "every option, as JSON");
  app.add_flag("--check", typed.check, "nothing but whether the options can be used");
  app.footer(
      "Sizes: 4MiB is 2^22 bytes, 4MB is 4*10^6. Exit codes: 0 measured; 1 an I/O call failed "
      "or bytes are wrong (the JSON line tells); 2 wrong usage.");
  Request request;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {Request::Kind::print, {}, app.help()};
  } catch (const CLI::CallForVersion&) {
    return {Request::Kind::print, {}, app.version() + "\n"};
  } catch (const CLI::ParseError& e) {
    return {Request::Kind::wrong, {}, std::string(e.what()) + "; --help lists the options"};
  }
  if (typed.list) return {Request::Kind::print, {}, list_json(workers) + "\n"};
  if (typed.describe) return {Request::Kind::print, {}, describe_json(workers) + "\n"};
  auto parameters = Reader(typed, workers).read();
  if (!parameters) return {Request::Kind::wrong, {}, parameters.error().detail};
  if (typed.check) return {Request::Kind::print, {}, ""};
  return {Request::Kind::measure, *std::move(parameters), ""};
}

}  // namespace penstock::measure
