// dedicated_writer: as designated_writer, but a thread that does nothing else writes (strategy S3
// of benson-2003). Ranks cannot be taken away from a program, so the writer is a thread of rank
// `writer`: while it writes a page, and syncs where the method asks for it, the rank collects the
// next one.
#include "plan/one_writer.hpp"

namespace penstock::plan {
namespace {

Result<std::unique_ptr<const Plan>> place_dedicated_writer(const Parameters& p, const Team& team,
                                                           const Crowd& crowd,
                                                           const layout::Geometry& geometry) {
  return place_one_writer("dedicated_writer", p, team, crowd, geometry);
}

}  // namespace

const Algorithm& dedicated_writer_algorithm() {
  static constexpr OptionInfo kOptions[] = {
      {"writer", "the rank whose thread writes; 0 by default"},
      {"cycle", "bytes that it collects and writes at a time"}};
  static const Algorithm a{.name = "dedicated_writer",
                           .summary = "a thread of one rank writes what all send",
                           .source = "benson-2003",
                           .needs = Needs::bounds,
                           .owns_blocks = true,
                           .keeps_writers = true,
                           .exchanges = true,
                           .writes_behind = true,
                           .options = kOptions,
                           .place = &place_dedicated_writer};
  return a;
}

}  // namespace penstock::plan
