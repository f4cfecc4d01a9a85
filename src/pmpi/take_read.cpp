// The reads. Collective ones, blocking and split, are the engine's where it serves them; a split
// one is done where it begins, as the standard allows, and `end` reports it. Independent ones are
// the library's, but for files whose view only the engine has (docs/decisions/0031). A non-blocking
// read is one of these also where it is collective, since it may wait for nobody.
#include <mpi.h>

#include <mutex>
#include <string_view>
#include <utility>

#include "pmpi/completed_request.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/real.hpp"
#include "pmpi/serve_write.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

template <int entry, Pointer pointer>
int take_read(const WriteArguments& a, MPI_Status* status, const Words& as_given) noexcept {
  return take_read_or_pass(a, entry, as_given, pointer, [&](OpenFile& file) {
    const Served served = serve_read(a, file, pointer, Together::yes);
    set_status(status, served.bytes);
    return raise_served(a.handle, served);
  });
}

template <int entry, Pointer pointer>
int begin_read(const WriteArguments& a, const Words& as_given) noexcept {
  return take_read_or_pass(a, entry, as_given, pointer, [&](OpenFile& file) -> int {
    // One at a time per handle, says the standard; the library would refuse it too.
    if (file.is_splitting()) return raise(a.handle, MPI_ERR_IO);
    file.split_read = serve_read(a, file, pointer, Together::yes);
    return MPI_SUCCESS;
  });
}

enum class Answer : uint8_t { now, later, nowhere };  // nowhere: a null request

template <int entry, Pointer pointer, class Tell>
int take_alone(const WriteArguments& a, const Words& as_given, Answer answer, Tell tell) noexcept {
  return protect(kEntries[size_t(entry)].name.data(), [&] {
    OpenFile* const file = open_files().find(a.handle);
    if (file == nullptr) return pass(entry, as_given);
    std::unique_lock lock(file->alone);
    if (file->held == nullptr || !file->readable) {
      // Of iread_all and its like pass() takes the other lock; else the view stays what was seen.
      if (kEntries[size_t(entry)].name.find("_all") != std::string_view::npos) lock.unlock();
      return pass(entry, as_given);
    }
    if (answer == Answer::nowhere) return raise(a.handle, MPI_ERR_REQUEST);
    Served served = serve_read(a, *file, pointer, Together::no, answer == Answer::later);
    tell(served);
    job().tick();
    return raise_served(a.handle, served);
  });
}

template <int entry, Pointer pointer>
int take_alone(const WriteArguments& a, MPI_Status* status, const Words& as_given) noexcept {
  return take_alone<entry, pointer>(a, as_given, Answer::now,
                                    [&](Served& served) { set_status(status, served.bytes); });
}

template <int entry, Pointer pointer>
int take_alone(const WriteArguments& a, MPI_Request* request, const Words& as_given) noexcept {
  const Answer answer = request != nullptr ? Answer::later : Answer::nowhere;
  return take_alone<entry, pointer>(a, as_given, answer, [&](Served& served) {
    if (completed_request(served.bytes, request) != MPI_SUCCESS)
      served.error_class = MPI_ERR_NO_MEM;
  });
}

// An end without a beginning of ours is the library's to finish, or to refuse.
template <class Real>
int end(const char* name, MPI_File handle, void* buffer, MPI_Status* status, Real real) noexcept {
  return protect(name, [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return real(handle, buffer, status);
    const std::lock_guard lock(file->together);
    if (!file->split_read) {
      const int rc = by_library(handle, *file, [&] { return real(handle, buffer, status); });
      return note_passed_end(name, rc, engine::CallKind::read, *file);
    }
    const Served served = *std::exchange(file->split_read, std::nullopt);
    set_status(status, served.bytes);
    return raise_served(handle, served);
  });
}

}  // namespace

#define PENSTOCK_TAKE_READ_AT(name, Count)                                       \
  int take_##name(MPI_File handle, MPI_Offset offset, void* buffer, Count count, \
                  MPI_Datatype type, MPI_Status* status) {                       \
    return take_read<PENSTOCK_ENTRY_##name, Pointer::given>(                     \
        {handle, offset, buffer, count, type}, status,                           \
        words(handle, offset, buffer, count, type, status));                     \
  }
