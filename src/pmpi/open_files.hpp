// The side map: what Penstock knows of each file that the program has open, by the library's
// handle. An entry goes before the real close, because libraries reuse addresses.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "comm/mpi_comm.hpp"
#include "engine/file.hpp"
#include "io/probe.hpp"
#include "pmpi/call_mutex.hpp"
#include "pmpi/held_view.hpp"

namespace penstock::pmpi {

// Where the individual file pointer is, in etypes, as far as calls that the engine understands
// moved it. The library moves its own along; it is asked only when this is not known, because
// ROMIO's answer is wrong for some views (its get_position is not the inverse of its seek).
class FilePointer {
 public:
  std::optional<MPI_Offset> known() const noexcept { return at_; }
  void set(MPI_Offset at) noexcept { at_ = at; }
  void forget() noexcept { at_.reset(); }

 private:
  std::optional<MPI_Offset> at_;
};

// What a write or a read came to.
struct Served {
  int error_class = MPI_SUCCESS;  // the same on every rank of a collective call
  // In the file, or accepted (Return::staged), or read: from the beginning of the buffer.
  int64_t bytes = 0;
};

// The program's error handler of a file, which error_handler.hpp sets aside while there are users:
// the library then has MPI_ERRORS_RETURN, or for moments the given one.
struct AsideHandler {
  std::mutex mutex;
  int users = 0;
  MPI_Errhandler given{};
  bool attached = false;
  std::vector<std::thread::id> callers;  // who is having the library call the given one
};

struct OpenFile {
  // One call at a time of each kind: collective calls wait for other ranks, which may wait for an
  // independent call of another thread of this one. Who needs both takes `together` first.
  // Recursive: an error handler may call on its own file.
  CallMutex together;
  CallMutex alone;  // guards the individual pointer too
  std::unique_ptr<engine::File> file;
  // Of ours, on which errors are returned: for the library's calls that are local.
  MPI_Comm quiet() const { return comm::handle_of(file->comm()); }
  std::string path;
  std::optional<io::FileIdentity> id;  // of what the path meant when it was opened
  bool writable = false;
  bool readable = false;
  bool may_sieve = true;       // the library, when it writes (library_hints.hpp)
  bool view_is_empty = false;  // the filetype holds no byte: only writes of nothing are legal
  bool view_is_known = true;   // the engine has the library's view, or its etype at least
  bool reported = false;       // to the job's log, though not closed: at MPI_Finalize
  std::atomic<bool> wrote_outside = false;  // the library itself wrote since the last sync
  FilePointer pointer;
  // The memory type of the last independent write, and plain_bytes() of it.
  struct PlainType {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int64_t bytes = 0;
  };
  PlainType plain;
  // The view, where the library's own file has another one until a call needs it; then the pointer
  // is known, and all independent calls but those at the shared pointer are the engine's. On all
  // ranks or on none.
  std::unique_ptr<HeldView> held;
  // By this rank or the open, since the library last set a view, which resets it. Seen even where
  // no library imports such a call: the program may have looked it up (dlsym).
  std::atomic<bool> moved_shared_pointer = false;
  // The library's own file has (0, MPI_BYTE, MPI_BYTE) on every rank, as at the open.
  bool library_has_bytes = true;
  uint64_t told_hints = 0;        // hash_of_hints() of what the library was told last; 0: not known
  bool method_is_hinted = false;  // at the open
  // A split collective write of ours was begun and not ended; what was wrong with it on this rank.
  std::optional<int> split_write;
  std::optional<Served> split_done;  // likewise, of one that was done where it began
  std::optional<Served> split_read;  // likewise of a read; what it came to
  int64_t split_passed = 0;          // bytes of one that the library has begun
  bool is_splitting() const noexcept { return split_write || split_done || split_read; }
  AsideHandler aside;
};

using OpenFilePtr = std::shared_ptr<OpenFile>;

class OpenFiles {
 public:
  // nullptr for MPI_FILE_NULL and what is not ours. A file that a thread has in a call is closed by
  // no other: MPI calls that an error.
  OpenFile* find(MPI_File handle);
  // Those that were there before.
  std::vector<OpenFilePtr> insert(MPI_File handle, OpenFilePtr file);
  OpenFilePtr extract(MPI_File handle);
  std::vector<OpenFilePtr> all();
  // Those that were extracted and are being closed.
  std::vector<OpenFilePtr> closing();
  void begin_closing(const OpenFilePtr& file);
  void end_closing(const OpenFilePtr& file);

 private:
  std::vector<OpenFilePtr> all_now() const;

  // What a thread found last, which it asks for in most calls: as it was when so many changes had
  // been made.
  struct Found {
    uint64_t changes = 0;
    MPI_File handle{};
    OpenFile* file = nullptr;
  };
  static thread_local Found last_;

  std::mutex mutex_;
  std::unordered_map<MPI_File, OpenFilePtr> files_;
  std::vector<OpenFilePtr> closing_;
  std::atomic<uint64_t> changes_ = 1;
};

OpenFiles& open_files();

// Where this process's files stage what non-blocking writes bring. It ends with the last of them,
// but until MPI_Finalize it waits for more: to start its thread takes as long as all the rest of
// opening a small file.
std::shared_ptr<exec::Stager> stager();
void keep_stager(const std::shared_ptr<exec::Stager>& stager);
void rest_stager();    // a file was closed: without any, it keeps neither memory nor descriptor
void let_stager_go();  // in MPI_Finalize

}  // namespace penstock::pmpi
