// Views and what goes with them: set_view, positions, atomicity, sync. The library's own file gets
// every one of these too, so that what it is asked later it answers rightly; but a view of very
// many blocks only when a call needs it (docs/decisions/0031).
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "exec/abandon.hpp"
#include "pmpi/agree_on_view.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/held_view.hpp"
#include "pmpi/hints.hpp"
#include "pmpi/job.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/library_hints.hpp"
#include "pmpi/pass.hpp"
#include "pmpi/real.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

// What lies in pages has its place in the file already. A handle of one rank leaves it there:
// PnetCDF sets a view before each independent put and after it.
engine::Drain drain_before_view(const OpenFile& file) {
  return file.file->comm().size() == 1 ? engine::Drain::lane : engine::Drain::joint;
}

// Collective: that under the view of now the engine serves whatever a rank may ask alone.
bool serves_alone(OpenFile& file) {
  return (!file.writable || file.file->serves_independent()) &&
         (!file.readable || file.file->serves_reads());
}

// --- A view for both, or for the engine alone ---

const char* why_not(int rc) {
  return rc != MPI_SUCCESS ? "MPI_File_set_view failed"
                           : "MPI_File_set_view was given what MPI does not allow";
}

// REQUIRES both locks, and a flush before.
int set_both(MPI_File handle, OpenFile& file, const ViewArguments& a, std::optional<View> known,
             const Decision& decision) {
  const int rc = by_library(handle, file, [&] {
    return PENSTOCK_REAL(set_view)(handle, a.displacement, a.etype, a.filetype, a.datarep, a.info);
  });
  if (rc == MPI_SUCCESS) file.moved_shared_pointer = false;
  View view = rc == MPI_SUCCESS && known ? *std::move(known) : unserved_view(why_not(rc));
  file.view_is_empty = view.is_empty;
  file.view_is_known = view.unserved_why.empty();
  if (rc == MPI_SUCCESS)
    file.pointer.set(0);
  else
    file.pointer.forget();
  file.file->set_view(std::move(view.view), view.unserved_why, view.served_bytes);
  file.library_has_bytes = decision.all_bytes && file.file->served();
  return rc;
}

// Collective. The library's own file gets (0, MPI_BYTE, MPI_BYTE), with the program's hints; and
// its shared pointer moves to the beginning, as a set_view moves it.
bool give_bytes(MPI_File handle, OpenFile& file, MPI_Info info) {
  const int rc = by_library(handle, file, [&] {
    return PENSTOCK_REAL(set_view)(handle, 0, MPI_BYTE, MPI_BYTE, "native", info);
  });
  int64_t failed[] = {rc == MPI_SUCCESS ? 0 : 1};
  exec::or_abandon(file.file->comm().all_max(failed));
  file.library_has_bytes = failed[0] == 0;
  return file.library_has_bytes;
}

// REQUIRES as set_both(), and a decision that spares the library this view.
int set_ours(MPI_File handle, OpenFile& file, const ViewArguments& a, View view,
             const Decision& decision) {
  file.file->set_served_view(view.view);
  const bool held = decision.library != ForLibrary::has_it;
  const bool done = (!held || serves_alone(file)) && (decision.library != ForLibrary::plain_view ||
                                                      give_bytes(handle, file, a.info));
  if (!done) return set_both(handle, file, a, std::move(view), decision);
  file.view_is_empty = false;
  file.view_is_known = true;
  file.pointer.set(0);
  if (held)
    file.held = std::make_unique<HeldView>(a);
  else if (quietly(handle, file, [&] { return PENSTOCK_REAL(seek)(handle, 0, MPI_SEEK_SET); }) !=
           MPI_SUCCESS)
    file.pointer.forget();
  return MPI_SUCCESS;
}

// Whether the library's own file has not been told them yet. Where nobody has looked into them so
// far they may be no info at all, which is for the library to say.
bool note_hints(OpenFile& file, MPI_Info info) {
  if (info == MPI_INFO_NULL || file.may_sieve) return info != MPI_INFO_NULL;
  const uint64_t given = hash_of_hints(info);
  return std::exchange(file.told_hints, given) != given;
}

}  // namespace

int take_set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype,
                  MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  return protect("set_view", [&]() -> int {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr)
      return PENSTOCK_REAL(set_view)(handle, displacement, etype, filetype, datarep, info);
    const WithoutSieving hints(info, sieving_later(file));
    const ViewArguments a{displacement, etype, filetype, datarep, hints.info()};
    // Independent calls of other threads go on until all ranks are here, which may come after them.
    const std::lock_guard together(file->together);
    std::optional<View> view = view_of(a, file->quiet());
    const Decision decision = agree_on_view(*file, a, view, note_hints(*file, info));
    // A call that the library may refuse leaves its file with the view of before.
    if (!decision.all_plain)
      if (const int rc = give_held_view(handle, *file); rc != MPI_SUCCESS) return rc;
    const int lost = flush_first(handle, *file, drain_before_view(*file));
    // The library's view, its pointer and ours change as one. Nobody waits for another rank now.
    const std::lock_guard alone(file->alone);
    file->held.reset();
    const int rc = decision.library == ForLibrary::same_view
                       ? set_both(handle, *file, a, std::move(view), decision)
                       : set_ours(handle, *file, a, *std::move(view), decision);
    return first_of(lost, rc);
  });
}

