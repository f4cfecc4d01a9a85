#include "pmpi/held_view.hpp"

#include <cstring>

#include "exec/abandon.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/open_files.hpp"
#include "pmpi/real.hpp"
#include "pmpi/type_contents.hpp"

namespace penstock::pmpi {
namespace {

MPI_Datatype holder_of(MPI_Datatype type) {
  if (is_predefined(combiner_of(type))) return MPI_DATATYPE_NULL;
  MPI_Datatype holder = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous(0, type, &holder);
  return holder;
}

}  // namespace

bool is_committed(MPI_Datatype type, MPI_Comm quiet) {
  if (type == MPI_DATATYPE_NULL) return false;
  const char untouched = 0;  // of one element: of none MPICH does not look at the type
  return PMPI_Send(&untouched, 1, type, MPI_PROC_NULL, 0, quiet) == MPI_SUCCESS;
}

HeldType::HeldType(MPI_Datatype type) : type_(type), holder_(holder_of(type)) {}

HeldType::~HeldType() {
  if (holder_ != MPI_DATATYPE_NULL) PMPI_Type_free(&holder_);
}

MPI_Datatype HeldType::again() const {
  if (holder_ == MPI_DATATYPE_NULL) return type_;
  int count = 0;
  MPI_Aint none = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  PMPI_Type_get_contents(holder_, 1, 0, 1, &count, &none, &type);
  PMPI_Type_commit(&type);
  return type;
}

HeldView::HeldView(const ViewArguments& view)
    : displacement_(view.displacement), etype_(view.etype), filetype_(view.filetype) {
  if (view.info != MPI_INFO_NULL) PMPI_Info_dup(view.info, &info_);
}

HeldView::~HeldView() {
  if (info_ != MPI_INFO_NULL) PMPI_Info_free(&info_);
}

void HeldView::tell(MPI_Offset* displacement, MPI_Datatype* etype, MPI_Datatype* filetype,
                    char* datarep) const {
  *displacement = displacement_;
  *etype = etype_.again();
  *filetype = filetype_.again();
  std::memcpy(datarep, "native", sizeof "native");
}

int HeldView::give(MPI_File handle) const {
  MPI_Datatype etype = etype_.again(), filetype = filetype_.again();
  const int rc = PENSTOCK_REAL(set_view)(handle, displacement_, etype, filetype, "native", info_);
  release(etype);
  release(filetype);
  return rc;
}

namespace {

// The library has the view, and its pointer is at the view's beginning.
int let_go(MPI_File handle, OpenFile& file) {
  const std::lock_guard lock(file.alone);
  file.held.reset();
  return PENSTOCK_REAL(seek)(handle, file.pointer.known().value_or(0), MPI_SEEK_SET);
}

}  // namespace

int give_held_view(MPI_File handle, OpenFile& file) {
  comm::Comm& comm = file.file->comm();
  // Not where there are other ranks: they may wait for an independent call of another thread of
  // this one, and that needs the lock. One rank may have come here by such a call.
  std::unique_lock alone(file.alone, std::defer_lock);
  if (comm.size() == 1) alone.lock();
  if (file.held == nullptr) return MPI_SUCCESS;
  file.library_has_bytes = false;
  const int rc = by_library(handle, file, [&] { return file.held->give(handle); });
  int64_t worst = int64_t(class_of_mpi(rc));
  exec::or_abandon(comm.all_max({&worst, 1}));
  if (worst == 0) return let_go(handle, file);
  return rc != MPI_SUCCESS ? rc : raise(handle, mpi_class(ErrorClass(worst)));
}

}  // namespace penstock::pmpi
