// --verify: remembers checksums of every extent that this rank wrote, and reads the file back at
// close. An extent that is written again replaces what it covers; the rest stays remembered, in
// whole blocks.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/hash.hpp"
#include "comm/comm.hpp"
#include "exec/pipeline.hpp"
#include "io/reader.hpp"

namespace penstock::engine {

struct Verification {
  int64_t verified_bytes = 0;  // read back and equal
  int64_t unverified_bytes =
      0;  // written again in part, by another rank or the MPI library later, or not readable
  // Of the unverified: they differ, and who may have written them has no part in the handle.
  int64_t unasked_bytes = 0;
  int64_t mismatched_bytes = 0;  // differ from what was written: the file is wrong
};

class VerifiedTogether;

class Verifier final : public exec::WriteObserver {
 public:
  void writing(Off offset, std::span<const std::byte> bytes) override;
  void missed(Extent e) override;

  // Collective. `file`: null where this rank cannot read it back, whose bytes then stay unverified.
  // `library_wrote`: bytes may have been changed past the engine (a pass-through write, set_size),
  // so that a difference proves nothing. `beside`: holds this one.
  Verification check(comm::Comm& comm, io::ReadableFile* file, const VerifiedTogether& beside,
                     bool library_wrote);
  // What a file that is never closed leaves.
  int64_t not_yet_verified_bytes() const;
  // Has this rank written some of it, ever?
  bool wrote(Extent e) const;

 private:
  struct Piece {
    int64_t bytes;
    int64_t block_bytes;  // the last may be shorter
    std::vector<Hash> blocks;
  };
  int64_t next_block_bytes() const noexcept;
  void remember(Off offset, std::span<const std::byte> bytes, int64_t block_bytes);
  void insert(Off offset, Piece piece);
  void forget(Extent e);  // a block that is covered in part becomes unverified
  int64_t keep(Off begin, const Piece& old, int64_t first, int64_t last);
  void note_written(Extent e);
  std::vector<Extent> read_back(io::ReadableFile& file, Verification& v) const;
  int64_t remembered_bytes() const;
  std::vector<int64_t> explained(comm::Comm& comm, std::span<const Extent> differing, size_t most,
                                 const VerifiedTogether& beside) const;

  mutable std::mutex mutex_;  // writing and missed come from two threads
  std::map<Off, Piece> pieces_;
  size_t blocks_ = 0;            // of all pieces
  std::map<Off, Off> written_;   // begin and end of what lies apart; only grows
  bool wrote_anywhere_ = false;  // more than is remembered
  int64_t unverified_bytes_ = 0;
};

// Of all handles of this process on one file, the closed ones too: what was written by one of them
// is not the damage of another. Safe to use from several threads.
class VerifiedTogether {
 public:
  // By so many ranks of the job's. Those that have none of a smaller handle's write past it.
  void opened(int ranks, int job_ranks);
  bool others_may_write(int ranks) const;
  // By the MPI library or a handle that is not verified; how often, since the first was opened.
  void written_past();
  int64_t times_written_past() const;
  void add(std::shared_ptr<const Verifier> verifier);
  bool wrote(Extent e, const Verifier* except) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Verifier>> all_;
  int most_ranks_ = 0;
  int64_t times_written_past_ = 0;
};

}  // namespace penstock::engine
