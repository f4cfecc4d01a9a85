// What ranks were to learn together and one did not, and messages that failed: nobody goes on with
// what may be anything, or without the others.
#include "exec/abandon.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/node_pages.hpp"
#include "exec/peers.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "exec/read_pipeline.hpp"
#include "exec/shipping.hpp"
#include "exec/unheard_for_tests.hpp"
#include "io/reader.hpp"
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

// Which message of the job has failed: the first that is done, of those that it could be.
struct Strike {
  using Kind = comm::Event::Kind;
  std::optional<int> tag = {};
  Kind kind = Kind::received;
  std::atomic<bool> over = false;

  bool hits(Kind done, int done_tag) {
    return done == kind && done_tag == tag.value_or(done_tag) && !over.exchange(true);
  }
};

// A message that has failed leaves anything behind.
class Torn final : public comm::Transfers {
 public:
  Torn(std::unique_ptr<comm::Transfers> inner, Strike& strike)
      : inner_(std::move(inner)), strike_(strike) {}
  int send(int to, int tag, std::span<const std::byte> bytes) override {
    return note(sent_, inner_->send(to, tag, bytes), {tag, {}});
  }
  int send_strided(int to, int tag, const comm::Strided& pieces) override {
    return note(sent_, inner_->send_strided(to, tag, pieces), {tag, {}});
  }
  int receive(int from, int tag, std::span<std::byte> bytes) override {
    return note(received_, inner_->receive(from, tag, bytes), {tag, bytes});
  }
  std::optional<comm::Event> next() override {
    const auto event = inner_->next();
    if (!event) return event;
    const auto& all = event->kind == Strike::Kind::sent ? sent_ : received_;
    const Message& done = all[size_t(event->number)];
    if (strike_.hits(event->kind, done.tag)) {
      status_ = fail(ErrorClass::communication, "collective", "a rank is gone");
      std::ranges::fill(done.into, std::byte{0x55});
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
  struct Message {
    int tag = 0;
    std::span<std::byte> into;
  };
  static int note(std::vector<Message>& all, int number, Message message) {
    if (all.size() <= size_t(number)) all.resize(size_t(number) + 1);
    all[size_t(number)] = message;
    return number;
  }

  const std::unique_ptr<comm::Transfers> inner_;
  Strike& strike_;
  std::vector<Message> sent_, received_;  // by number
  Result<void> status_;
};

class OfTorn final : public comm::Borrowed {
 public:
  OfTorn(comm::Comm& owner, Strike& strike) : Borrowed(owner), strike_(strike) {}
  std::unique_ptr<comm::Transfers> transfers() override {
    return std::make_unique<Torn>(Borrowed::transfers(), strike_);
  }

 private:
  Strike& strike_;
};

constexpr int64_t kCycle = 4096;
constexpr int64_t kOfEach = 4 * kCycle;

// Four ranks on two nodes, each some cycles behind those of the rank before.
void write_all(const std::string& path, const Pipeline::Policy& policy) {
  Strike first;
  comm::run_thread_team(
      4,
      [&](comm::Comm& owner) {
        OfTorn comm(owner, first);
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

// --- Every phase of a call ---

// The messages of a call, by their tags.
constexpr int kDescription = 1, kData = 2, kCuts = 3, kLoad = 4, kChapters = 5, kReadData = 16;

// Where one rank alone learns that something went wrong.
struct Phase {
  std::string name;
  const Exchange* exchange = nullptr;  // nullptr: of a read
  const char* algorithm = "two_phase";
  // A message, at one of its ends; or the nth meeting of that kind of a call like one before.
  std::optional<int> tag = {};
  Strike::Kind end = Strike::Kind::received;
  Unheard::Call meeting = Unheard::Call::all_max;
  int nth = 0;

  friend std::ostream& operator<<(std::ostream& out, const Phase& p) { return out << p.name; }
};

constexpr int kRanks = 4;  // on two nodes
constexpr int64_t kBlock = 16;
constexpr unsigned kDeadline_s = 60;

int64_t blocks_of_each() { return 2 * layout::Outline::kLongChapters * blocks_per_chapter(); }

// Blocks dealt to the ranks without a pattern: so many that they are told chapter by chapter.
struct Irregular {
  explicit Irregular(int rank) : data(size_t(blocks_of_each() * kBlock), std::byte(rank + 1)) {
    std::vector<layout::LoopTree::Block> blocks;
    uint32_t dice = 1;
    for (int64_t round = 0; round < blocks_of_each(); ++round) {
      dice = dice * 1664525 + 1013904223;
      const int64_t place = (int64_t(dice >> 16) + rank) % kRanks;
      blocks.push_back({(round * kRanks + place) * kBlock, kBlock});
    }
    view = *layout::FileView::make(0, 1,
                                   *layout::LoopTree::indexed(blocks, layout::LoopTree::bytes(1)));
  }
  int64_t bytes() const { return int64_t(data.size()); }

  layout::FileView view;
  std::vector<std::byte> data;
};

Pipeline::Policy policy_of(const Phase& phase) {
  const plan::Algorithm* const algorithm = plan::find_algorithm(phase.algorithm);
  return {algorithm, plan::taken_by(*algorithm, {2, 4 * kCycle}), nullptr, phase.exchange};
}

void write_twice(comm::Comm& comm, const Phase& phase, const std::string& path,
                 const std::function<void()>& between) {
  const auto file = io::find_mechanism("pwrite")->open({path}).value();
  Pipeline pipeline(comm, *file, {});
  const Irregular mine(comm.rank());
  const WriteRequest request{
      &mine.view, {0, mine.bytes()}, mine.data.data(), layout::LoopTree::bytes(1), mine.bytes()};
  EXPECT_EQ(pipeline.write_all(request, policy_of(phase)).agreed, ErrorClass::none);
  between();
  (void)pipeline.write_all(request, policy_of(phase));
  EXPECT_TRUE(file->close());
}

void read_twice(comm::Comm& comm, const Phase& phase, const std::string& path,
                const std::function<void()>& between) {
  const auto file = io::open_for_reading(path).value();
  ReadPipeline pipeline(comm, *file, {});
  Irregular mine(comm.rank());
  const ReadRequest request{
      &mine.view, {0, mine.bytes()}, mine.data.data(), layout::LoopTree::bytes(1), mine.bytes()};
  EXPECT_EQ(pipeline.read_all(request, policy_of(phase)).agreed, ErrorClass::none);
  between();
  (void)pipeline.read_all(request, policy_of(phase));
}

// Ranks that wait for ever are killed, without the words of one that ends the job.
void call_twice(const Phase& phase, const std::string& path) {
  ::alarm(kDeadline_s);
  Strike strike;
  strike.tag = phase.tag;
  strike.kind = phase.end;
  strike.over = !phase.tag;
  comm::run_thread_team(kRanks,
                        [&](comm::Comm& owner) {
                          Unheard unheard(owner);
                          OfTorn comm(unheard, strike);
                          const auto between = [&] { unheard.will_fail(phase.meeting, phase.nth); };
                          (phase.exchange != nullptr ? write_twice : read_twice)(comm, phase, path,
                                                                                 between);
                        },
                        {.nodes = 2});
}

class PhaseDeathTest : public testing::TestWithParam<Phase> {};

TEST_P(PhaseDeathTest, WhereOneRankIsLostEndsTheJob) {
  const io::TemporaryFile path;
  if (GetParam().exchange == nullptr)
    std::ofstream(path.path()) << std::string(size_t(kRanks * blocks_of_each() * kBlock), 'x');
  EXPECT_DEATH(call_twice(GetParam(), path.path()), kEnd);
}

// Cuts are of an algorithm of its own, which reads by another's domains.
std::vector<Phase> phases_of(const Exchange* exchange) {
  const std::string of = exchange != nullptr ? std::string(exchange->name) : "read";
  std::vector<Phase> all;
  const auto meeting = [&](const char* name, Unheard::Call call, int nth) {
    Phase p{of + "_" + name, exchange};
    p.meeting = call;
    p.nth = nth;
    all.push_back(p);
  };
  const auto message = [&](const char* name, int tag, const char* algorithm = "two_phase") {
    all.push_back({of + "_" + name + "Sent", exchange, algorithm, tag, Strike::Kind::sent});
    all.push_back({of + "_" + name + "Received", exchange, algorithm, tag, Strike::Kind::received});
  };
  meeting("Summaries", Unheard::Call::allgather, 1);
  if (exchange == nullptr) meeting("EndOfFile", Unheard::Call::all_max, 1);
  message("Descriptions", kDescription);
  message("Chapters", kChapters);
  if (exchange != nullptr) message("Cuts", kCuts, "dynamic_segmentation");
  if (exchange == nullptr)
    message("Data", kReadData);
  else
    message("Data", exchange->outbox_bytes > 0 ? kLoad : kData);
  meeting("Exit", Unheard::Call::all_max, exchange == nullptr ? 2 : 1);
  return all;
}

std::vector<Phase> every_phase() {
  std::vector<Phase> all = phases_of(nullptr);
  for (const Exchange* e : exchanges())
    for (Phase& p : phases_of(e)) all.push_back(std::move(p));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, PhaseDeathTest, testing::ValuesIn(every_phase()),
                         [](const auto& tested) { return tested.param.name; });

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
