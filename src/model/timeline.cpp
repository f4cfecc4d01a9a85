#include "model/timeline.hpp"

#include <utility>

namespace penstock::model {

// Invariant: kept_ holds the moments 0, stride_, 2 stride_, ..., and one place is left for the
// last.
void Timeline::add(const Moment& moment) {
  last_ = moment;
  const size_t index = seen_++;
  if (index % stride_ != 0) return;
  if (kept_.size() + 1 == most_) thin_out();
  if (index % stride_ == 0) kept_.push_back(moment);
}

void Timeline::thin_out() {
  size_t to = 0;
  for (size_t from = 0; from < kept_.size(); from += 2) kept_[to++] = kept_[from];
  kept_.resize(to);
  stride_ *= 2;
}

std::vector<Moment> Timeline::finish() && {
  if (seen_ > 0 && (seen_ - 1) % stride_ != 0) kept_.push_back(last_);
  return std::move(kept_);
}

}  // namespace penstock::model
