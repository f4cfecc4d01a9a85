// Errors on their way to C: every Error becomes a code, and its text stays with the thread. Nothing
// that is thrown gets out.
#pragma once

#include <penstock/penstock.h>

#include <new>

#include "base/error.hpp"
#include "base/not_cancelled.hpp"

namespace penstock::capi {

int code_of(ErrorClass c) noexcept;

// Keeps the error as this thread's last one, and gives its code.
int failed(const Error& error) noexcept;
int failed(const Result<void>& result) noexcept;  // 0 when it is none

const char* last_error() noexcept;
int last_errno() noexcept;

Error argument_error(std::string operation, std::string detail);
Error thrown(const char* operation) noexcept;  // of what was caught just now

// The body of an entry point.
template <class F>
int guarded(const char* function, F&& body) noexcept {
  const NotCancelled until_it_is_over;
  try {
    return body();
  } catch (...) {
    return failed(thrown(function));
  }
}

// What a rank prepares before it meets the others: thrown or returned, its failure is a value, so
// that the rank can still take its part.
template <class F>
auto prepared(const char* function, F&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return tl::unexpected(thrown(function));
  }
}

}  // namespace penstock::capi
