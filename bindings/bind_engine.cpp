// Methods, configuration, sizes and the descriptors of io for Python.
#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
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
#include "exec/exchange.hpp"
#include "io/mechanism.hpp"
#include "io/probe.hpp"
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

// Of a directory: files made in it will be there.
io::FileSystem probe_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) unwrap(Result<void>(os_error("open", path, errno)));
  auto probed = io::probe(fd);
  ::close(fd);
  return unwrap(std::move(probed));
}

void bind_probe(nb::module_& m) {
  nb::class_<io::FileSystem>(m, "FileSystem", "What lies under a path.")
      .def_ro("type", &io::FileSystem::type, "\"ext4\", \"lustre\"; \"0x...\" when not known.")
      .def_ro("geometry", &io::FileSystem::geometry);
  m.def("probe_directory", &probe_directory, "path"_a,
        "File system and geometry of files in a directory.");
}

void bind_io(nb::module_& m) {
  bind_probe(m);
  nb::class_<Mechanism>(m, "Mechanism", "The descriptor of a mechanism: how bytes enter a file.")
      .def_ro("name", &Mechanism::name)
      .def_ro("summary", &Mechanism::summary)
      .def_ro("alignment_bytes", &Mechanism::alignment_bytes, "Of offsets and lengths.")
      .def_ro("writes_file", &Mechanism::writes_file)
      .def_ro("takes_direct", &Mechanism::takes_direct, "Past the page cache: NAME(direct).")
      .def_ro("takes_cold", &Mechanism::takes_cold,
              "Past the page cache while memory is cold: NAME(direct=cold).")
      .def_ro("takes_registered", &Mechanism::takes_registered,
              "Its buffers' memory kept by the kernel: NAME(registered).")
      .def_ro("takes_window", &Mechanism::takes_window,
              "One mapping of the whole file: NAME(window=file).")
      .def_ro("default_depth", &Mechanism::default_depth,
              "Writes under way at a time unless NAME(depth=N) says; 0: it takes none.")
      .def_prop_ro(
          "unavailable",
          [](const Mechanism& x) { return x.unavailable ? x.unavailable() : std::string(); },
          "Empty when usable on this machine, else the reason.");
  nb::class_<exec::Exchange>(m, "Exchange",
                             "The descriptor of an exchange: how bytes reach the writer.")
      .def_ro("name", &exec::Exchange::name)
      .def_ro("summary", &exec::Exchange::summary)
      .def_ro("shares_pages", &exec::Exchange::shares_pages,
              "The ranks of a node fill the pages of its writers themselves.");
  nb::class_<SyncPolicy>(m, "SyncPolicy", "The descriptor of a sync policy.")
      .def_ro("name", &SyncPolicy::name)
      .def_ro("summary", &SyncPolicy::summary)
      .def_ro("takes_bytes", &SyncPolicy::takes_bytes, "Spelled NAME=BYTES in a method.")
      .def_ro("takes_turns", &SyncPolicy::takes_turns, "One writer of a node at a time.");
  m.def(
      "mechanisms", [] { return references(io::mechanisms()); },
      nb::sig("def mechanisms() -> list[Mechanism]"), "Every mechanism, in the order of its list.");
  m.def(
      "exchanges", [] { return references(exec::exchanges()); },
      nb::sig("def exchanges() -> list[Exchange]"), "Every exchange, in the order of its list.");
  m.def(
      "sync_policies", [] { return references(io::sync_policies()); },
      nb::sig("def sync_policies() -> list[SyncPolicy]"),
      "Every sync policy, in the order of its list.");
}

std::optional<std::string_view> algorithm_of(const Method& x) {
  if (x.algorithm == nullptr) return std::nullopt;
  return x.algorithm->name;
}

int64_t cycle_for(const Method& x, std::string_view algorithm, const plan::Team& team) {
  const plan::Algorithm* a = plan::find_algorithm(algorithm);
  if (a == nullptr)
    raise_argument("cycle_for", "there is no algorithm \"" + std::string(algorithm) + "\"");
  return exec::cycle_for(x.parameters.cycle_bytes, *a, x.exchange, team);
}

