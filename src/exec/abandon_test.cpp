// What ranks were to learn together and one did not: nobody goes on without the others.
#include "exec/abandon.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "comm/thread_comm.hpp"
#include "exec/node_pages.hpp"
#include "exec/shipping.hpp"
#include "exec/unheard_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::abandon_test {
namespace {

constexpr const char* kEnd = "ending the job: collective: a rank is gone";

// --- What all agree on ---

template <class Body>
void with_the_first_unheard(const comm::ThreadTeamOptions& team, Body&& body) {
  comm::run_thread_team(
      2,
      [&](comm::Comm& owner) {
        auto comm = std::make_unique<Unheard>(owner);
        comm->will_fail(Unheard::Call::all_max, 1);
        body(owner, std::move(comm));
        EXPECT_TRUE(owner.barrier());
      },
      team);
}

TEST(AgreeOrAbandon, WhatRanksAgreeOnIsAnErrorOfAll) {
  comm::run_thread_team(2, [](comm::Comm& comm) {
    EXPECT_TRUE(agree_or_abandon(comm, {}));
    const auto mine = comm.rank() == 0 ? Result<void>() : fail(ErrorClass::no_space, "write", "");
    const auto agreed = agree_or_abandon(comm, mine);
    ASSERT_FALSE(agreed);
    EXPECT_EQ(agreed.error().error_class, ErrorClass::no_space);
  });
}

TEST(AgreeOrAbandonDeathTest, ARankThatCannotLearnOfItEndsTheJob) {
  EXPECT_DEATH(with_the_first_unheard({},
                                      [](comm::Comm&, std::unique_ptr<comm::Comm> comm) {
                                        (void)agree_or_abandon(*comm, {});
                                      }),
               kEnd);
}

TEST(AgreeOrAbandonDeathTest, WhetherANodeSharesPages) {
  const io::TemporaryFile path;
  const auto make = [&](comm::Comm& owner, std::unique_ptr<comm::Comm> node) {
    const auto file = io::find_mechanism("pwrite")->open({path.path()}).value();
    (void)NodePages::make(owner, std::move(node), *file);
    EXPECT_TRUE(file->close());
  };
  EXPECT_DEATH(with_the_first_unheard({}, make), kEnd);
}

TEST(AgreeOrAbandonDeathTest, WhetherAThreadMaySend) {
  const auto make = [](comm::Comm&, std::unique_ptr<comm::Comm> comm) {
    (void)Shipping::make(*comm, {.progress = Progress::thread, .limit_bytes = 1 << 20});
  };
  EXPECT_DEATH(with_the_first_unheard({.nodes = 2}, make), kEnd);
}

}  // namespace
}  // namespace penstock::exec::abandon_test
