// Between the engine's error classes and MPI's, whose numbers differ between libraries.
#pragma once

#include <mpi.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "pmpi/real.hpp"

namespace penstock::pmpi {

int mpi_class(ErrorClass c) noexcept;
ErrorClass class_of_mpi(int rc) noexcept;  // of a code that an MPI function returned
// What MPI_File_`function` returned, with the library's words for its class; nothing of a success.
std::optional<Error> error_of_mpi(std::string_view function, int rc);

// Calls the file's error handler, as the library would, and returns the class: what the program's
// call returns when the handler lets it.
int raise(MPI_File file, int error_class);

// Every entry point: nothing of C++ escapes into the program.
template <class F>
int protect(const char* function, F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    say("penstock: internal error in MPI_File_%s\n", function);
    return MPI_ERR_INTERN;
  }
}

}  // namespace penstock::pmpi
