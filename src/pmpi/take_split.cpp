// The split collective writes. `begin` brings the bytes to their writers, and the I/O threads write
// them while the program computes; `end` waits for that and reports it: the status and the error,
// once, the same on all ranks, where the operation completes. Wrong arguments too: a rank that
// heard of them in `begin` might leave out `end`, in which others would wait for it. In atomic mode
// `begin` does it all, so that nothing else of the program falls in between.
#include <mpi.h>

#include <optional>
#include <utility>

#include "pmpi/library_call.hpp"
#include "pmpi/ordered.hpp"
#include "pmpi/real.hpp"
#include "pmpi/serve_write.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

void begin(const WriteArguments& a, OpenFile& file, engine::CallKind kind, Pointer pointer) {
  const Return when = file.file->is_atomic() ? Return::written : Return::begun;
  const Served served = serve_write(a, file, kind, pointer, Together::yes, when);
  if (when == Return::written)
    file.split_done = served;
  else
    file.split_write = served.error_class;
}

// One at a time per handle, says the standard; the library would refuse it too.
int refuse_second(MPI_File handle) { return raise(handle, MPI_ERR_IO); }

template <int entry, Pointer pointer>
int begin_write(const WriteArguments& a, const Words& as_given) noexcept {
  return take_or_pass(a, entry, as_given, pointer, Together::yes, [&](OpenFile& file) -> int {
    if (file.is_splitting()) return refuse_second(a.handle);
    begin(a, file, kind_of(kEntries[size_t(entry)]), pointer);
    return MPI_SUCCESS;
  });
}

template <int entry>
int begin_ordered(const WriteArguments& a, const Words& as_given) noexcept {
  constexpr const EntryFacts& facts = kEntries[size_t(entry)];
  return protect(facts.name.data(), [&]() -> int {
    OpenFile* const open = open_files().find(a.handle);
    if (open == nullptr) return pass(entry, as_given);
    const std::lock_guard lock(open->together);
    if (open->is_splitting()) return refuse_second(a.handle);
    return serve_in_order(a, entry, as_given, *open,
                          [&](const WriteArguments& placed, OpenFile& file) -> int {
                            begin(placed, file, kind_of(facts), Pointer::given);
                            return MPI_SUCCESS;
                          });
  });
}

int tell(MPI_File handle, MPI_Status* status, const Served& served) {
  set_status(status, served.bytes);
  return raise_served(handle, served);
}

// An end without a beginning of ours is the library's to finish, or to refuse.
template <class Real>
int end(const char* name, MPI_File handle, const void* buffer, MPI_Status* status,
        Real real) noexcept {
  return protect(name, [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return real(handle, buffer, status);
    const std::lock_guard lock(file->together);
    if (const auto done = std::exchange(file->split_done, std::nullopt))
      return tell(handle, status, *done);
    const std::optional<int> wrong = std::exchange(file->split_write, std::nullopt);
    if (!wrong) {
      const int rc = by_library(handle, *file, [&] { return real(handle, buffer, status); });
      return note_passed_end(name, rc, engine::CallKind::write_all, *file);
    }
    const engine::WriteResult result = file->file->end_write_all();
    return tell(handle, status, {told_here(*wrong, result.agreed, Together::yes), result.bytes});
  });
}

}  // namespace

int take_write_at_all_end(MPI_File handle, const void* buffer, MPI_Status* status) {
  return end("write_at_all_end", handle, buffer, status, PENSTOCK_REAL(write_at_all_end));
}

int take_write_all_end(MPI_File handle, const void* buffer, MPI_Status* status) {
  return end("write_all_end", handle, buffer, status, PENSTOCK_REAL(write_all_end));
}

int take_write_ordered_end(MPI_File handle, const void* buffer, MPI_Status* status) {
  return end("write_ordered_end", handle, buffer, status, PENSTOCK_REAL(write_ordered_end));
}

#define PENSTOCK_TAKE_BEGIN_AT(name, Count)                                                 \
  int take_##name(MPI_File handle, MPI_Offset offset, const void* buffer, Count count,      \
                  MPI_Datatype type) {                                                      \
    return begin_write<PENSTOCK_ENTRY_##name, Pointer::given>(                              \
        {handle, offset, buffer, count, type}, words(handle, offset, buffer, count, type)); \
  }
#define PENSTOCK_TAKE_BEGIN(name, Count)                                                 \
  int take_##name(MPI_File handle, const void* buffer, Count count, MPI_Datatype type) { \
    return begin_write<PENSTOCK_ENTRY_##name, Pointer::individual>(                      \
        {handle, 0, buffer, count, type}, words(handle, buffer, count, type));           \
  }

#define PENSTOCK_TAKE_BEGIN_ORDERED(name, Count)                                         \
  int take_##name(MPI_File handle, const void* buffer, Count count, MPI_Datatype type) { \
    return begin_ordered<PENSTOCK_ENTRY_##name>({handle, 0, buffer, count, type},        \
                                                words(handle, buffer, count, type));     \
  }

PENSTOCK_TAKE_BEGIN_AT(write_at_all_begin, int)
PENSTOCK_TAKE_BEGIN(write_all_begin, int)
PENSTOCK_TAKE_BEGIN_ORDERED(write_ordered_begin, int)
#ifdef PENSTOCK_LARGE_COUNTS
PENSTOCK_TAKE_BEGIN_AT(write_at_all_begin_c, MPI_Count)
PENSTOCK_TAKE_BEGIN(write_all_begin_c, MPI_Count)
PENSTOCK_TAKE_BEGIN_ORDERED(write_ordered_begin_c, MPI_Count)
#endif

}  // namespace penstock::pmpi
