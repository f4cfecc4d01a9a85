// A rank that cannot hear what the others of its team have agreed on ends the job: they would wait
// for it.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>

#include "capi/open.hpp"
#include "comm/thread_comm.hpp"
#include "exec/unheard_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::capi::unheard_test {
namespace {

using exec::Unheard;

// Of two ranks; the first is told that its nth agreement of an open failed.
void open_with(const std::string& path, int nth) {
  comm::run_thread_team(2, [&](comm::Comm& owner) {
    penstock_team team{.config = engine::Config{}, .ranks = {}};
    auto comm = std::make_unique<Unheard>(owner);
    comm->will_fail(Unheard::Call::all_max, nth);
    team.ranks.push_back({&team, std::move(comm), {}});
    penstock_options options = PENSTOCK_OPTIONS_INIT;
    options.flags = PENSTOCK_CREATE | PENSTOCK_TRUNCATE;
    auto file = open_file(team.ranks.front(), path.c_str(), &options);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(penstock_close(*file), PENSTOCK_OK);
  });
}

class UnheardDeathTest : public testing::TestWithParam<int> {};

// What is prepared, that the file is there, that all can serve it.
INSTANTIATE_TEST_SUITE_P(Open, UnheardDeathTest, testing::Range(1, 4));

TEST_P(UnheardDeathTest, EndsTheJob) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const io::TemporaryFile path;
  EXPECT_DEATH(open_with(path.path(), GetParam()), "ending the job: collective: a rank is gone");
}

}  // namespace
}  // namespace penstock::capi::unheard_test
