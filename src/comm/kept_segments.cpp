#include "comm/kept_segments.hpp"

#include <algorithm>
#include <utility>

namespace penstock::comm {
namespace {

bool is_idle(const std::shared_ptr<SharedSegment>& segment) { return segment.use_count() == 1; }

}  // namespace

void KeptSegments::add(std::shared_ptr<SharedSegment> made, int ranks_of_node) {
  ranks_of_node_ = ranks_of_node;
  segments_.push_back(std::move(made));
}

int KeptSegments::find(const SegmentShape& shape) const noexcept {
  int best = -1;
  for (int i = 0; i < int(segments_.size()); ++i) {
    const size_t bytes = at(i)->memory().size();
    if (!is_idle(at(i)) || bytes < shape.bytes) continue;
    if (best < 0 || bytes < at(best)->memory().size()) best = i;
  }
  return best;
}

void KeptSegments::drop_idle() noexcept { std::erase_if(segments_, is_idle); }

void KeptSegments::rest() noexcept {
  size_t left =
      std::min(kMostBytesPerRank * size_t(ranks_of_node_), free_for_segments() / kMostOfFree);
  std::erase_if(segments_, [&left](const std::shared_ptr<SharedSegment>& segment) {
    const size_t bytes = segment->populated_bytes();
    if (!is_idle(segment) || bytes > left || !segment->rest()) return true;
    left -= bytes;
    return false;
  });
}

}  // namespace penstock::comm
