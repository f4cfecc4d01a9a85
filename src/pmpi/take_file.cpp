// Opening and closing: the library's own file first and last, ours in between.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/mpi_ask.hpp"
#include "comm/mpi_comm.hpp"
#include "comm/mpi_other_nodes.hpp"
#include "comm/mpi_strangers.hpp"
#include "engine/method.hpp"
#include "pmpi/call_mutex.hpp"
#include "pmpi/device_memory.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/file_name.hpp"
#include "pmpi/hints.hpp"
#include "pmpi/job.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/library_file.hpp"
#include "pmpi/library_hints.hpp"
#include "pmpi/pass.hpp"
#include "pmpi/real.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

// Ranks can meet on it. Where they cannot, the library's open has failed for the same reason.
bool can_meet(MPI_Comm comm) {
  return comm::mpi_is_running() && comm != MPI_COMM_NULL && !comm::is_inter(comm);
}

bool spans_world(MPI_Comm comm) {
  return comm::size_in(comm) == comm::size_in(MPI_COMM_WORLD) &&
         comm::compared_with_world(comm) != MPI_UNEQUAL;
}

std::optional<io::FileIdentity> identity_of(const std::string& path) {
  const auto found = io::identify(path);
  return found ? std::optional(*found) : std::nullopt;
}

// Other handles of this process on the file that the path means now.
std::vector<OpenFilePtr> open_already(const std::string& path) {
  std::vector<OpenFilePtr> handles = open_files().all();
  const std::optional<io::FileIdentity> ours = identity_of(path);
  std::erase_if(handles, [&](const OpenFilePtr& h) { return !ours || h->id != ours; });
  return handles;
}

// Before the library looks for the end of the file. What is lost, the other's next call tells.
// Without a lock of the other handle: a collective call of it may wait for a rank that waits here.
void flush_beside(const std::string& path) {
  const Opening opening;
  for (const OpenFilePtr& other : open_already(path))
    other->file->flush_untold(engine::Drain::mine);
}