int take_get_view(MPI_File handle, MPI_Offset* displacement, MPI_Datatype* etype,
                  MPI_Datatype* filetype, char* datarep) {
  return protect("get_view", [&]() -> int {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr)
      return PENSTOCK_REAL(get_view)(handle, displacement, etype, filetype, datarep);
    const std::lock_guard lock(file->alone);
    if (file->held == nullptr) {
      return by_library(handle, *file, [&] {
        return PENSTOCK_REAL(get_view)(handle, displacement, etype, filetype, datarep);
      });
    }
    if (displacement == nullptr || etype == nullptr || filetype == nullptr || datarep == nullptr)
      return raise(handle, MPI_ERR_ARG);
    file->held->tell(displacement, etype, filetype, datarep);
    return MPI_SUCCESS;
  });
}

int take_get_byte_offset(MPI_File handle, MPI_Offset offset, MPI_Offset* place) {
  return protect("get_byte_offset", [&]() -> int {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(get_byte_offset)(handle, offset, place);
    const std::lock_guard lock(file->alone);
    if (file->held == nullptr) {
      return by_library(handle, *file,
                        [&] { return PENSTOCK_REAL(get_byte_offset)(handle, offset, place); });
    }
    const layout::FileView& view = file->file->view();
    int64_t position = 0;
    if (place == nullptr || offset < 0 ||
        __builtin_mul_overflow(int64_t(offset), view.etype_bytes(), &position))
      return raise(handle, MPI_ERR_ARG);
    *place = view.offset_of(position);
    return MPI_SUCCESS;
  });
}

namespace {

// Etypes of the view up to the end of the file, the last one perhaps in part. The class of the
// error when the library cannot say where that is.
int etypes_to_end(MPI_File handle, OpenFile& file, MPI_Offset* etypes) {
  MPI_Offset bytes = 0;
  const int rc = by_library(handle, file, [&] { return PENSTOCK_REAL(get_size)(handle, &bytes); });
  if (rc != MPI_SUCCESS) return rc;
  const layout::FileView& view = file.file->view();
  const int64_t position = view.position_at(bytes), etype = view.etype_bytes();
  *etypes = position / etype + (position % etype != 0 ? 1 : 0);
  return MPI_SUCCESS;
}

// REQUIRES a view that is held, and the lock `alone`.
int seek_held(MPI_File handle, OpenFile& file, MPI_Offset offset, int whence) {
  MPI_Offset from = 0, to = 0;
  if (whence == MPI_SEEK_CUR) from = file.pointer.known().value_or(0);
  if (whence == MPI_SEEK_END) {
    const int rc = etypes_to_end(handle, file, &from);
    if (rc != MPI_SUCCESS) return rc;
  }
  if (__builtin_add_overflow(from, offset, &to) || to < 0) return raise(handle, MPI_ERR_ARG);
  file.pointer.set(to);
  return MPI_SUCCESS;
}

// ROMIO's own word of where the pointer is may be wrong (docs/decisions/0007): where it is known,
// it is not asked to add to it. A seek that is refused moves nothing. REQUIRES the lock `alone`.
int seek_library(MPI_File handle, OpenFile& file, MPI_Offset offset, int whence) {
  const auto before = file.pointer.known();
  if (whence == MPI_SEEK_CUR && before) {
    if (__builtin_add_overflow(*before, offset, &offset)) return raise(handle, MPI_ERR_ARG);
    whence = MPI_SEEK_SET;
  }
  const int rc =
      by_library(handle, file, [&] { return PENSTOCK_REAL(seek)(handle, offset, whence); });
  if (rc != MPI_SUCCESS) return rc;
  if (whence == MPI_SEEK_SET)
    file.pointer.set(offset);
  else
    file.pointer.forget();  // the library knows where the end is
  return rc;
}

bool is_whence(int whence) {
  return whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END;
}

}  // namespace

int take_seek(MPI_File handle, MPI_Offset offset, int whence) {
  return protect("seek", [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(seek)(handle, offset, whence);
    const std::lock_guard lock(file->alone);
    // Where the end is depends on what is in the file.
    const int lost =
        whence == MPI_SEEK_END ? flush_first(handle, *file, engine::Drain::mine) : MPI_SUCCESS;
    if (file->held != nullptr && is_whence(whence))
      return first_of(lost, seek_held(handle, *file, offset, whence));
    return first_of(lost, seek_library(handle, *file, offset, whence));
  });
}

