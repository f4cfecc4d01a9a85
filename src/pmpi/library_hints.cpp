#include "pmpi/library_hints.hpp"

#include "pmpi/hints.hpp"

namespace penstock::pmpi {
namespace {

constexpr char kSieving[] = "romio_ds_write";

// MPI_INFO_NULL: there is no room for one.
MPI_Info copy_of(MPI_Info info) {
  MPI_Info copy = MPI_INFO_NULL;
  const int rc = info == MPI_INFO_NULL ? PMPI_Info_create(&copy) : PMPI_Info_dup(info, &copy);
  return rc == MPI_SUCCESS ? copy : MPI_INFO_NULL;
}

}  // namespace

WithoutSieving::WithoutSieving(MPI_Info given, Sieving sieving) : given_(given) {
  if (sieving == Sieving::as_given) return;
  if (sieving == Sieving::off_if_given && !info_value(given, kSieving)) return;
  ours_ = copy_of(given);
  if (ours_ != MPI_INFO_NULL) PMPI_Info_set(ours_, kSieving, "disable");
}

WithoutSieving::~WithoutSieving() {
  if (ours_ != MPI_INFO_NULL) PMPI_Info_free(&ours_);
}

}  // namespace penstock::pmpi
