// Methods, configuration, sizes and the descriptors of io for Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "bind.hpp"
#include "engine/config.hpp"
#include "engine/method.hpp"
#include "engine/select.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using engine::Config;
using engine::Method;
using engine::Mode;
using io::Mechanism;
using io::SyncPolicy;

template <class T>
nb::list references(std::span<const T* const> all) {
  nb::list list;
  for (const T* one : all) list.append(nb::cast(one, nb::rv_policy::reference));
  return list;
}

void bind_units(nb::module_& m) {
  m.def(
      "parse_size",
      [](std::string_view text, std::string_view what) { return unwrap(parse_size(text, what)); },
      "text"_a, "what"_a = "size", "Bytes of \"4MiB\" (2^22), \"4MB\" (4*10^6) or \"4096\".");
  m.def("format_size", &format_size, "bytes"_a, "\"64KiB\" where exact; parse_size reads it back.");
  m.def("human_size", &human_size, "bytes"_a, "\"12.4 GiB\": for people.");
  m.def(
      "nearest",
      [](std::string_view given, const std::vector<std::string>& valid) {
        return engine::nearest(given, std::vector<std::string_view>(valid.begin(), valid.end()));
      },
      "given"_a, "valid"_a, "The valid word nearest to a misspelt one; empty when none is near.");
}

void bind_io(nb::module_& m) {
  nb::class_<Mechanism>(m, "Mechanism", "The descriptor of a mechanism: how bytes enter a file.")
      .def_ro("name", &Mechanism::name)
      .def_ro("summary", &Mechanism::summary)
      .def_ro("alignment_bytes", &Mechanism::alignment_bytes, "Of offsets and lengths.")
      .def_ro("writes_file", &Mechanism::writes_file)
      .def_prop_ro(
          "unavailable",
          [](const Mechanism& x) { return x.unavailable ? x.unavailable() : std::string(); },
          "Empty when usable on this machine, else the reason.");
  nb::class_<SyncPolicy>(m, "SyncPolicy", "The descriptor of a sync policy.")
      .def_ro("name", &SyncPolicy::name)
      .def_ro("summary", &SyncPolicy::summary);
  m.def(
      "mechanisms", [] { return references(io::mechanisms()); },
      nb::sig("def mechanisms() -> list[Mechanism]"), "Every mechanism, in the order of its list.");
  m.def(
      "sync_policies", [] { return references(io::sync_policies()); },
      nb::sig("def sync_policies() -> list[SyncPolicy]"),
      "Every sync policy, in the order of its list.");
}

void bind_method(nb::module_& m) {
  nb::class_<Method>(m, "Method", "A write method. str() gives the canonical spelling.")
      .def_prop_ro(
          "algorithm",
          [](const Method& x) -> std::optional<std::string_view> {
            if (x.algorithm == nullptr) return std::nullopt;
            return x.algorithm->name;
          },
          "None: the engine chooses per call (\"auto\").")
      .def_prop_ro(
          "writers", [](const Method& x) { return x.parameters.writers; },
          "0: the algorithm's own default.")
      .def_prop_ro(
          "cycle_bytes", [](const Method& x) { return x.parameters.cycle_bytes; },
          "Collective buffer of one writer; 0: the default.")
      .def_prop_ro("mechanism", [](const Method& x) { return x.mechanism->name; })
      .def_prop_ro("sync", [](const Method& x) { return x.sync->name; })
      .def("__str__", [](const Method& x) { return engine::to_string(x); })
      .def("__repr__", [](const Method& x) { return "<Method " + engine::to_string(x) + ">"; });
  m.def(
      "parse_method", [](std::string_view text) { return unwrap(engine::parse_method(text)); },
      "text"_a,
      "Reads \"two_phase(writers=4, cycle=16MiB) + messages + pwrite + none + written\".");
  m.def("default_method", &engine::default_method);
  m.def(
      "decide",
      [](const plan::Crowd& crowd, const plan::Team& team, const layout::Geometry& geometry) {
        return engine::decide(crowd, team, geometry).name;
      },
      "crowd"_a, "team"_a, "geometry"_a, "The algorithm that \"auto\" chooses for one call.");
}

Config load(const std::map<std::string, std::string>& variables) {
  return unwrap(engine::load_config([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  }));
}

void bind_config(nb::module_& m) {
  nb::enum_<Mode>(m, "Mode", "What the engine does with the program's writes.")
      .value("serve", Mode::serve)
      .value("observe", Mode::observe)
      .value("off", Mode::off);
  nb::class_<Config>(m, "Config", "The configuration of a run.")
      .def(nb::init<>())
      .def_ro("mode", &Config::mode)
      .def_ro("method", &Config::method)
      .def_ro("require", &Config::require)
      .def_ro("verify", &Config::verify)
      .def_ro("quiet", &Config::quiet)
      .def_ro("log_dir", &Config::log_dir, "Empty: the job's working directory.")
      .def_ro("log", &Config::log)
      .def_ro("all_ranks", &Config::all_ranks);
  m.def("load_config", &load, "variables"_a,
        "The configuration that these environment variables (PENSTOCK_*) make.");
}

}  // namespace

void bind_engine(nb::module_& m) {
  bind_units(m);
  bind_io(m);
  bind_method(m);
  bind_config(m);
}

}  // namespace penstock::python
