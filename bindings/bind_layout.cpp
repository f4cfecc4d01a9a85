// Loop trees, file views and file geometry for Python.
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "bind.hpp"
#include "layout/cursor.hpp"
#include "layout/file_view.hpp"
#include "layout/geometry.hpp"
#include "layout/loop_tree.hpp"
#include "layout/type_description.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using layout::Cursor;
using layout::FileView;
using layout::Geometry;
using layout::LoopTree;
using layout::Run;
using layout::Sharing;

// More runs than this are a sign that a caller flattens what a loop tree keeps small.
constexpr size_t kMaxRuns = 1 << 20;

LoopTree make_bytes(int64_t n) {
  if (n < 0) raise_argument("bytes", "n must not be negative, got " + std::to_string(n));
  return LoopTree::bytes(n);
}

LoopTree make_indexed(const std::vector<Pair>& blocks, const LoopTree& child) {
  std::vector<LoopTree::Block> list;
  for (const auto& [displacement, count] : blocks) list.push_back({displacement, count});
  return unwrap(LoopTree::indexed(list, child));
}

LoopTree make_structure(const std::vector<std::tuple<int64_t, int64_t, LoopTree>>& fields) {
  std::vector<LoopTree::Field> list;
  for (const auto& [displacement, count, child] : fields) {
    list.push_back({displacement, count, child});
  }
  return unwrap(LoopTree::structure(list));
}

// Goes through decode(), so that the arithmetic of sub-arrays has one home.
LoopTree make_subarray(const std::vector<int64_t>& sizes, const std::vector<int64_t>& subsizes,
                       const std::vector<int64_t>& starts, const LoopTree& child) {
  if (sizes.empty() || sizes.size() != subsizes.size() || sizes.size() != starts.size()) {
    raise_argument("subarray", "sizes, subsizes and starts must have one length, at least 1");
  }
  layout::TypeDescription description;
  description.combiner = layout::Combiner::subarray;
  description.large_count = true;
  description.integers = {int32_t(sizes.size()), layout::kOrderC};
  for (const auto* part : {&sizes, &subsizes, &starts}) {
    description.large_counts.insert(description.large_counts.end(), part->begin(), part->end());
  }
  description.children.push_back(child);
  return unwrap(layout::decode(description));
}

void check_stream(const char* operation, int64_t begin, int64_t end) {
  if (begin < 0 || end < begin) {
    raise_argument(operation, "the stream range must be 0 <= begin <= end, got [" +
                                  std::to_string(begin) + ", " + std::to_string(end) + ")");
  }
}

void check_readable(const char* operation, const FileView& view, int64_t begin, int64_t end) {
  check_stream(operation, begin, end);
  if (end > begin && view.filetype().size() == 0) {
    raise_argument(operation, "the file view names no bytes");
  }
}

void check_monotone(const char* operation, const FileView& view) {
  if (!view.is_monotone()) {
    raise_argument(operation, "the file view must be monotone: offsets may never decrease");
  }
}

std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>> runs(const FileView& view, Pair range) {
  check_readable("runs", view, range.first, range.second);
  std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>> list;
  Cursor cursor = view.cursor();
  cursor.seek(range.first);
  while (cursor.position() < range.second) {
    if (list.size() == kMaxRuns) raise_argument("runs", "the range has more than 2^20 runs");
    const Run run = cursor.next(range.second - cursor.position());
    list.emplace_back(run.offset, run.block, run.stride, run.count);
  }
  return list;
}

