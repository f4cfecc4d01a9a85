// What a writer knows of the ranks that send to it. A filetype that the writer does not bring
// itself travels once per (rank, writer) as a loop tree and is kept, so that a repeated pattern
// exchanges no descriptions, and one that all ranks have alike none at all. A long list of
// irregular blocks travels as its outline, and of its chapters a writer gets those that lie where
// it writes: together the writers get the list about once, however many they are. Both sides replay
// the same cache, so neither needs to ask the other.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "comm/comm.hpp"
#include "layout/cursor.hpp"
#include "layout/outline.hpp"
#include "plan/plan.hpp"
#include "plan/summary.hpp"

namespace penstock::exec {

// Of a list that travels in chapters; with PENSTOCK_TEST_CHAPTER in the environment as many as it
// says.
int64_t blocks_per_chapter();

// Bytes of what every writer is told of a filetype: all of it, or the outline of a long list.
int64_t described_bytes(const layout::LoopTree& filetype);

// One sender's part of the current call.
struct Peer {
  int rank = 0;
  plan::Summary summary;
  plan::Part part;        // where the writer writes; elsewhere its view may name other bytes
  layout::Cursor cursor;  // over the file, to fill pages
};

// The last few shapes that passed between two ranks; the same on both. A writer keeps those of all
// its senders, so that old ones may not be long together.
class ShapeCache {
 public:
  static constexpr size_t kShapes = 4;
  static constexpr int64_t kBytes = int64_t{4} << 20;  // of all descriptions, where there are two

  struct Known {
    Hash shape = 0;
    int64_t bytes = 0;  // of its description, with all chapters
    // Of a writer: what it was told; of a long list as far as it was.
    layout::LoopTree tree;
    std::optional<layout::Excerpt> excerpt;
    // Of a sender: the chapters that it told.
    std::vector<bool> told;

    const layout::LoopTree& known_tree() const { return excerpt ? excerpt->tree() : tree; }
  };

  bool knows(Hash shape) const;
  Known* find(Hash shape);
  // Forgets the oldest when full.
  void learn(Known known);

 private:
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
  struct Call;
  struct Sender;
  struct Arrival;
  struct Chapters;
  using Senders = std::vector<Sender>;

  static Senders senders_to(const Call& call);
  const layout::Outline* outline_of(const layout::LoopTree& filetype);
  void send_description(const Call& call);
  Result<void> exchange_descriptions(const Call& call, const Senders& senders);
  Result<void> keep(const Arrival& arrival);
  std::deque<std::vector<std::byte>> send_chapters(const Call& call);
  Result<std::deque<Chapters>> receive_chapters(const Call& call, const Senders& senders);
  Result<void> exchange_chapters(const Call& call, const Senders& senders);

  std::map<int, ShapeCache> told_;   // by writer's rank: what it knows of me
  std::map<int, ShapeCache> known_;  // by sender's rank: what I know of it
  std::vector<std::byte> description_;
  Hash outlined_ = 0;
  std::optional<layout::Outline> outline_;  // of the shape outlined_; nullopt: it goes whole
  int64_t sent_ = 0;
};

}  // namespace penstock::exec
