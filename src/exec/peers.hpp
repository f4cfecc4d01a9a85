// What a writer knows of the ranks that send to it. A filetype travels once per
// (rank, writer) as a loop tree and is kept, so that a repeated pattern exchanges no
// descriptions. Both sides replay the same cache, so neither needs to ask the other.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "comm/comm.hpp"
#include "layout/cursor.hpp"
#include "plan/plan.hpp"
#include "plan/summary.hpp"

namespace penstock::exec {

// One sender's part of the current call.
struct Peer {
  int rank = 0;
  plan::Summary summary;
  plan::Part part;
  layout::Cursor cursor;  // over the file, to fill pages
};

// The last few shapes that passed between two ranks; the same on both. A writer keeps those of all
// its senders, so that old ones may not be long together.
class ShapeCache {
 public:
  static constexpr size_t kShapes = 4;
  static constexpr int64_t kBytes = int64_t{4} << 20;  // of all descriptions, where there are two
  bool knows(Hash shape) const;
  // Forgets the oldest when full. `bytes`: of its description.
  void learn(Hash shape, layout::LoopTree tree, int64_t bytes);
  const layout::LoopTree* find(Hash shape) const;

 private:
  struct Known {
    Hash shape;
    layout::LoopTree tree;
    int64_t bytes;
  };
  std::deque<Known> shapes_;
  int64_t bytes_ = 0;
};

class Peers {
 public:
  // Sends this rank's filetype to the writers that will get bytes from it and do not know it, and
  // receives theirs. Returns who sends to this rank in the call, ascending by rank, without itself.
  // Every rank of the plan must call it.
  Result<std::vector<Peer>> introduce(comm::Comm& comm, comm::Transfers& transfers,
                                      const plan::Plan& plan, const plan::Crowd& crowd,
                                      const layout::LoopTree& filetype);
  int64_t descriptions() const noexcept { return sent_; }

 private:
  struct Arrival;
  void send_descriptions(comm::Comm& comm, comm::Transfers& transfers, const plan::Plan& plan,
                         const plan::Summary& mine, const layout::LoopTree& filetype);

  std::map<int, ShapeCache> told_;   // by writer's rank: what it knows of me
  std::map<int, ShapeCache> known_;  // by sender's rank: what I know of it
  std::vector<std::byte> description_;
  int64_t sent_ = 0;
};

}  // namespace penstock::exec
