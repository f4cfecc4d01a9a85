// An open file as the engine sees it: view, method, statistics, errors. It
// knows comm::Comm and not MPI's C signatures; src/pmpi translates. The MPI library keeps the
// individual file pointer: the engine is told where to write.
//
// Collective calls must be made by every rank of the file's communicator. Threads: independent
// writes may be made while another thread is in a collective call, and do not wait for it; what
// changes the view, closes or opens is called by one thread while no other uses the file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "engine/config.hpp"
#include "engine/foreign_hints.hpp"
#include "engine/statistics.hpp"
#include "exec/pipeline.hpp"
#include "exec/stager.hpp"
#include "io/probe.hpp"
#include "layout/file_view.hpp"

namespace penstock::engine {

class File;

struct OpenInfo {
  std::string path;         // without a "ufs:"-like prefix
  bool opened_here = true;  // the MPI library's own open succeeded on this rank
  bool writable = false;    // opened for writing (and not MPI_MODE_SEQUENTIAL)
  bool readable = false;    // opened for reading; then it may be without being writable
  // MPI's rules hold for this file, so that some writes may be seen late.
  bool may_defer = false;
  int job_ranks = 0;  // who else may have the file open; 0: only those of its own communicator
  // Of the job, on nodes that the communicator is not on: they may write it by handles of their
  // own.
  bool other_nodes = false;
  bool has_library = true;  // which writes what cannot be served
  // The other handles of this process that have it open (docs/decisions/0042). To outlive the call
  // of open, and no longer.
  std::vector<File*> beside = {};
  std::string unserved_why;  // not empty: pass writes and reads through, with this reason
  Config config;             // with hints applied
  // For methods that take turns: the lock that this file shares with others of the node, given on
  // all of the file's ranks or on none. nullptr: the file makes one for its own ranks.
  std::shared_ptr<comm::NodeLock> node_lock = nullptr;
  // Where non-blocking writes are staged: one for all files of a process. nullptr: the file makes
  // one for itself.
  std::shared_ptr<exec::Stager> stager = nullptr;
  // The MPI library has the file open, on some rank at least, and Penstock must write to the same
  // one; library_file: which it is, where this rank knows.
  bool has_library_file = false;
  std::optional<io::FileIdentity> library_file = std::nullopt;
};

// A write as pmpi hands it over: bytes [position, position + size) of the stream through the view.
struct Write {
  CallKind kind = CallKind::write;
  int64_t position_bytes = 0;
  const void* memory = nullptr;
  layout::LoopTree memory_type;
  int64_t memory_count = 0;
  ErrorClass argument_error = ErrorClass::none;
  // The call's own view, in place of the file's; monotone. nullptr: the file's.
  const layout::FileView* view = nullptr;
};

// A write of bytes that lie in one piece in memory, at least one; through the file's view.
struct Piece {
  CallKind kind = CallKind::write;
  int64_t position_bytes = 0;
  std::span<const std::byte> bytes;
  bool staged = false;  // of a stage(): nobody waits until it is in the file
};

struct WriteResult {
  ErrorClass agreed = ErrorClass::none;
  int64_t bytes = 0;  // for the status: the longest prefix in the file, in whole etypes
  std::optional<Error> mine = std::nullopt;  // this rank's own failure, with its detail
};

// A read, likewise: into the program's memory.
struct Read {
  int64_t position_bytes = 0;
  void* memory = nullptr;
  layout::LoopTree memory_type;
  int64_t memory_count = 0;
  ErrorClass argument_error = ErrorClass::none;
  bool starts = false;  // by a function that returns a request
};

struct ReadResult {
  ErrorClass agreed = ErrorClass::none;
  int64_t bytes = 0;  // for the status: read from the beginning; fewer where the file ends
  std::optional<Error> mine = std::nullopt;  // this rank's own failure, with its detail
};

inline constexpr int64_t kWholeStream = INT64_MAX;

// Why nothing is served through such a view; empty where it is.
std::string why_view_unserved(const layout::FileView& view);

enum class Company : uint8_t { alone, together };
// Who waits for staged bytes, and hears of those that were lost.
enum class Drain : uint8_t {
  lane,   // local: this rank's, but not what lies in pages that go behind
  mine,   // local: this rank's
  last,   // likewise, and from now on no other rank is asked for anything: MPI ends
  joint,  // collective: all ranks' where a collective non-blocking write staged any, else as `mine`
  all,    // collective: all ranks'
};

class File {
 public:
  // Collective. Always gives a File: when some rank cannot be served, served() is false on all and
  // why_unserved() says so on the log.
  // Who runs out of memory in it ends the job, here and in sync and close.
  static std::unique_ptr<File> open(std::unique_ptr<comm::Comm> comm, const OpenInfo& info);
  ~File();
  // Local, before this handle is used. Handles of this process that its open has not seen, nor they
  // it, since threads opened the file at once: from now on none of them has pages.
  void found_beside(std::vector<File*> others);

  // Collective writes go through the engine now. The same on every rank.
  bool served() const noexcept;
  // Independent writes do too: not in atomic mode, nor where nodes must own whole units (network
  // file systems).
  bool serves_independent() const noexcept;
  // Neither writes nor reads, whatever the view. The same on every rank.
  bool serves_nothing() const noexcept;
  const std::string& why_unserved() const noexcept;
  // What the system said to this rank, where that is the reason.
  const std::optional<Error>& open_failure() const noexcept;
  const Config& config() const noexcept;
  // For MPI_File_get_info; empty where the MPI library serves, and its own hints stand.
  HintValues hints_in_effect() const;
  const layout::FileView& view() const noexcept;

