// --verify: remembers checksums of what this rank's program hands over, call by call, as it lies in
// the program's memory, and reads the same bytes back from the file at close: whatever became of
// them in between, on whichever rank, is seen.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "comm/comm.hpp"
#include "engine/interval_index.hpp"
#include "exec/pipeline.hpp"
#include "exec/user_data.hpp"
#include "io/reader.hpp"
#include "layout/file_view.hpp"

namespace penstock::engine {

struct Verification {
  int64_t verified_bytes = 0;  // read back and equal
  // Written again in part, by another rank or the MPI library later, not readable, or behind the
  // last offset of any file.
  int64_t unverified_bytes = 0;
  // Of the unverified: they differ, and who may have written them has no part in the handle, or
  // could not be asked.
  int64_t unasked_bytes = 0;
  std::optional<Error> why_unread = {};  // the first reason why some could not be read
  int64_t mismatched_bytes = 0;          // differ from what was handed over: the file is wrong
};

class VerifiedTogether;

class Verifier {
 public:
  // A call that writes, from where it begins. Of no use where nothing is verified: nullptr.
  class Call {
   public:
    explicit Call(Verifier* verifier)
        : verifier_(verifier), began_(verifier == nullptr ? 0 : verifier->next_moment()) {}
    // The call is over; its memory is as it was. `in_file`: its bytes are there, or accepted.
    void ended(const exec::WriteRequest& request, bool in_file) const {
      if (verifier_ != nullptr) verifier_->remember(request, began_, in_file);
    }

   private:
    Verifier* verifier_;
    int64_t began_;
  };

  // What ends a call whose end comes later, when its memory is the program's again.
  struct Begun {
    size_t first = 0;  // of the parts that may be its own
    int64_t began = 0;
  };
  Begun begun(const exec::WriteRequest& request);
  void ended(const Begun& call, bool in_file);

  // Collective. `file`: null where this rank cannot read it back, whose bytes then stay unverified.
  // `excused`: bytes may have been lost and told, or changed past the engine (a pass-through write,
  // set_size), so that a difference proves nothing. `beside`: holds this one. Once: afterwards it
  // knows where was written, and not what.
  Verification check(comm::Comm& comm, io::ReadableFile* file, const VerifiedTogether& beside,
                     bool excused);
  // What a file that is never closed leaves.
  int64_t not_yet_verified_bytes() const;
  // Has this rank written some of it, ever?
  bool wrote(Extent e) const;

 private:
  // Of one call, or of a part of it that has blocks of one size: `range` in blocks from its begin
  // on, the last may be shorter.
  struct Part {
    size_t view;  // of views_
    StreamRange range;
    Extent where;  // the smallest that holds it
    int64_t block_bytes;
    size_t first_block;    // of blocks_
    int64_t began, ended;  // moments: which calls were over before others began
    bool in_file;
  };
  struct Block {
    size_t part;
    StreamRange range;
  };
  struct Piece {  // adjacent bytes of a block, of a list of them
    Extent where;
    size_t block;
  };
  class Pieces;

  int64_t next_moment();
  void remember(const exec::WriteRequest& request, int64_t began, bool in_file);
  void add(const exec::WriteRequest& request, int64_t began, bool in_file);
  std::optional<size_t> keep(const layout::FileView& view);
  bool add_parts(const exec::WriteRequest& request, StreamRange left, int64_t began, bool in_file);
  void add_blocks(exec::UserData& data, StreamRange range, int64_t block_bytes);
  void forget(int64_t bytes);
  bool touches(const Part& part, Extent e) const;
  const IntervalIndex& index() const;
  int64_t written_again(const Block& block) const;
  std::vector<Block> read_back(io::ReadableFile& file, Verification& v) const;
  int64_t remembered_bytes() const;
  Result<std::vector<bool>> answered(comm::Comm& comm, std::span<const Piece> asked, size_t most,
                                     const VerifiedTogether& beside) const;
  Result<std::vector<bool>> explained(comm::Comm& comm, const std::vector<Block>& differing,
                                      const VerifiedTogether& beside) const;

  mutable std::mutex mutex_;
  int64_t moment_ = 0;
  std::vector<layout::FileView> views_;
  std::multimap<Hash, size_t> view_of_hash_;
  size_t views_memory_bytes_ = 0;
  std::vector<Part> parts_;
  std::vector<Hash> blocks_;                    // of all parts
  mutable std::optional<IntervalIndex> index_;  // over parts_; made when it is asked for
  bool wrote_anywhere_ = false;                 // more than is remembered
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
