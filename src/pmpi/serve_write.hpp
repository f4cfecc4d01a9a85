// A write or a collective read of the program, translated and served by the engine: what the
// blocking, the non-blocking and the split functions share. Errors are returned here and raised by
// those.
#pragma once

#include <mpi.h>

#include <mutex>
#include <optional>
#include <string_view>

#include "pmpi/errors.hpp"
#include "pmpi/job.hpp"
#include "pmpi/open_files.hpp"
#include "pmpi/pass.hpp"

namespace penstock::pmpi {

struct WriteArguments {  // or of a read, whose buffer is the program's to be written
  MPI_File handle;
  MPI_Offset offset;  // in etypes; of no meaning at the individual pointer
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

enum class Pointer : uint8_t { given, individual };
// Whether all ranks of the file are in this call. `unsynchronised`: they are, but none may wait for
// another, so they have to decide alike without asking.
enum class Together : uint8_t { no, yes, unsynchronised };
// When the engine comes back: with the bytes in the file; with the bytes copied; or in the middle
// of a collective write, whose end tells what it came to.
enum class Return : uint8_t { written, staged, begun };

// REQUIRES that the engine serves this kind of call on this file, and the lock of its kind. The
// individual pointer, where it is used, has moved when this returns, by what was asked for. Of a
// write that is begun: what is wrong with it on this rank, for told_here() at its end.
Served serve_write(WriteArguments a, OpenFile& file, engine::CallKind kind, Pointer pointer,
                   Together together, Return when);

// What to tell of a call that came to `agreed`: wrong arguments as the library says it, unless
// something worse has happened to another rank.
int told_here(int wrong, ErrorClass agreed, Together together);

// The same for a read: a collective one, or one of this rank alone. REQUIRES that the engine serves
// it.
// `starts`: by a function that returns a request.
Served serve_read(WriteArguments a, OpenFile& file, Pointer pointer, Together together,
                  bool starts = false);
// Collective: whether the engine serves this collective read.
bool serves_read(const WriteArguments& a, OpenFile& file, Pointer pointer);

// How many etypes of the view it asks for; of wrong arguments nothing.
std::optional<int64_t> etypes_of(const WriteArguments& a, const OpenFile& file);

void set_status(MPI_Status* status, int64_t bytes);

// Raises what went wrong through the file's error handler, and returns it.
int raise_served(MPI_File handle, const Served& served);

// Whether the engine serves this write: the kind of call, and how far into the view it goes.
// Collective when the call is.
bool serves(const WriteArguments& a, OpenFile& file, Pointer pointer, Together together);

// The shape of a taken entry point: `serve(file)` when the engine serves it, `pass` when not.
template <class Serve>
int take_read_or_pass(const WriteArguments& a, int entry, const Words& as_given, Pointer pointer,
                      Serve serve) noexcept {
  return protect(kEntries[size_t(entry)].name.data(), [&] {
    OpenFile* const file = open_files().find(a.handle);
    if (file == nullptr) return pass(entry, as_given);
    const std::lock_guard lock(file->together);
    if (!serves_read(a, *file, pointer)) return pass(entry, as_given);
    const int rc = serve(*file);
    job().tick();
    return rc;
  });
}

template <class Serve>
int take_or_pass(const WriteArguments& a, int entry, const Words& as_given, Pointer pointer,
                 Together together, Serve serve) noexcept {
  return protect(kEntries[size_t(entry)].name.data(), [&] {
    OpenFile* const file = open_files().find(a.handle);
    if (file == nullptr) return pass(entry, as_given);
    std::unique_lock lock(together == Together::yes ? file->together : file->alone);
    if (!serves(a, *file, pointer, together)) {
      // Of iwrite_all and its like pass() takes the other lock; else the view stays what was seen.
      if (together == Together::unsynchronised) lock.unlock();
      return pass(entry, as_given);
    }
    const int rc = serve(*file);
    job().tick();
    return rc;
  });
}

}  // namespace penstock::pmpi
