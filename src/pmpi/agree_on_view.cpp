#include "pmpi/agree_on_view.hpp"

#include <mpi.h>

#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>

#include "comm/agreement.hpp"
#include "exec/abandon.hpp"
#include "pmpi/calls_alone.hpp"
#include "pmpi/decode_datatype.hpp"

namespace penstock::pmpi {
namespace {

// Libraries take names in capital letters too, as a Fortran program may write them.
bool is_native(const char* datarep) {
  const std::string_view name = datarep;
#ifdef MPICH_VERSION
  if (name == "internal" || name == "INTERNAL") return true;  // ROMIO's is the native one
#endif
  return name == "native" || name == "NATIVE";
}

// HDF5 and PnetCDF put resized types beside others into one structure, and by the standard's rule
// for bounds (followed by Open MPI) its extent is then less than its span: a second tile would lie
// across the first, but nobody ever writes one. So the tile is given its span as extent, and only
// the first one is served.
Result<layout::LoopTree> spread(const layout::LoopTree& tree) {
  return layout::LoopTree::resized(tree, tree.lb(), tree.true_ub() - tree.true_lb());
}

// REQUIRES valid datatypes.
View make_view(const ViewArguments& a, MPI_Comm quiet) {
  if (!is_native(a.datarep)) return unserved_view("data representation " + std::string(a.datarep));
  MPI_Count etype_bytes = 0;
  PMPI_Type_size_x(a.etype, &etype_bytes);
  auto tree = decode_datatype(a.filetype, quiet);
  if (!tree) return unserved_view(tree.error().message());
  View result;
  // No byte can be written through an empty filetype, so any view of the right etype will do.
  result.is_empty = tree->size() == 0 && etype_bytes > 0;
  if (result.is_empty) tree = layout::LoopTree::bytes(etype_bytes);
  if (!result.is_empty && tree->is_monotone(1) && !tree->is_monotone(2)) {
    result.served_bytes = tree->size();
    if (tree = spread(*tree); !tree) return unserved_view(tree.error().message());
  }
  auto view = layout::FileView::make(a.displacement, etype_bytes, *std::move(tree));
  if (!view) return unserved_view(view.error().message());
  result.view = *std::move(view);
  return result;
}

// The library makes a list of 16 bytes for each block. Tests ask for less.
int64_t most_blocks() {
  static const int64_t most = [] {
    const char* const asked = std::getenv("PENSTOCK_TEST_VIEW_BLOCKS");
    return asked == nullptr ? int64_t{1024} : std::atoll(asked);
  }();
  return most;
}

// Nothing about it is for the library to refuse, and the engine can do all that is asked through it
// by one rank alone.
bool is_plain(const ViewArguments& a, const View& view) {
  return view.unserved_why.empty() && !view.is_empty && view.served_bytes == engine::kWholeStream &&
         a.displacement >= 0 && engine::why_view_unserved(view.view).empty();
}

bool is_bytes(const ViewArguments& a) {
  return a.displacement == 0 && a.etype == MPI_BYTE && a.filetype == MPI_BYTE;
}

// A rank could come to the library alone, and find it without the view: at the shared file pointer,
// which is the library's, or with reads that the library makes beside the program.
bool could_come_alone(const OpenFile& file) {
  const CallsAlone calls = calls_alone();
  return calls.at_shared_pointer || file.moved_shared_pointer ||
         (file.readable && calls.nonblocking_reads);
}

// What a rank brings to the decision.
struct Offer {
  bool plain = false, bytes = false, many = false;
  bool library_hears = true;
  int64_t hash = 0;  // of the view
};

Offer offer(const OpenFile& file, const ViewArguments& a, const std::optional<View>& mine,
            bool hears_hints) {
  if (!mine) return {};
  const Hash hash = mix(mine->view.hash(), uint64_t(a.displacement));
  return {is_plain(a, *mine), is_bytes(a), mine->view.filetype().blocks() > most_blocks(),
          hears_hints || could_come_alone(file), int64_t(hash >> 1)};
}

// Of views that are all plain. Held are those of which one rank's has very many blocks, and those
// that spare the library's call. Not where all ranks have the same one: then a rank may come to the
// shared pointer alone.
ForLibrary decide(bool differ, bool all_bytes, bool some_many, bool call_is_spared) {
  if (differ && call_is_spared) return ForLibrary::nothing;
  if (differ && some_many) return ForLibrary::plain_view;
  return all_bytes && call_is_spared ? ForLibrary::has_it : ForLibrary::same_view;
}

}  // namespace

View unserved_view(std::string why) {
  View view;
  view.unserved_why = std::move(why);
  return view;
}

std::optional<View> view_of(const ViewArguments& a, MPI_Comm quiet) {
  const bool valid =
      a.datarep != nullptr && is_committed(a.etype, quiet) && is_committed(a.filetype, quiet);
  if (!valid) return std::nullopt;
  try {
    return make_view(a, quiet);
  } catch (const std::bad_alloc&) {  // the others wait for what this rank says of its view
    return unserved_view("no memory for the file view");
  }
}

Decision agree_on_view(OpenFile& file, const ViewArguments& a, const std::optional<View>& view,
                       bool hears_hints) {
  if (file.writable ? !file.file->serves_independent() : file.file->serves_nothing()) return {};
  comm::Comm& comm = file.file->comm();
  const Offer mine = offer(file, a, view, hears_hints);
  comm::Agreement agreement;
  const auto some_not_plain = agreement.some(!mine.plain);
  const auto some_not_bytes = agreement.some(!mine.bytes);
  const auto some_many = agreement.some(mine.many);
  const auto some_hear = agreement.some(mine.library_hears);
  const auto same_view = agreement.alike(mine.hash);
  exec::or_abandon(agreement.reach(comm));
  if (agreement[some_not_plain]) return {};
  const bool all_bytes = !agreement[some_not_bytes];
  const bool call_is_spared = comm.size() > 1 && file.library_has_bytes && !agreement[some_hear];
  const bool differ = !agreement[same_view] || comm.size() == 1;
  return {true, all_bytes, decide(differ, all_bytes, agreement[some_many], call_is_spared)};
}

}  // namespace penstock::pmpi
