// What pages of other nodes lost: told to all ranks when they meet, and by who is asked to flush.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "exec/abandon.hpp"
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

  static StagedNotes read(std::span<const int64_t> words) {
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

// To a rank whose bytes were to be in the file: they are, or the node's losses come with this.
void Shipping::answer(int to, const Pages& pages) {
  std::vector<std::byte> parcel{std::byte(ParcelKind::done)};
  if (pages.failures() > 0) {
    const LossesOnTheWire::Words words = LossesOnTheWire::write(pages.losses(), node_);
    std::ranges::copy(std::as_bytes(std::span(words)), std::back_inserter(parcel));
  }
  parcels_->send(to, std::move(parcel));
}

void Shipping::take_answer(const comm::Parcel& answer) {
  if (answer.bytes.size() == 1) return;
  LossesOnTheWire::Words words;
  if (answer.bytes.size() != 1 + sizeof(words)) {
    note_failure({ErrorClass::communication, 0, "write behind", "an answer cannot be understood"});
    return;
  }
  std::memcpy(words.data(), answer.bytes.data() + 1, sizeof(words));
  note_told(words);
}

// REQUIRES LossesOnTheWire of another node.
void Shipping::note_told(std::span<const int64_t> words) {
  const StagedNotes news = LossesOnTheWire::read(words);
  StagedNotes& told = told_[int(words[0])];
  if (news.failures > told.failures) told = news;
}

// Collective. The worst loss that was not told before; of several ranks that have it, the lowest is
// heard, and other nodes' next time.
void Shipping::share(const Pages& pages) {
  const StagedNotes mine = has_news(pages) ? pages.losses() : StagedNotes();
  const int64_t own = mine.failure ? int64_t(mine.failure->error_class) : 0;
  int64_t worst[1] = {own};
  or_abandon(comm_.all_max(worst));
  if (worst[0] == 0) return;
  int64_t teller[1] = {own == worst[0] ? -int64_t(comm_.rank())
                                       : std::numeric_limits<int64_t>::min()};
  or_abandon(comm_.all_max(teller));
  LossesOnTheWire::Words words;
  words.fill(std::numeric_limits<int64_t>::min());
  if (own == worst[0] && teller[0] == -int64_t(comm_.rank()))
    words = LossesOnTheWire::write(mine, node_);
  or_abandon(comm_.all_max(words));
  if (words[0] == node_) {
    shared_failures_ = words[1];
    return;
  }
  const std::lock_guard lock(mutex_);
  note_told(words);
}

void Shipping::add_losses(StagedNotes& to) const {
  to.failures += failures();
  const std::lock_guard lock(mutex_);
  for (const auto& [node, told] : told_) {
    to.lost_bytes += told.lost_bytes;
    to.lost.insert(to.lost.end(), told.lost.begin(), told.lost.end());
    to.lost_told_in_part = to.lost_told_in_part || told.lost_told_in_part;
    to.failure = worst_of(to.failure, told.failure);
  }
  to.failure = worst_of(to.failure, failure_);
  to.why_not_shipped = why_none_;
}

int64_t Shipping::failures() const {
  const std::lock_guard lock(mutex_);
  int64_t failures = failure_ ? 1 : 0;
  for (const auto& [node, told] : told_) failures += told.failures;
  return failures;
}

}  // namespace penstock::exec
