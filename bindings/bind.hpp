// What the binding files share: turning an Error into the Python exception that
// penstock.errors chooses for it, and the parts of the module.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "base/error.hpp"
#include "base/extent.hpp"

namespace penstock::python {

// Sets penstock.errors.from_core(...) as the Python error and throws it.
[[noreturn]] void raise(const Error& error);
[[noreturn]] void raise_argument(std::string operation, std::string detail);

template <class T>
T unwrap(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}
inline void unwrap(Result<void> result) {
  if (!result) raise(result.error());
}

// Ranges are (begin, end) tuples in Python.
using Pair = std::pair<int64_t, int64_t>;
template <class Tag>
Pair to_pair(Range<Tag> r) {
  return {r.begin, r.end};
}

void bind_layout(nanobind::module_& m);
void bind_plan(nanobind::module_& m);
void bind_model(nanobind::module_& m);
void bind_engine(nanobind::module_& m);

}  // namespace penstock::python
