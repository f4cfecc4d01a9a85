// Executes a plan: pack, exchange, fill, write, cycle by cycle, and agrees on
// what happened. The same code on threads and on MPI ranks. After an error every
// rank keeps its part of every cycle, so that nobody waits for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/error.hpp"
#include "base/ticks.hpp"
#include "comm/comm.hpp"
#include "exec/exchange.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"
#include "layout/cursor.hpp"
#include "layout/file_view.hpp"
#include "layout/geometry.hpp"
#include "plan/algorithm.hpp"

namespace penstock::exec {

class Stager;
class WriteBehind;

// What the program expects of a write that is accepted first and written later.
enum class Returns : uint8_t {
  soon,     // it may write pages that are full on its way
  at_once,  // a non-blocking one: what a thread can write, it leaves to the thread
};

// One rank's part of a write: bytes [range) of its stream through `view`, from `memory`.
struct WriteRequest {
  const layout::FileView* view = nullptr;
  StreamRange range;
  const std::byte* memory = nullptr;
  // How the bytes lie in memory, from its first stream byte = range.begin; count copies.
  layout::LoopTree memory_type = layout::LoopTree::bytes(1);
  int64_t memory_count = 0;
  // Set when the arguments were wrong: the rank takes part with nothing, and every rank is told.
  ErrorClass argument_error = ErrorClass::none;
  Returns returns = Returns::soon;
  // Of an earlier staged write of this rank: this call tells all ranks of it, in a collective call.
  std::optional<Error> earlier = std::nullopt;
};

struct PhaseTimes {  // seconds
  double plan_s = 0, pack_s = 0, exchange_s = 0, write_s = 0;
  double sync_s = 0;  // that the sync policy asked for

  friend PhaseTimes operator+(const PhaseTimes& a, const PhaseTimes& b) {
    return {a.plan_s + b.plan_s, a.pack_s + b.pack_s, a.exchange_s + b.exchange_s,
            a.write_s + b.write_s, a.sync_s + b.sync_s};
  }
};

struct WriteOutcome {
  ErrorClass agreed = ErrorClass::none;  // the same on every rank of a collective write
  std::optional<Error> mine;             // this rank's own failure, with its detail
  int64_t prefix_bytes = 0;              // of my range: in the file for certain, from its beginning
  // That this rank put into the file, as a writer, without those that a failing sync may have lost.
  int64_t written_bytes = 0;
  const plan::Algorithm* algorithm = nullptr;  // the one that ran
  // Of a write alone: the part of the prefix before the last sync of the policy, and whether one
  // failed. Bytes that were written before this range are then as uncertain as its own.
  int64_t synced_bytes = 0;
  bool sync_failed = false;
};

struct Traffic {  // counts do not depend on the machine: tests assert on them
  int64_t messages = 0, message_bytes = 0, writes = 0, cycles = 0, descriptions = 0;
  int64_t shared_bytes = 0;  // copied straight into another rank's page
  int64_t syncs = 0;         // that the sync policy asked for and that succeeded
  int64_t unpacked = 0;      // of the messages: sent from where the bytes lie in pieces
  int64_t known_pages = 0;   // whose blocks nobody followed: the pattern was known to fill them

  friend Traffic operator+(const Traffic& a, const Traffic& b) {
    return {
        a.messages + b.messages, a.message_bytes + b.message_bytes, a.writes + b.writes,
        a.cycles + b.cycles,     a.descriptions + b.descriptions,   a.shared_bytes + b.shared_bytes,
        a.syncs + b.syncs,       a.unpacked + b.unpacked,           a.known_pages + b.known_pages};
  }
};

// Totals of one way to write.
struct Spent {
  PhaseTimes times;
  Traffic traffic;

  friend Spent operator+(const Spent& a, const Spent& b) {
    return {a.times + b.times, a.traffic + b.traffic};
  }
};

// What became of all that stage_alone() took, so far.
inline constexpr size_t kMostLostTold = 16;
struct StagedNotes {
  int64_t accepted_bytes = 0;
  int64_t written_bytes = 0;  // of these, in the file
  int64_t lost_bytes = 0;     // of these, not in the file for certain, and nobody tries again
  int64_t failures = 0;
  std::optional<Error> failure;    // the worst
  std::vector<Extent> lost;        // where they belong, in the order of the failures
  bool lost_told_in_part = false;  // more than kMostLostTold places
  Spent spent;                     // by the I/O thread
  int64_t taken_over = 0;          // pages that another rank should have written
  int64_t without_memory = 0;      // writes that found none for a page
  std::string why_not_shipped;     // though it was to be, when nodes first met; empty: it was
};

// Whose independent writes go behind.
enum class PagesFor : uint8_t {
  own_writes,     // this pipeline's, and of those that share its pages
  other_handles,  // of those alone
};

// What a file keeps between collective calls: warm buffers and the peers' views. A thread may be in
// write_all while another is in write_alone; never two in the same one.
class Pipeline {
 public:
  // Which algorithm a collective call runs.
  struct Policy {
    const plan::Algorithm* algorithm = nullptr;  // nullptr: `decide` chooses for each call
    plan::Parameters parameters;
    // Pure, so that every rank decides alike; used when no algorithm is given.
    const plan::Algorithm& (*decide)(const plan::Crowd&, const plan::Team&,
                                     const layout::Geometry&) = nullptr;
    const Exchange* exchange = nullptr;  // of algorithms that exchange; nullptr: messages
    Pack pack = Pack::copy;              // of the messages
    // Where ranks may bring the same byte, each writes all of its own before the next one does.
    bool one_by_one = false;
  };

