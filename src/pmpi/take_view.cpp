// Views and what goes with them: set_view, positions, atomicity, sync. The library's own file gets
// every one of these too, so that what it is asked later it answers rightly; but a view of very
// many blocks only when a call needs it (docs/decisions/0031).
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "comm/agreement.hpp"
#include "pmpi/decode_datatype.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/held_view.hpp"
#include "pmpi/job.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/library_hints.hpp"
#include "pmpi/pass.hpp"
#include "pmpi/real.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

struct View {
  layout::FileView view;
  bool is_empty = false;
  int64_t served_bytes = engine::kWholeStream;
  std::string unserved_why;
};

bool is_native(const char* datarep) {
#ifdef MPICH_VERSION
  if (std::strcmp(datarep, "internal") == 0) return true;  // ROMIO's is the native one
#endif
  return std::strcmp(datarep, "native") == 0;
}

View unserved(std::string why) {
  View view;
  view.unserved_why = std::move(why);
  return view;
}

// HDF5 and PnetCDF put resized types beside others into one structure, and by the standard's rule
// for bounds (followed by Open MPI) its extent is then less than its span: a second tile would lie
// across the first, but nobody ever writes one. So the tile is given its span as extent, and only
// the first one is served.
Result<layout::LoopTree> spread(const layout::LoopTree& tree) {
  return layout::LoopTree::resized(tree, tree.lb(), tree.true_ub() - tree.true_lb());
}

// REQUIRES valid datatypes.
View make_view(const ViewArguments& a) {
  if (!is_native(a.datarep)) return unserved("data representation " + std::string(a.datarep));
  MPI_Count etype_bytes = 0;
  PMPI_Type_size_x(a.etype, &etype_bytes);
  auto tree = decode_datatype(a.filetype);
  if (!tree) return unserved(tree.error().message());
  View result;
  // No byte can be written through an empty filetype, so any view of the right etype will do.
  result.is_empty = tree->size() == 0 && etype_bytes > 0;
  if (result.is_empty) tree = layout::LoopTree::bytes(etype_bytes);
  if (!result.is_empty && tree->is_monotone(1) && !tree->is_monotone(2)) {
    result.served_bytes = tree->size();
    if (tree = spread(*tree); !tree) return unserved(tree.error().message());
  }
  auto view = layout::FileView::make(a.displacement, etype_bytes, *std::move(tree));
  if (!view) return unserved(view.error().message());
  result.view = *std::move(view);
  return result;
}

// What lies in pages has its place in the file already. A handle of one rank leaves it there:
// PnetCDF sets a view before each independent put and after it.
engine::Drain drain_before_view(const OpenFile& file) {
  return file.file->comm().size() == 1 ? engine::Drain::lane : engine::Drain::joint;
}

// A call of the library's, and what staged writes came to before it.
int told(MPI_File handle, int rc, ErrorClass flushed) {
  if (rc != MPI_SUCCESS || flushed == ErrorClass::none) return rc;
  return raise(handle, mpi_class(flushed));
}

}  // namespace

