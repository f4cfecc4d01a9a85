// One cycle of an exchange run backwards: a reader's page goes out in messages, and this rank's
// slices come in. Messages and chunks are those of exec/cycle.hpp; contiguous data is sent and
// received in place.
//
// No rank can wait for ever: every reader sends in rank order and every rank receives in the order
// of the writers, so the lowest unfinished message of the lowest rank in the lowest cycle is always
// in flight on both sides. Reading the page waits for nobody.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/cycle.hpp"
#include "exec/read_page.hpp"
#include "exec/read_pipeline.hpp"
#include "exec/user_room.hpp"

namespace penstock::exec {

// A part of this page that another rank wants. `extent` is its place in the file.
struct Delivery {
  Peer* taker = nullptr;
  StreamRange part;
  Extent extent;
};

// What does not change between the cycles of one collective read.
struct ReadCall : Parties {
  Off file_bytes;        // where the file ends
  int64_t readable_end;  // of my stream: behind it the file ends
  UserRoom& room;
  comm::Transfers& transfers;
  ExchangePools& pools;
  layout::Cursor& cursor;  // over the view
  ReadSpent& spent;
};

// The page of a reader in one cycle.
struct OutgoingPage {
  int writer = 0;  // of the plan: this rank, as a reader
  int cycle = 0;
  ReadPage page;
  std::vector<Delivery> deliveries;  // ascending by rank; kept so that cycles allocate nothing
};

// Notes what everybody wants of `out.page`, which was just reset.
void collect_wanted(const ReadCall& call, OutgoingPage& out);

// Buffers of the loop, kept between cycles.
struct ReadScratch {
  struct Landing {
    StreamRange piece;
    int chunk = -1;  // -1: received in place
  };
  std::vector<Landing> landings;  // by message number
  ChunksSent chunks_sent;
};

// Sends the page, if there is one and after it was filled, and receives what others send of this
// cycle. `slices` stands at the first slice of this cycle (or of a later one) and is left behind
// the last.
void run_read_cycle(const ReadCall& call, int cycle, SliceQueue& slices, OutgoingPage* out,
                    ReadScratch& scratch);

}  // namespace penstock::exec
