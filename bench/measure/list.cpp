// --list: what there is, asked of the engine's own descriptors.
#include <nlohmann/json.hpp>

#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"
#include "parameters.hpp"
#include "plan/algorithm.hpp"
#include "strategy.hpp"

namespace penstock::measure {
namespace {

using Json = nlohmann::ordered_json;

Json item(std::string_view name, std::string_view summary, const std::string& why_not) {
  Json j{{"name", name}, {"summary", summary}, {"available", why_not.empty()}};
  j["why"] = why_not.empty() ? Json() : Json(why_not);
  return j;
}

Json routes(Workers workers) {
  const std::string no_mpi =
      workers == Workers::mpi ? "" : "this program is not linked to an MPI library";
  return Json::array({item("engine", "Penstock's engine, linked in", ""),
                      item("mpi", "MPI_File calls, whoever serves them", no_mpi),
                      item("posix", "POSIX calls", "")});
}

const char* word(Files files) {
  constexpr const char* kNames[] = {"shared", "per_worker", "per_node"};
  return kNames[size_t(files)];
}

Json all_strategies() {
  Json list = Json::array();
  for (const Strategy& s : strategies()) {
    Json j = item(s.name, s.summary, why_unavailable(s));
    j["method"] = method_text(s, "pwrite", 0);
    j["sync"] = s.sync;
    j["files"] = word(s.files);
    j["access"] = s.access == Access::collective ? "collective" : "independent";
    j["least_workers"] = s.least_workers;
    list.push_back(std::move(j));
  }
  return list;
}

Json all_patterns() {
  Json list = Json::array();
  for (const PatternInfo& p : patterns()) {
    Json j = item(p.name, p.summary, "");
    j["argument"] = p.argument;
    list.push_back(std::move(j));
  }
  return list;
}

Json all_algorithms() {
  Json list = Json::array({item("auto", "a rule chooses for every call", "")});
  for (const auto* a : plan::algorithms()) {
    Json j = item(a->name, a->summary, "");
    j["exchanges"] = a->exchanges;
    j["owns_blocks"] = a->owns_blocks;
    j["options"] = Json::array();
    for (const plan::OptionInfo& o : a->options) j["options"].push_back(o.name);
    list.push_back(std::move(j));
  }
  return list;
}

Json all_mechanisms() {
  Json list = Json::array();
  for (const auto* m : io::mechanisms()) {
    Json j = item(m->name, m->summary, m->unavailable == nullptr ? "" : m->unavailable());
    j["writes_file"] = m->writes_file;
    j["alignment_bytes"] = m->alignment_bytes;
    list.push_back(std::move(j));
  }
  return list;
}

Json all_sync_policies() {
  Json list = Json::array();
  for (const auto* s : io::sync_policies()) list.push_back(item(s->name, s->summary, ""));
  return list;
}

}  // namespace

std::string list_json(Workers workers) {
  return Json{{"schema", "penstock.measure-list/1"},
              {"version", PENSTOCK_VERSION},
              {"default_method", to_string(engine::default_method())},
              {"routes", routes(workers)},
              {"strategies", all_strategies()},
              {"patterns", all_patterns()},
              {"algorithms", all_algorithms()},
              {"mechanisms", all_mechanisms()},
              {"sync_policies", all_sync_policies()}}
      .dump();
}

}  // namespace penstock::measure
