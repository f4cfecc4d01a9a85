// The I/O models and their simulator for Python: what penstock.model and penstock.simulate stand
// on.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <string>

#include "bind.hpp"
#include "model/buffer_models.hpp"
#include "model/simulator.hpp"
#include "model/system.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using model::Mapping;
using model::Moment;
using model::Order;
using model::Outcome;
using model::Paging;
using model::Times;

// One of two values by its name.
template <class Choice>
Choice parse(const char* what, const std::string& text, std::array<Choice, 2> choices) {
  for (const Choice c : choices)
    if (text == to_string(c)) return c;
  raise_argument(what, std::string(what) + " must be " + to_string(choices[0]) + " or " +
                           to_string(choices[1]) + ", got \"" + text + "\"");
}
Paging parse_paging(const std::string& text) {
  return parse("paging", text, std::array{Paging::demand, Paging::early});
}

void bind_results(nb::module_& m) {
  nb::class_<Times>(m, "Times", "How long an output takes, in seconds.")
      .def_ro("application_s", &Times::application_s, "Until the call returns.")
      .def_ro("actual_s", &Times::actual_s, "Until the last byte is on the output disk.")
      .def("__repr__", [](const Times& t) {
        return "<Times application_s=" + std::to_string(t.application_s) +
               " actual_s=" + std::to_string(t.actual_s) + ">";
      });
  nb::class_<Moment>(m, "Moment", "Where the bytes of an output are at one moment.")
      .def_ro("time_s", &Moment::time_s)
      .def_ro("sent_bytes", &Moment::sent_bytes, "Have left the program's buffer.")
      .def_ro("memory_bytes", &Moment::memory_bytes, "In the memory of all I/O nodes.")
      .def_ro("paged_bytes", &Moment::paged_bytes, "On their paging disks.")
      .def_ro("disk_bytes", &Moment::disk_bytes, "On their output disks.");
  nb::class_<Outcome>(m, "Outcome", "What the simulation of an output came to.")
      .def_ro("times", &Outcome::times)
      .def_ro("paged_out_bytes", &Outcome::paged_out_bytes)
      .def_ro("paged_in_bytes", &Outcome::paged_in_bytes)
      .def_ro("most_memory_bytes", &Outcome::most_memory_bytes, "At any moment, of all I/O nodes.")
      .def_ro("most_paged_bytes", &Outcome::most_paged_bytes)
      .def_ro("timeline", &Outcome::timeline, "The first moment, the last, and some between.");
}

void bind_formulas(nb::module_& m) {
  m.def(
      "unbuffered_times",
      [](double n, double network, double disk, double startup) {
        return unwrap(model::unbuffered({startup, network, disk}, n));
      },
      "n_bytes"_a, nb::kw_only(), "network_bytes_per_s"_a, "disk_bytes_per_s"_a,
      "startup_s"_a = 0.0, "Model 1 of gotwals-1995 (section 3.1); see penstock.model.buffers.");
  m.def(
      "buffered_times",
      [](double n, double network, double disk, double buffer, double startup) {
        return unwrap(model::buffered({startup, network, disk}, buffer, n));
      },
      "n_bytes"_a, nb::kw_only(), "network_bytes_per_s"_a, "disk_bytes_per_s"_a, "buffer_bytes"_a,
      "startup_s"_a = 0.0, "Model 2 of gotwals-1995 (section 3.2); see penstock.model.buffers.");
  m.def(
      "paged_times",
      [](double n, double network, double disk, double memory, double paging_rate,
         const std::string& paging, std::optional<double> buffer, double startup) {
        return unwrap(model::paged(
            {startup, network, disk},
            {memory, buffer.value_or(model::kUnlimited), paging_rate, parse_paging(paging)}, n));
      },
      "n_bytes"_a, nb::kw_only(), "network_bytes_per_s"_a, "disk_bytes_per_s"_a, "memory_bytes"_a,
      "paging_bytes_per_s"_a, "paging"_a = "demand", "buffer_bytes"_a = nb::none(),
      "startup_s"_a = 0.0, "Model 3 of gotwals-1995 (section 3.3); see penstock.model.buffers.");
}

void bind_simulator(nb::module_& m) {
  m.def(
      "simulate_output",
      [](int64_t n, double network, double disk, int64_t memory, int64_t block, double paging_rate,
         const std::string& paging, std::optional<int64_t> buffer, int nodes,
         const std::string& mapping, const std::string& order, double startup,
         size_t timeline_points) {
        const model::System system{
            .path = {startup, network, disk},
            .paging_bytes_per_s = paging_rate,
            .memory_bytes = memory,
            .buffer_bytes = buffer.value_or(model::kNoLimit),
            .block_bytes = block,
            .nodes = nodes,
            .mapping = parse("mapping", mapping, std::array{Mapping::cyclic, Mapping::blocked}),
            .paging = parse_paging(paging),
            .order = parse("order", order, std::array{Order::memory, Order::file}),
            .timeline_points = timeline_points};
        return unwrap(model::simulate(system, n));
      },
      "n_bytes"_a, nb::kw_only(), "network_bytes_per_s"_a, "disk_bytes_per_s"_a, "memory_bytes"_a,
      "block_bytes"_a, "paging_bytes_per_s"_a = 0.0, "paging"_a = "demand",
      "buffer_bytes"_a = nb::none(), "nodes"_a = 1, "mapping"_a = "cyclic", "order"_a = "memory",
      "startup_s"_a = 0.0, "timeline_points"_a = 256,
      "Plays one output block by block; see penstock.simulate.output.");
}

}  // namespace

void bind_model(nb::module_& m) {
  bind_results(m);
  bind_formulas(m);
  bind_simulator(m);
}

}  // namespace penstock::python
