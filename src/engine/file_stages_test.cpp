// Independent writes in one stage instead of two: what the report says where they are the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_stages_test {
namespace {

class OneStage : public testing::TestWithParam<exec::Progress> {};

TEST_P(OneStage, IsSaidToBeNoneWhereNothingIsSentAtOnce) {
  const io::TemporaryFile path;
  OpenInfo info = info_for(path.path());
  info.may_defer = true;
  info.config.method = *parse_method("write_behind(stages=1)");
  info.config.write_behind_progress = GetParam();
  comm::run_thread_team(2,
                        [&](comm::Comm& comm) {
                          const auto f = File::open(comm::borrow(comm), info);
                          FileReport report;
                          EXPECT_EQ(f->close(report), ErrorClass::none);
                          if (comm.rank() != 0) return;
                          const bool said =
                              std::ranges::any_of(report.degraded, [](const auto& why) {
                                return why.first.find("stages=1") != why.first.npos;
                              });
                          EXPECT_EQ(said, GetParam() == exec::Progress::calls);
                        },
                        {.nodes = 2});
}

INSTANTIATE_TEST_SUITE_P(Every, OneStage, testing::ValuesIn(exec::kProgresses),
                         [](const auto& tested) { return to_string(tested.param); });

}  // namespace
}  // namespace penstock::engine::file_stages_test