// Everything about this open that does not depend on other ranks.
engine::OpenInfo open_info(const FileName& name, int amode, MPI_Info info) {
  engine::OpenInfo open;
  open.path = name.paths.front();
  open.writable = (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
  open.readable = (amode & (MPI_MODE_RDONLY | MPI_MODE_RDWR)) != 0;
  const auto config = file_config(job().config(), open.path, info);
  open.config = config ? *config : job().config();
  if (!job().config_error().empty()) {
    open.unserved_why = job().config_error();
  } else if (!config) {
    open.unserved_why = config.error().message();
  } else if ((amode & MPI_MODE_SEQUENTIAL) != 0) {
    open.unserved_why = "MPI_MODE_SEQUENTIAL";
  } else {
    open.unserved_why = name.unserved_why;
  }
  open.stager = stager();
  if (!job().is_finished()) keep_stager(open.stager);
  open.may_defer = !job().is_finished();
  open.job_ranks = comm::size_in(MPI_COMM_WORLD);
  return open;
}

// Collective over those who have Penstock: what strangers share with them is not served.
Result<std::unique_ptr<comm::Comm>> who_meets(MPI_Comm comm, engine::OpenInfo& info) {
  if (!comm::has_strangers(comm)) return comm::make_mpi_comm(comm);
  info.unserved_why = "opened with processes of another start (MPI_Comm_spawn, MPI_Comm_connect)";
  Result<MPI_Comm> ours = comm::without_strangers(comm);
  if (!ours) return tl::unexpected(std::move(ours).error());
  auto ranks = comm::make_mpi_comm(*ours);
  PMPI_Comm_free(&*ours);
  return ranks;
}

// After the library has opened it.
void look_for(const LibraryFile& library, engine::OpenInfo& info) {
  const std::optional<LibraryFile::Opened> opened = library.opened();
  info.has_library_file = opened.has_value() || LibraryFile::can_be_known();
  if (!opened) return;
  info.path = opened->path;
  info.library_file = opened->id;
}

// Before anybody knows whether it will be.
bool may_be_served(const engine::OpenInfo& info) {
  return info.writable && info.unserved_why.empty() && info.config.mode == engine::Mode::serve;
}

// Collective.
int stop_sieving(MPI_File handle) {
  const WithoutSieving hints(MPI_INFO_NULL, Sieving::always_off);
  return PENSTOCK_REAL(set_info)(handle, hints.info());
}

// Collective. Where the engine writes what ranks write alone, beside what it passes on.
void decide_sieving(MPI_File handle, OpenFile& file) {
  file.may_sieve = !file.writable || !file.file->serves_independent();
  if (!file.may_sieve && !kOpenAloneTakesHints) (void)stop_sieving(handle);
}

// Of those that were there when this handle came in, what its open has not seen: another thread
// opened the same file at once.
std::vector<engine::File*> missed(const OpenFile& file, const std::vector<OpenFilePtr>& seen,
                                  const std::vector<OpenFilePtr>& there) {
  std::vector<engine::File*> found;
  for (const OpenFilePtr& other : there)
    if (file.id && other->id == file.id && std::ranges::find(seen, other) == seen.end())
      found.push_back(other->file.get());
  return found;
}

// Ranks of MPI sessions (MPI_Session_init) have no MPI_COMM_WORLD, by which the engine finds what
// it needs, and this process could be ended by.
[[noreturn]] void stop_job() {
  if (comm::mpi_is_running()) abort_job();
  std::_Exit(1);
}

// The library alone has the file, and the log nothing of it. Said once by this process, where it
// speaks for the others.
void pass_unmet(const char* name, int amode, const engine::Config& config, const char* how,
                bool speaks, std::atomic<bool>& said) {
  if (config.mode != engine::Mode::serve || (amode & MPI_MODE_RDONLY) != 0) return;
  if (config.require) {
    say("penstock: PENSTOCK_REQUIRE is set and %s was opened %s: stopping\n", name, how);
    stop_job();
  }
  if (!config.quiet && speaks && !said.exchange(true))
    say("penstock: files that are opened %s go to the MPI library: %s\n", how, name);
}

// Collective, whatever the library said here: other ranks' opens may have ended differently.
void open_ours(MPI_Comm comm, engine::OpenInfo& info, int amode, MPI_Info hints, MPI_File handle) {
  const Opening opening;
  auto ranks = who_meets(comm, info);
  if (!ranks) {
    static std::atomic<bool> said = false;
    if (info.opened_here)
      pass_unmet(info.path.c_str(), amode, info.config, "when MPI has no communicator left",
                 comm::rank_in(comm) == 0, said);
    return;
  }
  look_for_devices();
  info.other_nodes =
      comm::may_have_other_nodes((*ranks)->size(), (*ranks)->nodes(), shim->variable);
  auto file = std::make_shared<OpenFile>();
  const std::vector<OpenFilePtr> already = open_already(info.path);
  for (const OpenFilePtr& other : already) info.beside.push_back(other->file.get());
  file->path = info.path;
  file->id = info.library_file ? info.library_file : identity_of(info.path);
  file->writable = info.writable;
  file->readable = info.readable;
  file->told_hints = hash_of_hints(hints);
  file->method_is_hinted = names_method(hints);
  const bool appends = (amode & MPI_MODE_APPEND) != 0;  // so the library's pointers are at the end
  if (!appends) file->pointer.set(0);
  file->moved_shared_pointer = appends;
  file->file = engine::File::open(*std::move(ranks), info);
  job().met(spans_world(comm));
  if (!info.opened_here) return;
  decide_sieving(handle, *file);
  const std::vector<OpenFilePtr> there = open_files().insert(handle, file);
  file->file->found_beside(missed(*file, already, there));
  job().opened(*file);
}

// The library's own close failed, on `rank` and perhaps on higher ones, and `calls` of the program
// say so.
void note_failed_close(engine::FileReport& report, int rc, int64_t rank, int calls) {
  report.sum.errors += calls;
  if (report.first_error.empty())
    report.first_error =
        "rank " + std::to_string(rank) + ": " + error_of_mpi("close", rc)->message();
}

// Collective. The worst of what the library's close did on any rank, as an MPI class.
int agree_on_close(const OpenFile& file, int rc, engine::FileReport& report) {
  comm::Comm& comm = file.file->comm();
  int64_t most[] = {int64_t(class_of_mpi(rc)), rc != MPI_SUCCESS ? comm.size() - comm.rank() : 0};
  if (!comm.all_max(most)) return rc;
  if (most[0] == 0) return MPI_SUCCESS;
  const int agreed = rc != MPI_SUCCESS ? rc : mpi_class(ErrorClass(most[0]));
  note_failed_close(report, agreed, comm.size() - most[1], comm.size());
  return agreed;
}

// Collective. While it waits for others the program may be ended.
ErrorClass close_ours(const OpenFilePtr& file, engine::FileReport& report) {
  open_files().begin_closing(file);
  const ErrorClass ours = file->file->close(report);
  open_files().end_closing(file);
  return ours;
}

// The library's own close raises its own errors; those of the engine and of other ranks are ours.
// The job hears of ours before it is raised: the program's handler may end it.
int close_both(MPI_File* handle, const OpenFilePtr& closing) {
  OpenFile& file = *closing;
  const std::scoped_lock lock(file.together, file.alone);
  engine::FileReport report;
  file.held.reset();
  if (file.split_done) file.file->never_told(class_of_mpi(file.split_done->error_class));
  const ErrorClass ours = close_ours(closing, report);
  if (ours != ErrorClass::none) {
    job().closed(file, std::move(report));
    raise_at_once(*handle, mpi_class(ours));
    (void)PENSTOCK_REAL(close)(handle);
    return mpi_class(ours);
  }
  const int rc = PENSTOCK_REAL(close)(handle);
  const int agreed = agree_on_close(file, rc, report);
  job().closed(file, std::move(report));
  if (rc == MPI_SUCCESS && agreed != MPI_SUCCESS) raise(MPI_FILE_NULL, agreed);
  return agreed;
}

}  // namespace