#define PENSTOCK_TAKE_READ(name, Count)                                                        \
  int take_##name(MPI_File handle, void* buffer, Count count, MPI_Datatype type,               \
                  MPI_Status* status) {                                                        \
    return take_read<PENSTOCK_ENTRY_##name, Pointer::individual>(                              \
        {handle, 0, buffer, count, type}, status, words(handle, buffer, count, type, status)); \
  }
#define PENSTOCK_TAKE_READ_BEGIN_AT(name, Count)                                            \
  int take_##name(MPI_File handle, MPI_Offset offset, void* buffer, Count count,            \
                  MPI_Datatype type) {                                                      \
    return begin_read<PENSTOCK_ENTRY_##name, Pointer::given>(                               \
        {handle, offset, buffer, count, type}, words(handle, offset, buffer, count, type)); \
  }
#define PENSTOCK_TAKE_READ_BEGIN(name, Count)                                      \
  int take_##name(MPI_File handle, void* buffer, Count count, MPI_Datatype type) { \
    return begin_read<PENSTOCK_ENTRY_##name, Pointer::individual>(                 \
        {handle, 0, buffer, count, type}, words(handle, buffer, count, type));     \
  }

#define PENSTOCK_TAKE_ALONE_AT(name, Count, Result)                              \
  int take_##name(MPI_File handle, MPI_Offset offset, void* buffer, Count count, \
                  MPI_Datatype type, Result* result) {                           \
    return take_alone<PENSTOCK_ENTRY_##name, Pointer::given>(                    \
        {handle, offset, buffer, count, type}, result,                           \
        words(handle, offset, buffer, count, type, result));                     \
  }
#define PENSTOCK_TAKE_ALONE(name, Count, Result)                                                   \
  int take_##name(MPI_File handle, void* buffer, Count count, MPI_Datatype type, Result* result) { \
    return take_alone<PENSTOCK_ENTRY_##name, Pointer::individual>(                                 \
        {handle, 0, buffer, count, type}, result, words(handle, buffer, count, type, result));     \
  }

PENSTOCK_TAKE_READ_AT(read_at_all, int)
PENSTOCK_TAKE_READ(read_all, int)
PENSTOCK_TAKE_READ_BEGIN_AT(read_at_all_begin, int)
PENSTOCK_TAKE_READ_BEGIN(read_all_begin, int)
PENSTOCK_TAKE_ALONE_AT(read_at, int, MPI_Status)
PENSTOCK_TAKE_ALONE_AT(iread_at, int, MPI_Request)
PENSTOCK_TAKE_ALONE_AT(iread_at_all, int, MPI_Request)
PENSTOCK_TAKE_ALONE(read, int, MPI_Status)
PENSTOCK_TAKE_ALONE(iread, int, MPI_Request)
PENSTOCK_TAKE_ALONE(iread_all, int, MPI_Request)
#ifdef PENSTOCK_LARGE_COUNTS
PENSTOCK_TAKE_READ_AT(read_at_all_c, MPI_Count)
PENSTOCK_TAKE_READ(read_all_c, MPI_Count)
PENSTOCK_TAKE_READ_BEGIN_AT(read_at_all_begin_c, MPI_Count)
PENSTOCK_TAKE_READ_BEGIN(read_all_begin_c, MPI_Count)
PENSTOCK_TAKE_ALONE_AT(read_at_c, MPI_Count, MPI_Status)
PENSTOCK_TAKE_ALONE_AT(iread_at_c, MPI_Count, MPI_Request)
PENSTOCK_TAKE_ALONE_AT(iread_at_all_c, MPI_Count, MPI_Request)
PENSTOCK_TAKE_ALONE(read_c, MPI_Count, MPI_Status)
PENSTOCK_TAKE_ALONE(iread_c, MPI_Count, MPI_Request)
PENSTOCK_TAKE_ALONE(iread_all_c, MPI_Count, MPI_Request)
#endif

int take_read_at_all_end(MPI_File handle, void* buffer, MPI_Status* status) {
  return end("read_at_all_end", handle, buffer, status, PENSTOCK_REAL(read_at_all_end));
}

int take_read_all_end(MPI_File handle, void* buffer, MPI_Status* status) {
  return end("read_all_end", handle, buffer, status, PENSTOCK_REAL(read_all_end));
}

}  // namespace penstock::pmpi
