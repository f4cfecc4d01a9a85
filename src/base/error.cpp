// Names, errno classes and messages of errors.
#include "base/error.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock {

const char* to_string(ErrorClass c) noexcept {
  static constexpr std::array<const char*, kErrorClasses> kNames = {
      "none",      "argument",    "unsupported",   "no_such_file", "access",
      "read_only", "file_exists", "no_space",      "quota",        "file_too_large",
      "io",        "no_memory",   "communication", "internal"};
  const auto i = size_t(c);
  return i < kNames.size() ? kNames[i] : "internal";
}

ErrorClass class_of_errno(int sys_errno) noexcept {
  switch (sys_errno) {
    case 0:
      return ErrorClass::none;
    case ENOENT:
      return ErrorClass::no_such_file;
    case EACCES:
    case EPERM:
      return ErrorClass::access;
    case EROFS:
      return ErrorClass::read_only;
    case EEXIST:
      return ErrorClass::file_exists;
    case ENOSPC:
      return ErrorClass::no_space;
    case EDQUOT:
      return ErrorClass::quota;
    case EFBIG:
      return ErrorClass::file_too_large;
    case ENOMEM:
      return ErrorClass::no_memory;
    default:
      return ErrorClass::io;
  }
}

std::string Error::message() const {
  std::string text = operation;
  if (sys_errno != 0) text += std::string(": ") + std::strerror(sys_errno);
  if (detail.empty()) return text;
  return sys_errno != 0 ? text + " (" + detail + ")" : text + ": " + detail;
}

tl::unexpected<Error> os_error(std::string operation, std::string detail, int sys_errno) {
  return tl::unexpected<Error>(
      Error{class_of_errno(sys_errno), sys_errno, std::move(operation), std::move(detail)});
}

tl::unexpected<Error> fail(ErrorClass c, std::string operation, std::string detail) {
  return tl::unexpected<Error>(Error{c, 0, std::move(operation), std::move(detail)});
}

}  // namespace penstock
