// MPI's error classes, and what is raised of them.
#include "pmpi/errors.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "pmpi/error_handler.hpp"

namespace penstock::pmpi {

int mpi_class(ErrorClass c) noexcept {
  switch (c) {
    case ErrorClass::none:
      return MPI_SUCCESS;
    case ErrorClass::argument:
      return MPI_ERR_ARG;
    case ErrorClass::unsupported:
      return MPI_ERR_UNSUPPORTED_OPERATION;
    case ErrorClass::no_such_file:
      return MPI_ERR_NO_SUCH_FILE;
    case ErrorClass::access:
      return MPI_ERR_ACCESS;
    case ErrorClass::read_only:
      return MPI_ERR_READ_ONLY;
    case ErrorClass::file_exists:
      return MPI_ERR_FILE_EXISTS;
    case ErrorClass::no_space:
      return MPI_ERR_NO_SPACE;
    case ErrorClass::quota:
      return MPI_ERR_QUOTA;
    case ErrorClass::file_too_large:
    case ErrorClass::io:
      return MPI_ERR_IO;
    case ErrorClass::no_memory:
      return MPI_ERR_NO_MEM;
    case ErrorClass::communication:
      return MPI_ERR_OTHER;
    case ErrorClass::internal:
      return MPI_ERR_INTERN;
  }
  return MPI_ERR_INTERN;
}

ErrorClass class_of_mpi(int rc) noexcept {
  if (rc == MPI_SUCCESS) return ErrorClass::none;
  int c = MPI_ERR_UNKNOWN;
  PMPI_Error_class(rc, &c);
  for (int i = 1; i < kErrorClasses; ++i) {
    const auto candidate = ErrorClass(i);
    if (candidate != ErrorClass::file_too_large && mpi_class(candidate) == c) return candidate;
  }
  return ErrorClass::io;  // of a file function, and without a class of its own
}

std::optional<Error> error_of_mpi(std::string_view function, int rc) {
  if (rc == MPI_SUCCESS) return std::nullopt;
  int c = MPI_ERR_UNKNOWN, length = 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  PMPI_Error_class(rc, &c);
  PMPI_Error_string(c, text, &length);
  const std::string_view words = text;
  return Error{class_of_mpi(rc), 0, "MPI_File_" + std::string(function),
               std::string(words.substr(0, words.find_last_not_of(' ') + 1))};
}

namespace {

thread_local Raised* under_way = nullptr;

}  // namespace

Raised::Raised() noexcept : under_way_(under_way), outer_(std::exchange(under_way_, this)) {}

bool Raised::note(MPI_File file, int error_class) noexcept {
  Raised* const raised = under_way;
  if (raised == nullptr) return false;
  if (raised->error_class_ != MPI_SUCCESS) return true;
  raised->file_ = file;
  raised->error_class_ = error_class;
  return true;
}

void Raised::call_handler_now() { (void)raise_at_once(file_, error_class_); }

int raise(MPI_File file, int error_class) {
  if (!Raised::note(file, error_class)) (void)raise_at_once(file, error_class);
  return error_class;
}

int raise_at_once(MPI_File file, int error_class) {
  if (throws_what_is_returned(file)) return error_class;
  (void)call_handler(file, error_class);
  return error_class;
}

}  // namespace penstock::pmpi
