#include "pmpi/packed.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>

namespace penstock::pmpi {
namespace {

// Some copies of the type, and where they lie.
struct Copies {
  void* memory;
  int count;
  std::byte* packed;
  int64_t bytes;
};

// The library counts packed bytes in an int, and may want room for more than it packs: so many
// copies at a time that half an int holds them. Until use() answers something else than
// MPI_SUCCESS.
template <class Use>
int for_some_copies(const WriteArguments& a, std::byte* packed, int64_t size, Use&& use) {
  MPI_Count lb = 0, extent = 0;
  PMPI_Type_get_extent_x(a.type, &lb, &extent);
  const int64_t at_once = std::max<int64_t>(1, INT_MAX / 2 / size);
  for (int64_t i = 0; i < int64_t(a.count); i += at_once) {
    const int64_t n = std::min(at_once, int64_t(a.count) - i);
    const uintptr_t at = reinterpret_cast<uintptr_t>(a.buffer) + uintptr_t(i * int64_t(extent));
    const int rc = use(Copies{reinterpret_cast<void*>(at), int(n), packed + i * size, n * size});
    if (rc != MPI_SUCCESS) return rc;
  }
  return MPI_SUCCESS;
}

// What the library wants room for beyond the bytes themselves.
int slack_of(const WriteArguments& a, MPI_Comm comm, int64_t size) {
  const int64_t n = std::min<int64_t>(int64_t(a.count), std::max<int64_t>(1, INT_MAX / 2 / size));
  int room = 0;
  if (PMPI_Pack_size(int(n), a.type, comm, &room) != MPI_SUCCESS || room < n * size) return -1;
  return int(room - n * size);
}

}  // namespace

int pack_by_library(const WriteArguments& a, MPI_Comm comm, Packed& packed) {
  MPI_Count size = 0;
  int64_t bytes = 0;
  PMPI_Type_size_x(a.type, &size);
  if (size < 0 || __builtin_mul_overflow(int64_t(a.count), int64_t(size), &bytes))
    return MPI_ERR_UNSUPPORTED_OPERATION;
  packed.tree = layout::LoopTree::bytes(size);
  if (bytes == 0) return MPI_SUCCESS;
  if (size > INT_MAX) return MPI_ERR_UNSUPPORTED_OPERATION;
  const int slack = slack_of(a, comm, size);
  if (slack < 0) return MPI_ERR_UNSUPPORTED_OPERATION;
  packed.bytes.resize(size_t(bytes) + size_t(slack));
  return for_some_copies(a, packed.bytes.data(), size, [&](const Copies& some) {
    int position = 0;
    const int rc = PMPI_Pack(some.memory, some.count, a.type, some.packed, int(some.bytes) + slack,
                             &position, comm);
    return rc == MPI_SUCCESS && position == some.bytes ? MPI_SUCCESS
                                                       : MPI_ERR_UNSUPPORTED_OPERATION;
  });
}

int unpack_by_library(const WriteArguments& a, MPI_Comm comm, const Packed& packed) {
  // The library only reads what is packed.
  auto* const bytes = const_cast<std::byte*>(packed.bytes.data());
  return for_some_copies(a, bytes, packed.tree.size(), [&](const Copies& some) {
    int position = 0;
    const int rc =
        PMPI_Unpack(some.packed, int(some.bytes), &position, some.memory, some.count, a.type, comm);
    return rc == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_INTERN;
  });
}

}  // namespace penstock::pmpi
