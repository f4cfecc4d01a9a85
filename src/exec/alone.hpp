// A rank writes its own bytes by itself: independent writes, and plans without an exchange.
#pragma once

#include <optional>

#include "base/aligned_buffer.hpp"
#include "exec/pipeline.hpp"
#include "exec/user_data.hpp"

namespace penstock::exec {

struct AloneContext {
  io::MechanismFile& file;
  AlignedBuffer& staging;   // for memory that is not contiguous
  WriteObserver* observer;  // or nullptr
  io::FileSync* sync;       // or nullptr
  PhaseTimes& times;
  Traffic& traffic;
};

// The first failure ends it: prefix_bytes says how far it came. Faults leave nothing else to undo.
WriteOutcome write_alone(const AloneContext& context, const layout::FileView& view, StreamRange own,
                         UserData& data);

}  // namespace penstock::exec
