// Between the engine's error classes and MPI's, whose numbers differ between libraries.
#pragma once

#include <mpi.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/not_cancelled.hpp"
#include "pmpi/real.hpp"

namespace penstock::pmpi {

int mpi_class(ErrorClass c) noexcept;
ErrorClass class_of_mpi(int rc) noexcept;  // of a code that an MPI function returned
// What MPI_File_`function` returned, with the library's words for its class; nothing of a success.
std::optional<Error> error_of_mpi(std::string_view function, int rc);

// Calls the file's error handler, as the library would, and returns the class: what the program's
// call returns when the handler lets it. Where an entry point is under way the handler is called at
// its end: it may leave by longjmp, and then no lock of ours would ever be given back.
int raise(MPI_File file, int error_class);
// Here and now, since the handle will be gone; and so nobody waits for the locks of its file.
int raise_at_once(MPI_File file, int error_class);

// What is raised while an entry point is under way in this thread: the first of it.
class Raised {
 public:
  Raised() noexcept;
  ~Raised() { under_way_ = outer_; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

  // False where no entry point is under way.
  static bool note(MPI_File file, int error_class) noexcept;
  // It may not come back, and what it calls is another's.
  void call_handler() {
    under_way_ = outer_;
    if (error_class_ != MPI_SUCCESS) call_handler_now();
  }

 private:
  void call_handler_now();

  Raised*& under_way_;  // of this thread
  Raised* const outer_;
  MPI_File file_{};
  int error_class_ = MPI_SUCCESS;
};

// Nothing of C++ escapes.
template <class F>
int caught(const char* function, F&& f) noexcept {
  const NotCancelled until_it_is_over;
  try {
    return std::forward<F>(f)();
  } catch (...) {
    say("penstock: internal error in MPI_File_%s\n", function);
    return MPI_ERR_INTERN;
  }
}

// Every entry point.
template <class F>
int protect(const char* function, F&& f) noexcept {
  Raised raised;
  const int rc = caught(function, std::forward<F>(f));
  raised.call_handler();
  return rc;
}

}  // namespace penstock::pmpi