void bind_parameters(nb::class_<Method>& method) {
  method
      .def_prop_ro(
          "writers", [](const Method& x) { return x.parameters.writers; },
          "0: the algorithm's own default.")
      .def_prop_ro(
          "cycle_bytes", [](const Method& x) { return x.parameters.cycle_bytes; },
          "Collective buffer of one writer; 0: the default.")
      .def("cycle_for", &cycle_for, "algorithm"_a, "team"_a,
           "Collective buffer of one writer in a call; 0: the algorithm's own default.")
      .def_prop_ro(
          "stripe_bytes", [](const Method& x) { return x.parameters.stripe_bytes; },
          "Of what is dealt to the writers; 0: the file system's, or a default.")
      .def_prop_ro(
          "writer", [](const Method& x) { return x.parameters.writer; },
          "The rank that writes alone, where one does.")
      .def_prop_ro(
          "at_once", [](const Method& x) { return x.parameters.at_once; },
          "Ranks that write at a time, where all write; 0: all of them.");
}

void bind_method(nb::module_& m) {
  nb::class_<Method> method(m, "Method", "A write method. str() gives the canonical spelling.");
  bind_parameters(method);
  method.def_prop_ro("algorithm", &algorithm_of, "None: the engine chooses per call (\"auto\").")
      .def_prop_ro("mechanism", [](const Method& x) { return x.mechanism->name; })
      .def_ro("direct", &Method::direct, "Past the page cache.")
      .def_ro("depth", &Method::depth, "Writes under way at a time; 0: the mechanism's default.")
      .def_prop_ro("sync", [](const Method& x) { return x.sync->name; })
      .def_ro("sync_bytes", &Method::sync_bytes, "Of a sync that takes them, else 0.")
      .def_prop_ro(
          "stages", [](const Method& x) { return x.write_behind ? x.write_behind->stages : 0; },
          "Of a method that is named write_behind, else 0.")
      .def("__str__", [](const Method& x) { return engine::to_string(x); })
      .def("__repr__", [](const Method& x) { return "<Method " + engine::to_string(x) + ">"; });
  m.def(
      "parse_method", [](std::string_view text) { return unwrap(engine::parse_method(text)); },
      "text"_a,
      "Reads \"two_phase(writers=4, cycle=16MiB) + messages + pwrite + none + written\".");
  m.def("default_method", &engine::default_method);
  m.def(
      "fixed",
      [](const std::optional<std::string>& name, const plan::Team& team,
         const layout::Geometry& geometry) -> std::optional<std::string> {
        if (!name) return std::nullopt;
        const plan::Algorithm* const named = plan::find_algorithm(*name);
        if (named == nullptr) raise_argument("fixed", "there is no algorithm \"" + *name + "\"");
        const plan::Algorithm* const kept = engine::fixed(named, team, geometry);
        return kept != nullptr ? std::optional<std::string>(kept->name) : std::nullopt;
      },
      "algorithm"_a.none(), "team"_a, "geometry"_a,
      "The named algorithm; None where there is no name, or this file system lets it not be.");
  m.def(
      "decide",
      [](const plan::Crowd& crowd, const plan::Team& team, const layout::Geometry& geometry) {
        return engine::decide(crowd, team, geometry).name;
      },
      "crowd"_a, "team"_a, "geometry"_a, "The algorithm that \"auto\" chooses for one call.");
}

using Words = std::vector<std::string>;

// As before a launch: nothing of this process but its user is taken for granted.
engine::Surroundings surroundings(const std::map<std::string, std::string>& variables,
                                  std::string directory, std::string library_directory,
                                  std::string etc) {
  engine::Surroundings s;
  s.variables.insert(variables.begin(), variables.end());
  s.directory = std::move(directory);
  s.library_directory = std::move(library_directory);
  s.etc = std::move(etc);
  s.user = ::geteuid();
  s.secure = ::getauxval(AT_SECURE) != 0;
  s.reader = engine::Surroundings::Reader::launcher;
  return s;
}