namespace {

// --- Which views are held back from the library's file ---

// The library makes a list of 16 bytes for each block. Tests ask for less.
int64_t most_blocks() {
  static const int64_t most = [] {
    const char* const asked = std::getenv("PENSTOCK_TEST_VIEW_BLOCKS");
    return asked == nullptr ? int64_t{1024} : std::atoll(asked);
  }();
  return most;
}

// Nothing about it is for the library to refuse, and the engine can do all that is asked through it
// by one rank alone.
bool is_plain(const ViewArguments& a, const View& view) {
  return view.unserved_why.empty() && !view.is_empty && view.view.is_monotone() &&
         view.served_bytes == engine::kWholeStream && a.displacement >= 0;
}

// Of arguments that MPI allows.
std::optional<View> view_of(const ViewArguments& a) {
  const bool valid = a.datarep != nullptr && is_committed(a.etype) && is_committed(a.filetype);
  return valid ? std::optional(make_view(a)) : std::nullopt;
}

// What a rank brings to the decision.
struct Offer {
  bool plain = false, many = false;
  int64_t hash = 0;  // of the view
};

Offer offer(const ViewArguments& a, const std::optional<View>& mine) {
  if (!mine) return {};
  const Hash hash = mix(mine->view.hash(), uint64_t(a.displacement));
  return {is_plain(a, *mine), mine->view.filetype().blocks() > most_blocks(), int64_t(hash >> 1)};
}

// The same on every rank.
struct Agreed {
  bool all_plain = false;
  bool hold = false;
};

// Collective. Held are views of which one rank's has very many blocks. Not where all ranks have the
// same one: then a rank may come to the shared pointer alone, which is the library's.
Agreed agree(OpenFile& file, const ViewArguments& a, const std::optional<View>& view) {
  if (file.writable ? !file.file->serves_independent() : file.file->serves_nothing()) return {};
  comm::Comm& comm = file.file->comm();
  const Offer mine = offer(a, view);
  comm::Agreement agreement;
  const auto some_not_plain = agreement.some(!mine.plain);
  const auto some_many = agreement.some(mine.many);
  const auto same_view = agreement.alike(mine.hash);
  if (!agreement.reach(comm)) return {};
  const bool all_plain = !agreement[some_not_plain];
  const bool differ = !agreement[same_view] || comm.size() == 1;
  return {all_plain, all_plain && agreement[some_many] && differ};
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

int set_both(MPI_File handle, OpenFile& file, const ViewArguments& a, std::optional<View> known) {
  const int rc = by_library(handle, file, [&] {
    return PENSTOCK_REAL(set_view)(handle, a.displacement, a.etype, a.filetype, a.datarep, a.info);
  });
  View view = rc == MPI_SUCCESS && known ? *std::move(known) : unserved(why_not(rc));
  file.view_is_empty = view.is_empty;
  file.view_is_known = view.unserved_why.empty();
  if (rc == MPI_SUCCESS)
    file.pointer.set(0);
  else
    file.pointer.forget();
  const ErrorClass flushed = file.file->flush(drain_before_view(file));
  file.file->set_view(std::move(view.view), view.unserved_why, view.served_bytes);
  return told(handle, rc, flushed);
}

// The library's own set_view is called all the same, on all ranks, for its hints and for its shared
// pointer, which a set_view moves to the beginning.
int set_held(MPI_File handle, OpenFile& file, const ViewArguments& a, View view) {
  const ErrorClass flushed = file.file->flush(drain_before_view(file));
  file.file->set_view(view.view, "");
  int64_t failed[] = {1};
  if (serves_alone(file)) {
    const int rc = by_library(handle, file, [&] {
      return PENSTOCK_REAL(set_view)(handle, 0, MPI_BYTE, MPI_BYTE, "native", a.info);
    });
    failed[0] = rc == MPI_SUCCESS ? 0 : 1;
    if (!file.file->comm().all_max(failed)) failed[0] = 1;
  }
  if (failed[0] != 0) return told(handle, set_both(handle, file, a, std::move(view)), flushed);
  file.view_is_empty = false;
  file.view_is_known = true;
  file.pointer.set(0);
  file.held = std::make_unique<HeldView>(a);
  return told(handle, MPI_SUCCESS, flushed);
}

}  // namespace

int take_set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype,
                  MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  return protect("set_view", [&]() -> int {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr)
      return PENSTOCK_REAL(set_view)(handle, displacement, etype, filetype, datarep, info);
    const WithoutSieving hints(info, sieving_later(file));
    const ViewArguments a{displacement, etype, filetype, datarep, hints.info()};
    const std::scoped_lock lock(file->together, file->alone);
    std::optional<View> view = view_of(a);
    const Agreed agreed = agree(*file, a, view);
    // A call that the library may refuse leaves its file with the view of before.
    if (!agreed.all_plain)
      if (const int rc = give_held_view(handle, *file); rc != MPI_SUCCESS) return rc;
    file->held.reset();
    if (agreed.hold) return set_held(handle, *file, a, *std::move(view));
    return set_both(handle, *file, a, std::move(view));
  });
}

