// The linker gives Penstock's calls of PMPI_Comm_create to __wrap_PMPI_Comm_create, and so on
// (--wrap).
#include "counted.hpp"

#include <vector>

namespace {

std::vector<MPI_Comm>& parents() {
  static std::vector<MPI_Comm> all;
  return all;
}

int collectives = 0;

}  // namespace

extern "C" {
int __real_PMPI_Comm_create(MPI_Comm parent, MPI_Group ranks, MPI_Comm* made);

int __wrap_PMPI_Comm_create(MPI_Comm parent, MPI_Group ranks, MPI_Comm* made) {
  parents().push_back(parent);
  return __real_PMPI_Comm_create(parent, ranks, made);
}

int __real_PMPI_Iallreduce(const void* mine, void* all, int n, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm, MPI_Request* request);

int __wrap_PMPI_Iallreduce(const void* mine, void* all, int n, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm, MPI_Request* request) {
  ++collectives;
  return __real_PMPI_Iallreduce(mine, all, n, type, op, comm, request);
}

int __real_PMPI_Iallgather(const void* mine, int n, MPI_Datatype type, void* all, int each,
                           MPI_Datatype type_of_all, MPI_Comm comm, MPI_Request* request);

int __wrap_PMPI_Iallgather(const void* mine, int n, MPI_Datatype type, void* all, int each,
                           MPI_Datatype type_of_all, MPI_Comm comm, MPI_Request* request) {
  ++collectives;
  return __real_PMPI_Iallgather(mine, n, type, all, each, type_of_all, comm, request);
}

int __real_PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request);

int __wrap_PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  ++collectives;
  return __real_PMPI_Ibarrier(comm, request);
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

Collectives::Collectives() : before_(collectives) {}
int Collectives::made() const { return collectives - before_; }

Attribute::Attribute(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_create_keyval(&copy, &forget, &key_, nullptr);
  MPI_Comm_set_attr(comm_, key_, &copies_);
}

Attribute::~Attribute() {
  MPI_Comm_delete_attr(comm_, key_);
  MPI_Comm_free_keyval(&key_);
}

}  // namespace workers
