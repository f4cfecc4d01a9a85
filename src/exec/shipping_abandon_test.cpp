// Where a rank cannot move what it has taken, or cannot learn what all ranks agreed on, the job
// ends: bytes would be nowhere, or others would wait for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/shipping_for_tests.hpp"
#include "exec/unheard_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::shipping_abandon_test {
namespace {

// --- Without memory ---

class NoPages final : public Shipping::Pages {
 public:
  void put(const layout::Run&, const std::byte*) override { throw std::bad_alloc(); }
  void flush() override {}
  bool holds(const layout::Run&) const override { return true; }
  bool empty() const override { return true; }
  int64_t failures() const override { return 0; }
  StagedNotes losses() const override { return {}; }
};

class NoParcels final : public comm::Parcels {
 public:
  bool by_any_thread() const noexcept override { return true; }
  void send(int, std::vector<std::byte>) override { throw std::bad_alloc(); }
  std::optional<comm::Parcel> delivered() override { return std::nullopt; }
  std::vector<comm::Parcel> take_back() override { return {}; }
  int64_t sent() const noexcept override { return 0; }
  bool are_delivered(int64_t) const noexcept override { return true; }
  std::optional<comm::Parcel> receive() override { return std::nullopt; }
  void arrive() override {}
  bool all_have_arrived() override { return true; }
  Result<void> status() const override { return {}; }
};

class OfNoParcels final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<std::unique_ptr<comm::Parcels>> parcels() override {
    return std::make_unique<NoParcels>();
  }
};

class Zeros final : public Shipping::Stream {
 public:
  layout::Run run_at(StreamRange range) override { return {range.begin, range.size(), 0, 1}; }
  void pack(std::byte* out, StreamRange range) override {
    std::fill_n(out, range.size(), std::byte{0});
  }
};

// A hundred bytes of rank 0 for a page of rank 1, which is to move them.
template <class Move>
void take_and_move(Progress progress, Move&& move) {
  comm::run_thread_team(
      2,
      [&](comm::Comm& owner) {
        OfNoParcels comm(owner);
        const auto shipping =
            Shipping::make(comm, {.progress = progress, .load_bytes = kLoad, .limit_bytes = kMany})
                .value();
        if (comm.rank() != 0) return;
        NoPages pages;
        Zeros zeros;
        EXPECT_EQ(shipping->take(1, zeros, {kPage, kPage + 100}, pages), 100);
        move(*shipping, pages);
      },
      {.nodes = 2});
}

TEST(ShippingAbandonDeathTest, WhatWasTakenAndCannotBeKeptHere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      take_and_move(Progress::calls, [](Shipping& s, NoPages& pages) { s.send_older(0, pages); }),
      "ending the job: write behind");
  EXPECT_DEATH(take_and_move(Progress::calls, [](Shipping& s, NoPages& pages) { s.end(pages); }),
               "ending the job: write behind");
}

TEST(ShippingAbandonDeathTest, WhatWasTakenAndCannotBeSent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(take_and_move(Progress::thread, [](Shipping& s, NoPages&) { s.send_at_once(); }),
               "ending the job: write behind");
}

// --- Where others would wait ---

struct Failure {
  const char* where;
  Unheard::Call call = Unheard::Call::all_max;
  int nth = 1;
  Progress progress = Progress::calls;
  Unheard::Parcels parcels = Unheard::Parcels::any;
  bool loses = false;
  bool at_close = false;

  friend std::ostream& operator<<(std::ostream& out, const Failure& f) { return out << f.where; }
};

// Each of two ranks has bytes for the other when they meet.
void meet_with(const std::string& path, const Failure& failure) {
  const WriteBehindShape shape{.page_bytes = kPage,
                               .limit_bytes_per_rank = kMany,
                               .progress = failure.progress,
                               .load_bytes = kLoad};
  const io::FaultPlan full{.nth_write = 1, .write_errno = ENOSPC};
  comm::run_thread_team(2,
                        [&](comm::Comm& owner) {
                          Unheard comm(owner, failure.parcels);
                          Rank rank(comm, path, shape, {}, failure.loses ? full : io::FaultPlan());
                          const Off at = (1 - comm.rank()) * kPage;
                          EXPECT_FALSE(rank.write(bytes_at(at, 100), at).mine);
                          if (failure.at_close) rank.behind->flush_together(rank.target);
                          EXPECT_TRUE(owner.barrier());
                          comm.will_fail(failure.call, failure.nth);
                          if (!failure.at_close) rank.behind->flush_together(rank.target);
                          EXPECT_TRUE(owner.barrier());
                          rank.receiving = {};
                          rank.behind->shipping()->close();
                          EXPECT_TRUE(owner.barrier());
                        },
                        {.nodes = 2});
}

class ShippingUnheardDeathTest : public testing::TestWithParam<Failure> {};

using enum Unheard::Call;
INSTANTIATE_TEST_SUITE_P(
    Everywhere, ShippingUnheardDeathTest,
    testing::Values(Failure{.where = "whether anybody has any", .call = all_max, .nth = 1},
                    Failure{.where = "that all owners have flushed", .call = barrier, .nth = 1},
                    Failure{.where = "whether all can send", .call = all_max, .nth = 2},
                    Failure{.where = "the worst loss", .call = all_max, .nth = 3},
                    Failure{.where = "who tells of it", .call = all_max, .nth = 4, .loses = true},
                    Failure{.where = "what is told", .call = all_max, .nth = 5, .loses = true},
                    Failure{.where = "whether any is put",
                            .call = all_max,
                            .nth = 3,
                            .progress = Progress::rma,
                            .parcels = Unheard::Parcels::none},
                    Failure{.where = "that what was put is in the file",
                            .call = barrier,
                            .nth = 1,
                            .progress = Progress::rma,
                            .parcels = Unheard::Parcels::none},
                    Failure{.where = "whether all can free",
                            .call = all_max,
                            .nth = 1,
                            .progress = Progress::rma,
                            .at_close = true}));

TEST_P(ShippingUnheardDeathTest, EndsTheJob) {
  const io::TemporaryFile path;
  EXPECT_DEATH(meet_with(path.path(), GetParam()), "ending the job: collective: a rank is gone");
}

// The others would go on to agree on how loads are moved, and wait there.
TEST(ShippingMadeDeathTest, ARankThatDoesNotLearnWhoseNodeIsWhichEndsTheJob) {
  const auto make = [] {
    comm::run_thread_team(2,
                          [](comm::Comm& owner) {
                            Unheard comm(owner);
                            comm.will_fail(allgather, 1);
                            (void)WriteBehind::make(comm, {kPage, 0}, {}, std::nullopt);
                          },
                          {.nodes = 2});
  };
  EXPECT_DEATH(make(), "ending the job: collective: a rank is gone");
}

}  // namespace
}  // namespace penstock::exec::shipping_abandon_test
