// A rank reads its own bytes by itself: plans without an exchange.
#pragma once

#include "exec/read_page.hpp"
#include "exec/read_pipeline.hpp"
#include "exec/user_room.hpp"

namespace penstock::exec {

struct ReadAloneContext {
  io::ReadableFile& file;
  ReadPage& page;
  ReadSpent& spent;
};

// The first failure, or the end of the file, ends it: prefix_bytes says how far it came.
ReadOutcome read_alone(const ReadAloneContext& context, const layout::FileView& view,
                       StreamRange own, UserRoom& room);

}  // namespace penstock::exec
