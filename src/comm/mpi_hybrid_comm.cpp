// A collective call meets twice inside each rank: the threads show what they bring, the first of
// them makes the MPI call for all, and each takes its result. Messages go straight from thread to
// thread: their MPI tags carry both threads' numbers.
#include "comm/mpi_hybrid_comm.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "comm/meeting.hpp"
#include "comm/mpi_ask.hpp"
#include "comm/mpi_comm.hpp"
#include "comm/mpi_transfers.hpp"

namespace penstock::comm {
namespace {

constexpr int kTags = 256;  // of Transfers

// What the workers of one rank share.
struct Team {
  Team(std::unique_ptr<Comm> of_ranks, int n)
      : ranks(std::move(of_ranks)), threads(n), meeting(n), board(size_t(n)) {}

  int workers() const noexcept { return ranks->size() * threads; }
  // By the first thread: what a collective call has made is its users' alone.
  void forget() noexcept {
    lock.reset();
    segment.reset();
    node_team.reset();
  }
  // Collective calls are the first thread's; messages go by all of them.
  std::unique_ptr<Comm> ranks;
  int threads;
  Meeting meeting;

  // Of the collective call in progress.
  std::vector<std::span<const std::byte>> board;  // what each thread shows
  Result<void> outcome;                           // of the first thread's part, for all
  std::vector<std::byte> bytes;
  std::vector<int64_t> values;
  std::shared_ptr<NodeLock> lock;
  std::shared_ptr<SharedSegment> segment;
  std::shared_ptr<Team> node_team;
};

class HybridTransfers final : public Transfers {
 public:
  HybridTransfers(const Team& team, int thread)
      : inner_(make_mpi_transfers(handle_of(*team.ranks))),
        threads_(team.threads),
        thread_(thread) {}

  int send(int to, int tag, std::span<const std::byte> bytes) override {
    return inner_->send(to / threads_, mpi_tag(thread_, to % threads_, tag), bytes);
  }
  int send_strided(int to, int tag, const Strided& pieces) override {
    return inner_->send_strided(to / threads_, mpi_tag(thread_, to % threads_, tag), pieces);
  }
  int receive(int from, int tag, std::span<std::byte> bytes) override {
    return inner_->receive(from / threads_, mpi_tag(from % threads_, thread_, tag), bytes);
  }
  std::optional<Event> next() override { return inner_->next(); }
  const Result<void>& status() const noexcept override { return inner_->status(); }
  Result<void> finish() override { return inner_->finish(); }

 private:
  int mpi_tag(int from, int to, int tag) const noexcept {
    return (from * threads_ + to) * kTags + tag;
  }

  std::unique_ptr<Transfers> inner_;
  int threads_;
  int thread_;
};

class HybridComm final : public Comm {
 public:
  HybridComm(std::shared_ptr<Team> team, int thread) : team_(std::move(team)), thread_(thread) {}

  int rank() const noexcept override { return team_->ranks->rank() * team_->threads + thread_; }
  int size() const noexcept override { return team_->workers(); }
  int nodes() const noexcept override { return team_->ranks->nodes(); }
  int cores_per_node() const noexcept override { return team_->ranks->cores_per_node(); }
  int own_node() const noexcept override { return team_->ranks->own_node(); }
  int turn() const noexcept override { return team_->ranks->turn() * team_->threads; }

  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const auto gather_ranks = [&] {
      team_->bytes.resize(all.size());
      return team_->ranks->allgather(shown(), team_->bytes);
    };
    return together(mine, gather_ranks, [&] { std::ranges::copy(team_->bytes, all.begin()); });
  }

  Result<void> all_max(std::span<int64_t> values) override {
    return reduce(
        values, [](int64_t a, int64_t b) { return std::max(a, b); },
        [this] { return team_->ranks->all_max(team_->values); });
  }
  Result<void> all_sum(std::span<int64_t> values) override {
    return reduce(
        values, [](int64_t a, int64_t b) { return a + b; },
        [this] { return team_->ranks->all_sum(team_->values); });
  }

  Result<void> barrier() override {
    return together(
        {}, [this] { return team_->ranks->barrier(); }, [] {});
  }

  Result<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override {
    const auto gather_ranks = [&]() -> Result<void> {
      auto all = team_->ranks->gather(shown(), root / team_->threads);
      if (!all) return tl::unexpected(std::move(all).error());
      team_->bytes = *std::move(all);
      return {};
    };
    std::vector<std::byte> all;
    const Result<void> done = together(mine, gather_ranks, [&] {
      if (rank() == root) all = std::move(team_->bytes);
    });
    if (!done) return tl::unexpected(done.error());
    return all;
  }

  Result<std::shared_ptr<NodeLock>> node_lock() override {
    const auto make = [this]() -> Result<void> {
      auto made = team_->ranks->node_lock();
      if (!made) return tl::unexpected(std::move(made).error());
      team_->lock = *std::move(made);
      return {};
    };
    std::shared_ptr<NodeLock> lock;
    const Result<void> done = together({}, make, [&] { lock = team_->lock; });
    if (!done) return tl::unexpected(done.error());
    return lock;
  }

  Result<std::shared_ptr<SharedSegment>> shared_segment(const SegmentShape& shape) override {
    const auto make = [this, &shape]() -> Result<void> {
      auto made = team_->ranks->shared_segment(shape);
      if (!made) return tl::unexpected(std::move(made).error());
      team_->segment = *std::move(made);
      return {};
    };
    std::shared_ptr<SharedSegment> segment;
    const Result<void> done = together({}, make, [&] { segment = team_->segment; });
    if (!done) return tl::unexpected(done.error());
    return segment;
  }

