// The hints that the MPI library gets for a file that Penstock may write.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "pmpi/open_files.hpp"

namespace penstock::pmpi {

enum class Sieving : uint8_t {
  as_given,      // the file is the library's
  off_if_given,  // the library was told at the open, and the program may say otherwise now
  always_off,
};

// The program's hints, with ROMIO's data sieving of writes off (docs/decisions/0065): it reads a
// range, fills in what a strided write brings and writes all of it back, under a lock of the file
// that Penstock's writes do not take.
class WithoutSieving {
 public:
  WithoutSieving(MPI_Info given, Sieving sieving);
  ~WithoutSieving();
  WithoutSieving(const WithoutSieving&) = delete;

  MPI_Info info() const noexcept { return ours_ != MPI_INFO_NULL ? ours_ : given_; }

 private:
  MPI_Info given_, ours_ = MPI_INFO_NULL;
};

// Open MPI's MPI_File_set_info does not reach its ROMIO.
#ifdef OPEN_MPI
inline constexpr bool kOpenAloneTakesHints = true;
#else
inline constexpr bool kOpenAloneTakesHints = false;
#endif

// Of hints that come after the open. `file`: nullptr where it is not ours.
inline Sieving sieving_later(const OpenFile* file) noexcept {
  const bool may_sieve = file == nullptr || file->may_sieve;
  return may_sieve ? Sieving::as_given : Sieving::off_if_given;
}

}  // namespace penstock::pmpi
