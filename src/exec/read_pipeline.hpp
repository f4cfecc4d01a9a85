// Executes a plan backwards: those who would write the bytes read them, cycle by cycle, each from
// its own part of the file, and send them to the ranks that want them. The same code on threads and
// on MPI ranks. After an error every rank keeps its part of every cycle, so that nobody waits for
// ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "comm/comm.hpp"
#include "exec/pipeline.hpp"
#include "exec/read_page.hpp"
#include "io/reader.hpp"
#include "layout/geometry.hpp"

namespace penstock::exec {

// One rank's part of a read: bytes [range) of its stream through `view`, into `memory`.
struct ReadRequest {
  const layout::FileView* view = nullptr;  // monotone
  StreamRange range;
  std::byte* memory = nullptr;
  // How the bytes lie in memory, from its first stream byte = range.begin; count copies.
  layout::LoopTree memory_type = layout::LoopTree::bytes(1);
  int64_t memory_count = 0;
  // Set when the arguments were wrong: the rank takes part with nothing, and every rank is told.
  ErrorClass argument_error = ErrorClass::none;
};

struct ReadOutcome {
  ErrorClass agreed = ErrorClass::none;  // the same on every rank
  std::optional<Error> mine;             // this rank's own failure, with its detail
  // Of my range, from its beginning: read and in memory. Less than all of it without an error: the
  // file ends there. Memory behind it is untouched at the end of the file, undefined after an
  // error.
  int64_t prefix_bytes = 0;
  const plan::Algorithm* algorithm = nullptr;  // the one that ran
};

// Totals of this rank: seconds, and counts that do not depend on the machine.
struct ReadSpent {
  double plan_s = 0, pack_s = 0, exchange_s = 0, read_s = 0;
  int64_t messages = 0, message_bytes = 0, cycles = 0, descriptions = 0;
  ReadCounts file;

  friend ReadSpent operator+(ReadSpent a, const ReadSpent& b) {
    a.plan_s += b.plan_s, a.pack_s += b.pack_s;
    a.exchange_s += b.exchange_s, a.read_s += b.read_s;
    a.messages += b.messages, a.message_bytes += b.message_bytes;
    a.cycles += b.cycles, a.descriptions += b.descriptions;
    a.file.reads += b.file.reads, a.file.bytes += b.file.bytes;
    return a;
  }
};

// What a file keeps between collective reads: warm buffers and the peers' views.
class ReadPipeline {
 public:
  ReadPipeline(comm::Comm& comm, io::ReadableFile& file, const layout::Geometry& geometry);
  ~ReadPipeline();
  ReadPipeline(const ReadPipeline&) = delete;

  // Collective, of ranks that all call it after what they want to find in the file has entered it.
  // The policy's exchange is not asked: bytes travel in messages.
  ReadOutcome read_all(const ReadRequest& request, const Pipeline::Policy& policy);
  const ReadSpent& spent() const noexcept;  // REQUIRES nobody in read_all

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::exec
