// --verify: remembers a checksum of every extent that this rank wrote, and reads
// the file back at close. An extent that is written again replaces what it covers.
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
  int64_t mismatched_bytes = 0;  // differ from what was written: the file is wrong
};

class VerifiedTogether;

class Verifier final : public exec::WriteObserver {
 public:
  void writing(Off offset, std::span<const std::byte> bytes) override;
  void missed(Extent e) override;

  // Collective. `file`: null where this rank cannot read it back, whose bytes then stay unverified.
  // `others_wrote`: bytes may have been changed past the engine (a pass-through write, set_size),
  // so that a difference proves nothing. `beside`: holds this one.
  Verification check(comm::Comm& comm, io::ReadableFile* file, const VerifiedTogether& beside,
                     bool others_wrote);
  // Has this rank written some of it, ever?
  bool wrote(Extent e) const;

 private:
  struct Piece {
    int64_t bytes;
    Hash hash;
  };
  void forget(Extent e);  // what is covered in part becomes unverified
  void note_written(Extent e);
  std::vector<Extent> read_back(io::ReadableFile& file, Verification& v) const;
  int64_t remembered_bytes() const;

  mutable std::mutex mutex_;  // writing and missed come from two threads
  std::map<Off, Piece> pieces_;
  std::map<Off, Off> written_;   // begin and end of what lies apart; only grows
  bool wrote_anywhere_ = false;  // more than is remembered
  int64_t unverified_bytes_ = 0;
};

// Of all handles of this process on one file, the closed ones too: what was written by one of them
// is not the damage of another. Safe to use from several threads.
class VerifiedTogether {
 public:
  // By so many ranks. Those of them that have none of a smaller handle's write past it.
  void opened(int ranks);
  bool others_may_write(int ranks) const;
  void add(std::shared_ptr<const Verifier> verifier);
  bool wrote(Extent e, const Verifier* except) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Verifier>> all_;
  int most_ranks_ = 0;
};

}  // namespace penstock::engine
