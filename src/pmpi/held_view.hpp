// A view that the engine has, and that the library's own file has not been given yet: the library
// makes a list of every block of it (docs/decisions/0031).
#pragma once

#include <mpi.h>

namespace penstock::pmpi {

struct OpenFile;

// The arguments of MPI_File_set_view.
struct ViewArguments {
  MPI_Offset displacement;
  MPI_Datatype etype, filetype;
  const char* datarep;
  MPI_Info info;
};

// Keeps a datatype of the program, which may free it, without a copy: a type made of none of it
// holds on to it.
class HeldType {
 public:
  explicit HeldType(MPI_Datatype type);
  ~HeldType();
  HeldType(const HeldType&) = delete;

  // The type once more, committed; a derived one is the caller's to free.
  MPI_Datatype again() const;

 private:
  MPI_Datatype type_;    // of a predefined type, itself
  MPI_Datatype holder_;  // of a derived one, what holds on to it
};

class HeldView {
 public:
  explicit HeldView(const ViewArguments& view);
  ~HeldView();
  HeldView(const HeldView&) = delete;

  // What MPI_File_get_view says of it.
  void tell(MPI_Offset* displacement, MPI_Datatype* etype, MPI_Datatype* filetype,
            char* datarep) const;
  // Collective: the library's own MPI_File_set_view.
  int give(MPI_File handle) const;

 private:
  MPI_Offset displacement_;
  HeldType etype_, filetype_;
  MPI_Info info_ = MPI_INFO_NULL;
};

// Whether the library took `type` for a view: a valid one, and committed. Asks the library, by a
// communicator on which errors are returned (OpenFile::quiet()).
bool is_committed(MPI_Datatype type, MPI_Comm quiet);

// Collective: gives the library's file the view that it has not got yet, if there is one, with the
// individual pointer where it is. A failure on any rank is one on all, and the view is still held.
int give_held_view(MPI_File handle, OpenFile& file);

}  // namespace penstock::pmpi
