// What pages of other nodes lost: told to all ranks when they meet.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "exec/gathering.hpp"
#include "exec/plain_error.hpp"
#include "exec/shipping.hpp"

namespace penstock::exec {
namespace {

struct LossesOnTheWire {
  static constexpr size_t kErrorWords = sizeof(PlainError) / sizeof(int64_t);
  static constexpr size_t kErrorAt = 5, kPlacesAt = kErrorAt + kErrorWords;
  static constexpr size_t kWords = kPlacesAt + 2 * kMostLostTold;
  using Words = std::array<int64_t, kWords>;

  static Words write(const StagedNotes& notes, int node) {
    Words words{};
    words[0] = node;
    words[1] = notes.failures;
    words[2] = notes.lost_bytes;
    words[3] = notes.lost_told_in_part ? 1 : 0;
    const size_t places = std::min(notes.lost.size(), kMostLostTold);
    words[4] = int64_t(places);
    const PlainError why = PlainError::of(*notes.failure);
    std::memcpy(&words[kErrorAt], &why, sizeof(why));
    for (size_t i = 0; i < places; ++i) {
      words[kPlacesAt + 2 * i] = notes.lost[i].begin;
      words[kPlacesAt + 2 * i + 1] = notes.lost[i].end;
    }
    return words;
  }

  static StagedNotes read(const Words& words) {
    StagedNotes notes;
    notes.failures = words[1];
    notes.lost_bytes = words[2];
    notes.lost_told_in_part = words[3] != 0;
    PlainError why;
    std::memcpy(&why, &words[kErrorAt], sizeof(why));
    notes.failure = why.with("of pages of another node");
    for (size_t i = 0; i < size_t(words[4]); ++i)
      notes.lost.push_back({words[kPlacesAt + 2 * i], words[kPlacesAt + 2 * i + 1]});
    return notes;
  }
};

}  // namespace

// Collective. The worst loss of all; of several ranks that tell it, the lowest is heard.
void Shipping::share(const StagedNotes& mine) {
  const int64_t own = mine.failure ? int64_t(mine.failure->error_class) : 0;
  int64_t worst[1] = {own};
  if (!comm_.all_max(worst) || worst[0] == 0) return;
  int64_t teller[1] = {own == worst[0] ? -int64_t(comm_.rank())
                                       : std::numeric_limits<int64_t>::min()};
  if (!comm_.all_max(teller)) return;
  LossesOnTheWire::Words words;
  words.fill(std::numeric_limits<int64_t>::min());
  if (own == worst[0] && teller[0] == -int64_t(comm_.rank()))
    words = LossesOnTheWire::write(mine, node_);
  if (!comm_.all_max(words) || words[0] == node_) return;
  const std::lock_guard lock(mutex_);
  if (words[1] > told_.failures) told_ = LossesOnTheWire::read(words);
}

void Shipping::add_losses(StagedNotes& to) const {
  to.failures += failures();
  const std::lock_guard lock(mutex_);
  to.lost_bytes += told_.lost_bytes;
  to.lost.insert(to.lost.end(), told_.lost.begin(), told_.lost.end());
  to.lost_told_in_part = to.lost_told_in_part || told_.lost_told_in_part;
  to.failure = worst_of(worst_of(to.failure, told_.failure), failure_);
  to.why_not_shipped = why_none_;
}

int64_t Shipping::failures() const {
  const std::lock_guard lock(mutex_);
  return told_.failures + (failure_ ? 1 : 0);
}

}  // namespace penstock::exec
