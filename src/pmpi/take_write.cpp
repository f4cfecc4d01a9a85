// The eight blocking writes (four, and their large-count forms) by one path. The individual file
// pointer is remembered, and the library's own is moved along.
#include <mpi.h>

#include <climits>
#include <cstddef>
#include <string_view>
#include <vector>

#include "pmpi/decode_datatype.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/job.hpp"
#include "pmpi/pass.hpp"
#include "pmpi/real.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

struct Arguments {
  MPI_File handle;
  MPI_Offset offset;  // in etypes
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  MPI_Status* status;
};

enum class Pointer : uint8_t { given, individual };

// The data of a memory type that Penstock cannot read, packed by the MPI library itself, which in
// one job on one kind of machine gives its bytes as they are.
struct Packed {
  std::vector<std::byte> bytes;
  layout::LoopTree tree;
};

int pack_by_library(const Arguments& a, Packed& packed) {
  MPI_Count size = 0;
  int room = 0, position = 0;
  PMPI_Type_size_x(a.type, &size);
  if (a.count > INT_MAX ||
      PMPI_Pack_size(int(a.count), a.type, MPI_COMM_SELF, &room) != MPI_SUCCESS)
    return MPI_ERR_UNSUPPORTED_OPERATION;
  packed.bytes.resize(size_t(room));
  const int rc = PMPI_Pack(a.buffer, int(a.count), a.type, packed.bytes.data(), room, &position,
                           MPI_COMM_SELF);
  if (rc != MPI_SUCCESS || position != a.count * size) return MPI_ERR_UNSUPPORTED_OPERATION;
  packed.tree = layout::LoopTree::bytes(size);
  return MPI_SUCCESS;
}

