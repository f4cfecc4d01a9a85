// MPI_File_set_errhandler, get_errhandler and call_errhandler, and the handler set aside.
#include "pmpi/error_handler.hpp"

#include <mutex>
#include <thread>
#include <vector>

#include "comm/mpi_handler.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/real.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {
namespace {

using comm::give_back;
using comm::is_built_in;
using comm::never_comes_back;

// What the library has now, to be given back.
MPI_Errhandler attached_to(MPI_File handle) {
  MPI_Errhandler handler = MPI_ERRORS_RETURN;
  const int rc = PENSTOCK_REAL(get_errhandler)(handle, &handler);
  return rc == MPI_SUCCESS ? handler : MPI_ERRORS_RETURN;
}

// All from here to HandlerAside: REQUIRES that aside.mutex is held.

void attach(MPI_File handle, AsideHandler& aside) {
  if (aside.users == 0 || aside.attached) return;
  if (aside.given != MPI_ERRORS_RETURN) PENSTOCK_REAL(set_errhandler)(handle, aside.given);
  aside.attached = true;
}

// Aside again, but not while the library may not have seen yet which handler it is to call. A
// thread that comes here is in that handler or out of it, and be it by longjmp.
void detach(MPI_File handle, AsideHandler& aside) {
  std::erase(aside.callers, std::this_thread::get_id());
  if (aside.users == 0 || !aside.attached || !aside.callers.empty()) return;
  if (aside.given != MPI_ERRORS_RETURN) PENSTOCK_REAL(set_errhandler)(handle, MPI_ERRORS_RETURN);
  aside.attached = false;
}

void take_given(MPI_File handle, AsideHandler& aside) {
  aside.given = attached_to(handle);
  aside.attached = true;
}

}  // namespace

// Callers of before may have left by longjmp and never be heard of again.
HandlerAside::HandlerAside(MPI_File handle, OpenFile& file) : handle_(handle), aside_(file.aside) {
  const std::lock_guard lock(aside_.mutex);
  if (aside_.users++ == 0) {
    aside_.callers.clear();
    take_given(handle, aside_);
  }
  detach(handle, aside_);
}

HandlerAside::~HandlerAside() {
  const std::lock_guard lock(aside_.mutex);
  if (aside_.users == 1) attach(handle_, aside_);
  if (--aside_.users == 0) give_back(aside_.given);
}

namespace {

// The library looks first whether it can be the handler of a file.
int replace_given(MPI_File handle, AsideHandler& aside, MPI_Errhandler handler) {
  const std::lock_guard lock(aside.mutex);
  const int rc = PENSTOCK_REAL(set_errhandler)(handle, handler);
  if (rc != MPI_SUCCESS) return rc;
  give_back(aside.given);
  take_given(handle, aside);
  detach(handle, aside);
  return MPI_SUCCESS;
}

// MPICH raises what is wrong with a handler on a communicator, Open MPI on the file, where we have
// kept it.
int raise_of_set([[maybe_unused]] MPI_File handle, int rc) {
#ifdef OPEN_MPI
  if (rc != MPI_SUCCESS) return raise(handle, rc);
#endif
  return rc;
}

int get_given(MPI_File handle, MPI_Errhandler* handler) {
  OpenFile* const file = open_files().find(handle);
  if (file == nullptr || handler == nullptr) return PENSTOCK_REAL(get_errhandler)(handle, handler);
  AsideHandler& aside = file->aside;
  const std::lock_guard lock(aside.mutex);
  if (aside.users > 0 && is_built_in(aside.given)) {
    *handler = aside.given;
    return MPI_SUCCESS;
  }
  attach(handle, aside);
  const int rc = PENSTOCK_REAL(get_errhandler)(handle, handler);
  detach(handle, aside);
  return rc;
}

void end_job(const OpenFile& file, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(code, text, &length);
  say("penstock: %s: %s, and its error handler ends the job\n", file.path.c_str(), text);
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

// Whether there is something to call, which the library then has. In Open MPI that may wait for the
// thread that is inside, as a write does there: what ends the job must not.
bool before_handler(MPI_File handle, int code) {
  OpenFile* const file = open_files().find(handle);
  if (file == nullptr) return true;
  AsideHandler& aside = file->aside;
  const std::lock_guard lock(aside.mutex);
  if (aside.users == 0) return true;
  if (never_comes_back(aside.given)) end_job(*file, code);
  if (aside.given == MPI_ERRORS_RETURN) return false;
  attach(handle, aside);
  aside.callers.push_back(std::this_thread::get_id());
  return true;
}

// The file may be closed by now.
void after_handler(MPI_File handle) {
  OpenFile* const file = open_files().find(handle);
  if (file == nullptr) return;
  const std::lock_guard lock(file->aside.mutex);
  detach(handle, file->aside);
}

}  // namespace

// Nothing lives here that a handler which leaves by longjmp would keep from being given back.
int call_handler(MPI_File handle, int code) {
  bool calls = true;
  (void)protect("call_errhandler", [&] {
    calls = before_handler(handle, code);
    return MPI_SUCCESS;
  });
  if (!calls) return MPI_SUCCESS;
  const int rc = PENSTOCK_REAL(call_errhandler)(handle, code);
  (void)protect("call_errhandler", [&] {
    after_handler(handle);
    return MPI_SUCCESS;
  });
  return rc;
}

bool throws_what_is_returned([[maybe_unused]] MPI_File handle) {
#ifdef MPIR_ERRORS_THROW_EXCEPTIONS
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (get_given(handle, &handler) != MPI_SUCCESS) return false;
  if (handler == MPIR_ERRORS_THROW_EXCEPTIONS) return true;
  give_back(handler);
#endif
  return false;
}

int take_set_errhandler(MPI_File handle, MPI_Errhandler handler) {
  return protect("set_errhandler", [&] {
    OpenFile* const file = open_files().find(handle);
    if (file == nullptr) return PENSTOCK_REAL(set_errhandler)(handle, handler);
    const int rc =
        quietly(handle, *file, [&] { return replace_given(handle, file->aside, handler); });
    return raise_of_set(handle, rc);
  });
}

int take_get_errhandler(MPI_File handle, MPI_Errhandler* handler) {
  return protect("get_errhandler", [&] { return get_given(handle, handler); });
}

int take_call_errhandler(MPI_File handle, int code) { return call_handler(handle, code); }

}  // namespace penstock::pmpi