  Pipeline(comm::Comm& comm, io::MechanismFile& file, const layout::Geometry& geometry);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;

  // Collective.
  WriteOutcome write_all(const WriteRequest& request, const Policy& policy);
  // Local: this rank's bytes, by this rank alone.
  WriteOutcome write_alone(const WriteRequest& request);
  // The short way of a small one: a run of the file, from memory that lies in one piece. nullopt:
  // it goes another way, and nothing was done.
  std::optional<WriteOutcome> write_run(const layout::Run& run, const std::byte* bytes);

  // --- Staged: the bytes are copied when these return, and the I/O thread writes them. In the same
  // order as calls are made: who writes otherwise, drains first. REQUIRES set_stager().
  // Local. The outcome is of the copying; prefix_bytes is what was taken. What becomes of it later
  // is in staged_notes(). With set_write_behind() the bytes go to the pages that the node shares.
  WriteOutcome stage_alone(const WriteRequest& request);
  // The short way of a small stage_alone() into these pages: as WriteBehind::add().
  std::optional<Ticks> stage_run(const layout::Run& run, const std::byte* bytes, Ticks begin,
                                 Returns returns);
  // Collective: a write_all() in two halves. When the first returns the bytes are on their writers;
  // when the second does they are in the file, or the outcome says what is not. No other collective
  // write in between.
  void begin_all(const WriteRequest& request, const Policy& policy);
  WriteOutcome end_all();
  // Local, for who will not come to end_all(): what of the begun write failed here. REQUIRES that
  // the lane was drained.
  std::optional<Error> begun_failure() const;
  // Local: all that this rank has staged has been written, or is known to be lost.
  void drain();
  // Collective: what all ranks have.
  void drain_together();
  // Local. The same of the pages that the node shares alone, and of all but them.
  void flush_pages();
  void drain_lane();
  // Local, before a drain() of one rank alone: lets others complete the pages (write_behind.hpp).
  void let_others_complete_pages();
  // Local. Where the last byte ends that is in such a page and was accepted before this was called;
  // 0: what was is in the file by now.
  Off pages_end() const;
  bool has_staged() const;  // of calls by this rank alone: not yet written
  // Local, after a sync that the program asked for: what the policy's own have lost of such pages
  // since is in staged_notes().
  void settle_syncs();
  StagedNotes staged_notes() const;
  int64_t staged_failures() const;  // of the notes, without making them

  // Both, where not nullptr, must outlive the pipeline's writes.
  void set_sync(io::FileSync* sync) noexcept;
  void set_stager(std::shared_ptr<Stager> stager, int64_t limit_bytes);
  // `seconds`: how long what is accepted may stay out of the file. From now on the stager's thread
  // writes too. REQUIRES set_stager() before, and nothing to be set any more.
  void set_write_behind(std::unique_ptr<WriteBehind> behind, double seconds,
                        PagesFor pages_for = PagesFor::own_writes);
  // Local. Independent writes of this pipeline fill the same pages as `other`'s, which may end
  // before (docs/decisions/0042). A rank's writes enter the file in the order of its calls, through
  // whichever. false: it has none to share. REQUIRES as set_write_behind().
  bool share_pages_of(Pipeline& other, double seconds);
  // Local. Writes no page any more, so that its file can be closed while others share its pages.
  // REQUIRES that its own are flushed, and that nothing is written through it any more.
  void let_pages_go();
  // Local, where nothing is written through it meanwhile: nothing of the file stays mapped for
  // pieces to come.
  void end_trail();
  // The I/O thread takes in what other nodes send, and sends where it may. false: there is none.
  bool start_shipping();
  void stop_receiving();  // by the I/O thread; harmless when it does not
  // Local. From now on no other rank is asked anything.
  void end_shipping();
  // Collective, the last call: frees what ranks have of each other. REQUIRES that all pages were
  // flushed together since the last write.
  void close_shipping();
  // Why the last write_all did not exchange as the policy asked, on this rank; empty when it did.
  const std::string& degraded() const noexcept;
  const Spent& spent_together() const noexcept;  // by write_all so far; REQUIRES nobody in it
  const Spent& spent_alone() const noexcept;     // by write_alone; likewise

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::exec
