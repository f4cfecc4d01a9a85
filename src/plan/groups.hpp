// Groups of consecutive ranks, each with its first rank as the writer (chaarawi-2009, 2.1: of 24
// ranks and 4 writers, ranks 0-5 send to 0, 6-11 to 6, ...); where ranks are dealt to nodes in
// turn, with one of the next node. What the segmentation algorithms share. Arithmetic, and a walk
// over the classes of a group's ranks, never over ranks.
#pragma once

#include <algorithm>
#include <utility>

#include "plan/writers.hpp"

namespace penstock::plan {

class Groups {
 public:
  // REQUIRES 1 <= count <= team.ranks.
  Groups(const Team& team, int count) noexcept : team_(team), count_(count) {}

  int count() const noexcept { return count_; }
  int of(int rank) const noexcept { return int(((int64_t{rank} + 1) * count_ - 1) / team_.ranks); }
  IntRange members(int group) const noexcept { return {begin(group), begin(group + 1)}; }
  int most_members() const noexcept { return int(divide_up(team_.ranks, count_)); }

  int writer_rank(int group) const noexcept {
    const int first = begin(group);
    const int rank = team_.turn > 0 ? next_on(group % team_.nodes, first) : first;
    return rank < begin(group + 1) ? rank : first;
  }
  std::optional<int> writer_at(int rank) const noexcept {
    const int group = of(rank);
    return writer_rank(group) == rank ? std::optional(group) : std::nullopt;
  }

 private:
  int begin(int group) const noexcept { return int(int64_t{group} * team_.ranks / count_); }
  // The first rank at or behind `from` on that node, where they are dealt in turn.
  int next_on(int node, int from) const noexcept {
    const int turn = from / team_.turn;  // of all nodes
    const int ahead = (node - turn % team_.nodes + team_.nodes) % team_.nodes;
    return ahead == 0 ? from : (turn + ahead) * team_.turn;
  }

  Team team_;
  int count_;
};

// What a group writes in a call.
struct GroupTotal {
  int64_t bytes = 0;
  int64_t most_of_rank = 0;
  Extent hull;
};

inline GroupTotal total_of(const Crowd& crowd, IntRange ranks) {
  GroupTotal t;
  const auto classes = crowd.classes();
  auto c = std::ranges::upper_bound(classes, ranks.begin, {}, &RankClass::first);
  if (c != classes.begin()) --c;
  for (; c != classes.end() && c->first < ranks.end; ++c) {
    const int begin = std::max(0, ranks.begin - c->first);
    const int end = std::min(c->count, ranks.end - c->first);
    if (begin >= end || c->summary.empty()) continue;
    const Extent first = member(*c, begin).extent(), last = member(*c, end - 1).extent();
    t.hull = hull_of(t.hull, hull_of(first, last));
    t.bytes += (end - begin) * c->summary.bytes;
    t.most_of_rank = std::max(t.most_of_rank, c->summary.bytes);
  }
  return t;
}

// What a group's writer collects at a time where nobody says: as much as elsewhere, and in a large
// group more, so that what one rank brings, and its messages, do not become crumbs
// (docs/decisions/0022-segmentation.md).
inline constexpr int64_t kShareBytes = int64_t{1} << 20;

inline int64_t group_cycle_of(int64_t cycle_bytes, int64_t most_members) {
  if (cycle_bytes > 0) return cycle_bytes;
  return std::clamp(most_members * kShareBytes, kDefaultCycleBytes, kMaxCycleBytes);
}

inline Result<Groups> groups_of(std::string_view algorithm, const Parameters& p, const Team& team) {
  if (p.writers < 0)
    return fail(ErrorClass::argument, std::string(algorithm),
                "writers must be at least 1, got " + std::to_string(p.writers));
  return Groups(team, p.writers > 0 ? std::min(p.writers, team.ranks) : default_writers(team));
}

// A plan in which every rank gives its bytes to its group's writer, and to nobody else.
class GroupPlan : public Plan {
 public:
  int writers() const noexcept final { return groups_.count(); }
  int writer_rank(int writer) const noexcept final { return groups_.writer_rank(writer); }
  std::optional<int> writer_of(int rank) const noexcept final { return groups_.writer_at(rank); }
  bool exchanges() const noexcept final { return true; }
  IntRange writers_of(const Summary& s, int rank, int) const final { return reached(s, rank); }
  IntRange reached(const Summary& s, int rank) const final {
    if (s.empty()) return {};
    const int writer = groups_.of(rank);
    return {writer, writer + 1};
  }
  IntRange senders(int writer) const noexcept final { return groups_.members(writer); }

 protected:
  GroupPlan(const Groups& groups, Crowd crowd) : groups_(groups), crowd_(std::move(crowd)) {}
  GroupTotal total(int writer) const noexcept { return total_of(crowd_, groups_.members(writer)); }

  Groups groups_;
  Crowd crowd_;
};

}  // namespace penstock::plan
