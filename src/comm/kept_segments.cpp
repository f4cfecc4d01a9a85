#include "comm/kept_segments.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace penstock::comm {
void KeptSegments::add(std::shared_ptr<SharedSegment> made, int ranks_of_node) {
  ranks_of_node_ = ranks_of_node;
  segments_.push_back({made_++, std::move(made)});
}

int64_t KeptSegments::find(const SegmentShape& shape) const noexcept {
  const Numbered* best = nullptr;
  const auto bytes = [](const Numbered& each) { return each.segment->memory().size(); };
  for (const Numbered& each : segments_) {
    if (!each.is_idle() || bytes(each) < shape.bytes) continue;
    if (best == nullptr || bytes(each) < bytes(*best)) best = &each;
  }
  return best == nullptr ? -1 : best->number;
}

const std::shared_ptr<SharedSegment>& KeptSegments::at(int64_t number) const noexcept {
  return std::ranges::find(segments_, number, &Numbered::number)->segment;
}

void KeptSegments::drop_idle() noexcept {
  std::erase_if(segments_, std::mem_fn(&Numbered::is_idle));
}

void KeptSegments::rest() noexcept {
  size_t left =
      std::min(kMostBytesPerRank * size_t(ranks_of_node_), free_for_segments() / kMostOfFree);
  std::erase_if(segments_, [&left](const Numbered& each) {
    const size_t bytes = each.segment->populated_bytes();
    if (!each.is_idle() || bytes > left || !each.segment->rest()) return true;
    left -= bytes;
    return false;
  });
}

}  // namespace penstock::comm