// HDF5 asks on rank 0 alone and tells the others what it heard: nobody may be waited for, and a
// loss told to this rank would leave them waiting for it, so the next write, set_size, sync or
// close tells it. What lies in pages counts though it stays there; the file is asked after them,
// since what leaves meanwhile is in it.
int take_get_size(MPI_File handle, MPI_Offset* size) {
  return protect("get_size", [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(get_size)(handle, size);
    file->file->flush_untold(engine::Drain::lane);
    const Off accepted = file->file->accepted_end();
    const int rc = by_library(handle, *file, [&] { return PENSTOCK_REAL(get_size)(handle, size); });
    if (rc == MPI_SUCCESS) *size = std::max<MPI_Offset>(*size, accepted);
    return rc;
  });
}

// ROMIO reads the whole file and writes it back, over what is written meanwhile.
int take_preallocate(MPI_File handle, MPI_Offset bytes) {
  return protect("preallocate", [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(preallocate)(handle, bytes);
    const std::lock_guard lock(file->together);
    if (file->may_sieve || !file->file->served())
      return pass(PENSTOCK_ENTRY_preallocate, words(handle, bytes));
    // What was accepted needs its room before the rest is given away.
    const int lost = flush_first(handle, *file, engine::Drain::all);
    const std::optional<ErrorClass> done = file->file->preallocate(bytes);
    if (!done) return first_of(lost, pass(PENSTOCK_ENTRY_preallocate, words(handle, bytes)));
    job().tick();
    return first_of(lost,
                    *done == ErrorClass::none ? MPI_SUCCESS : raise(handle, mpi_class(*done)));
  });
}

int take_get_position(MPI_File handle, MPI_Offset* offset) {
  return protect("get_position", [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(get_position)(handle, offset);
    const int rc =
        by_library(handle, *file, [&] { return PENSTOCK_REAL(get_position)(handle, offset); });
    if (rc != MPI_SUCCESS) return rc;
    const std::lock_guard lock(file->alone);
    if (const auto known = file->pointer.known()) *offset = *known;
    return rc;
  });
}

int take_set_atomicity(MPI_File handle, int flag) {
  return protect("set_atomicity", [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(set_atomicity)(handle, flag);
    // Independent calls of other threads go on: other ranks may come here after them.
    const std::lock_guard lock(file->together);
    const int lost = flush_first(handle, *file, engine::Drain::all);
    // From then on the library writes and reads.
    if (const int given = flag != 0 ? give_held_view(handle, *file) : MPI_SUCCESS;
        given != MPI_SUCCESS)
      return first_of(lost, given);
    const int rc =
        by_library(handle, *file, [&] { return PENSTOCK_REAL(set_atomicity)(handle, flag); });
    // What the library says now is the truth, whether its call succeeded or not.
    int atomic = 0;
    PENSTOCK_REAL(get_atomicity)(handle, &atomic);
    const std::lock_guard alone(file->alone);
    file->file->set_atomic(atomic != 0);
    return first_of(lost, rc);
  });
}

namespace {

// The library syncs too when it wrote on some rank: then it may hold what our sync cannot see.
int sync_both(MPI_File handle, OpenFile& file) {
  const ErrorClass ours = file.file->sync();
  // Raised before the library's: the first is what the handler hears.
  const int lost = ours != ErrorClass::none ? raise(handle, mpi_class(ours)) : MPI_SUCCESS;
  // Taken down before the library syncs: what another thread writes meanwhile is not covered by it.
  const bool wrote = file.wrote_outside.exchange(false);
  int64_t outside = wrote || !file.file->served() ? 1 : 0;
  int rc = MPI_SUCCESS, worst = MPI_SUCCESS;
  const Result<void> met = file.file->comm().all_max({&outside, 1});
  if (file.file->served()) exec::or_abandon(met);
  if (!met || outside != 0) {
    const double begin_s = now_s();
    rc = by_library(handle, file, [&] { return PENSTOCK_REAL(sync)(handle); });
    // A call that failed already counts once.
    const auto failed = ours == ErrorClass::none ? error_of_mpi("sync", rc) : std::nullopt;
    file.file->passed_through(engine::CallKind::sync, 0, now_s() - begin_s, "sync", failed);
    worst = worst_of_all(file, rc);
    if (worst != MPI_SUCCESS && wrote) file.wrote_outside = true;  // the next sync asks it again
  }
  if (lost != MPI_SUCCESS) return lost;
  return rc == MPI_SUCCESS && worst != MPI_SUCCESS ? raise(handle, worst) : rc;
}

}  // namespace

int take_sync(MPI_File handle) {
  return protect("sync", [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(sync)(handle);
    const std::lock_guard lock(file->together);
    const int rc = sync_both(handle, *file);
    job().tick();
    return rc;
  });
}

}  // namespace penstock::pmpi