void bind_config_parts(nb::module_& m) {
  nb::class_<engine::Assignment>(m, "Setting", "A setting, its value and who said so.")
      .def_ro("key", &engine::Assignment::key)
      .def_ro("value", &engine::Assignment::value)
      .def_ro("source", &engine::Assignment::source,
              "\"run.toml:3\", \"PENSTOCK_METHOD\", \"--method\" or \"default\".")
      .def_prop_ro("layer", [](const engine::Assignment& x) { return to_string(x.layer); });
  nb::class_<engine::FileRule>(m, "FileRule", "A [[file]] table.")
      .def_ro("patterns", &engine::FileRule::patterns)
      .def_ro("settings", &engine::FileRule::settings)
      .def_ro("source", &engine::FileRule::source);
  nb::class_<engine::ProgramPattern>(m, "ProgramPattern", "An entry of leave_alone.")
      .def_ro("glob", &engine::ProgramPattern::glob)
      .def_ro("source", &engine::ProgramPattern::source);
  nb::class_<engine::ConfigFile>(m, "ConfigFile", "A configuration file that would be read.")
      .def_ro("path", &engine::ConfigFile::path)
      .def_prop_ro("layer", [](const engine::ConfigFile& x) { return to_string(x.layer); })
      .def_ro("exists", &engine::ConfigFile::exists)
      .def_ro("problem", &engine::ConfigFile::problem, "Why it is not obeyed; empty when it is.");
}

void bind_loading(nb::module_& m) {
  m.def(
      "load_config",
      [](const std::map<std::string, std::string>& variables, std::string directory,
         std::string library_directory, std::string etc) {
        return unwrap(engine::load_config(surroundings(
            variables, std::move(directory), std::move(library_directory), std::move(etc))));
      },
      "variables"_a, nb::kw_only(), "directory"_a = "", "library_directory"_a = "",
      "etc"_a = "/etc",
      "What variables (PENSTOCK_*, HOME, XDG_CONFIG_HOME) and configuration files make, read from "
      "a working directory with the native files of ``library_directory``.");
  m.def(
      "config_files",
      [](const std::map<std::string, std::string>& variables, std::string directory,
         std::string library_directory, std::string etc) {
        return engine::config_files(surroundings(variables, std::move(directory),
                                                 std::move(library_directory), std::move(etc)));
      },
      "variables"_a, nb::kw_only(), "directory"_a = "", "library_directory"_a = "",
      "etc"_a = "/etc", "The files that load_config looks for, lowest first.");
}

void bind_config(nb::module_& m) {
  bind_config_parts(m);
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
      .def_ro("all_ranks", &Config::all_ranks)
      .def_ro("files", &Config::files, "[[file]] tables; the later win.")
      .def_ro("leave_alone", &Config::leave_alone)
      .def_ro("left_alone", &Config::left_alone, "Why nothing is served; empty when it is.")
      .def_ro("notices", &Config::notices, "What a person must be told, once per job.")
      .def(
          "why_left_alone",
          [](const Config& c, const Words& program) { return engine::why_left_alone(c, program); },
          "program"_a, "Why a program of these paths and names is left alone; empty: it is not.")
      .def(
          "for_file",
          [](const Config& c, const std::string& path) {
            return unwrap(engine::for_file(c, path));
          },
          "path"_a, "With the [[file]] tables that name ``path``.")
      .def("settings", &engine::dump_settings,
           "Every setting, its value in TOML's spelling (empty: open) and who set it.")
      .def("to_toml", &engine::dump_toml, "What --config reads back, with sources as comments.")
      .def("resolved", &engine::resolved_toml, "In one line, for penstock-exec --resolved.");
  bind_loading(m);
}

}  // namespace

void bind_engine(nb::module_& m) {
  bind_units(m);
  bind_io(m);
  bind_method(m);
  bind_config(m);
}

}  // namespace penstock::python
