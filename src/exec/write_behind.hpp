// Independent writes that return when their bytes are accepted: they go straight to their places in
// file pages that the ranks of the node share, and a page leaves for the file as soon as it is
// full, or when its room is wanted, or at a flush. Neighbours' small pieces so become long writes,
// and no rank waits for another to bring them. (liao-2007, stage 2; inside a node it needs no first
// stage, since every rank reaches every page.)
//
// A rank's own writes enter the file in the order of its calls. Whole pages that are contiguous in
// memory are not copied: they are in the file when write() returns.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "comm/comm.hpp"
#include "exec/page_pool.hpp"
#include "exec/pipeline.hpp"
#include "exec/user_data.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"
#include "layout/geometry.hpp"

namespace penstock::exec {

// 0: what suits the file.
struct WriteBehindShape {
  int64_t page_bytes = 0;            // rounded up to 4 KiB
  int64_t limit_bytes_per_rank = 0;  // of pages that are not yet in the file
};

// How long a byte stays accepted and no more, where nobody says it: what a job that dies may lose.
inline constexpr double kWriteBehindSeconds = 5;

// liao-2007's bound.
inline constexpr int64_t kWriteBehindLimitBytes = int64_t{64} << 20;

class WriteBehind {
 public:
  struct Target {
    io::MechanismFile& file;
    WriteObserver* observer;  // or nullptr
    io::FileSync* sync;       // or nullptr
  };

  // Collective. Takes memory only as pages are filled.
  static Result<std::unique_ptr<WriteBehind>> make(comm::Comm& comm, WriteBehindShape shape,
                                                   const layout::Geometry& geometry);

  // Local. Returns when all bytes are accepted or in the file; prefix_bytes says how many. By one
  // thread at a time; another may flush meanwhile.
  WriteOutcome write(const Target& target, const WriteRequest& request);
  // Local. What any rank of the node had accepted is in the file, or is known to be lost.
  void flush(const Target& target);
  // Likewise what came so long ago or longer. By any thread.
  void flush_older(const Target& target, double seconds);

  // What the caller wrote itself, because no page could be had.
  void note_written(int64_t bytes);
  // Accepted is this rank's; written is its part, in the sum over ranks exact when nothing is under
  // way; losses are the node's.
  StagedNotes notes() const;
  int64_t page_bytes() const noexcept { return pool_->page_bytes(); }

 private:
  class Filling;

  WriteBehind(std::unique_ptr<PagePool> pool, double share);
  bool fill(const Target& target, Filling& filling, int64_t page, StreamRange part);
  std::optional<PagePool::Stay> pin(const Target& target, int64_t page);
  void make_room(const Target& target);
  int64_t write_whole_pages(const Target& target, Filling& filling, Off offset, int64_t at);
  void evict(const Target& target, Extent where);
  void leave(const Target& target, const PagePool::Stay& stay);
  void write_page(const Target& target, const PagePool::Stay& stay);
  static std::optional<io::Fault> write_extent(const Target& target, Extent where,
                                               std::span<const std::byte> bytes, Spent& spent);
  static Result<void> follow(const Target& target, Extent where, int64_t bytes, Spent& spent);

  const std::unique_ptr<PagePool> pool_;
  const double share_;                  // where this rank begins a flush: 0 .. 1 of the pages
  std::optional<PagePool::Stay> last_;  // that was filled

  mutable std::mutex mutex_;  // of the notes
  StagedNotes notes_;
  int64_t lost_here_ = 0;  // by pages that this rank wrote, whoever brought the bytes
};

}  // namespace penstock::exec
