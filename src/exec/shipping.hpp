// Bytes for file pages that belong to ranks of other nodes: from their sub-buffers to the pages of
// the owner's node (docs/decisions/0030). Page i belongs to rank i mod n.
//
// A rank's own writes reach a page in the order of its calls: a page has one owner, and loads of
// one rank to one owner arrive in order. What is kept here instead goes to this node's own pages,
// and no load goes to that owner before a collective call has flushed these; nor does it before the
// owner has flushed what was sent to it, if the bytes could be the same (docs/decisions/0035).
//
// Thread-safe; of the collective calls one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "comm/comm.hpp"
#include "exec/node_map.hpp"
#include "exec/pipeline.hpp"
#include "exec/progress.hpp"
#include "exec/put_loads.hpp"
#include "exec/sub_buffers.hpp"
#include "layout/cursor.hpp"
#include "layout/geometry.hpp"

namespace penstock::exec {

// liao-2007's are 64 KiB, which MPI libraries do not send at once: the receiver has to come to it
// first, and with an I/O thread on each side that is long (docs/decisions/0080).
inline constexpr int64_t kSubBufferBytes = int64_t{32} << 10;

class Shipping {
 public:
  struct Shape {
    Progress progress = Progress::calls;
    int64_t load_bytes = kSubBufferBytes;
    int64_t limit_bytes = 0;  // of all loads that are here or on their way
    // Where units belong to a node, nobody else writes a whole page of its pages either.
    layout::Sharing sharing = layout::Sharing::any;
  };

  // The pages of this node, as they take in what comes.
  class Pages {
   public:
    virtual ~Pages() = default;
    // REQUIRES that the run lies in one page.
    virtual void put(const layout::Run& run, const std::byte* bytes) = 0;
    virtual void flush() = 0;  // all that they hold is in the file, or known to be lost
    virtual bool holds(const layout::Run& run) const = 0;  // it lies in one page
    virtual bool empty() const = 0;
    virtual int64_t failures() const = 0;  // of its losses
    virtual StagedNotes losses() const = 0;
  };
  // A stream of bytes on its way into the file.
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual layout::Run run_at(StreamRange range) = 0;  // the longest at its beginning
    virtual void pack(std::byte* out, StreamRange range) = 0;
  };

  // Collective. Where not every rank can do as asked, by calls: why_calls() says so.
  static Result<std::unique_ptr<Shipping>> make(comm::Comm& comm, const Shape& shape);
  Shipping(const Shipping&) = delete;

  Progress progress() const noexcept { return progress_; }
  const std::string& why_calls() const noexcept { return why_calls_; }
  bool owners_alone() const noexcept {
    return shape_.sharing != layout::Sharing::any && progress_ == Progress::thread;
  }
  // Collective, before the first byte.
  void move_by_calls(std::string why);

  // --- Local ---
  int owner_of(int64_t page) const noexcept { return int(page % comm_.size()); }
  bool is_of_another_node(int64_t page) const noexcept { return is_foreign(owner_of(page)); }
  // How many bytes of this part of a page it has taken, from the beginning. The rest goes to the
  // pages of this node.
  int64_t take(int64_t page, Stream& stream, StreamRange part, Pages& pages);
  // Whether this rank may write the whole page itself: nothing of it is on its way elsewhere.
  bool may_pass(int64_t page) const;
  // Whether take() leaves what comes for it to the pages of this node, until a collective call.
  bool stays_here(int64_t page) const;
  // How many settle() have begun; and whether one is over that began after settles() had said so.
  int64_t settles() const;
  bool settled_since(int64_t settles) const;
  // What this rank has brought is in the file, or known to be lost; and what this node's pages
  // held.
  void flush(Pages& pages);
  // What came so long ago or longer is on its way, if nobody else is in here. By any thread.
  void send_older(double seconds, Pages& pages);
  // What send_older() has written though it could not send it is on its way. In each write.
  void put_late();
  // Likewise all that may leave at once, also loads that are not full. REQUIRES !Progress::calls.
  void send_at_once();
  // Takes in what has come. Whether anything had. By any thread. REQUIRES !Progress::calls.
  bool step(Pages& pages);
  // Whether a collective call takes in what others send, and something came within so many seconds:
  // pages that are written meanwhile would be written again for what comes next. By any thread.
  bool moving_together(double seconds) const noexcept;
  // For good: from now on everything goes to the pages of this node, what was not received too.
  void end(Pages& pages);
  bool empty() const;

