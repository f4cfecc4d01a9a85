// What an open file keeps, for the files that serve its calls: file.cpp and file_*.cpp. Of no use
// to anybody else.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "comm/comm.hpp"
#include "engine/file.hpp"
#include "engine/piece_calls.hpp"
#include "engine/report.hpp"
#include "engine/verify.hpp"
#include "exec/lone_reader.hpp"
#include "exec/pipeline.hpp"
#include "exec/read_pipeline.hpp"
#include "exec/shipping.hpp"
#include "exec/team.hpp"
#include "io/mechanism.hpp"
#include "io/probe.hpp"
#include "io/reader.hpp"
#include "io/sync_policy.hpp"
#include "layout/file_view.hpp"
#include "layout/view_walk.hpp"

namespace penstock::engine {

// Worth walking as loops, rather than as a list.
inline bool is_regular(const layout::FileView& view) {
  return view.filetype().memory_bytes() < 1024;
}

struct File::State {
  std::unique_ptr<comm::Comm> comm;
  OpenInfo info;
  std::optional<Error> open_failure;  // of this rank's own descriptor
  std::string never_served;           // why no write of this file is served; empty when some may be
  std::string never_read;             // why no read is; as far as is known before the first one
  std::string view_unserved;          // why writes and reads through the current view are not
  int64_t served_bytes = kWholeStream;  // of this rank's view
  bool some_view_is_limited = false;    // on any rank
  bool atomic = false;
  io::FileSystem file_system;
  std::unique_ptr<io::MechanismFile> file;
  std::unique_ptr<io::FileSync> sync;
  std::unique_ptr<exec::Pipeline> pipeline;
  std::unique_ptr<io::ReadableFile> readable;  // opened for the first read that may be served
  std::unique_ptr<exec::ReadPipeline> reads;
  std::unique_ptr<exec::LoneReader> lone_reads;
  std::shared_ptr<Verifier> verifier;
  std::shared_ptr<VerifiedTogether> verified_together;
  int64_t written_past_before = 0;  // this handle was opened: what is no excuse
  layout::FileView view;
  bool view_regular = true;
  std::optional<layout::ViewWalk> walk;  // for write_piece(); made by the first write()

  // A collective write waits for other ranks, and these may wait for an independent write of this
  // one: so each kind has a lock of its own.
  std::mutex together, by_itself;
  // Guards what both note down; held for no longer than that.
  std::mutex mutex;
  FileNotes notes;
  exec::Spent spent_together, spent_alone;
  exec::ReadSpent spent_reading, spent_reading_alone;
  PieceCalls pieces;                       // who adds has by_itself
  std::atomic<int64_t> told_failures = 0;  // of staged writes, by a call of this rank

  // A collective write that was begun: what it asks for and, as soon as it is known, what it came
  // to. Belongs to who is in a collective call.
  struct Split {
    Write write;
    double seconds;  // inside begin
    Verifier::Begun verified = {};
    std::optional<WriteResult> result = std::nullopt;
  };
  std::optional<Split> split;
  ErrorClass never_told = ErrorClass::none;  // of a split write that is not the engine's
  // Independent writes go to the pages that the ranks of a node share.
  bool may_defer = false;  // on all ranks
  // What one rank has written every other sees: on one node, or on a file system of one state.
  bool seen_by_all = false;
  // A page of several nodes' bytes is written by its owner's node alone, so that independent writes
  // are served where units belong to nodes; the same on every rank.
  bool owners_write = false;
  // What collective writes go by: the method, but where owners write, who then write these too.
  Method collective;
  std::atomic<bool> defers = false;
  // Another handle of this process writes the same file and shares nothing with this one: what a
  // call of this rank alone brings is in the file when it returns, so that the later call wins.
  std::atomic<bool> writes_at_once = false;
  // Another handle of this process may fill this one's pages.
  std::atomic<bool> lends = false;
  bool lends_on_all = false;     // or did, when it was opened
  int64_t most_pages_bytes = 0;  // of a node's independent writes, by its memory limit
  State* lender = nullptr;       // of the pages; while the file is being opened
  // Some rank may hold bytes of a collective non-blocking write; the same on every rank.
  std::atomic<bool> staged_by_all = false;

