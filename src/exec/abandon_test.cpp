// What ranks were to learn together and one did not, and messages that failed: nobody goes on with
// what may be anything, or without the others.
#include "exec/abandon.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/node_pages.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
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

// --- Messages ---

// The first message that comes to a rank has failed, and leaves anything behind.
class Torn final : public comm::Transfers {
 public:
  explicit Torn(std::unique_ptr<comm::Transfers> inner) : inner_(std::move(inner)) {}
  int send(int to, int tag, std::span<const std::byte> bytes) override {
    return inner_->send(to, tag, bytes);
  }
  int send_strided(int to, int tag, const comm::Strided& pieces) override {
    return inner_->send_strided(to, tag, pieces);
  }
  int receive(int from, int tag, std::span<std::byte> bytes) override {
    const auto number = size_t(inner_->receive(from, tag, bytes));
    if (into_.size() <= number) into_.resize(number + 1);
    into_[number] = bytes;
    return int(number);
  }
  std::optional<comm::Event> next() override {
    const auto event = inner_->next();
    if (event && event->kind == comm::Event::Kind::received && status_) {
      status_ = fail(ErrorClass::communication, "collective", "a rank is gone");
      std::ranges::fill(into_[size_t(event->number)], std::byte{0x55});
    }
    return event;
  }
  const Result<void>& status() const noexcept override { return status_; }
  Result<void> finish() override {
    while (next()) {
    }
    return std::exchange(status_, Result<void>());
  }

 private:
  const std::unique_ptr<comm::Transfers> inner_;
  std::vector<std::span<std::byte>> into_;
  Result<void> status_;
};

class OfTorn final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  std::unique_ptr<comm::Transfers> transfers() override {
    return std::make_unique<Torn>(Borrowed::transfers());
  }
};

constexpr int64_t kCycle = 4096;
constexpr int64_t kOfEach = 4 * kCycle;

// Four ranks on two nodes, each some cycles behind those of the rank before.
void write_all(const std::string& path, const Pipeline::Policy& policy) {
  comm::run_thread_team(
      4,
      [&](comm::Comm& owner) {
        OfTorn comm(owner);
        const auto file = io::find_mechanism("pwrite")->open({path}).value();
        Pipeline pipeline(comm, *file, {});
        const layout::FileView view;
        const Off at = comm.rank() * kOfEach;
        const auto data = bytes_at(at, kOfEach);
        (void)pipeline.write_all(
            {&view, {at, at + kOfEach}, data.data(), layout::LoopTree::bytes(1), kOfEach}, policy);
        EXPECT_TRUE(file->close());
      },
      {.nodes = 2});
}

// All of it is the last rank's to write, and what comes first is another's.
TEST(TornMessagesDeathTest, NothingThatCameByThemIsWritten) {
  for (const char* exchange : {"messages", "node_leaders"}) {
    const io::TemporaryFile path;
    EXPECT_DEATH(write_all(path.path(), {plan::find_algorithm("designated_writer"),
                                         {.cycle_bytes = kCycle, .writer = 3},
                                         nullptr,
                                         find_exchange(exchange)}),
                 kEnd);
    EXPECT_TRUE(path.contents().empty()) << exchange;
  }
}

TEST(TornMessagesDeathTest, NoTurnBeginsByThem) {
  const io::TemporaryFile path;
  EXPECT_DEATH(write_all(path.path(), {plan::find_algorithm("individual"),
                                       {.cycle_bytes = kCycle, .at_once = 1},
                                       nullptr}),
               kEnd);
  EXPECT_EQ(path.contents().size(), size_t(kCycle)) << "of the first rank, which awaits nobody";
}

// Descriptor 2 may be a file of the program's by then.
TEST(Abandon, SaysNothingWhereThisProcessMayNotSpeak) {
  const auto silent = [] {
    abandon_speaks_if([] { return 0; });
    abandon(Error{ErrorClass::communication, 0, "collective", "a rank is gone"});
  };
  EXPECT_EXIT(silent(), testing::KilledBySignal(SIGABRT), "^$");
}

}  // namespace
}  // namespace penstock::exec::abandon_test
