// Summaries, algorithms and plans for Python: what `penstock explain` tells and draws.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bind.hpp"
#include "plan/algorithm.hpp"
#include "plan/plan.hpp"
#include "plan/summary.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using layout::FileView;
using plan::Algorithm;
using plan::Crowd;
using plan::Plan;
using plan::RankClass;
using plan::Summary;
using plan::Team;

void check_index(const char* what, int i, int n) {
  if (i < 0 || i >= n) {
    raise_argument(what, std::string(what) + " must be in [0, " + std::to_string(n) + "), got " +
                             std::to_string(i));
  }
}

void check_request(const FileView& view, Pair own) {
  if (!view.is_monotone()) raise_argument("plan", "the file view must be monotone");
  if (own.first < 0 || own.second < own.first) {
    raise_argument("plan", "the stream range must be 0 <= begin <= end");
  }
}

Summary summarise(const FileView& view, Pair own) {
  check_request(view, own);
  if (own.first == own.second) return {};
  const Extent e = view.extent_of({own.first, own.second});
  return {.lo = e.begin, .hi = e.end, .bytes = own.second - own.first, .shape = view.hash()};
}

// A plan together with what the checks below need to know of its origin.
struct PlanValue {
  std::shared_ptr<const Plan> plan;
  Crowd crowd;
  bool cuts_known = false;

  void check(int writer, int cycle) const {
    check_index("writer", writer, plan->writers());
    check_index("cycle", cycle, plan->cycles(writer));
  }
  // Of the writer to which a rank sends.
  void check_cuts(int rank) const {
    if (cuts_known) return;
    const plan::IntRange to = plan->reached(crowd.summary(rank), rank);
    for (int writer = to.begin; writer < to.end; ++writer)
      if (plan->cuts(writer) > 0)
        raise_argument("plan", "its cycles end where the views say; ask with_cuts() first");
  }
};

PlanValue place(const std::string& name, const Team& team, const Crowd& crowd,
                const layout::Geometry& geometry, int writers, int64_t cycle_bytes,
                int64_t stripe_bytes, int writer) {
  const Algorithm* algorithm = plan::find_algorithm(name);
  if (algorithm == nullptr) raise_argument("place", "there is no algorithm \"" + name + "\"");
  if (crowd.ranks() != team.ranks) {
    raise_argument("place", "the team has " + std::to_string(team.ranks) + " ranks and the crowd " +
                                std::to_string(crowd.ranks()));
  }
  const plan::Parameters parameters{writers, cycle_bytes, stripe_bytes, writer};
  return {unwrap(algorithm->place(parameters, team, crowd, geometry)), crowd};
}

PlanValue with_cuts(const PlanValue& p, const std::vector<std::pair<FileView, Pair>>& by_rank) {
  if (int(by_rank.size()) != p.crowd.ranks()) {
    raise_argument("plan", "the crowd has " + std::to_string(p.crowd.ranks()) +
                               " ranks, and there are " + std::to_string(by_rank.size()) +
                               " parts");
  }
  std::vector<plan::Part> parts;
  for (const auto& [view, own] : by_rank) {
    check_request(view, own);
    parts.push_back({view, {own.first, own.second}});
  }
  return {plan::with_all_cuts(p.plan, parts), p.crowd, true};
}

Pair part(const PlanValue& p, const FileView& view, Pair own, int rank, int writer, int cycle) {
  check_request(view, own);
  check_index("rank", rank, p.crowd.ranks());
  p.check(writer, cycle);
  p.check_cuts(rank);
  return to_pair(p.plan->part(view, {own.first, own.second}, rank, writer, cycle));
}

std::vector<std::tuple<int, int, Pair>> slices(const PlanValue& p, const FileView& view, Pair own,
                                               int rank) {
  check_request(view, own);
  check_index("rank", rank, p.crowd.ranks());
  p.check_cuts(rank);
  std::vector<std::tuple<int, int, Pair>> list;
  plan::Slices walk(*p.plan, view, {own.first, own.second}, p.crowd.summary(rank), rank);
  while (const auto slice = walk.next()) {
    list.emplace_back(slice->writer, slice->cycle, to_pair(slice->src));
  }
  return list;
}

void bind_crowd(nb::module_& m) {
  nb::class_<Summary>(m, "Summary", "What one rank says about its part of one collective call.")
      .def_ro("lo", &Summary::lo, "First file byte touched.")
      .def_ro("hi", &Summary::hi, "One past the last.")
      .def_ro("bytes", &Summary::bytes, "Bytes of data.")
      .def_ro("shape", &Summary::shape, "Hash of the file view.")
      .def_prop_ro("contiguous", &Summary::contiguous)
      .def("__repr__", [](const Summary& s) {
        return "<Summary of " + std::to_string(s.bytes) + " bytes in [" + std::to_string(s.lo) +
               ", " + std::to_string(s.hi) + ")>";
      });
  m.def("summarise", &summarise, "view"_a, "stream_range"_a,
        "The summary of a rank that writes ``stream_range`` through ``view``.");
  nb::class_<Crowd>(m, "Crowd", "The summaries of all ranks, held as classes of equal patterns.")
      .def(nb::new_([](const std::vector<Summary>& by_rank) { return Crowd::from(by_rank); }),
           "by_rank"_a)
      .def_prop_ro("ranks", &Crowd::ranks)
      .def_prop_ro("bounds", [](const Crowd& c) { return to_pair(c.bounds()); })
      .def_prop_ro("bytes", &Crowd::bytes)
      .def_prop_ro("extents_disjoint", &Crowd::extents_disjoint)
      .def_prop_ro("all_contiguous", &Crowd::all_contiguous)
      .def_prop_ro(
          "classes",
          [](const Crowd& c) {
            std::vector<std::tuple<int, int, int64_t>> list;
            for (const RankClass& k : c.classes()) {
              list.emplace_back(k.first, k.count, k.shift_bytes);
            }
            return list;
          },
          "(first rank, count, shift in bytes) of each class.")
      .def(
          "summary",
          [](const Crowd& c, int rank) {
            check_index("rank", rank, c.ranks());
            return c.summary(rank);
          },
          "rank"_a);
}

