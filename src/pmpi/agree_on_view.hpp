// What MPI_File_set_view asks for, and what all ranks decide of it: whether the library's own file
// is given the view, too (docs/decisions/0031, 0073).
#pragma once

#include <optional>
#include <string>

#include "engine/file.hpp"
#include "pmpi/held_view.hpp"
#include "pmpi/open_files.hpp"

namespace penstock::pmpi {

struct View {
  layout::FileView view;
  bool is_empty = false;
  int64_t served_bytes = engine::kWholeStream;
  std::string unserved_why;
};

View unserved_view(std::string why);

// nullopt of arguments that MPI does not allow.
std::optional<View> view_of(const ViewArguments& a, MPI_Comm quiet);

// What becomes of the library's own file.
enum class ForLibrary : uint8_t {
  same_view,   // it gets the view
  plain_view,  // it gets (0, MPI_BYTE, MPI_BYTE), and the view is held back
  nothing,     // it has that one, and the view is held back
  has_it,      // it has that one, and it is the program's
};

// The same on every rank.
struct Decision {
  bool all_plain = false;  // nothing of it is for the library to refuse, and the engine serves all
  bool all_bytes = false;  // every rank's is (0, MPI_BYTE, MPI_BYTE)
  ForLibrary library = ForLibrary::same_view;
};

// Collective. `hears_hints`: the program gives some that the library has not been told.
Decision agree_on_view(OpenFile& file, const ViewArguments& a, const std::optional<View>& view,
                       bool hears_hints);

}  // namespace penstock::pmpi
