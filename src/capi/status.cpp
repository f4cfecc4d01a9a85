#include "capi/status.hpp"

#include <array>
#include <string>
#include <utility>

namespace penstock::capi {
namespace {

struct Meaning {
  int code;
  ErrorClass error_class;
  const char* text;
};

// C codes are promised for ever, so they are not the numbers of ErrorClass, which are an order.
constexpr std::array<Meaning, kErrorClasses> kMeanings = {{
    {PENSTOCK_OK, ErrorClass::none, "success"},
    {PENSTOCK_EARGUMENT, ErrorClass::argument, "a value given is wrong"},
    {PENSTOCK_EUNSUPPORTED, ErrorClass::unsupported, "not possible here"},
    {PENSTOCK_ENOFILE, ErrorClass::no_such_file, "no such file or directory"},
    {PENSTOCK_EACCESS, ErrorClass::access, "permission denied"},
    {PENSTOCK_EREADONLY, ErrorClass::read_only, "read-only file system"},
    {PENSTOCK_EEXISTS, ErrorClass::file_exists, "there is such a file"},
    {PENSTOCK_ENOSPACE, ErrorClass::no_space, "no space left on the device"},
    {PENSTOCK_EQUOTA, ErrorClass::quota, "quota exceeded"},
    {PENSTOCK_ETOOLARGE, ErrorClass::file_too_large, "beyond the largest file allowed"},
    {PENSTOCK_EIO, ErrorClass::io, "input or output failed"},
    {PENSTOCK_ENOMEMORY, ErrorClass::no_memory, "out of memory"},
    {PENSTOCK_ECOMMUNICATION, ErrorClass::communication, "MPI or another rank failed"},
    {PENSTOCK_EINTERNAL, ErrorClass::internal, "a bug of Penstock"},
}};

struct Last {
  std::string text;
  int sys_errno = 0;
};
thread_local Last g_last;

}  // namespace

int code_of(ErrorClass c) noexcept {
  for (const Meaning& m : kMeanings)
    if (m.error_class == c) return m.code;
  return PENSTOCK_EINTERNAL;
}

int failed(const Error& error) noexcept {
  g_last.sys_errno = error.sys_errno;
  try {
    g_last.text = error.message();
  } catch (...) {
    g_last.text.clear();  // out of memory even for the text: the code has to do
  }
  return code_of(error.error_class);
}

int failed(const Result<void>& result) noexcept {
  return result ? PENSTOCK_OK : failed(result.error());
}

const char* last_error() noexcept { return g_last.text.c_str(); }
int last_errno() noexcept { return g_last.sys_errno; }

Error argument_error(std::string operation, std::string detail) {
  return Error{ErrorClass::argument, 0, std::move(operation), std::move(detail)};
}

Error thrown(const char* operation) noexcept {
  Error e;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    e.error_class = ErrorClass::no_memory;
  } catch (...) {
    e.error_class = ErrorClass::internal;
  }
  try {
    e.operation = operation;
    e.detail = e.error_class == ErrorClass::no_memory ? "out of memory" : "an exception was caught";
  } catch (...) {  // no room for words; the class is what counts
  }
  return e;
}

}  // namespace penstock::capi

extern "C" {

const char* penstock_strerror(int code) {
  for (const auto& m : penstock::capi::kMeanings)
    if (m.code == code) return m.text;
  return "not a code of Penstock";
}

const char* penstock_last_error(void) { return penstock::capi::last_error(); }
int penstock_last_errno(void) { return penstock::capi::last_errno(); }
int penstock_api_version(void) { return PENSTOCK_API_VERSION; }
const char* penstock_version(void) { return PENSTOCK_VERSION; }
}