  // --- Collective ---
  // What any rank has brought is in the file, or known to be lost, and all know the worst of the
  // losses that were not told yet.
  void settle(Pages& pages);

  // The last call, behind a settle().
  void close();

  // Losses that other nodes told of, and what became of shipping itself.
  void add_losses(StagedNotes& to) const;
  int64_t failures() const;  // that it would add
  Traffic traffic() const;

 private:
  Shipping(comm::Comm& comm, const Shape& shape, NodeMap map,
           std::unique_ptr<comm::Parcels> parcels, std::unique_ptr<PutLoads> put);
  bool is_foreign(int owner) const noexcept { return map_.node_of(owner) != node_; }
  Load* load_for(int owner, Pages& pages, std::unique_lock<std::mutex>& lock);
  bool make_room(int owner, Pages& pages);
  bool make_room_by_rma(int owner, Pages& pages);
  void send(int owner);
  void send_load(int owner, Load load);
  void put_out(int owner, PutLoads::Which which);
  void send_word(int to, ParcelKind kind);
  void answer(int to, const Pages& pages);
  void take_answer(const comm::Parcel& answer);
  void keep_here(int owner, Pages& pages);
  void keep_all_here(Pages& pages);
  void put(std::span<const std::byte> parcel, Pages& pages);
  bool progress_locked(Pages& pages);
  bool progress_parcels(Pages& pages);
  bool receive_one(Pages& pages);
  bool collect_delivered();
  void collect_last();
  bool write_older_put(double then_s, Pages& pages);
  void write_behind_put(int owner, Pages& pages);
  bool progress_put(Pages& pages);
  bool take_out(Pages& pages);
  void take_in(comm::Parcel parcel, Pages& pages);
  void give_up(Pages& pages);
  struct Facts {
    bool any = false;       // somebody has bytes for another node, or asked for some
    bool may_lose = false;  // some node's pages do, or have
  };
  bool has_any() const;
  Facts meet(const Pages& pages);
  void move_all(Pages& pages, bool any);
  bool have_parcels();
  void keep_for_good(Pages& pages);
  void bring_home(Pages& pages);
  bool some_is_put(Pages& pages);
  void send_all();
  void exchange(Pages& pages);
  bool has_news(const Pages& pages) const { return pages.failures() > shared_failures_; }
  void share(const Pages& pages);
  void note_told(std::span<const int64_t> words);
  void ask_owners();
  bool was_put(int owner, Extent where) const;
  void await(const std::vector<int>& owners, Pages& pages, std::unique_lock<std::mutex>& lock);
  void keep_behind_put(Pages& pages, std::unique_lock<std::mutex>& lock);
  void until_settled(std::unique_lock<std::mutex>& lock) const;
  Result<void> status() const;
  void note_failure(const Error& error);

  comm::Comm& comm_;
  const Shape shape_;
  const NodeMap map_;
  const int node_;
  Progress progress_;
  std::string why_calls_;

  mutable std::mutex mutex_;                // of all that follows; held while loads are put in
  std::unique_ptr<comm::Parcels> parcels_;  // nullptr: none were needed yet
  std::string why_none_;                    // could be had
  std::unique_ptr<PutLoads> put_;           // nullptr: not by rma
  SubBuffers buffers_;
  std::unordered_set<int> here_;  // owners whose bytes go to this node's pages
  std::unordered_set<int> late_;  // that are to be put what is here by put_late()
  std::atomic<bool> any_late_ = false;
  double no_late_before_s_ = 0;
  std::unordered_set<int> touched_;     // that were sent loads since the last flush
  std::unordered_set<int> settling_;    // likewise, before the collective call that is under way
  std::unordered_map<int, int> asked_;  // to flush, and how often that is not answered yet
  // Nothing leaves for another node but what settle() moves, and full loads by the thread.
  bool in_settle_ = false;
  int64_t settles_ = 0, settles_over_ = 0;
  std::atomic<double> moved_s_ = -1;  // when something last came in exchange(); -1: not in it
  bool ended_ = false;
  Traffic traffic_;
  std::map<int, StagedNotes> told_;  // by other nodes: each one's, as it was told last
  int64_t shared_failures_ = 0;      // of this node's, when all were told last
  std::optional<Error> failure_;
};

}  // namespace penstock::exec
