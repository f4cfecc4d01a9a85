// What can go wrong, and how badly. The numeric order of ErrorClass is the
// severity order by which ranks agree: of several failures in one collective
// call, every rank reports the greatest. MPI's own class numbers differ
// between libraries, so they never travel between ranks; src/pmpi maps.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

namespace penstock {

enum class ErrorClass : uint8_t {
  none = 0,
  argument,        // the caller's values are wrong
  unsupported,     // legal, but nothing here can serve it
  no_such_file,    // ENOENT
  access,          // EACCES, EPERM
  read_only,       // EROFS
  file_exists,     // EEXIST
  no_space,        // ENOSPC
  quota,           // EDQUOT
  file_too_large,  // EFBIG
  io,              // EIO and every errno without a class of its own
  no_memory,       // ENOMEM, failed allocation
  communication,   // MPI or a peer failed
  internal,        // our bug
};
inline constexpr int kErrorClasses = int(ErrorClass::internal) + 1;

// "no_space" and so on: the spelling of logs, messages and Python.
const char* to_string(ErrorClass c) noexcept;

// The class that an errno belongs to; 0 is `none`, an unknown one is `io`.
ErrorClass class_of_errno(int sys_errno) noexcept;

struct Error {
  ErrorClass error_class = ErrorClass::internal;
  int sys_errno = 0;      // 0 when no system call failed
  std::string operation;  // "pwrite", "parse method", ...
  std::string detail;     // path, offset, argument and remedy: what a person needs

  // "pwrite: No space left on device (out.dat, offset 4096)"
  std::string message() const;
};

template <class T>
using Result = tl::expected<T, Error>;

// os_error("pwrite", "out.dat, offset 4096", ENOSPC)
tl::unexpected<Error> os_error(std::string operation, std::string detail, int sys_errno);
tl::unexpected<Error> fail(ErrorClass c, std::string operation, std::string detail);

inline ErrorClass worse(ErrorClass a, ErrorClass b) noexcept { return a < b ? b : a; }

}  // namespace penstock