Team make_team(int ranks, int nodes, int cores_per_node) {
  if (ranks < 1 || nodes < 1 || nodes > ranks || cores_per_node < 1) {
    raise_argument("Team",
                   "ranks, nodes and cores_per_node must be positive, and nodes at most "
                   "ranks; got ranks=" +
                       std::to_string(ranks) + ", nodes=" + std::to_string(nodes) +
                       ", cores_per_node=" + std::to_string(cores_per_node));
  }
  return {ranks, nodes, cores_per_node};
}

void bind_algorithms(nb::module_& m) {
  nb::class_<Team>(m, "Team",
                   "The ranks that a plan is for; nodes hold consecutive blocks of them.")
      .def(nb::new_(&make_team), "ranks"_a, "nodes"_a = 1, "cores_per_node"_a = 1)
      .def_ro("ranks", &Team::ranks)
      .def_ro("nodes", &Team::nodes)
      .def_ro("cores_per_node", &Team::cores_per_node);
  nb::class_<Algorithm>(m, "Algorithm", "The descriptor of an algorithm.")
      .def_ro("name", &Algorithm::name)
      .def_ro("summary", &Algorithm::summary)
      .def_ro("source", &Algorithm::source, "The paper or system it comes from.")
      .def_prop_ro("needs", [](const Algorithm& a) { return std::string(to_string(a.needs)); })
      .def_ro("owns_blocks", &Algorithm::owns_blocks)
      .def_ro("exchanges", &Algorithm::exchanges)
      .def_ro("scatters", &Algorithm::scatters,
              "Writers collect what lies scattered over their extents, which may overlap.")
      .def_ro("writes_behind", &Algorithm::writes_behind,
              "A writer's pages are written by a thread of its own.")
      .def_prop_ro(
          "options",
          [](const Algorithm& a) {
            std::vector<std::pair<std::string, std::string>> list;
            for (const auto& o : a.options) list.emplace_back(o.name, o.summary);
            return list;
          },
          "(name, summary) of each option.");
  m.def(
      "algorithms",
      [] {
        nb::list list;
        for (const Algorithm* a : plan::algorithms()) {
          list.append(nb::cast(a, nb::rv_policy::reference));
        }
        return list;
      },
      nb::sig("def algorithms() -> list[Algorithm]"), "Every algorithm, in the order of its list.");
  m.attr("DEFAULT_CYCLE_BYTES") = plan::kDefaultCycleBytes;
  m.attr("MAX_CYCLE_BYTES") = plan::kMaxCycleBytes;
}

void bind_plan_value(nb::module_& m) {
  nb::class_<PlanValue>(m, "Plan", "Who writes which bytes in which cycle, as a value.")
      .def_prop_ro("writers", [](const PlanValue& p) { return p.plan->writers(); })
      .def_prop_ro(
          "cycles", [](const PlanValue& p) { return p.plan->cycles(); },
          "The largest number of cycles of any writer.")
      .def_prop_ro(
          "owns_blocks", [](const PlanValue& p) { return p.plan->owns_blocks(); },
          "Every unit of the geometry has one writer.")
      .def_prop_ro(
          "exchanges", [](const PlanValue& p) { return p.plan->exchanges(); },
          "Some bytes move between ranks.")
      .def(
          "writer_rank",
          [](const PlanValue& p, int writer) {
            check_index("writer", writer, p.plan->writers());
            return p.plan->writer_rank(writer);
          },
          "writer"_a, "The rank that a writer is.")
      .def(
          "writer_of", [](const PlanValue& p, int rank) { return p.plan->writer_of(rank); },
          "rank"_a, "The writer that a rank is, if it is one.")
      .def(
          "cycles_of_writer",
          [](const PlanValue& p, int writer) {
            check_index("writer", writer, p.plan->writers());
            return p.plan->cycles(writer);
          },
          "writer"_a, "Cycles of one writer; 0 when it has nothing to write.")
      .def(
          "extent",
          [](const PlanValue& p, int writer, int cycle) {
            p.check(writer, cycle);
            return to_pair(p.plan->extent(writer, cycle));
          },
          "writer"_a, "cycle"_a, "The file bytes that a writer may write in a cycle.")
      .def("with_cuts", &with_cuts, "parts"_a,
           "The plan that knows where cycles end; ``parts``: (view, stream range) of every rank.")
      .def("part", &part, "view"_a, "stream_range"_a, "rank"_a, "writer"_a, "cycle"_a,
           "The part of a rank's stream range that goes to a writer in a cycle.")
      .def("slices", &slices, "view"_a, "stream_range"_a, "rank"_a,
           "All parts of a rank as (writer, cycle, (begin, end)), in (cycle, writer) order.");
  m.def("place", &place, "algorithm"_a, "team"_a, "crowd"_a, "geometry"_a, nb::kw_only(),
        "writers"_a = 0, "cycle_bytes"_a = 0, "stripe_bytes"_a = 0, "writer"_a = 0,
        "The plan of an algorithm; 0 leaves a parameter to the algorithm.");
}

}  // namespace

void bind_plan(nb::module_& m) {
  bind_crowd(m);
  bind_algorithms(m);
  bind_plan_value(m);
}

}  // namespace penstock::python
