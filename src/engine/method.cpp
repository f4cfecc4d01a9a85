// Reading and writing methods. Text becomes parts, each family turns its part into a choice, and
// check() has the last word on combinations.
#include "engine/method.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/units.hpp"
#include "engine/mechanism_options.hpp"
#include "engine/method_part.hpp"
#include "engine/nearest.hpp"
#include "exec/stager.hpp"

namespace penstock::engine {
namespace {

constexpr size_t kLongestText = 1024;
constexpr std::string_view kWriteBehind = "write_behind";
constexpr std::array<std::string_view, 4> kBehindOptions = {"stages", "page", "limit", "seconds"};
constexpr const char* kOrder = "algorithm + exchange + mechanism + sync + return";
constexpr int64_t kAnticipatedBytes = kMiB;

// ---- the families and their words

struct Family {
  std::string_view name;
  std::vector<std::string_view> valid;
};

template <class List>
std::vector<std::string_view> names_of(const List& list) {
  std::vector<std::string_view> names;
  for (const auto* item : list) names.push_back(item->name);
  return names;
}

Family algorithm_family() {
  Family f{"algorithm", names_of(plan::algorithms())};
  f.valid.insert(f.valid.begin(), "auto");
  f.valid.push_back(kWriteBehind);
  return f;
}

Family exchange_family() {
  Family f{"exchange", names_of(exec::exchanges())};
  f.valid.insert(f.valid.begin(), "none");
  return f;
}

Family mechanism_family() { return {"mechanism", names_of(io::mechanisms())}; }
Family sync_family() { return {"sync", names_of(io::sync_policies())}; }
Family return_family() { return {"return", {"written", "staged"}}; }

bool contains(const std::vector<std::string_view>& words, std::string_view word) {
  for (const std::string_view w : words)
    if (w == word) return true;
  return false;
}

// The first algorithm with an option of this name; nullptr when none has one.
const plan::Algorithm* algorithm_with(std::string_view option) {
  for (const plan::Algorithm* a : plan::algorithms())
    for (const plan::OptionInfo& o : a->options)
      if (o.name == option) return a;
  return nullptr;
}

std::string placed(const Family& family, std::string_view word) {
  return "; " + std::string(family.name) + " " + std::string(word) + " has its place in " + kOrder;
}

// Of a word that is not of the family whose turn it is: where it would be right, or nothing. What
// is another's own word is not taken for a misspelt one; of a word of two families (none) the one
// that comes next is meant, since what is left out is what lies between.
std::string right_place(std::string_view word, std::string_view turn) {
  if (const plan::Algorithm* a = algorithm_with(word))
    return "; " + std::string(word) + " is an option of algorithms, as in " + std::string(a->name) +
           "(" + std::string(word) + "=..)";
  std::array all = {algorithm_family(), exchange_family(), mechanism_family(), sync_family(),
                    return_family()};
  std::rotate(all.begin(), std::ranges::find(all, turn, &Family::name), all.end());
  for (const Family& f : all)
    if (contains(f.valid, word)) return placed(f, word);
  for (const Family& f : all)
    if (const std::string near = nearest(word, f.valid); !near.empty()) return placed(f, near);
  return "";
}

Result<void> require_valid(const Family& family, std::string_view word) {
  if (contains(family.valid, word)) return {};
  const bool near = !nearest(word, family.valid).empty();
  return refuse(std::string(family.name) + " " + not_known(word, family.valid) +
                (near ? "" : right_place(word, family.name)));
}

// Only some syncs are spelled word=value.
Result<void> require_no_value(const Family& family, const Part& part) {
  if (!part.has_value) return {};
  return refuse(std::string(family.name) + " " + std::string(part.word) + " takes no value, got " +
                quote(part.value));
}

Result<void> require_no_options(const Family& family, const Part& part) {
  if (auto ok = require_no_value(family, part); !ok) return ok;
  if (part.options.empty()) return {};
  return fail(ErrorClass::unsupported, "method",
              std::string(family.name) + " " + std::string(part.word) + " has no option " +
                  quote(part.options.front().key) + " in this version");
}

// ---- options of the algorithm

Result<void> set_option(const Option& option, plan::Parameters& parameters) {
  if (option.key == "writers")
    return read_integer("writers", option.value).and_then(check_writers).map([&](int n) {
      parameters.writers = n;
    });
  if (option.key == "writer")
    return read_integer("writer", option.value).and_then(check_writer).map([&](int rank) {
      parameters.writer = rank;
    });
  if (option.key == "at_once")
    return read_integer("at_once", option.value).and_then(check_at_once).map([&](int ranks) {
      parameters.at_once = ranks;
    });
  if (option.key == "stripe")
    return parse_size(option.value, "stripe").and_then(check_stripe).map([&](int64_t n) {
      parameters.stripe_bytes = n;
    });
  return parse_size(option.value, "cycle").and_then(check_cycle).map([&](int64_t n) {
    parameters.cycle_bytes = n;
  });
}

// ---- and of its short name write_behind

Result<void> set_stages(std::string_view value, WriteBehindOptions& options) {
  if (value != "1" && value != "2") return refuse("stages must be 1 or 2, got " + quote(value));
  options.stages = value == "1" ? 1 : 2;
  return {};
}

Result<void> set_option(const Option& option, WriteBehindOptions& to) {
  if (option.key == "stages") return set_stages(option.value, to);
  if (option.key == "page")
    return parse_size(option.value, "page").and_then(check_behind_page).map([&](int64_t n) {
      to.page_bytes = n;
    });
  if (option.key == "limit")
    return parse_size(option.value, "limit").and_then(check_behind_limit).map([&](int64_t n) {
      to.limit_bytes = n;
    });
  return read_integer("seconds", option.value).and_then(check_behind_seconds).map([&](int n) {
    to.seconds = n;
  });
}

// ---- all of them

// The options that an algorithm's descriptor names; of `auto`, those of what it chooses from.
std::vector<std::string_view> options_of(const plan::Algorithm* algorithm) {
  if (algorithm == nullptr) return {"writers", "cycle"};
  std::vector<std::string_view> names;
  for (const plan::OptionInfo& o : algorithm->options) names.push_back(o.name);
  return names;
}

Result<void> set_options(const Part& part, Method& method) {
  std::vector<std::string_view> valid = options_of(method.algorithm);
  if (method.write_behind)
    valid.insert(valid.begin(), kBehindOptions.begin(), kBehindOptions.end());
  std::vector<std::string_view> seen;
  for (const Option& option : part.options) {
    if (!contains(valid, option.key))
      return refuse("option of " + std::string(part.word) + ": " + not_known(option.key, valid));
    if (contains(seen, option.key)) return refuse(std::string(option.key) + " is given twice");
    seen.push_back(option.key);
    const bool own = std::ranges::find(kBehindOptions, option.key) != kBehindOptions.end();
    Result<void> set =
        own ? set_option(option, *method.write_behind) : set_option(option, method.parameters);
    if (!set) return set;
  }
  return {};
}

Result<void> choose_write_behind(const Part& part, Method& method) {
  method.algorithm = plan::find_algorithm("cyclic");
  method.staged_bytes = exec::kStagedLimitBytes;
  method.write_behind.emplace();
  return set_options(part, method);
}

// "a=1, b=2": what is not left to the engine.
class Options {
 public:
  void add(const char* key, const std::string& value) {
    text_ += (text_.empty() ? "" : ", ") + std::string(key) + "=" + value;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void spell(const WriteBehindOptions& w, Options& options) {
  options.add("stages", std::to_string(w.stages));
  if (w.page_bytes != 0) options.add("page", format_size(w.page_bytes));
  if (w.limit_bytes != 0) options.add("limit", format_size(w.limit_bytes));
  if (w.seconds != 0) options.add("seconds", std::to_string(w.seconds));
}

void spell(const plan::Parameters& p, Options& options) {
  if (p.writers != 0) options.add("writers", std::to_string(p.writers));
  if (p.writer != 0) options.add("writer", std::to_string(p.writer));
  if (p.at_once != 0) options.add("at_once", std::to_string(p.at_once));
  if (p.stripe_bytes != 0) options.add("stripe", format_size(p.stripe_bytes));
  if (p.cycle_bytes != 0) options.add("cycle", format_size(p.cycle_bytes));
}

// "cyclic(writers=4)", or the short name.
std::string spell_algorithm(const Method& m) {
  Options options;
  if (m.write_behind) spell(*m.write_behind, options);
  spell(m.parameters, options);
  const std::string_view name = m.write_behind           ? kWriteBehind
                                : m.algorithm == nullptr ? std::string_view("auto")
                                                         : m.algorithm->name;
  return std::string(name) + (options.text().empty() ? "" : "(" + options.text() + ")");
}

// ---- the option of an exchange: messages(pack=datatype)

Result<void> set_pack(const Part& part, Method& method) {
  bool seen = false;
  for (const Option& option : part.options) {
    if (option.key != "pack")
      return refuse("option of " + std::string(part.word) + ": " + not_known(option.key, {"pack"}));
    if (std::exchange(seen, true)) return refuse("pack is given twice");
    if (option.value != "copy" && option.value != "datatype")
      return refuse("pack " + not_known(option.value, {"copy", "datatype"}));
    method.pack = option.value == "copy" ? exec::Pack::copy : exec::Pack::datatype;
  }
  return {};
}

std::string spell_exchange(const Method& m) {
  if (m.algorithm != nullptr && !m.algorithm->exchanges) return "none";
  return std::string(m.exchange->name) + (m.pack == exec::Pack::datatype ? "(pack=datatype)" : "");
}

// ---- the bytes of a sync: every=4MiB, or every(bytes=4MiB)

Result<int64_t> sync_bytes_of(const Part& part) {
  const std::string word(part.word);
  std::string_view text = part.value;
  for (const Option& option : part.options) {
    if (option.key != "bytes")
      return refuse("option of " + word + ": " + not_known(option.key, {"bytes"}));
    if (!text.empty()) return refuse("bytes is given twice");
    text = option.value;
  }
  if (text.empty())
    return refuse("sync " + word + " needs its bytes, for example " + word + "=4MiB");
  return parse_size(text, word).and_then(check_sync_bytes);
}

// ---- one function per family, in the order of the text

struct Choices {
  Method method = default_method();
  bool exchange_none = false;  // asked for by name
};

Result<void> choose_algorithm(const Part& part, Choices& c) {
  if (auto ok = require_valid(algorithm_family(), part.word); !ok) return ok;
  if (auto ok = require_no_value(algorithm_family(), part); !ok) return ok;
  if (part.word == kWriteBehind) return choose_write_behind(part, c.method);
  c.method.algorithm = plan::find_algorithm(part.word);  // nullptr for "auto"
  return set_options(part, c.method);
}

Result<void> choose_exchange(const Part& part, Choices& c) {
  if (auto ok = require_valid(exchange_family(), part.word); !ok) return ok;
  c.exchange_none = part.word == "none";
  if (!c.exchange_none) c.method.exchange = exec::find_exchange(part.word);
  if (c.exchange_none || !c.method.exchange->takes_pack)
    return require_no_options(exchange_family(), part);
  if (auto ok = require_no_value(exchange_family(), part); !ok) return ok;
  return set_pack(part, c.method);
}

Result<void> choose_mechanism(const Part& part, Choices& c) {
  if (auto ok = require_valid(mechanism_family(), part.word); !ok) return ok;
  if (auto ok = require_no_value(mechanism_family(), part); !ok) return ok;
  c.method.mechanism = io::find_mechanism(part.word);
  c.method.direct = io::Direct::never;
  for (const auto& [key, value] : part.options)
    if (auto set = set_mechanism_option(key, value, c.method); !set) return set;
  return {};
}

Result<void> choose_sync(const Part& part, Choices& c) {
  if (auto ok = require_valid(sync_family(), part.word); !ok) return ok;
  c.method.sync = io::find_sync_policy(part.word);
  c.method.sync_bytes = 0;
  if (!c.method.sync->takes_bytes) return require_no_options(sync_family(), part);
  return sync_bytes_of(part).map([&](int64_t bytes) { c.method.sync_bytes = bytes; });
}

// staged(limit=256MiB): of what may be staged at all; the others return as with `written`.
Result<void> choose_return(const Part& part, Choices& c) {
  if (auto ok = require_valid(return_family(), part.word); !ok) return ok;
  if (part.word == "written") {
    c.method.staged_bytes.reset();
    return require_no_options(return_family(), part);
  }
  if (auto ok = require_no_value(return_family(), part); !ok) return ok;
  c.method.staged_bytes = exec::kStagedLimitBytes;
  bool seen = false;
  for (const Option& option : part.options) {
    if (option.key != "limit")
      return refuse("option of staged: " + not_known(option.key, {"limit"}));
    if (std::exchange(seen, true)) return refuse("limit is given twice");
    auto limit = parse_size(option.value, "limit").and_then(check_staged);
    if (!limit) return tl::unexpected(std::move(limit).error());
    c.method.staged_bytes = *limit;
  }
  return {};
}

using Choose = Result<void> (*)(const Part&, Choices&);
constexpr std::array<Choose, 5> kFamilies = {&choose_algorithm, &choose_exchange, &choose_mechanism,
                                             &choose_sync, &choose_return};

Result<void> check_exchange(const Choices& c) {
  if (!c.exchange_none) return {};
  const plan::Algorithm* a = c.method.algorithm;
  if (a == nullptr)
    return refuse(
        "exchange none needs an algorithm that sends nothing, and auto may choose one "
        "that does; use \"individual + none\"");
  if (a->exchanges)
    return refuse("exchange none is illegal with " + std::string(a->name) +
                  ", which sends bytes between ranks; use messages");
  return {};
}

}  // namespace

Result<Method> parse_method(std::string_view text) {
  if (text.size() > kLongestText) return refuse("longer than any method: " + quote(text));
  const std::vector<std::string_view> pieces = split(text, '+');
  if (pieces.size() > kFamilies.size())
    return refuse("at most " + std::string(kOrder) + ", got " + quote(text));
  Choices choices;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Result<Part> part = read_part(pieces[i]);
    if (!part) return tl::unexpected(part.error());
    if (auto chosen = kFamilies[i](*part, choices); !chosen)
      return tl::unexpected(std::move(chosen).error());
  }
  if (auto legal = check_exchange(choices); !legal) return tl::unexpected(std::move(legal).error());
  if (auto legal = check(choices.method); !legal) return tl::unexpected(std::move(legal).error());
  return as_spelled(std::move(choices.method));
}

Method as_spelled(Method m) {
  if (m.algorithm == nullptr || m.algorithm->exchanges) return m;
  const Method usual = default_method();
  m.exchange = usual.exchange;
  m.pack = usual.pack;
  return m;
}

Method default_method() {
  return {.algorithm = nullptr,
          .parameters = {},
          .exchange = exec::find_exchange("shm"),
          .pack = exec::Pack::copy,
          .mechanism = io::find_mechanism("pwrite"),
          .direct = io::Direct::when_cold,
          .depth = 0,
          .registered = false,
          .window_bytes = io::kWindowOfCycle,
          .sync = io::find_sync_policy("anticipate"),
          .sync_bytes = kAnticipatedBytes,
          .staged_bytes = std::nullopt};
}

std::string to_string(const Method& m) {
  std::string text = spell_algorithm(m);
  text += " + " + spell_exchange(m);
  text += " + " + spell_mechanism(m) + " + " + std::string(m.sync->name);
  if (m.sync->takes_bytes) text += "=" + format_size(m.sync_bytes);
  if (m.staged_bytes) return text + " + staged(limit=" + format_size(*m.staged_bytes) + ")";
  return text + " + written";
}

Result<void> check(const Method& m) {
  const std::string algorithm(m.algorithm == nullptr ? "auto" : m.algorithm->name);
  if (m.parameters.writers != 0 && !contains(options_of(m.algorithm), "writers"))
    return refuse(algorithm + " has no option writers, got " +
                  std::to_string(m.parameters.writers) + "; leave it out");
  if (m.mechanism->alignment_bytes > 1 &&
      (m.algorithm == nullptr || !keeps_pages_apart(*m.algorithm)))
    return refuse(
        "mechanism " + std::string(m.mechanism->name) +
        " needs an algorithm that owns whole blocks, such as two_phase, or individual, got " +
        algorithm);
  if (m.pack != exec::Pack::copy && !m.exchange->takes_pack)
    return refuse("exchange " + std::string(m.exchange->name) +
                  " has no option pack; leave it out");
  if (m.write_behind && m.staged_bytes.value_or(0) == 0)
    return refuse("write_behind is short for cyclic + staged, and goes with no other return");
  if (auto legal = check_mechanism_options(m); !legal) return legal;
  if (m.sync->takes_bytes != (m.sync_bytes > 0))
    return refuse("sync " + std::string(m.sync->name) +
                  (m.sync->takes_bytes ? " needs its bytes" : " takes no bytes") + ", got " +
                  std::to_string(m.sync_bytes));
  const std::string why = m.mechanism->unavailable == nullptr ? "" : m.mechanism->unavailable();
  if (!why.empty())
    return fail(ErrorClass::unsupported, "method",
                "mechanism " + std::string(m.mechanism->name) + " cannot be used here: " + why);
  return {};
}

}  // namespace penstock::engine
