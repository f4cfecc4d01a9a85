// Independent writes that return when their bytes are accepted: they go straight to their places in
// file pages that the ranks of the node share, and a page leaves for the file as soon as it is
// full, or when its room is wanted, or at a flush. Neighbours' small pieces so become long writes,
// and no rank waits for another to bring them. (liao-2007, stage 2; inside a node it needs no first
// stage, since every rank reaches every page. Between nodes exec/shipping.hpp is that stage.)
//
// Each page has one rank that writes it, its owner (docs/decisions/0029): by its I/O thread, while
// the program computes, or by who waits for its own page anyway. Where an owner has no thread, or
// its process has ended, others write its pages, and the notes say how many.
//
// A rank's own writes enter the file in the order of its calls. Whole pages that are contiguous in
// memory, and of which nothing is in the pool, are not copied: they are in the file when write()
// returns. A non-blocking write copies these too, and leaves what is full to the threads.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bell.hpp"
#include "base/tally.hpp"
#include "base/ticks.hpp"
#include "comm/comm.hpp"
#include "exec/page_owners.hpp"
#include "exec/page_pool.hpp"
#include "exec/pipeline.hpp"
#include "exec/seldom.hpp"
#include "exec/shipping.hpp"
#include "exec/since_sync.hpp"
#include "exec/user_data.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"
#include "layout/geometry.hpp"

namespace penstock::exec {

class Stager;

// Who writes a page that is full, in one stay: nobody else has written to it, or will, unless the
// program writes a byte twice. What leaves in parts is its owner's in any case.
enum class FullPage : uint8_t {
  as_cores_allow,  // by its owner's thread where each rank has a second core, else by the ranks
  by_owner,
  by_ranks,  // by who is the first to take a new page
};

// 0: what suits the file.
struct WriteBehindShape {
  int64_t page_bytes = 0;            // rounded up to 4 KiB
  int64_t limit_bytes_per_rank = 0;  // of pages that are not yet in the file
  FullPage full = FullPage::as_cores_allow;
  // Between nodes; half of the limit is for loads there.
  Progress progress = Progress::calls;
  int64_t load_bytes = 0;
  int stages = 2;  // 1: each write is sent to its owners at once; but not by calls
  // Of pages, whatever the limit says, but for the few that there are always. The same on every
  // rank.
  int64_t most_bytes_per_node = std::numeric_limits<int64_t>::max();
  // What a limit leaves of memory, before pages take so many bytes; nullptr: there is no limit.
  std::optional<int64_t> (*memory_left)(int64_t taking) = nullptr;
};

// How long a byte stays accepted and no more, where nobody says it: what a job that dies may lose.
inline constexpr double kWriteBehindSeconds = 5;

// liao-2007's bound.
inline constexpr int64_t kWriteBehindLimitBytes = int64_t{64} << 20;

class WriteBehind {
 public:
  struct Target {
    io::MechanismFile& file;
    io::FileSync* sync;        // or nullptr
    Stager* thread = nullptr;  // whose thread this is, if it is an I/O thread
  };

  // Collective. Takes memory only as pages are filled. `bell`: of a thread that will call serve()
  // whenever it is rung, and about twice a second; nullopt: there is none.
  static Result<std::unique_ptr<WriteBehind>> make(comm::Comm& comm, WriteBehindShape shape,
                                                   const layout::Geometry& geometry,
                                                   const std::optional<Bell::Address>& bell);

  ~WriteBehind();

  // Local. For another handle of this process on the same file (docs/decisions/0042): it fills the
  // same pages, and each writes them and is told of what they lost. nullptr: several nodes share
  // the file, or this one has let go.
  std::unique_ptr<WriteBehind> beside();
  // Local. Writes no page any more; others may have pages yet. REQUIRES that what was accepted here
  // was flushed, and that nobody is in another call of this handle.
  void let_go();