int take_get_view(MPI_File handle, MPI_Offset* displacement, MPI_Datatype* etype,
                  MPI_Datatype* filetype, char* datarep) {
  return protect("get_view", [&]() -> int {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr)
      return PENSTOCK_REAL(get_view)(handle, displacement, etype, filetype, datarep);
    const std::lock_guard lock(file->alone);
    if (file->held == nullptr)
      return PENSTOCK_REAL(get_view)(handle, displacement, etype, filetype, datarep);
    file->held->tell(displacement, etype, filetype, datarep);
    return MPI_SUCCESS;
  });
}

int take_get_byte_offset(MPI_File handle, MPI_Offset offset, MPI_Offset* place) {
  return protect("get_byte_offset", [&]() -> int {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(get_byte_offset)(handle, offset, place);
    const std::lock_guard lock(file->alone);
    if (file->held == nullptr) return PENSTOCK_REAL(get_byte_offset)(handle, offset, place);
    const layout::FileView& view = file->file->view();
    int64_t position = 0;
    if (offset < 0 || __builtin_mul_overflow(int64_t(offset), view.etype_bytes(), &position))
      return raise(handle, MPI_ERR_ARG);
    *place = view.offset_of(position);
    return MPI_SUCCESS;
  });
}

namespace {

// Etypes of the view up to the end of the file, the last one perhaps in part. The class of the
// error when the library cannot say where that is.
int etypes_to_end(MPI_File handle, const layout::FileView& view, MPI_Offset* etypes) {
  MPI_Offset bytes = 0;
  const int rc = PENSTOCK_REAL(get_size)(handle, &bytes);
  if (rc != MPI_SUCCESS) return rc;
  const int64_t position = view.position_at(bytes), etype = view.etype_bytes();
  *etypes = position / etype + (position % etype != 0 ? 1 : 0);
  return MPI_SUCCESS;
}

// REQUIRES a view that is held, and the lock `alone`.
int seek_held(MPI_File handle, OpenFile& file, MPI_Offset offset, int whence) {
  MPI_Offset from = 0, to = 0;
  if (whence == MPI_SEEK_CUR) from = file.pointer.known().value_or(0);
  if (whence == MPI_SEEK_END) {
    const int rc = etypes_to_end(handle, file.file->view(), &from);
    if (rc != MPI_SUCCESS) return rc;
  }
  if (__builtin_add_overflow(from, offset, &to) || to < 0) return raise(handle, MPI_ERR_ARG);
  file.pointer.set(to);
  return MPI_SUCCESS;
}

bool is_whence(int whence) {
  return whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END;
}

}  // namespace

int take_seek(MPI_File handle, MPI_Offset offset, int whence) {
  return protect("seek", [&] {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(seek)(handle, offset, whence);
    const std::lock_guard lock(file->alone);
    // Where the end is depends on what is in the file.
    const ErrorClass flushed =
        whence == MPI_SEEK_END ? file->file->flush(engine::Drain::mine) : ErrorClass::none;
    if (file->held != nullptr && is_whence(whence))
      return told(handle, seek_held(handle, *file, offset, whence), flushed);
    const int rc =
        by_library(handle, *file, [&] { return PENSTOCK_REAL(seek)(handle, offset, whence); });
    if (file->held != nullptr) return told(handle, rc, flushed);  // it was no whence
    const auto before = file->pointer.known();
    file->pointer.forget();  // MPI_SEEK_END: the library knows where the end is
    if (rc == MPI_SUCCESS && whence == MPI_SEEK_SET) file->pointer.set(offset);
    if (rc == MPI_SUCCESS && whence == MPI_SEEK_CUR && before) file->pointer.set(*before + offset);
    return told(handle, rc, flushed);
  });
}

// HDF5 asks on rank 0 alone and tells the others what it heard: nobody may be waited for, and a
// loss told to this rank would leave them waiting for it, so the next write, set_size, sync or
// close tells it. What lies in pages counts though it stays there; the file is asked after them,
// since what leaves meanwhile is in it.
int take_get_size(MPI_File handle, MPI_Offset* size) {
  return protect("get_size", [&] {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(get_size)(handle, size);
    file->file->flush_lane_untold();
    const Off accepted = file->file->accepted_end();
    const int rc = PENSTOCK_REAL(get_size)(handle, size);
    if (rc == MPI_SUCCESS) *size = std::max<MPI_Offset>(*size, accepted);
    return rc;
  });
}

