// For tests: all combinations of the five choices of a method, legal or not, each option that
// changes the way of the bytes among them. Sizes are small, so that pages are cut often.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/method.hpp"

namespace penstock::engine {

// Algorithm, exchange, mechanism, sync, return, each as it is spelled.
using Combination = std::vector<std::string>;

inline std::string text_of(const Combination& choices) {
  std::string text;
  for (const std::string& choice : choices) text += (text.empty() ? "" : " + ") + choice;
  return text;
}

namespace product_detail {

inline std::string small_value_of(std::string_view option) {
  if (option == "cycle") return "8KiB";
  if (option == "stripe") return "12KiB";
  return option == "writers" ? "2" : "1";  // writer, at_once
}

inline std::string with_small_options(const plan::Algorithm& a) {
  std::string options;
  for (const plan::OptionInfo& o : a.options)
    options += (options.empty() ? "(" : ", ") + std::string(o.name) + "=" + small_value_of(o.name);
  return std::string(a.name) + options + (options.empty() ? "" : ")");
}

inline std::vector<std::string> algorithms() {
  std::vector<std::string> all = {"auto", "write_behind(page=4KiB, limit=1MiB)"};
  for (const plan::Algorithm* a : plan::algorithms()) all.push_back(with_small_options(*a));
  return all;
}

inline std::vector<std::string> exchanges() {
  std::vector<std::string> all = {"none"};
  for (const exec::Exchange* e : exec::exchanges()) {
    all.emplace_back(e->name);
    if (e->takes_pack) all.push_back(std::string(e->name) + "(pack=datatype)");
  }
  return all;
}

// `null` writes no file that could be compared.
inline std::vector<std::string> mechanisms() {
  std::vector<std::string> all;
  for (const io::Mechanism* m : io::mechanisms()) {
    if (!m->writes_file) continue;
    const auto add = [&](const char* options) { all.push_back(std::string(m->name) + options); };
    add("");
    if (m->takes_direct) add("(direct)");
    if (m->takes_cold) add("(direct=cold)");
    if (m->takes_registered) add("(registered)");
    if (m->takes_direct && m->takes_registered) add("(direct, registered)");
    if (m->takes_window) add("(window=file)");
  }
  return all;
}

inline std::vector<std::string> syncs() {
  std::vector<std::string> all;
  for (const io::SyncPolicy* s : io::sync_policies())
    all.push_back(std::string(s->name) + (s->takes_bytes ? "=16KiB" : ""));
  return all;
}

inline std::vector<std::string> returns() { return {"written", "staged(limit=64KiB)"}; }

}  // namespace product_detail

inline std::vector<Combination> method_product() {
  std::vector<Combination> all = {{}};
  for (const auto& family :
       {product_detail::algorithms(), product_detail::exchanges(), product_detail::mechanisms(),
        product_detail::syncs(), product_detail::returns()}) {
    std::vector<Combination> longer;
    for (const Combination& begun : all)
      for (const std::string& choice : family) {
        longer.push_back(begun);
        longer.back().push_back(choice);
      }
    all = std::move(longer);
  }
  return all;
}

}  // namespace penstock::engine
