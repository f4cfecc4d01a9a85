// Where a rank cannot move what it has taken, or cannot learn what all ranks agreed on, the job
// ends: bytes would be nowhere, or others would wait for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/shipping_for_tests.hpp"
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

}  // namespace
}  // namespace penstock::exec::shipping_abandon_test