int take_open(MPI_Comm comm, const char* name, int amode, MPI_Info info, MPI_File* handle) {
  return protect("open", [&] {
    if (name == nullptr || handle == nullptr || !can_meet(comm)) {
      static std::atomic<bool> said = false;
      const int rc = PENSTOCK_REAL(open)(comm, name, amode, info, handle);
      if (rc == MPI_SUCCESS && name != nullptr)
        pass_unmet(name, amode, job().config(), "in an MPI session", shim->speaks != 0, said);
      return rc;
    }
    const FileName known = file_name(name);
    engine::OpenInfo ours = open_info(known, amode, info);
    if ((amode & MPI_MODE_APPEND) != 0)
      for (const std::string& path : known.paths) flush_beside(path);
    const LibraryFile library(known.paths);
    const bool at_open = kOpenAloneTakesHints && may_be_served(ours);
    const WithoutSieving hints(info, at_open ? Sieving::always_off : Sieving::as_given);
    *handle = MPI_FILE_NULL;  // or zero, where a handler made success of a failure
    const int rc = PENSTOCK_REAL(open)(comm, name, amode, hints.info(), handle);
    ours.opened_here = rc == MPI_SUCCESS && *handle != MPI_FILE_NULL && *handle != MPI_File{};
    if (ours.opened_here) look_for(library, ours);
    open_ours(comm, ours, amode, info, *handle);
    return rc;
  });
}

int take_close(MPI_File* handle) {
  return protect("close", [&] {
    OpenFilePtr file = handle != nullptr ? open_files().extract(*handle) : nullptr;
    if (file == nullptr) return PENSTOCK_REAL(close)(handle);
    const int rc = close_both(handle, file);
    file.reset();
    rest_stager();
    return rc;
  });
}

namespace {

// ROMIO says of NFS that others see a write only after a sync, for the sake of other nodes; HDF5
// (1.14 and newer) then refuses every independent write. What is served is in the file when the
// call returns, or accepted (docs/decisions/0028), and the ranks of one node read one page cache,
// so there the answer is another. On several nodes the library's stands.
void tell_visibility(const OpenFile& file, MPI_Info info) {
  constexpr char kKey[] = "romio_visibility_immediate";
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int is_there = 0;
  PMPI_Info_get(info, kKey, MPI_MAX_INFO_VAL, value, &is_there);
  const bool one_node = file.file->comm().nodes() == 1;
  if (is_there != 0 && one_node && file.file->serves_independent()) {
    PMPI_Info_set(info, kKey, "true");
  }
}

}  // namespace

// The library judges the program's hints first: an error of theirs is the file's, and one that we
// meet in them ends the job. What they say of sieving is undone on all ranks, whatever came of the
// call on this one, and where they say nothing that changes nothing.
int take_set_info(MPI_File handle, MPI_Info info) {
  return protect("set_info", [&] {
    const int rc = PENSTOCK_REAL(set_info)(handle, info);
    OpenFile* const file = open_files().find(handle);
    if (file != nullptr) file->told_hints = 0;  // not looked at: it may be no info at all
    if (file != nullptr && !file->may_sieve)
      (void)quietly(handle, *file, [&] { return stop_sieving(handle); });
    return rc;
  });
}

// The library's hints, what of them is in effect for what Penstock writes, and the method that
// writes this file. Who opens the next file with these hints has asked for it no more than before.
int take_get_info(MPI_File handle, MPI_Info* info) {
  return protect("get_info", [&] {
    const int rc = PENSTOCK_REAL(get_info)(handle, info);
    OpenFile* const file = open_files().find(handle);
    if (rc != MPI_SUCCESS || file == nullptr) return rc;
    const std::string method = engine::to_string(file->file->config().method);
    if (file->file->served() && method.size() < MPI_MAX_INFO_VAL)
      tell_method(*info, method, file->method_is_hinted);
    else
      forget_method(*info);
    for (const auto& [key, value] : file->file->hints_in_effect())
      PMPI_Info_set(*info, key.c_str(), value.c_str());
    tell_visibility(*file, *info);
    return rc;
  });
}

}  // namespace penstock::pmpi
