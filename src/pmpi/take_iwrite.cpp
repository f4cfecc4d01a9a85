// The non-blocking writes. The bytes are staged when the call returns: copied, so that the buffer
// is the program's again, and on their way into the file by the I/O thread. The request is complete
// already.
//
// `iwrite_all` is collective but may not synchronise: a rank may begin it, and only then send what
// another rank must receive before it begins its own. So each rank stages its own bytes.
//
// An error is raised by the call itself: a generalised request whose functions fail ends the job.
// The request is there all the same, with the count of what was taken. What cannot be written later
// is told by a later call, and by every sync and close (docs/decisions/0025).
#include <mpi.h>

#include <string_view>

#include "pmpi/completed_request.hpp"
#include "pmpi/serve_write.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

// As any other wrong argument of one rank: no byte is taken, and ranks go on alike.
int refuse_request(WriteArguments a, OpenFile& file, engine::CallKind kind, Pointer pointer,
                   Together together) {
  a.count = -1;
  Served refused = serve_write(a, file, kind, pointer, together, Return::staged);
  refused.error_class = MPI_ERR_REQUEST;
  return raise_served(a.handle, refused);
}

template <int entry, Pointer pointer>
int take_iwrite(const WriteArguments& a, MPI_Request* request, const Words& as_given) noexcept {
  constexpr const EntryFacts& facts = kEntries[size_t(entry)];
  constexpr engine::CallKind kind = kind_of(facts);
  constexpr auto together =
      facts.name.find("_all") != std::string_view::npos ? Together::unsynchronised : Together::no;
  return take_or_pass(a, entry, as_given, pointer, together, [&](OpenFile& file) {
    if (request == nullptr) return refuse_request(a, file, kind, pointer, together);
    Served served = serve_write(a, file, kind, pointer, together, Return::staged);
    const int made = completed_request(served.bytes, request);
    if (made != MPI_SUCCESS) served.error_class = MPI_ERR_NO_MEM;
    return raise_served(a.handle, served);
  });
}

}  // namespace

#define PENSTOCK_TAKE_IWRITE_AT(name, Count)                                           \
  int take_##name(MPI_File handle, MPI_Offset offset, const void* buffer, Count count, \
                  MPI_Datatype type, MPI_Request* request) {                           \
    return take_iwrite<PENSTOCK_ENTRY_##name, Pointer::given>(                         \
        {handle, offset, buffer, count, type}, request,                                \
        words(handle, offset, buffer, count, type, request));                          \
  }
#define PENSTOCK_TAKE_IWRITE(name, Count)                                                        \
  int take_##name(MPI_File handle, const void* buffer, Count count, MPI_Datatype type,           \
                  MPI_Request* request) {                                                        \
    return take_iwrite<PENSTOCK_ENTRY_##name, Pointer::individual>(                              \
        {handle, 0, buffer, count, type}, request, words(handle, buffer, count, type, request)); \
  }

PENSTOCK_TAKE_IWRITE_AT(iwrite_at, int)
PENSTOCK_TAKE_IWRITE_AT(iwrite_at_all, int)
PENSTOCK_TAKE_IWRITE(iwrite, int)
PENSTOCK_TAKE_IWRITE(iwrite_all, int)
#ifdef PENSTOCK_LARGE_COUNTS
PENSTOCK_TAKE_IWRITE_AT(iwrite_at_c, MPI_Count)
PENSTOCK_TAKE_IWRITE_AT(iwrite_at_all_c, MPI_Count)
PENSTOCK_TAKE_IWRITE(iwrite_c, MPI_Count)
PENSTOCK_TAKE_IWRITE(iwrite_all_c, MPI_Count)
#endif

}  // namespace penstock::pmpi
