// Views and what goes with them: set_view, atomicity, sync. The library's own file gets every one
// of these too, so that what it is asked later (reads, positions, views) it answers rightly.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "pmpi/decode_datatype.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/job.hpp"
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

// REQUIRES that the library took these arguments.
View make_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
               const char* datarep) {
  if (!is_native(datarep)) return unserved("data representation " + std::string(datarep));
  MPI_Count etype_bytes = 0;
  PMPI_Type_size_x(etype, &etype_bytes);
  auto tree = decode_datatype(filetype);
  if (!tree) return unserved(tree.error().message());
  View result;
  // No byte can be written through an empty filetype, so any view of the right etype will do.
  result.is_empty = tree->size() == 0 && etype_bytes > 0;
  if (result.is_empty) tree = layout::LoopTree::bytes(etype_bytes);
  if (!result.is_empty && tree->is_monotone(1) && !tree->is_monotone(2)) {
    result.served_bytes = tree->size();
    if (tree = spread(*tree); !tree) return unserved(tree.error().message());
  }
  auto view = layout::FileView::make(displacement, etype_bytes, *std::move(tree));
  if (!view) return unserved(view.error().message());
  result.view = *std::move(view);
  return result;
}

// A call of the library's, and what staged writes came to before it.
int told(MPI_File handle, int rc, ErrorClass flushed) {
  if (rc != MPI_SUCCESS || flushed == ErrorClass::none) return rc;
  return raise(handle, mpi_class(flushed));
}

}  // namespace

int take_set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype,
                  MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  return protect("set_view", [&] {
    const int rc = PENSTOCK_REAL(set_view)(handle, displacement, etype, filetype, datarep, info);
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return rc;
    const std::scoped_lock lock(file->together, file->alone);
    View view = rc == MPI_SUCCESS ? make_view(displacement, etype, filetype, datarep)
                                  : unserved("MPI_File_set_view failed");
    file->view_is_empty = view.is_empty;
    if (rc == MPI_SUCCESS)
      file->pointer.set(0);
    else
      file->pointer.forget();
    const ErrorClass flushed = file->file->flush(engine::Drain::joint);
    file->file->set_view(std::move(view.view), view.unserved_why, view.served_bytes);
    return told(handle, rc, flushed);
  });
}

int take_seek(MPI_File handle, MPI_Offset offset, int whence) {
  return protect("seek", [&] {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(seek)(handle, offset, whence);
    const std::lock_guard lock(file->alone);
    // Where the end is depends on what is in the file.
    const ErrorClass flushed =
        whence == MPI_SEEK_END ? file->file->flush(engine::Drain::mine) : ErrorClass::none;
    const int rc = PENSTOCK_REAL(seek)(handle, offset, whence);
    const auto before = file->pointer.known();
    file->pointer.forget();  // MPI_SEEK_END: the library knows where the end is
    if (rc == MPI_SUCCESS && whence == MPI_SEEK_SET) file->pointer.set(offset);
    if (rc == MPI_SUCCESS && whence == MPI_SEEK_CUR && before) file->pointer.set(*before + offset);
    return told(handle, rc, flushed);
  });
}

// HDF5 asks on rank 0 alone, so that nobody may be waited for. What lies in pages counts though it
// stays there; the file is asked after them, since what leaves meanwhile is in it.
int take_get_size(MPI_File handle, MPI_Offset* size) {
  return protect("get_size", [&] {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(get_size)(handle, size);
    const ErrorClass flushed = file->file->flush(engine::Drain::lane);
    const Off accepted = file->file->accepted_end();
    const int rc = PENSTOCK_REAL(get_size)(handle, size);
    if (rc == MPI_SUCCESS) *size = std::max<MPI_Offset>(*size, accepted);
    return told(handle, rc, flushed);
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
    const std::scoped_lock lock(file->together, file->alone);
    const ErrorClass flushed = file->file->flush(engine::Drain::all);
    const int rc = PENSTOCK_REAL(set_atomicity)(handle, flag);
    // What the library says now is the truth, whether its call succeeded or not.
    int atomic = 0;
    PENSTOCK_REAL(get_atomicity)(handle, &atomic);
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
  int rc = MPI_SUCCESS;
  if (!file.file->comm().all_max({&outside, 1}) || outside != 0) {
    const double begin_s = now_s();
    rc = PENSTOCK_REAL(sync)(handle);
    file.file->passed_through(engine::CallKind::sync, 0, now_s() - begin_s, "sync",
                              rc != MPI_SUCCESS);
    if (rc != MPI_SUCCESS && wrote) file.wrote_outside = true;
  }
  return ours == ErrorClass::none ? rc : raise(handle, mpi_class(ours));
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