  // Collective. `unserved_why` not empty on some rank: this view is passed through until the next
  // call of this function; all agree. Of the view's stream only the first `served_bytes` may be
  // written: a caller whose write goes past them passes it through.
  void set_view(layout::FileView view, const std::string& unserved_why,
                int64_t served_bytes = kWholeStream);
  // Local: a view that why_view_unserved() says nothing of, as all ranks know of theirs.
  void set_served_view(layout::FileView view);
  // Whether that is less than all of it on some rank; the same on every rank.
  bool view_is_limited() const noexcept;
  // Whether a write up to stream position `end_bytes` keeps to it: this rank's, or all ranks'
  // (collective; the same answer everywhere).
  bool keeps_to_view(int64_t end_bytes, Company company);
  void set_atomic(bool atomic);  // collective
  bool is_atomic() const noexcept;

  // Collective: `bytes` of the file have their place on the device afterwards, and what is in it
  // stays. nullopt: nothing was done, since this file system takes no room beforehand, or ranks ask
  // for different sizes, or for less than nothing. REQUIRES served().
  std::optional<ErrorClass> preallocate(Off bytes);

  WriteResult write_all(const Write& write);  // collective; REQUIRES served()
  // Local; REQUIRES served(). Where writes are deferred (docs/decisions/0028) the bytes are
  // accepted when this returns, as of stage().
  WriteResult write(const Write& write);
  // Local. What write() or stage() comes to, by a shorter way. nullopt: nothing was done, and one
  // of these has to. REQUIRES serves_independent().
  std::optional<WriteResult> write_piece(const Piece& piece);

  // The same, but returning when the bytes are copied (docs/decisions/0025). REQUIRES served().
  // What could not be written later is told once by a later call of this rank, and by every sync
  // and by close on all ranks.
  // Local: `bytes` of the result are accepted.
  WriteResult stage(const Write& write);
  // Collective: a write_all in two halves; the second tells what became of it, on all ranks. Other
  // collective calls in between wait for it and leave the telling to it. Not in atomic mode.
  void begin_write_all(const Write& write);
  WriteResult end_write_all();
  // Another split write failed that was over where it began, and its end was never asked for: close
  // tells it.
  void never_told(ErrorClass failed);

  // Collective: whether reads go through the engine now, collective ones or through a view that the
  // library is not told of; the same on every rank. The first time it opens a descriptor for them.
  bool serves_reads();
  ReadResult read_all(const Read& read);  // collective; REQUIRES serves_reads()
  // Local. REQUIRES that serves_reads() has said yes for this view.
  ReadResult read(const Read& read);

  // Before anything else is done with the file: what was accepted is in the file when it returns,
  // or the class of what was lost and not told yet.
  ErrorClass flush(Drain drain);
  // Likewise, but what was lost is left for a later call to tell.
  void flush_untold(Drain drain);
  // Local, where the process ends without MPI_Finalize: as Drain::mine, but not where other nodes
  // have a part in that, which would have to answer. An error as long as something is lost. The
  // file may still be closed.
  std::optional<Error> flush_at_exit();
  // Local. Where the last byte ends that this node's ranks have accepted and that may not be in the
  // file yet. To be asked before the file's size is, which is at least that then.
  Off accepted_end() const;
  bool holds_accepted() const;  // local: something that may not be in the file yet
  // Local. Empties the file that it has open, whatever its name leads to by now. REQUIRES served()
  // and that nothing was written through this handle. What other handles have written is gone, and
  // no damage.
  Result<void> empty();
  // After the MPI library did it, or failed: counts; but a sync is counted by sync(), before it.
  void passed_through(CallKind kind, int64_t bytes, double seconds, const char* function,
                      const std::optional<Error>& failure = std::nullopt);
  // The end of a split call failed that the MPI library did: what its beginning counted is nothing.
  void passed_end_failed(CallKind kind, int64_t bytes, const Error& failure);
  // Something was served, but not in the best way: once more in the report's `degraded`.
  void degraded(const std::string& why);

  // Collective. On the device, or every rank gets the same error. `mine`, here and in close: gets
  // this rank's own failure, with its detail.
  ErrorClass sync(std::optional<Error>* mine = nullptr);
  // Collective. Verifies, applies the sync policy, closes the descriptor, agrees, merges the
  // statistics. The report is complete on rank 0 of the file. Call once, then destroy. Tells too of
  // a write that was begun and never ended.
  ErrorClass close(FileReport& report, std::optional<Error>* mine = nullptr);
  // This rank's view of a file still open, for the log of a job that may be killed.
  FileReport snapshot() const;

  comm::Comm& comm() noexcept;

 private:
  struct State;
  static std::unique_ptr<File> open_together(std::unique_ptr<comm::Comm> comm,
                                             const OpenInfo& info);
  ErrorClass flush_before(const Read& read);
  ErrorClass sync_together(std::optional<Error>* mine);
  ErrorClass close_together(FileReport& report, std::optional<Error>* mine);
  explicit File(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock::engine
