// From a program's write call to the engine's. The individual file pointer is remembered, and the
// library's own is moved along.
#include "pmpi/serve_write.hpp"

#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "pmpi/decode_datatype.hpp"
#include "pmpi/device_memory.hpp"
#include "pmpi/packed.hpp"
#include "pmpi/real.hpp"

namespace penstock::pmpi {
namespace {

// What is wrong with a call, as an MPI class; MPI_SUCCESS and `write` filled when nothing is.
int understand(WriteArguments a, const OpenFile& file, Packed& packed, engine::Write& write) {
  if (a.count < 0) return MPI_ERR_COUNT;
  if (a.type == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
  if (a.offset < 0) return MPI_ERR_ARG;
  auto tree = decode_datatype(a.type, file.quiet());
  const bool on_device = is_device_memory(a.buffer);
  if (!tree || on_device) {
    if (!is_committed(a.type, file.quiet())) return MPI_ERR_TYPE;
    if (const int rc = pack_by_library(a, file.quiet(), packed); rc != MPI_SUCCESS) {
      file.file->degraded("refused: memory that the MPI library had to pack, and could not");
      return rc;
    }
    file.file->degraded("memory packed by the MPI library: " +
                        (on_device ? "it is a device's" : tree.error().message()));
    packed.has_gaps = !tree || !tree->is_contiguous();
    tree = packed.tree;
    a.buffer = packed.bytes.data();
  }
  int64_t bytes = 0, position = 0;
  const int64_t etype_bytes = file.file->view().etype_bytes();
  if (__builtin_mul_overflow(int64_t(a.count), tree->size(), &bytes)) return MPI_ERR_ARG;
  if (bytes == 0) a.offset = 0;  // of nothing any will do, as one that only marks that
  if (__builtin_mul_overflow(int64_t(a.offset), etype_bytes, &position) ||
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

// Whoever fails at it takes part in a collective call all the same.
int translate(const WriteArguments& a, const OpenFile& file, Packed& packed, engine::Write& write) {
  try {
    return understand(a, file, packed, write);
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

ErrorClass told_to_all(int wrong) {
  if (wrong == MPI_SUCCESS) return ErrorClass::none;
  if (wrong == MPI_ERR_NO_MEM) return ErrorClass::no_memory;
  return wrong == MPI_ERR_INTERN ? ErrorClass::internal : ErrorClass::argument;
}

// Where the individual pointer is; -1 when the library cannot say.
MPI_Offset position_of(MPI_File handle, const OpenFile& file) {
  if (const auto known = file.pointer.known()) return *known;
  MPI_Offset position = -1;
  return PENSTOCK_REAL(get_position)(handle, &position) == MPI_SUCCESS ? position : -1;
}

// Of the last write's plain type it is known, since no other has its handle.
bool may_be_used(MPI_Datatype type, const OpenFile& file) {
  return (type == file.plain.type && file.plain.bytes > 0) || is_committed(type, file.quiet());
}

// The pointer moves by what was asked for, as if the call had been whole; not by wrong arguments.
void move_pointer(const WriteArguments& a, OpenFile& file) {
  const std::optional<int64_t> etypes = etypes_of(a, file);
  int64_t after = 0;
  if (!etypes || __builtin_add_overflow(int64_t(a.offset), *etypes, &after)) return;
  if (file.held == nullptr) PENSTOCK_REAL(seek)(a.handle, after, MPI_SEEK_SET);
  file.pointer.set(after);
}

// Where the write ends in the view's stream. Wrong arguments end nowhere: they are told off later.
int64_t end_bytes(const WriteArguments& a, OpenFile& file, Pointer pointer) {
  if (a.count < 0 || !may_be_used(a.type, file)) return 0;
  const std::lock_guard lock(file.alone);
  const MPI_Offset from = pointer == Pointer::given ? a.offset : position_of(a.handle, file);
  MPI_Count size = 0;
  PMPI_Type_size_x(a.type, &size);
  int64_t bytes = 0, begin = 0, end = 0;
  const bool overflows =
      __builtin_mul_overflow(int64_t(a.count), int64_t(size), &bytes) ||
      __builtin_mul_overflow(int64_t(from), file.file->view().etype_bytes(), &begin) ||
      __builtin_add_overflow(begin, bytes, &end);
  return overflows ? 0 : end;
}

engine::WriteResult hand_over(engine::File& file, const engine::Write& write, Together together,
                              Return when) {
  if (when == Return::staged) return file.stage(write);
  if (when == Return::written)
    return together == Together::yes ? file.write_all(write) : file.write(write);
  file.begin_write_all(write);
  return {};
}

// The bytes of a write of plain memory, where the engine's short way may take them.
std::optional<engine::Piece> piece_of(const WriteArguments& a, const OpenFile& file,
                                      engine::CallKind kind, Return when) {
  const int64_t size = file.plain.bytes, etype_bytes = file.file->view().etype_bytes();
  int64_t bytes = 0, position = 0;
  if (a.type != file.plain.type || a.count <= 0 || a.offset < 0 || file.view_is_empty) return {};
  if (is_device_memory(a.buffer)) return {};
  if (__builtin_mul_overflow(int64_t(a.count), size, &bytes) ||
      __builtin_mul_overflow(int64_t(a.offset), etype_bytes, &position) ||
      position > INT64_MAX - bytes || bytes == 0 || bytes % etype_bytes != 0)
    return {};
  return engine::Piece{kind,
                       position,
                       {static_cast<const std::byte*>(a.buffer), size_t(bytes)},
                       when == Return::staged};
}

// Of a valid type: the next call with it may go the short way.
void remember(MPI_Datatype type, OpenFile& file) {
  if (type != file.plain.type) file.plain = {type, plain_bytes(type, file.quiet())};
}

}  // namespace

std::optional<int64_t> etypes_of(const WriteArguments& a, const OpenFile& file) {
  if (a.count < 0 || !may_be_used(a.type, file)) return {};
  MPI_Count size = 0;
  PMPI_Type_size_x(a.type, &size);
  const int64_t etype_bytes = file.file->view().etype_bytes();
  int64_t bytes = 0;
  if (__builtin_mul_overflow(int64_t(a.count), int64_t(size), &bytes) || bytes % etype_bytes != 0)
    return {};
  return bytes / etype_bytes;
}

int told_here(int wrong, ErrorClass agreed, Together together) {
  const bool by_own = together != Together::yes && agreed == told_to_all(wrong);
  const bool own_words = by_own || agreed == ErrorClass::argument;
  return wrong != MPI_SUCCESS && own_words ? wrong : mpi_class(agreed);
}

bool serves(const WriteArguments& a, OpenFile& file, Pointer pointer, Together together) {
  const bool all = together == Together::yes;
  if (!(all ? file.file->served() : file.file->serves_independent())) return false;
  if (!file.file->view_is_limited()) return true;
  if (together == Together::unsynchronised) {
    file.file->degraded("the file view's tiles overlap, and ranks may not ask each other here");
    return false;
  }
  const auto company = all ? engine::Company::together : engine::Company::alone;
  if (file.file->keeps_to_view(end_bytes(a, file, pointer), company)) return true;
  file.file->degraded("the file view's tiles overlap, and a write goes past the first");
  return false;
}

Served serve_write(WriteArguments a, OpenFile& file, engine::CallKind kind, Pointer pointer,
                   Together together, Return when) {
  if (pointer == Pointer::individual) {
    const std::lock_guard lock(file.alone);
    a.offset = position_of(a.handle, file);
    // Before an error is raised, so that a handler finds the pointer where it will be.
    if (a.offset >= 0) move_pointer(a, file);
  }
  const bool alone = together == Together::no;
  if (const auto piece = alone ? piece_of(a, file, kind, when) : std::nullopt)
    if (const auto result = file.file->write_piece(*piece))
      return {mpi_class(result->agreed), result->bytes};
  engine::Write write;
  Packed packed;
  write.kind = kind;
  const int wrong = translate(a, file, packed, write);
  // Counted; and in a collective call the rank still takes part, so that nobody waits for it.
  write.argument_error = told_to_all(wrong);
  if (wrong == MPI_SUCCESS && alone) remember(a.type, file);
  const engine::WriteResult result = hand_over(*file.file, write, together, when);
  if (when == Return::begun) return {wrong, 0};
  if (result.agreed == ErrorClass::none) return {MPI_SUCCESS, result.bytes};
  return {told_here(wrong, result.agreed, together), result.bytes};
}

bool serves_read(const WriteArguments& a, OpenFile& file, Pointer pointer) {
  if (!file.file->serves_reads()) return false;
  if (!file.file->view_is_limited()) return true;
  if (file.file->keeps_to_view(end_bytes(a, file, pointer), engine::Company::together)) return true;
  file.file->degraded("the file view's tiles overlap, and a read goes past the first");
  return false;
}

namespace {

// Whether the library says of such a read, into memory with gaps, that it was whole wherever the
// file ends: ROMIO always, OMPIO of collective ones of more than two ranks.
bool is_told_whole([[maybe_unused]] const OpenFile& file, [[maybe_unused]] Together together) {
#ifdef OPEN_MPI
  return together == Together::yes && file.file->comm().size() > 2;
#else
  return true;
#endif
}

// What a read that succeeded says of itself: what the library would, since HDF5 clears what a count
// leaves out as if there were no gaps, and with true counts the program's own bytes in them.
int64_t told_bytes(const engine::Read& read, const Packed& packed, int64_t read_bytes,
                   bool is_whole) {
  const bool has_gaps = packed.bytes.empty() ? !read.memory_type.is_contiguous() : packed.has_gaps;
  return is_whole && has_gaps ? read.memory_count * read.memory_type.size() : read_bytes;
}

}  // namespace

Served serve_read(WriteArguments a, OpenFile& file, Pointer pointer, Together together,
                  bool starts) {
  if (pointer == Pointer::individual) {
    const std::lock_guard lock(file.alone);
    a.offset = position_of(a.handle, file);
    if (a.offset >= 0) move_pointer(a, file);
  }
  engine::Write like;
  Packed packed;
  const int wrong = translate(a, file, packed, like);
  engine::Read read;
  read.position_bytes = like.position_bytes;
  read.memory = const_cast<void*>(like.memory);  // the program gave it to be written, or `packed`
  read.memory_type = std::move(like.memory_type);
  read.memory_count = like.memory_count;
  // The rank takes part all the same, so that nobody waits for it.
  read.argument_error = told_to_all(wrong);
  read.starts = starts;
  const engine::ReadResult result =
      together == Together::yes ? file.file->read_all(read) : file.file->read(read);
  const int told = told_here(wrong, result.agreed, together);
  if (wrong != MPI_SUCCESS) return {told, 0};
  const int unpacked = packed.bytes.empty() || result.bytes == 0
                           ? MPI_SUCCESS
                           : unpack_by_library(a, file.quiet(), packed);
  if (told != MPI_SUCCESS) return {told, unpacked == MPI_SUCCESS ? result.bytes : 0};
  return {unpacked, told_bytes(read, packed, result.bytes, is_told_whole(file, together))};
}

void set_status(MPI_Status* status, int64_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  PMPI_Status_set_elements_x(status, MPI_BYTE, bytes);
  PMPI_Status_set_cancelled(status, 0);
}

int raise_served(MPI_File handle, const Served& served) {
  return served.error_class == MPI_SUCCESS ? MPI_SUCCESS : raise(handle, served.error_class);
}

}  // namespace penstock::pmpi
