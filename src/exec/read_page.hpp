// A part of the file on its way to those who want it: which of its bytes are wanted, and what came
// of reading them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/error.hpp"
#include "base/extent.hpp"
#include "io/reader.hpp"
#include "layout/coverage.hpp"

namespace penstock::exec {

// Wanted extents with a smaller hole between them are read as one, hole and all
// (docs/decisions/0024-collective-reads.md).
inline constexpr int64_t kReadOverBytes = int64_t{16} << 10;

struct ReadCounts {
  int64_t reads = 0;
  int64_t bytes = 0;  // that came from the file, wanted or not
};

class ReadPage {
 public:
  // A new extent, nothing wanted of it. `granule` divides its ends and every offset and length that
  // will be added to wanted(). After a failure there is no memory, and nothing can be read.
  Result<void> reset(Extent where, int64_t granule);

  Extent where() const noexcept { return where_; }
  layout::Coverage& wanted() noexcept { return wanted_; }
  bool usable() const noexcept { return usable_; }
  // memory()[i] is file byte where().begin + i. REQUIRES usable().
  const std::byte* memory() const noexcept { return memory_.data(); }

  // Reads what is wanted before file byte `end`, in file order, until something is missing; a
  // wanted byte that could not be read is zero afterwards, never what another page left there.
  // REQUIRES usable().
  void fill(io::ReadableFile& file, Off end, ReadCounts& counts);
  // The first wanted byte that was not read; nullopt: all were. Without an error the file ended.
  std::optional<Off> missing() const noexcept { return missing_; }
  const std::optional<Error>& error() const noexcept { return error_; }
  // REQUIRES missing().
  Off first_wanted() const noexcept { return clipped_.front().begin; }

 private:
  void clip_wanted(Off end);
  bool read(io::ReadableFile& file, std::span<const Extent> joined, ReadCounts& counts);
  bool read_one(io::ReadableFile& file, Extent e, ReadCounts& counts);
  void clear_rest(std::span<const Extent> wanted);

  AlignedBuffer memory_;
  layout::Coverage wanted_;
  std::vector<Extent> clipped_;  // of wanted_, what fill() reads
  Extent where_;
  bool usable_ = false;
  std::optional<Off> missing_;
  std::optional<Error> error_;
};

}  // namespace penstock::exec