  // file_open.cpp
  std::string open_here();
  std::string open_file(io::Written written);
  std::string cannot_open(const Error& error);
  std::string open_for_reads_here();
  void agree_on_service(const std::string& mine, const std::string& mine_of_reads);
  void progress_by_calls();
  Result<std::shared_ptr<Gate>> gate();
  void start_sync();
  void start_pipeline();
  bool wants_to_defer() const noexcept;
  int64_t memory_for_pages() const;
  void start_verifier();
  void start_write_behind();
  void start_shipping(exec::Shipping& shipping);
  void give_to_owners(int64_t page_bytes);
  plan::Team team() const noexcept { return exec::team_of(*comm); }
  WriteResult accept(const Write& write, exec::Returns returns, double begin_s);
  WriteResult write_by_owners(const Write& write, double begin_s);

  // file_size.cpp
  Result<void> preallocate(Off bytes) const;
  void note_preallocated(const Result<void>& mine, const Result<void>& agreed);

  // file_handles.cpp
  void look_beside();
  void share_nothing();
  void verify_beside();
  void forget_beside();
  bool lends_to(const State& other);
  bool may_lend() const noexcept;
  bool thread_may_help() const noexcept;
  bool borrow_pages();
  void accept_nothing_more() noexcept;  // what this rank writes alone is in the file at once
  void stop_deferring();

  // file.cpp
  void take_view(layout::FileView given);
  const layout::FileView& view_of(const Write& write) const noexcept;
  exec::WriteRequest request(const Write& write) const;
  exec::Pipeline::Policy policy() const;
  exec::Pipeline::Policy reading_policy() const;
  WriteResult write(const Write& write, double begin_s);
  WriteResult account(const Write& write, int64_t bytes, const exec::WriteOutcome& outcome,
                      double begin_s);
  void note_algorithm(const exec::WriteOutcome& outcome);

  // file_staged.cpp
  bool stages() const noexcept;
  int64_t staged_limit() const noexcept;
  void drain();
  void drain_lane();
  double drain_together();  // how many seconds it took: those of its writes are in their phases
  double leave_pages();     // the same, at close
  Result<void> close_file();
  void meet_in_pages();
  void settle_split();
  Result<void> never_ended() const;
  std::optional<Error> failed_unended() const;
  void note_unended();
  ErrorClass flush(Drain to);
  bool is_of_all(Drain to) const;
  std::unique_lock<std::mutex> drain_for(Drain to);
  void end_trail();
  void count_error();
  bool has_untold() const;
  std::optional<Error> untold();
  void all_are_told();
  Result<void> all_that_was_accepted() const;
  void take_staged_notes(FileNotes& into) const;

  // file_pieces.cpp
  exec::WriteRequest request(const Piece& piece) const;
  void keep_walk(const Write& write);
  std::optional<WriteResult> accept_piece(const Piece& piece, const layout::Run& run, Ticks begin);
  std::optional<WriteResult> put_piece(const Piece& piece, const layout::Run& run, Ticks begin);
  WriteResult account_failed(const Piece& piece, exec::WriteOutcome outcome, double begin_s);
  PieceCalls::Pattern pattern_of(const layout::Run& run) const noexcept;

  // file_reads.cpp
  Result<std::unique_ptr<io::ReadableFile>> open_to_read() const;
  Result<void> open_readable();
  Verification verify();
  void tell_of_pages(const exec::WriteBehind& behind);
  std::string why_unread() const;
  void start_reads();
  exec::ReadRequest request(const Read& read) const;
  ReadResult account(const exec::ReadOutcome& outcome, double begin_s);

  // file_notes.cpp
  void count_call(const Write& write, int64_t bytes, double seconds);
  void count_pattern(const Write& write, StreamRange range);
  void note_passed_read(std::string_view function);
  void note_library_sync(double seconds, bool failed);
  void note_error(const Error& error);
  void note_mechanism();
  void note_unwritten();
  void take_sync_notes(FileNotes& into) const;
  FileNotes notes_now() const;
  void take_spent_alone();
};

}  // namespace penstock::engine
