// Writes of all ranks at the shared file pointer, in rank order: each rank's place follows from
// where the pointer is and what lower ranks bring. From there on such a call is a collective write
// at explicit offsets. The pointer is the library's, which moves it behind the whole.
#pragma once

#include <mpi.h>

#include <optional>

#include "pmpi/errors.hpp"
#include "pmpi/held_view.hpp"
#include "pmpi/serve_write.hpp"

namespace penstock::pmpi {

// In etypes of the view.
struct Turn {
  MPI_Offset begin;    // this rank's
  MPI_Offset all_end;  // where the pointer is afterwards
};

// Collective, with the lock `together`; the pointer is behind all turns then. nullopt, on all
// ranks: they cannot know, and the library has to do it all. Where it cannot move its pointer, the
// job ends.
std::optional<Turn> take_turn(const WriteArguments& a, OpenFile& file);

// Collective, with the lock `together`: `serve(a, file)` at this rank's place when the engine
// serves it, pass() when not.
template <class Serve>
int serve_in_order(WriteArguments a, int entry, const Words& as_given, OpenFile& file,
                   Serve serve) {
  if (!file.file->served()) return pass(entry, as_given);
  if (const int refused = give_held_view(a.handle, file); refused != MPI_SUCCESS) return refused;
  const std::optional<Turn> turn = take_turn(a, file);
  if (!turn) return pass(entry, as_given);
  a.offset = turn->begin;
  const int rc = serve(a, file);
  job().tick();
  return rc;
}

}  // namespace penstock::pmpi
