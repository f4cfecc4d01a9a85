// designated_writer: one rank collects all bytes and writes them, and computes like the others
// (strategy S2 of benson-2003). The file is written in order, by one descriptor: right where
// writers of one file only wait for each other.
#include "plan/one_writer.hpp"

namespace penstock::plan {
namespace {

Result<std::unique_ptr<const Plan>> place_designated_writer(const Parameters& p, const Team& team,
                                                            const Crowd& crowd,
                                                            const layout::Geometry& geometry) {
  return place_one_writer("designated_writer", p, team, crowd, geometry);
}

}  // namespace

const Algorithm& designated_writer_algorithm() {
  static constexpr OptionInfo kOptions[] = {
      {"writer", "the rank that writes; 0 by default"},
      {"cycle", "bytes that it collects and writes at a time"}};
  static const Algorithm a{.name = "designated_writer",
                           .summary = "one rank writes what all send, and computes too",
                           .source = "benson-2003",
                           .needs = Needs::bounds,
                           .owns_blocks = true,
                           .keeps_writers = true,
                           .exchanges = true,
                           .options = kOptions,
                           .place = &place_designated_writer};
  return a;
}

}  // namespace penstock::plan