  // Local. Returns when all bytes are accepted or in the file; prefix_bytes says how many. By one
  // thread at a time; another may flush meanwhile.
  WriteOutcome write(const Target& target, const WriteRequest& request);
  // The short way of a small write(): a run of the file, from memory that lies in one piece, into
  // the page that the last call of this rank filled. Allocates nothing, and locks nothing. When it
  // was accepted; nullopt: it goes another way, and nothing was done. `begin`: since when this call
  // takes. REQUIRES a run that does not decrease; by one thread at a time, with
  // write().
  std::optional<Ticks> add(const Target& target, const layout::Run& run, const std::byte* bytes,
                           Ticks begin, Returns returns);
  // Local. What any rank of the node had accepted is in the file, or is known to be lost, but for
  // loads of other ranks that have not left it.
  void flush(const Target& target);
  // How often this rank has waited for ranks of other nodes.
  int64_t waited() const noexcept { return waited_; }
  // Collective. What any rank had accepted.
  void flush_together(const Target& target);
  // Local, before a flush that others have not come to: for a moment they may complete the pages
  // that are there, which leave in parts otherwise.
  void let_others_complete(const Target& target);
  // By the thread: writes pages of this rank that somebody wants.
  void serve_asked(const Target& target);
  // Likewise those that came `seconds` ago or longer, and what nobody else will write.
  void serve_older(const Target& target, double seconds);

  // Where the last byte ends that the node's ranks had accepted and that is not in the file yet, or
  // a little before this returns; 0: all is in the file.
  Off end() const;

  // --- Between nodes ---
  // nullptr: there is one node, or why_not_shipped() says why pages of several do not meet.
  Shipping* shipping() const noexcept { return shipping_.get(); }
  const std::string& why_not_shipped() const noexcept { return why_not_shipped_; }
  // By any thread: takes in what other nodes sent. Whether there was anything.
  bool step(const Target& target);
  // Local. From now on no other rank is asked anything, and all that this one had accepted counts
  // as written by the end of its next flush, but for what is lost.
  void end_alone(const Target& target);

  // Of syncs that this handle has not asked for: what they made certain, and what they lost. How
  // many have failed.
  int64_t settle(const Target& target);
  // What the caller wrote itself, alone, because no page could be had. `writes`: before it did, and
  // after settle().
  void note_written(const Target& target, const WriteOutcome& outcome, Extent where,
                    int64_t writes);
  int64_t writes() const { return since_sync_.writes(); }
  // Accepted is this rank's; written is its part, in the sum over ranks exact when nothing is under
  // way; losses are the node's.
  StagedNotes notes() const;
  int64_t failures() const;  // of the notes, without making them
  int64_t page_bytes() const noexcept { return pool_->page_bytes(); }
  // What may wait on a node.
  int64_t most_bytes() const noexcept { return pool_->most_bytes(); }
  int pages_in_memory() const noexcept { return pool_->used(); }  // since it was made, of the node

 private:
  class Filling;
  class NodePages;

  WriteBehind(std::shared_ptr<PagePool> pool, std::shared_ptr<PageOwners> owners, FullPage full,
              int ahead, int guest);
  int64_t written_beside_others(const StagedNotes& own, bool settled) const;
  bool sends_at_once() const noexcept;
  bool keeps_here(const Filling& filling, int64_t page, StreamRange part) const;
  void let_kept_leave(const Target& target, int64_t page);
  int64_t ship(const Target& target, Filling& filling, int64_t page, StreamRange part);
  void put(const Target& target, const layout::Run& run, const std::byte* bytes);
  void put_at_once(const Target& target, const layout::Run& run, const std::byte* bytes);
  void flush_pages(const Target& target);
  static int64_t put_into(PagePool::Place& place, const layout::Run& run, const std::byte* bytes);
  bool fill(const Target& target, Filling& filling, int64_t page, StreamRange part);
  void expect_stores(const Filling& filling, const PagePool::Stay& stay, StreamRange part);
  bool is_to_be_told(const layout::Run& run) const noexcept;
  bool tell_dirty() noexcept;
  std::optional<PagePool::Stay> pin_last(const Target& target, int64_t page, Returns returns);
  std::optional<PagePool::Stay> pin(const Target& target, int64_t page, Returns returns);
  bool may_take_memory() const;
  bool others_complete_a_page(uint32_t seen, Returns returns);
  bool is_room_scarce() const;
  void let_other_nodes_follow(int64_t page, Returns returns);
  bool waits_for_other_nodes();
  void make_room(const Target& target);
  int64_t write_whole_pages(const Target& target, Filling& filling, Off offset, int64_t at);
  int64_t pages_that_may_pass(int64_t first, int64_t count) const;
  int64_t pages_elsewhere(int64_t first, int64_t count) const;