  Result<std::unique_ptr<Comm>> split_by_node() override {
    std::unique_ptr<Comm> mine;
    const Result<void> done = together(
        {}, [this] { return split_ranks(); },
        [&] { mine = std::make_unique<HybridComm>(team_->node_team, thread_); });
    if (!done) return tl::unexpected(done.error());
    return mine;
  }

  Result<std::unique_ptr<Parcels>> parcels() override {
    return fail(ErrorClass::unsupported, "parcels", "workers are threads of MPI ranks");
  }
  Result<std::unique_ptr<Slots>> slots(const SlotsShape&) override {
    return fail(ErrorClass::unsupported, "slots", "workers are threads of MPI ranks");
  }

  std::unique_ptr<Transfers> transfers() override {
    return std::make_unique<HybridTransfers>(*team_, thread_);
  }
  // REQUIRES that no thread of this rank is in a collective call.
  void rest() noexcept override { team_->ranks->rest(); }

 private:
  // Shows `mine`; the first thread makes its part, `lead`, when all have; where that succeeded,
  // everyone reads its result. The same outcome for all threads of the rank.
  template <class Lead, class Read>
  Result<void> together(std::span<const std::byte> mine, Lead&& lead, Read&& read) {
    team_->board[size_t(thread_)] = mine;
    team_->meeting.meet();
    if (thread_ == 0) team_->outcome = lead();
    team_->meeting.meet();
    Result<void> outcome = team_->outcome;
    if (outcome) read();
    team_->meeting.meet();  // everyone has read: the next call may begin
    if (thread_ == 0) team_->forget();
    return outcome;
  }

  // What the threads of this rank show, in their order.
  std::vector<std::byte> shown() const {
    std::vector<std::byte> bytes;
    for (const auto& part : team_->board) bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
  }

  template <class Combine, class AcrossRanks>
  Result<void> reduce(std::span<int64_t> values, Combine&& combine, AcrossRanks&& across) {
    const auto lead = [&] {
      team_->values.assign(values.begin(), values.end());
      for (size_t thread = 1; thread < team_->board.size(); ++thread)
        for (size_t i = 0; i < values.size(); ++i) {
          int64_t theirs;
          std::memcpy(&theirs, team_->board[thread].data() + i * sizeof theirs, sizeof theirs);
          team_->values[i] = combine(team_->values[i], theirs);
        }
      return across();
    };
    return together(std::as_bytes(values), lead,
                    [&] { std::ranges::copy(team_->values, values.begin()); });
  }

  // The next team of each node's ranks.
  Result<void> split_ranks() {
    auto node = team_->ranks->split_by_node();
    if (!node) return tl::unexpected(std::move(node).error());
    team_->node_team = std::make_shared<Team>(*std::move(node), team_->threads);
    return {};
  }

  std::shared_ptr<Team> team_;
  int thread_;
};

// --- Making a team ---

// The largest tag of a message, plus one.
int64_t tags_of(MPI_Comm comm) {
  int* largest = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  // To Open MPI it is an attribute of MPI_COMM_WORLD and its duplicates alone.
  if (found == 0 && mpi_is_running())
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  return found != 0 ? int64_t{*largest} + 1 : 32768;  // the least that the standard allows
}

// What this rank has against so many threads.
Result<void> check_threads(MPI_Comm comm, int threads) {
  if (threads < 1)
    return fail(ErrorClass::argument, "team of MPI ranks",
                "threads must be at least 1, got " + std::to_string(threads));
  if (threads > tags_of(comm) / kTags / threads)
    return fail(ErrorClass::argument, "team of MPI ranks",
                "threads=" + std::to_string(threads) +
                    " is more than this MPI library's message tags can tell apart; use fewer");
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  if (threads > 1 && level < MPI_THREAD_MULTIPLE)
    return fail(ErrorClass::unsupported, "team of MPI ranks",
                "threads=" + std::to_string(threads) +
                    " needs MPI_THREAD_MULTIPLE: ask MPI_Init_thread for it");
  return {};
}

// Collective: all ranks have the same number of threads and nothing against it.
Result<void> agree_on_threads(MPI_Comm parent, Comm& ranks, int threads) {
  if (auto agreed = agree(ranks, check_threads(parent, threads)); !agreed) return agreed;
  int64_t least_and_most[2] = {-threads, threads};
  if (auto r = ranks.all_max(least_and_most); !r) return r;
  if (-least_and_most[0] == least_and_most[1]) return {};
  return fail(ErrorClass::argument, "team of MPI ranks",
              "threads must be the same on every rank, got " + std::to_string(-least_and_most[0]) +
                  " to " + std::to_string(least_and_most[1]));
}

Result<std::shared_ptr<Team>> make_team(MPI_Comm parent, int threads) {
  Result<std::unique_ptr<Comm>> ranks = make_mpi_comm_of_threads(parent);
  if (!ranks) return tl::unexpected(std::move(ranks).error());
  if (auto ok = agree_on_threads(parent, **ranks, threads); !ok)
    return tl::unexpected(std::move(ok).error());
  return std::make_shared<Team>(*std::move(ranks), threads);
}

}  // namespace

Result<std::vector<std::unique_ptr<Comm>>> make_hybrid_team(MPI_Comm parent, int threads) {
  Result<std::shared_ptr<Team>> team = make_team(parent, threads);
  if (!team) return tl::unexpected(std::move(team).error());
  std::vector<std::unique_ptr<Comm>> workers;
  workers.reserve(size_t(threads));
  for (int thread = 0; thread < threads; ++thread)
    workers.push_back(std::make_unique<HybridComm>(*team, thread));
  return workers;
}

}  // namespace penstock::comm
