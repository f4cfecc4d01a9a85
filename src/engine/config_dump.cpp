// A configuration as text: for people and --config, and in one line for other ranks.
#include <algorithm>
#include <cstdio>

#include "engine/config_keys.hpp"

namespace penstock::engine {
namespace {

const Assignment* said(const Config& config, std::string_view key) {
  for (const Assignment& a : config.given)
    if (a.key == key) return &a;
  return nullptr;
}

// Who set a key as it is now; "observe" is a value of method.
const Assignment* origin(const Config& config, const Key& key) {
  if (key.name == "method" && config.mode == Mode::observe)
    if (const Assignment* observe = said(config, "observe")) return observe;
  return said(config, key.name);
}

std::string spell(const Assignment& a) {
  const Type type = find_key(a.key)->type;
  if (type == Type::integer) return a.value;
  if (type == Type::flag) return is_yes(a.value) ? "true" : "false";
  return toml_string(a.value);
}

template <class List, class Spell>
std::string array(const List& list, Spell spell_one) {
  std::string text = "[";
  for (const auto& one : list) text.append(text.size() > 1 ? ", " : "").append(spell_one(one));
  return text.append("]");
}

// Comments end with their line.
std::string comment(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text.insert(0, "  # ").append("\n");
}

std::string dump_lists(const Config& config) {
  std::string text;
  if (!config.leave_alone.empty()) {
    text += "leave_alone = [\n";
    for (const ProgramPattern& p : config.leave_alone)
      text += "  " + toml_string(p.glob) + "," + comment(p.source);
    text += "]\n";
  }
  for (const FileRule& rule : config.files) {
    text += "\n[[file]]" + comment(rule.source) + "pattern = " + array(rule.patterns, toml_string);
    text += "\n";
    for (const Assignment& a : rule.settings) text += a.key + " = " + spell(a) + "\n";
  }
  return text;
}

}  // namespace

std::string toml_string(std::string_view text) {
  const bool three = text.find("'''") != text.npos;  // begins a string that is not taken
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04X", unsigned(byte));
    if (c == '"' || c == '\\')
      quoted += std::string("\\") + c;
    else if (byte < 0x20 || byte == 0x7f || (three && c == '\''))
      quoted += escaped;
    else
      quoted += c;
  }
  return quoted + "\"";
}

std::vector<Assignment> dump_settings(const Config& config) {
  std::vector<Assignment> all;
  for (const Key& key : keys()) {
    if (!key.in_file) continue;
    const Assignment* by = origin(config, key);
    all.push_back({std::string(key.name), key.show(config), by != nullptr ? by->source : "default",
                   by != nullptr ? by->layer : Layer::builtin});
  }
  return all;
}

std::string dump_toml(const Config& config) {
  std::string text = "# Every setting, its value and who set it. --config reads this text.\n";
  for (const Assignment& a : dump_settings(config)) {
    const bool part_of_method = a.layer == Layer::builtin && !a.value.empty();
    if (a.key == "writers" && a.value.empty() && a.layer != Layer::builtin) {
      text += "writers = 0" + comment(a.source);  // who says that the team decides rules others
      continue;
    }
    if (a.key == "writers" || a.key == "cycle") {
      if (part_of_method || a.value.empty()) {
        text += "# " + a.key + ": " +
                (part_of_method ? "in the method\n" : "open, the engine decides\n");
        continue;
      }
    }
    text += a.key + " = " + a.value + comment(a.source);
  }
  return text + dump_lists(config);
}

std::string resolved_toml(const Config& config) {
  std::vector<std::string> parts, options;
  for (const Key& key : keys()) {
    if (!key.in_file || origin(config, key) == nullptr) continue;
    // Who says that the team decides rules others too, and people are shown no value of it.
    const std::string value =
        key.name == "writers" && key.show(config).empty() ? "0" : key.show(config);
    if (!value.empty()) parts.push_back(std::string(key.name) + " = " + value);
  }
  for (const Assignment& a : config.options) {
    const std::string key = a.key == "observe" ? "method" : a.key;
    if (find_key(key)->in_file && said(config, a.key) != nullptr) options.push_back(key);
  }
  if (!config.leave_alone.empty())
    parts.push_back("leave_alone = " + array(config.leave_alone, [](const ProgramPattern& p) {
                      return toml_string(p.glob);
                    }));
  if (!config.files.empty())
    parts.push_back("file = " + array(config.files, [](const FileRule& rule) {
                      std::string one = "{pattern = " + array(rule.patterns, toml_string);
                      one += ", source = " + toml_string(rule.source);
                      for (const Assignment& a : rule.settings)
                        one += ", " + a.key + " = " + spell(a);
                      return one + "}";
                    }));
  if (!options.empty()) parts.push_back("options = " + array(options, toml_string));
  std::string text = "{";
  for (const std::string& part : parts) text.append(text.size() > 1 ? ", " : "").append(part);
  return text.append("}");
}

}  // namespace penstock::engine
