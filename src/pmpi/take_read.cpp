// The collective reads: blocking, split, and their large-count forms. A split one is done where it
// begins, as the standard allows, and `end` reports it.
#include <mpi.h>

#include <utility>

#include "pmpi/real.hpp"
#include "pmpi/serve_write.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

template <int entry, Pointer pointer>
int take(const WriteArguments& a, MPI_Status* status, const Words& as_given) noexcept {
  return take_read_or_pass(a, entry, as_given, pointer, [&](OpenFile& file) {
    const Served served = serve_read(a, file, pointer);
    set_status(status, served.bytes);
    return raise_served(a.handle, served);
  });
}

template <int entry, Pointer pointer>
int begin(const WriteArguments& a, const Words& as_given) noexcept {
  return take_read_or_pass(a, entry, as_given, pointer, [&](OpenFile& file) -> int {
    // One at a time per handle, says the standard; the library would refuse it too.
    if (file.split_begun || file.split_read) return raise(a.handle, MPI_ERR_IO);
    file.split_read = serve_read(a, file, pointer);
    return MPI_SUCCESS;
  });
}

// An end without a beginning of ours is the library's to finish, or to refuse.
template <class Real>
int end(const char* name, MPI_File handle, void* buffer, MPI_Status* status, Real real) noexcept {
  return protect(name, [&] {
    const OpenFilePtr file = open_files().find(handle);
    if (file == nullptr) return real(handle, buffer, status);
    const std::lock_guard lock(file->together);
    if (!file->split_read) return real(handle, buffer, status);
    const Served served = *std::exchange(file->split_read, std::nullopt);
    set_status(status, served.bytes);
    return raise_served(handle, served);
  });
}

}  // namespace

#define PENSTOCK_TAKE_READ_AT(name, Count)                                       \
  int take_##name(MPI_File handle, MPI_Offset offset, void* buffer, Count count, \
                  MPI_Datatype type, MPI_Status* status) {                       \
    return take<PENSTOCK_ENTRY_##name, Pointer::given>(                          \
        {handle, offset, buffer, count, type}, status,                           \
        words(handle, offset, buffer, count, type, status));                     \
  }
#define PENSTOCK_TAKE_READ(name, Count)                                                        \
  int take_##name(MPI_File handle, void* buffer, Count count, MPI_Datatype type,               \
                  MPI_Status* status) {                                                        \
    return take<PENSTOCK_ENTRY_##name, Pointer::individual>(                                   \
        {handle, 0, buffer, count, type}, status, words(handle, buffer, count, type, status)); \
  }
#define PENSTOCK_TAKE_READ_BEGIN_AT(name, Count)                                            \
  int take_##name(MPI_File handle, MPI_Offset offset, void* buffer, Count count,            \
                  MPI_Datatype type) {                                                      \
    return begin<PENSTOCK_ENTRY_##name, Pointer::given>(                                    \
        {handle, offset, buffer, count, type}, words(handle, offset, buffer, count, type)); \
  }
#define PENSTOCK_TAKE_READ_BEGIN(name, Count)                                                     \
  int take_##name(MPI_File handle, void* buffer, Count count, MPI_Datatype type) {                \
    return begin<PENSTOCK_ENTRY_##name, Pointer::individual>({handle, 0, buffer, count, type},    \
                                                             words(handle, buffer, count, type)); \
  }

PENSTOCK_TAKE_READ_AT(read_at_all, int)
PENSTOCK_TAKE_READ(read_all, int)
PENSTOCK_TAKE_READ_BEGIN_AT(read_at_all_begin, int)
PENSTOCK_TAKE_READ_BEGIN(read_all_begin, int)
#ifdef PENSTOCK_LARGE_COUNTS
PENSTOCK_TAKE_READ_AT(read_at_all_c, MPI_Count)
PENSTOCK_TAKE_READ(read_all_c, MPI_Count)
PENSTOCK_TAKE_READ_BEGIN_AT(read_at_all_begin_c, MPI_Count)
PENSTOCK_TAKE_READ_BEGIN(read_all_begin_c, MPI_Count)
#endif

int take_read_at_all_end(MPI_File handle, void* buffer, MPI_Status* status) {
  return end("read_at_all_end", handle, buffer, status, PENSTOCK_REAL(read_at_all_end));
}

int take_read_all_end(MPI_File handle, void* buffer, MPI_Status* status) {
  return end("read_all_end", handle, buffer, status, PENSTOCK_REAL(read_all_end));
}

}  // namespace penstock::pmpi