void bind_loop_tree(nb::module_& m) {
  nb::class_<LoopTree>(m, "LoopTree",
                       "Where the bytes of a datatype lie, as nested loops. Immutable; equal "
                       "structures are equal and have equal hashes.")
      .def_static("bytes", &make_bytes, "n"_a, "``n`` adjacent bytes; extent ``n``.")
      .def_static(
          "contiguous",
          [](int64_t count, const LoopTree& c) { return unwrap(LoopTree::contiguous(count, c)); },
          "count"_a, "child"_a, "``count`` children, one extent apart.")
      .def_static(
          "strided",
          [](int64_t count, int64_t block_count, int64_t stride_bytes, const LoopTree& child) {
            return unwrap(LoopTree::strided(count, block_count, stride_bytes, child));
          },
          "count"_a, "block_count"_a, "stride_bytes"_a, "child"_a,
          "``count`` blocks of ``block_count`` children; blocks begin ``stride_bytes`` apart.")
      .def_static("indexed", &make_indexed, "blocks"_a, "child"_a,
                  "Blocks of (displacement in bytes, count of children).")
      .def_static("structure", &make_structure, "fields"_a,
                  "Fields of (displacement in bytes, count, child).")
      .def_static("subarray", &make_subarray, "sizes"_a, "subsizes"_a, "starts"_a, "child"_a,
                  "A box of a C-ordered array, in elements of ``child``; all of shape (d,).")
      .def_static(
          "resized",
          [](const LoopTree& child, int64_t lb, int64_t extent) {
            return unwrap(LoopTree::resized(child, lb, extent));
          },
          "child"_a, "lb"_a, "extent"_a, "The same bytes, with another lower bound and extent.")
      .def_prop_ro("size", &LoopTree::size, "Bytes of data.")
      .def_prop_ro("lb", &LoopTree::lb, "Lower bound in bytes, as MPI_Type_get_extent.")
      .def_prop_ro("extent", &LoopTree::extent, "Extent in bytes, as MPI_Type_get_extent.")
      .def_prop_ro("true_lb", &LoopTree::true_lb, "First byte touched; 0 when empty.")
      .def_prop_ro("true_ub", &LoopTree::true_ub, "One past the last byte touched; 0 when empty.")
      .def_prop_ro("is_contiguous", &LoopTree::is_contiguous, "Repetitions stay one run of bytes.")
      .def_prop_ro("granule", &LoopTree::granule, "Bytes dividing every displacement and block.")
      .def_prop_ro("memory_bytes", &LoopTree::memory_bytes, "Memory of all nodes.")
      .def_prop_ro("depth", &LoopTree::depth, "Nested loops.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const LoopTree& t) { return Py_hash_t(t.hash() >> 1); })
      .def("__repr__", [](const LoopTree& t) {
        return "<LoopTree of " + std::to_string(t.size()) + " bytes in an extent of " +
               std::to_string(t.extent()) + ">";
      });
}

void bind_file_view(nb::module_& m) {
  nb::class_<FileView>(m, "FileView",
                       "Maps a rank's stream (the bytes it may touch, numbered from 0) to file "
                       "offsets: a displacement and a filetype that tiles the file.")
      .def(nb::new_([](int64_t displacement, int64_t etype_bytes, const LoopTree& filetype) {
             return unwrap(FileView::make(displacement, etype_bytes, filetype));
           }),
           "displacement"_a = 0, "etype_bytes"_a = 1, "filetype"_a = LoopTree::bytes(1))
      .def_prop_ro("displacement", &FileView::displacement, "Bytes before the first tile.")
      .def_prop_ro("etype_bytes", &FileView::etype_bytes)
      .def_prop_ro("filetype", &FileView::filetype)
      .def_prop_ro("is_contiguous", &FileView::is_contiguous)
      .def_prop_ro("is_monotone", &FileView::is_monotone,
                   "Offsets never decrease and no byte is named twice.")
      .def_prop_ro("granule", &FileView::granule, "Bytes dividing every offset that is named.")
      .def_prop_ro("shape", &FileView::hash, "Hash of etype size and filetype.")
      .def(
          "offset_of",
          [](const FileView& v, int64_t position) {
            check_readable("offset_of", v, position, position + 1);
            return v.offset_of(position);
          },
          "position"_a, "The file offset of a stream byte.")
      .def(
          "position_at",
          [](const FileView& v, int64_t offset) {
            check_monotone("position_at", v);
            check_readable("position_at", v, 0, 1);
            return v.position_at(std::max<int64_t>(offset, 0));
          },
          "offset"_a, "The first stream position whose byte lies at or behind a file offset.")
      .def(
          "extent_of",
          [](const FileView& v, Pair range) {
            check_monotone("extent_of", v);
            check_readable("extent_of", v, range.first, range.second);
            return to_pair(v.extent_of({range.first, range.second}));
          },
          "stream_range"_a, "The smallest (begin, end) of the file that holds a stream range.")
      .def(
          "clip",
          [](const FileView& v, Pair within, Pair file) {
            check_monotone("clip", v);
            check_readable("clip", v, within.first, within.second);
            return to_pair(v.clip({within.first, within.second}, {file.first, file.second}));
          },
          "within"_a, "file"_a, "The part of a stream range whose bytes lie in a file range.")
      .def("runs", &runs, "stream_range"_a,
           "The file bytes of a stream range, in stream order, as (offset, block, stride, count): "
           "``count`` blocks of ``block`` bytes that begin ``stride`` apart.");
}

Geometry make_geometry(int64_t page, int64_t block, int64_t stripe, Sharing sharing) {
  if (page < 1 || block < 1 || stripe < 0) {
    raise_argument("Geometry",
                   "page_bytes and block_bytes must be positive and stripe_bytes not "
                   "negative");
  }
  return {page, block, stripe, sharing};
}

void bind_geometry(nb::module_& m) {
  nb::enum_<Sharing>(m, "Sharing", "Who may write next to whom.")
      .value("any", Sharing::any, "Local file system: any rank may write any byte.")
      .value("unit_per_node", Sharing::unit_per_node,
             "Several nodes, whose caches take locks: in a call one node alone writes a unit.")
      .value("unit_keeps_node", Sharing::unit_keeps_node,
             "Nodes' caches know nothing of each other: and the same one in every call.");
  nb::class_<Geometry>(m, "Geometry", "Where a file may be cut. All sizes in bytes.")
      .def(nb::new_(&make_geometry), "page_bytes"_a = 4096, "block_bytes"_a = 4096,
           "stripe_bytes"_a = 0, "sharing"_a = Sharing::any)
      .def_ro("page_bytes", &Geometry::page_bytes)
      .def_ro("block_bytes", &Geometry::block_bytes)
      .def_ro("stripe_bytes", &Geometry::stripe_bytes, "0: not striped, or not known.")
      .def_ro("sharing", &Geometry::sharing)
      .def_prop_ro("unit_bytes", &Geometry::unit, "The unit at which file domains are cut.");
}

}  // namespace

void bind_layout(nb::module_& m) {
  bind_loop_tree(m);
  bind_file_view(m);
  bind_geometry(m);
}

}  // namespace penstock::python
