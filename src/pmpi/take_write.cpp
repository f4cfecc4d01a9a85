// The ten blocking writes: five, and their large-count forms.
#include <mpi.h>

#include <string_view>

#include "pmpi/ordered.hpp"
#include "pmpi/serve_write.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

template <int entry, Pointer pointer>
int take_write(const WriteArguments& a, MPI_Status* status, const Words& as_given) noexcept {
  constexpr const EntryFacts& facts = kEntries[size_t(entry)];
  constexpr engine::CallKind kind = kind_of(facts);
  constexpr auto together =
      facts.name.find("_all") != std::string_view::npos ? Together::yes : Together::no;
  return take_or_pass(a, entry, as_given, pointer, together, [&](OpenFile& file) {
    const Served served = serve_write(a, file, kind, pointer, together, Return::written);
    set_status(status, served.bytes);
    return raise_served(a.handle, served);
  });
}

template <int entry>
int take_ordered(const WriteArguments& a, MPI_Status* status, const Words& as_given) noexcept {
  constexpr const EntryFacts& facts = kEntries[size_t(entry)];
  return protect(facts.name.data(), [&] {
    OpenFile* const open = open_files().find(a.handle);
    if (open == nullptr) return pass(entry, as_given);
    const std::lock_guard lock(open->together);
    return serve_in_order(
        a, entry, as_given, *open, [&](const WriteArguments& placed, OpenFile& file) {
          const Served served = serve_write(placed, file, kind_of(facts), Pointer::given,
                                            Together::yes, Return::written);
          set_status(status, served.bytes);
          return raise_served(a.handle, served);
        });
  });
}

}  // namespace

#define PENSTOCK_TAKE_WRITE_AT(name, Count)                                            \
  int take_##name(MPI_File handle, MPI_Offset offset, const void* buffer, Count count, \
                  MPI_Datatype type, MPI_Status* status) {                             \
    return take_write<PENSTOCK_ENTRY_##name, Pointer::given>(                          \
        {handle, offset, buffer, count, type}, status,                                 \
        words(handle, offset, buffer, count, type, status));                           \
  }
#define PENSTOCK_TAKE_WRITE(name, Count)                                                       \
  int take_##name(MPI_File handle, const void* buffer, Count count, MPI_Datatype type,         \
                  MPI_Status* status) {                                                        \
    return take_write<PENSTOCK_ENTRY_##name, Pointer::individual>(                             \
        {handle, 0, buffer, count, type}, status, words(handle, buffer, count, type, status)); \
  }

#define PENSTOCK_TAKE_ORDERED(name, Count)                                                  \
  int take_##name(MPI_File handle, const void* buffer, Count count, MPI_Datatype type,      \
                  MPI_Status* status) {                                                     \
    return take_ordered<PENSTOCK_ENTRY_##name>({handle, 0, buffer, count, type}, status,    \
                                               words(handle, buffer, count, type, status)); \
  }

PENSTOCK_TAKE_WRITE_AT(write_at, int)
PENSTOCK_TAKE_WRITE_AT(write_at_all, int)
PENSTOCK_TAKE_WRITE(write, int)
PENSTOCK_TAKE_WRITE(write_all, int)
PENSTOCK_TAKE_ORDERED(write_ordered, int)
#ifdef PENSTOCK_LARGE_COUNTS
PENSTOCK_TAKE_WRITE_AT(write_at_c, MPI_Count)
PENSTOCK_TAKE_WRITE_AT(write_at_all_c, MPI_Count)
PENSTOCK_TAKE_WRITE(write_c, MPI_Count)
PENSTOCK_TAKE_WRITE(write_all_c, MPI_Count)
PENSTOCK_TAKE_ORDERED(write_ordered_c, MPI_Count)
#endif

}  // namespace penstock::pmpi