// What is wrong with a call, as an MPI class; MPI_SUCCESS and `write` filled when nothing is.
int translate(Arguments a, const OpenFile& file, Packed& packed, engine::Write& write) {
  if (a.count < 0) return MPI_ERR_COUNT;
  if (a.type == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
  if (a.offset < 0) return MPI_ERR_ARG;
  auto tree = decode_datatype(a.type);
  if (!tree) {
    if (const int rc = pack_by_library(a, packed); rc != MPI_SUCCESS) return rc;
    file.file->degraded("memory packed by the MPI library: " + tree.error().message());
    tree = packed.tree;
    a.buffer = packed.bytes.data();
  }
  int64_t bytes = 0, position = 0;
  const int64_t etype_bytes = file.file->view().etype_bytes();
  if (__builtin_mul_overflow(int64_t(a.count), tree->size(), &bytes) ||
      __builtin_mul_overflow(int64_t(a.offset), etype_bytes, &position) ||
      position > INT64_MAX - bytes) {
    return MPI_ERR_ARG;
  }
  if (bytes % etype_bytes != 0) return MPI_ERR_IO;
  if (file.view_is_empty && bytes > 0) return MPI_ERR_IO;
  write.position_bytes = position;
  write.memory = a.buffer;
  write.memory_type = *std::move(tree);
  write.memory_count = a.count;
  return MPI_SUCCESS;
}

void set_status(MPI_Status* status, int64_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  PMPI_Status_set_elements_x(status, MPI_BYTE, bytes);
  PMPI_Status_set_cancelled(status, 0);
}

// REQUIRES served().
template <bool collective>
int serve(const Arguments& a, OpenFile& file, engine::CallKind kind) {
  engine::Write write;
  Packed packed;
  write.kind = kind;
  const int wrong = translate(a, file, packed, write);
  // Counted; and in a collective call the rank still takes part, so that nobody waits for it.
  if (wrong != MPI_SUCCESS) write.argument_error = ErrorClass::argument;
  const engine::WriteResult result =
      collective ? file.file->write_all(write) : file.file->write(write);
  set_status(a.status, result.bytes);
  if (result.agreed == ErrorClass::none) return MPI_SUCCESS;
  if (!collective && wrong != MPI_SUCCESS) return raise(a.handle, wrong);  // as the library says it
  return raise(a.handle, mpi_class(result.agreed));
}

// Where the individual pointer is; -1 when the library cannot say.
MPI_Offset position_of(MPI_File handle, const OpenFile& file) {
  if (const auto known = file.pointer.known()) return *known;
  MPI_Offset position = -1;
  return PENSTOCK_REAL(get_position)(handle, &position) == MPI_SUCCESS ? position : -1;
}

// The pointer moves by what was asked for, as if the write had been whole; not by wrong arguments.
void advance(const Arguments& a, OpenFile& file) {
  if (a.count < 0 || a.type == MPI_DATATYPE_NULL) return;
  MPI_Count size = 0;
  PMPI_Type_size_x(a.type, &size);
  const MPI_Count bytes = a.count * size;
  const int64_t etype_bytes = file.file->view().etype_bytes();
  if (bytes % etype_bytes != 0) return;
  const MPI_Offset after = a.offset + MPI_Offset(bytes / etype_bytes);
  PENSTOCK_REAL(seek)(a.handle, after, MPI_SEEK_SET);
  file.pointer.set(after);
}

template <bool collective>
int serve_at_pointer(Arguments a, OpenFile& file, engine::CallKind kind) {
  a.offset = position_of(a.handle, file);
  // Before an error is raised, so that a handler finds the pointer where it will be.
  if (a.offset >= 0) advance(a, file);
  return serve<collective>(a, file, kind);
}

template <int entry, Pointer pointer>
int take(const Arguments& a, const Words& as_given) noexcept {
  constexpr const EntryFacts& facts = kEntries[size_t(entry)];
  constexpr bool collective = facts.name.find("_all") != std::string_view::npos;
  return protect(facts.name.data(), [&] {
    const OpenFilePtr file = open_files().find(a.handle);
    if (file == nullptr) return pass(entry, as_given);
    const std::lock_guard lock(file->mutex);
    const bool ours = collective ? file->file->served() : file->file->serves_independent();
    if (!ours) return pass(entry, as_given);
    const int rc = [&] {
      if constexpr (pointer == Pointer::given) return serve<collective>(a, *file, kind_of(facts));
      return serve_at_pointer<collective>(a, *file, kind_of(facts));
    }();
    job().tick();
    return rc;
  });
}

}  // namespace

#define PENSTOCK_TAKE_WRITE_AT(name, Count)                                            \
  int take_##name(MPI_File handle, MPI_Offset offset, const void* buffer, Count count, \
                  MPI_Datatype type, MPI_Status* status) {                             \
    return take<PENSTOCK_ENTRY_##name, Pointer::given>(                                \
        {handle, offset, buffer, count, type, status},                                 \
        words(handle, offset, buffer, count, type, status));                           \
  }
#define PENSTOCK_TAKE_WRITE(name, Count)                                                       \
  int take_##name(MPI_File handle, const void* buffer, Count count, MPI_Datatype type,         \
                  MPI_Status* status) {                                                        \
    return take<PENSTOCK_ENTRY_##name, Pointer::individual>(                                   \
        {handle, 0, buffer, count, type, status}, words(handle, buffer, count, type, status)); \
  }

PENSTOCK_TAKE_WRITE_AT(write_at, int)
PENSTOCK_TAKE_WRITE_AT(write_at_all, int)
PENSTOCK_TAKE_WRITE(write, int)
PENSTOCK_TAKE_WRITE(write_all, int)
#ifdef PENSTOCK_LARGE_COUNTS
PENSTOCK_TAKE_WRITE_AT(write_at_c, MPI_Count)
PENSTOCK_TAKE_WRITE_AT(write_at_all_c, MPI_Count)
PENSTOCK_TAKE_WRITE(write_c, MPI_Count)
PENSTOCK_TAKE_WRITE(write_all_c, MPI_Count)
#endif

}  // namespace penstock::pmpi
