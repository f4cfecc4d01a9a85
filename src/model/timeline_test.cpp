#include "model/timeline.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace penstock::model::timeline_test {
namespace {

RC_GTEST_PROP(Timeline, KeepsTheFirstTheLastAndNoMoreThanAskedFor, ()) {
  const auto most = *rc::gen::inRange<size_t>(2, 40);
  const auto moments = *rc::gen::inRange<int>(1, 3000);
  Timeline timeline(most);
  for (int i = 0; i < moments; ++i) timeline.add({.time_s = double(i)});
  const auto kept = std::move(timeline).finish();
  RC_ASSERT(!kept.empty());
  RC_ASSERT(kept.size() <= most);
  RC_ASSERT(kept.front().time_s == 0);
  RC_ASSERT(kept.back().time_s == moments - 1);
  if (most >= 4) RC_ASSERT(kept.size() >= std::min(size_t(moments), most / 2));
}

RC_GTEST_PROP(Timeline, KeepsMomentsAtEvenDistances, ()) {
  Timeline timeline(*rc::gen::inRange<size_t>(3, 40));
  const auto moments = *rc::gen::inRange<int>(2, 3000);
  for (int i = 0; i < moments; ++i) timeline.add({.time_s = double(i)});
  const auto kept = std::move(timeline).finish();
  RC_PRE(kept.size() >= 3);
  const double step = kept[1].time_s - kept[0].time_s;
  for (size_t i = 1; i + 1 < kept.size(); ++i)
    RC_ASSERT(kept[i].time_s - kept[i - 1].time_s == step);
}

}  // namespace
}  // namespace penstock::model::timeline_test
