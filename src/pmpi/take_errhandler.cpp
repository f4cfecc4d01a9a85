// Error handlers of the program. What a handler calls is the program's own, so each is entered with
// the guard dropped, also when the library enters it.
#include <mpi.h>

#include <array>
#include <mutex>
#include <utility>

#include "pmpi/errors.hpp"
#include "pmpi/real.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

// Two arguments by the standard and more from some libraries, all in registers: passed on as they
// come, like the shim's.
using Handler = void (*)(MPI_File*, int*, void*, void*);

constexpr size_t kMostHandlers = 64;
std::array<Handler, kMostHandlers> handlers{};

template <size_t i>
void enter(MPI_File* file, int* code, void* more, void* yet_more) {
  OutsideOfUs callback;
  handlers[i](file, code, more, yet_more);
}

template <size_t... i>
constexpr std::array<Handler, kMostHandlers> entries(std::index_sequence<i...>) {
  return {&enter<i>...};
}

// The one that enters `handler` outside of us. A program with more handlers than we have room for
// gets its own: then what it calls goes to the library, which is correct, but not counted.
Handler wrap(Handler handler) {
  static constexpr auto kEntries = entries(std::make_index_sequence<kMostHandlers>());
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (size_t i = 0; i < kMostHandlers; ++i) {
    if (handlers[i] == nullptr) handlers[i] = handler;
    if (handlers[i] == handler) return kEntries[i];
  }
  return handler;
}

}  // namespace

int take_create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* errhandler) {
  return protect("create_errhandler", [&] {
    const Handler wrapped = wrap(reinterpret_cast<Handler>(function));
    return PENSTOCK_REAL(create_errhandler)(
        reinterpret_cast<MPI_File_errhandler_function*>(wrapped), errhandler);
  });
}

int take_call_errhandler(MPI_File handle, int error) {
  OutsideOfUs callback;
  return PENSTOCK_REAL(call_errhandler)(handle, error);
}

}  // namespace penstock::pmpi
