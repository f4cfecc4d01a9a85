// penstock._core: the module, and how errors cross into Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bind.hpp"

namespace nb = nanobind;

namespace penstock::python {

void raise(const Error& error) {
  // The classes live in Python, where `except penstock.errors.WriteError` is written.
  const nb::object exception =
      nb::module_::import_("penstock.errors")
          .attr("from_core")(to_string(error.error_class), error.sys_errno, error.operation,
                             error.detail, error.message());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

void raise_argument(std::string operation, std::string detail) {
  raise({ErrorClass::argument, 0, std::move(operation), std::move(detail)});
}

}  // namespace penstock::python

NB_MODULE(_core, m) {
  m.doc() =
      "Penstock's layouts, plans, models and configuration, in C++. Sizes and offsets are bytes; "
      "ranges are half-open (begin, end) tuples.";
  m.attr("VERSION") = PENSTOCK_VERSION;
  penstock::python::bind_layout(m);
  penstock::python::bind_plan(m);
  penstock::python::bind_model(m);
  penstock::python::bind_engine(m);
}
