// Who writes which file page of those that a node's ranks fill together: page i is rank i mod n's,
// of the file's n ranks, so that a stripe has one writer for as long as the file is open
// (liao-2007). The owner's I/O thread is told when pages of its own wait to leave.
//
// In a part of the pool's segment; memory that is all zero has no owners yet. Thread-safe, for all
// processes that share the segment, as soon as all have joined.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/bell.hpp"
#include "comm/shared_segment.hpp"

namespace penstock::exec {

class PageOwners {
 public:
  // For at most so many ranks; a node's others own no pages.
  static constexpr int kMost = 1024;
  static size_t bytes_for(int ranks);  // of the segment

  // Takes part in the segment from `at` on, as one of the file's `ranks`. `bell`: of the thread
  // that will look after this rank's pages, where there is one. REQUIRES zeroed memory.
  PageOwners(std::shared_ptr<comm::SharedSegment> segment, size_t at, int ranks, int rank,
             const std::optional<Bell::Address>& bell);
  // Nobody looks after this rank's pages any more.
  ~PageOwners();
  PageOwners(const PageOwners&) = delete;
  // REQUIRES that all ranks of the node have joined, and know it.
  void all_have_joined();
  // One handle more of this process looks after this rank's pages, or one less; the first is
  // counted when it joins.
  void one_more();
  void one_less();

  // Places among those who joined; -1: none.
  int mine() const noexcept { return mine_; }
  int count() const noexcept { return int(owners_.size()); }
  int owner_of(int64_t page) const noexcept;

  // Some pages of `owner` are wanted. false: nobody hears it.
  bool ask(int owner);
  // The other side: whether somebody asked since the last time.
  bool was_asked() noexcept;
  // Whether a thread looks after these pages, as far as can be seen from here.
  bool answers(int owner);
  // Its process has ended for certain.
  bool is_gone(int place) const;

 private:
  struct Member;
  FarBell* bell_of(int owner);

  const std::shared_ptr<comm::SharedSegment> segment_;
  const int ranks_;
  std::span<Member> members_;
  std::atomic<uint32_t>* joined_;
  int mine_ = -1;
  std::atomic<int> handles_ = 1;
  std::vector<int> owners_;  // places, in the order of the ranks

  // What this process found out about an owner.
  struct Known {
    std::optional<std::unique_ptr<FarBell>> bell;  // nullptr: not to be heard
    double looked_s = 0;                           // when it was last seen alive
  };
  std::mutex mutex_;
  std::vector<Known> known_;
};

}  // namespace penstock::exec
