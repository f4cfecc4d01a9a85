// The linker gives Penstock's calls of PMPI_Comm_create to __wrap_PMPI_Comm_create (--wrap).
#include "counted.hpp"

#include <vector>

namespace {

std::vector<MPI_Comm>& parents() {
  static std::vector<MPI_Comm> all;
  return all;
}

}  // namespace

extern "C" {
int __real_PMPI_Comm_create(MPI_Comm parent, MPI_Group ranks, MPI_Comm* made);

int __wrap_PMPI_Comm_create(MPI_Comm parent, MPI_Group ranks, MPI_Comm* made) {
  parents().push_back(parent);
  return __real_PMPI_Comm_create(parent, ranks, made);
}
}

namespace workers {
namespace {

int duplicates_of(MPI_Comm parent) {
  int count = 0;
  for (const MPI_Comm each : parents()) count += each == parent ? 1 : 0;
  return count;
}

int copy(MPI_Comm, int, void*, void* copies, void* value, int* copied) {
  ++*static_cast<int*>(copies);
  *static_cast<void**>(value) = copies;
  *copied = 1;
  return MPI_SUCCESS;
}

int forget(MPI_Comm, int, void* copies, void*) {
  --*static_cast<int*>(copies);
  return MPI_SUCCESS;
}

}  // namespace

Duplicates::Duplicates(MPI_Comm parent) : parent_(parent), before_(duplicates_of(parent)) {}
int Duplicates::made() const { return duplicates_of(parent_) - before_; }

Attribute::Attribute(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_create_keyval(&copy, &forget, &key_, nullptr);
  MPI_Comm_set_attr(comm_, key_, &copies_);
}

Attribute::~Attribute() {
  MPI_Comm_delete_attr(comm_, key_);
  MPI_Comm_free_keyval(&key_);
}

}  // namespace workers
