// Parcels between nodes that are still under way: what was sent before a collective call ended, or
// before close, is waited for, and what another thread sends meanwhile is not.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/shipping_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::shipping_late_test {
namespace {

constexpr WriteBehindShape kByThread{.page_bytes = kPage,
                                     .limit_bytes_per_rank = kMany,
                                     .progress = Progress::thread,
                                     .load_bytes = kLoad};

// What a network does.
struct Network {
  std::atomic<int> to_be_taken = 1 << 30;  // so many parcels come, and then none
  std::atomic<bool> tells = true;          // senders which of theirs have come
  std::atomic<bool> is_full = false;       // there is always one more, an empty load
};

class SlowParcels final : public comm::Parcels {
 public:
  SlowParcels(std::unique_ptr<comm::Parcels> parcels, Network& network)
      : p_(std::move(parcels)), network_(network) {}
  ~SlowParcels() override { EXPECT_TRUE(are_delivered(sent())) << "MPI would lose them"; }

  bool by_any_thread() const noexcept override { return p_->by_any_thread(); }
  void send(int to, std::vector<std::byte> bytes) override { p_->send(to, std::move(bytes)); }
  std::optional<comm::Parcel> delivered() override {
    return network_.tells ? p_->delivered() : std::nullopt;
  }
  std::vector<comm::Parcel> take_back() override { return p_->take_back(); }
  int64_t sent() const noexcept override { return p_->sent(); }
  bool are_delivered(int64_t first) const noexcept override { return p_->are_delivered(first); }
  std::optional<comm::Parcel> receive() override {
    if (network_.to_be_taken == 0) return std::nullopt;
    auto parcel = p_->receive();
    if (parcel) --network_.to_be_taken;
    if (parcel || !network_.is_full) return parcel;
    return comm::Parcel{0, {std::byte(ParcelKind::load)}};
  }
  void arrive() override { p_->arrive(); }
  bool all_have_arrived() override { return p_->all_have_arrived(); }
  Result<void> status() const override { return p_->status(); }

 private:
  const std::unique_ptr<comm::Parcels> p_;
  Network& network_;
};

class SlowComm final : public comm::Borrowed {
 public:
  SlowComm(comm::Comm& owner, Network& network) : Borrowed(owner), network_(network) {}
  Result<std::unique_ptr<comm::Parcels>> parcels() override {
    auto parcels = Borrowed::parcels();
    if (!parcels) return parcels;
    return std::make_unique<SlowParcels>(*std::move(parcels), network_);
  }

 private:
  Network& network_;
};

template <class Body>
void on_two_nodes(const io::TemporaryFile& path, Network& network, Body&& body) {
  comm::run_thread_team(2,
                        [&](comm::Comm& comm) {
                          SlowComm slow(comm, network);
                          Rank rank(slow, path.path(), kByThread);
                          body(comm, rank);
                          EXPECT_TRUE(comm.barrier());
                          rank.behind->flush_together(rank.target);
                          rank.receiving = {};
                          network.tells = true;
                          rank.behind->shipping()->close();
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2});
}

// Two full loads, once the other thread is inside the collective call; one parcel too many.
void write_during_flush(Rank& rank, Network& network) {
  while (!rank.behind->shipping()->moving_together(60)) std::this_thread::yield();
  const Off at = 3 * kPage;  // the other's
  EXPECT_FALSE(rank.write(bytes_at(at, 2 * kLoad), at).mine);
  network.to_be_taken = 1;
}

TEST(ShippingLate, WhatAnotherThreadSendsMeanwhileHoldsUpNoCollectiveCall) {
  const io::TemporaryFile path;
  Network network;
  network.to_be_taken = 0;
  on_two_nodes(path, network, [&](comm::Comm& comm, Rank& rank) {
    std::jthread other;
    if (comm.rank() == 0) {
      EXPECT_FALSE(rank.write(bytes_at(kPage, 100), kPage).mine);
      other = std::jthread([&] { write_during_flush(rank, network); });
    }
    rank.behind->flush_together(rank.target);
    EXPECT_EQ(network.to_be_taken, 0);
    EXPECT_EQ(path.contents().size(), size_t(kPage + 100));
    EXPECT_TRUE(comm.barrier());
    network.to_be_taken = 1 << 30;
  });
  const std::vector<std::byte> file = path.contents();
  ASSERT_EQ(file.size(), size_t(3 * kPage + 2 * kLoad));
  EXPECT_EQ(file.back(), value_at(Off(file.size()) - 1));
}

TEST(ShippingLate, OthersThatSendOnAndOnHoldUpNoCollectiveCall) {
  const io::TemporaryFile path;
  Network network;
  network.is_full = true;
  on_two_nodes(path, network, [&](comm::Comm& comm, Rank& rank) {
    const Off at = (1 - comm.rank()) * kPage;
    EXPECT_FALSE(rank.write(bytes_at(at, kPage / 2), at).mine);
    rank.behind->flush_together(rank.target);
  });
  EXPECT_EQ(path.contents().size(), size_t(kPage + kPage / 2));
}

// A communicator whose parcels look as if they were under way is not used again.
TEST(ShippingLate, NothingIsUnderWayAfterClose) {
  const io::TemporaryFile path;
  Network network;
  network.tells = false;
  on_two_nodes(path, network, [&](comm::Comm& comm, Rank& rank) {
    if (comm.rank() != 0) return;
    EXPECT_FALSE(rank.write(bytes_at(kPage, 100), kPage).mine);
    rank.behind->flush(rank.target);  // answered; and then nobody has any
  });
}

}  // namespace
}  // namespace penstock::exec::shipping_late_test
