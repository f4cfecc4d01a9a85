// A rank writes its own bytes by itself: independent writes, and plans without an exchange.
#pragma once

#include <optional>

#include "base/aligned_buffer.hpp"
#include "exec/pipeline.hpp"
#include "exec/turns.hpp"
#include "exec/user_data.hpp"

namespace penstock::exec {

struct AloneContext {
  io::MechanismFile& file;
  AlignedBuffer& staging;  // for memory that is not contiguous
  io::FileSync* sync;      // or nullptr
  PhaseTimes& times;
  Traffic& traffic;
  int64_t cycle_bytes = 0;          // of the stream, written at a time; 0: all of it
  Turns* turns = nullptr;           // when each cycle may be written; needs cycle_bytes
  io::CrumbTrail* trail = nullptr;  // of this thread
};

// Contiguous memory of the program is written from where it is: how much by one write, at most, and
// where the sync policy (or nullptr) would rather act in between.
inline constexpr int64_t kMostInPlaceBytes = int64_t{1} << 30;
int64_t in_place_bytes(const io::FileSync* sync) noexcept;

// The first failure ends it: prefix_bytes says how far it came. Faults leave nothing else to undo.
// A rank plays its part in turns to the end.
WriteOutcome write_alone(const AloneContext& context, const layout::FileView& view, StreamRange own,
                         UserData& data);

// The same of a run of the file, from memory that lies in one piece. Allocates nothing, but for
// what it says of a failure.
WriteOutcome write_run(const AloneContext& context, const layout::Run& run, const std::byte* bytes);

}  // namespace penstock::exec