  template <class Wanted>
  std::vector<PagePool::Stay> stays(Wanted&& wanted) const;
  std::optional<PagePool::Stay> last_before(int64_t page) const;
  bool is_mine(int64_t page) const noexcept { return owners_->owner_of(page) == owners_->mine(); }
  bool are_being_filled(double seconds) const;
  void send_off(const Target& target, const PagePool::Stay& stay);
  void send_full(const Target& target, const PagePool::Stay& stay, Returns returns);
  void write_offered(const Target& target);
  void ask_for(const Target& target, const PagePool::Stay& stay);
  void wait_until_left(const Target& target, const PagePool::Stay& stay);
  void relieve(const Target& target);
  bool take(const PagePool::Seen& seen);
  void note_taken_over();
  void leave(const Target& target, const PagePool::Stay& stay);
  void write_and_release(const Target& target, const PagePool::Stay& stay);
  void write_page(const Target& target, const PagePool::Stay& stay);
  void lose_page(const PagePool::Stay& stay);
  static std::optional<io::Fault> write_extent(const Target& target, Extent where,
                                               std::span<const std::byte> bytes, Spent& spent);
  struct Leaving;
  void write_dirty(const Target& target, Leaving& page, std::span<const Extent> extents);
  struct Followed {
    Result<bool> synced;
    int64_t noted;  // the turn of since_sync_ that the bytes were noted in
  };
  Followed follow(const Target& target, Extent where, int64_t bytes, int64_t failures,
                  Spent& spent);
  void follow_or_lose(const Target& target, Extent where, int64_t bytes, int64_t failures,
                      Spent& spent);
  SinceSync::Bytes take_since_sync(const Target& target);
  void lose(const SinceSync::Bytes& lost, int64_t told, const Error& why);

  // Of all handles of this process on the file.
  const std::shared_ptr<PagePool> pool_;
  const std::shared_ptr<PageOwners> owners_;
  const FullPage full_;  // not as_cores_allow
  const int ahead_;      // pages in memory before this rank looks for others to complete some
  std::optional<int64_t> (*memory_left_)(int64_t taking) = nullptr;
  std::unique_ptr<Shipping> shipping_;
  std::string why_not_shipped_;
  int stages_ = 2;
  const int guest_;  // of the pool; kNoGuest: pages are pinned
  static constexpr int kNoGuest = -1;
  std::optional<PagePool::Place> last_;  // that was filled; this guest has come
  Extent reach_;                         // of it, in which this rank's stores do not fault
  int64_t untold_ = 0;  // newly dirty bytes of it, which the pool has not been told
  // shipping()'s settles() when bytes of another node's page last came to this node's pages; none:
  // these have none of them that this rank brought.
  std::optional<int64_t> kept_;
  // For pages that others complete: of this node, and of other nodes, with a higher price each.
  Seldom looks_{8}, waits_{12};
  std::atomic<int64_t> waited_ = 0;

  // By add().
  struct Added {
    Tally<int64_t> bytes, over;  // over: where bytes were that were to be written anyway
    Tally<Ticks> pack;
  };
  Added added_;

  SinceSync since_sync_;
  mutable std::mutex mutex_;  // of the notes
  StagedNotes notes_;
  bool ended_alone_ = false;
  std::atomic<bool> gone_ = false;
  int64_t lost_here_ = 0;  // by pages that this rank wrote, whoever brought the bytes
};

}  // namespace penstock::exec