// ROMIO reads the whole file and writes it back, over what is written meanwhile.
int take_preallocate(MPI_File handle, MPI_Offset bytes) {
  return protect("preallocate", [&] {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(preallocate)(handle, bytes);
    const std::lock_guard lock(file->together);
    if (file->may_sieve || !file->file->served())
      return pass(PENSTOCK_ENTRY_preallocate, words(handle, bytes));
    const std::optional<ErrorClass> done = file->file->preallocate(bytes);
    if (!done) return pass(PENSTOCK_ENTRY_preallocate, words(handle, bytes));
    const ErrorClass flushed = file->file->flush(engine::Drain::all);
    job().tick();
    if (*done != ErrorClass::none) return raise(handle, mpi_class(*done));
    return told(handle, MPI_SUCCESS, flushed);
  });
}

int take_get_position(MPI_File handle, MPI_Offset* offset) {
  return protect("get_position", [&] {
    const OpenFilePtr file = open_files().find(handle);
    const int rc = PENSTOCK_REAL(get_position)(handle, offset);
    if (rc != MPI_SUCCESS || file == nullptr) return rc;
    const std::lock_guard lock(file->alone);
    if (const auto known = file->pointer.known()) *offset = *known;
    return rc;
  });
}

int take_set_atomicity(MPI_File handle, int flag) {
  return protect("set_atomicity", [&] {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(set_atomicity)(handle, flag);
    // Independent calls of other threads go on: other ranks may come here after them.
    const std::lock_guard lock(file->together);
    const ErrorClass flushed = file->file->flush(engine::Drain::all);
    // From then on the library writes and reads.
    if (const int given = flag != 0 ? give_held_view(handle, *file) : MPI_SUCCESS;
        given != MPI_SUCCESS)
      return given;
    const int rc =
        by_library(handle, *file, [&] { return PENSTOCK_REAL(set_atomicity)(handle, flag); });
    // What the library says now is the truth, whether its call succeeded or not.
    int atomic = 0;
    PENSTOCK_REAL(get_atomicity)(handle, &atomic);
    const std::lock_guard alone(file->alone);
    file->file->set_atomic(atomic != 0);
    return told(handle, rc, flushed);
  });
}

namespace {

// The library syncs too when it wrote on some rank: then it may hold what our sync cannot see.
int sync_both(MPI_File handle, OpenFile& file) {
  const ErrorClass ours = file.file->sync();
  // Taken down before the library syncs: what another thread writes meanwhile is not covered by it.
  const bool wrote = file.wrote_outside.exchange(false);
  int64_t outside = wrote || !file.file->served() ? 1 : 0;
  int rc = MPI_SUCCESS, worst = MPI_SUCCESS;
  if (!file.file->comm().all_max({&outside, 1}) || outside != 0) {
    const double begin_s = now_s();
    rc = by_library(handle, file, [&] { return PENSTOCK_REAL(sync)(handle); });
    // A call that failed already counts once.
    const auto failed = ours == ErrorClass::none ? error_of_mpi("sync", rc) : std::nullopt;
    file.file->passed_through(engine::CallKind::sync, 0, now_s() - begin_s, "sync", failed);
    worst = worst_of_all(file, rc);
    if (worst != MPI_SUCCESS && wrote) file.wrote_outside = true;  // the next sync asks it again
  }
  if (ours != ErrorClass::none) return raise(handle, mpi_class(ours));
  return rc == MPI_SUCCESS && worst != MPI_SUCCESS ? raise(handle, worst) : rc;
}

}  // namespace

int take_sync(MPI_File handle) {
  return protect("sync", [&] {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(sync)(handle);
    const std::lock_guard lock(file->together);
    const int rc = sync_both(handle, *file);
    job().tick();
    return rc;
  });
}

}  // namespace penstock::pmpi
