// Comm over an MPI communicator, by PMPI_ names only: profilers and the shim
// see none of our traffic. Every wait is a loop of MPI_Test with a growing pause:
// the tests let the program's own messages progress (an endless sleep deadlocks legal
// programs), the pauses let ranks that outnumber cores run at all. Ranks of one node that have met
// often tell each other numbers in memory that they share (docs/decisions/0074).
#include "comm/mpi_comm.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/seeded_fault.hpp"
#include "comm/board.hpp"
#include "comm/mpi_ask.hpp"
#include "comm/mpi_board_wait.hpp"
#include "comm/mpi_kept.hpp"
#include "comm/mpi_node.hpp"
#include "comm/mpi_parcels.hpp"
#include "comm/mpi_slots.hpp"
#include "comm/mpi_transfers.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {
namespace {

// So many collectives go by MPI first: to make a board takes as long as it then spares that many of
// them, and most files have fewer.
constexpr int64_t kCallsBeforeBoard = 64;

int64_t number_at(std::span<const std::byte> told, size_t i) {
  int64_t number = 0;
  std::memcpy(&number, told.data() + i * sizeof number, sizeof number);
  return number;
}

class MpiComm final : public Comm {
 public:
  explicit MpiComm(Start start)
      : own_(std::move(start.own)),
        kept_(std::move(start.kept)),
        comm_(own_->comm()),
        facts_(start.facts) {
    PMPI_Comm_rank(comm_, &rank_);
    PMPI_Comm_size(comm_, &size_);
  }

  ~MpiComm() override {
    if (kept_) kept_->leave(std::move(own_));
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  int nodes() const noexcept override { return facts_.nodes; }
  int cores_per_node() const noexcept override { return facts_.cores_per_node; }
  int own_node() const noexcept override { return facts_.own_node; }
  int turn() const noexcept override { return facts_.turn; }

  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (size_ == 1) {
      std::ranges::copy(mine, all.begin());
      return {};
    }
    if (Board* const board = board_for(mine.size())) {
      const auto put = [&](int rank, std::span<const std::byte> told) {
        std::ranges::copy(told, all.begin() + ptrdiff_t(size_t(rank) * told.size()));
      };
      put(rank_, mine);
      return board->meet(mine, BoardWait(comm_), put);
    }
    const auto n = int_count("MPI_Iallgather", mine.size());
    if (!n) return tl::unexpected(n.error());
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc =
        PMPI_Iallgather(mine.data(), *n, MPI_BYTE, all.data(), *n, MPI_BYTE, comm_, &request);
    return wait("MPI_Iallgather", rc, request);
  }

  Result<void> all_max(std::span<int64_t> values) override {
    return reduce_all(values, MPI_MAX, [](int64_t a, int64_t b) { return std::max(a, b); });
  }
  Result<void> all_sum(std::span<int64_t> values) override {
    return reduce_all(values, MPI_SUM, [](int64_t a, int64_t b) { return a + b; });
  }

  Result<void> barrier() override {
    if (size_ == 1) return {};
    if (Board* const board = board_for(0))
      return board->meet({}, BoardWait(comm_), [](int, std::span<const std::byte>) {});
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc = PMPI_Ibarrier(comm_, &request);
    return wait("MPI_Ibarrier", rc, request);
  }

  Result<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override;

  Result<std::shared_ptr<NodeLock>> node_lock() override {
    if (size_ == 1) return make_thread_lock();
    const Result<MPI_Comm> node = node_ranks();
    if (!node) return tl::unexpected(node.error());
    return make_mpi_node_lock(*node, *this);
  }

  Result<std::shared_ptr<SharedSegment>> shared_segment(const SegmentShape& shape) override {
    if (size_ == 1) return make_thread_segment(shape.bytes);
    const Result<MPI_Comm> node = node_ranks();
    if (!node) return tl::unexpected(node.error());
    if (shape.room != Room::when_used) return make_mpi_segment(*node, *this, shape);
    if (auto kept = kept_segment(*node, shape); !kept || *kept != nullptr) return kept;
    auto made = make_mpi_segment(*node, *this, shape);
    if (made) own_->segments().add(*made, size_in(*node));
    return made;
  }

  Result<std::unique_ptr<Comm>> split_by_node() override;

  Result<std::unique_ptr<Parcels>> parcels() override {
    auto made = make_mpi_parcels(*own_);
    const Result<void> mine = made ? Result<void>() : Result<void>(tl::unexpected(made.error()));
    const Result<void> agreed = agree(*this, mine);
    if (agreed) return made;
    made = tl::unexpected(agreed.error());
    own_->drop_for_parcels();
    return made;
  }

  Result<std::unique_ptr<Slots>> slots(const SlotsShape& shape) override {
    return make_mpi_slots(comm_, *this, shape);
  }

  std::unique_ptr<Transfers> transfers() override { return make_mpi_transfers(comm_); }
  void rest() noexcept override { own_->segments().rest(); }

  // Collective. Of the ranks before this one.
  Result<int64_t> sum_before(int64_t mine) {
    int64_t before = 0;
    if (size_ == 1) return before;
    if (Board* const board = board_for(sizeof mine)) {
      const auto add = [&](int rank, std::span<const std::byte> told) {
        if (rank < rank_) before += number_at(told, 0);
      };
      return board->meet(std::as_bytes(std::span(&mine, 1)), BoardWait(comm_), add).map([&] {
        return before;
      });
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc = PMPI_Iexscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, comm_, &request);
    // To the first MPI says nothing.
    return wait("MPI_Iexscan", rc, request).map([&] { return rank_ == 0 ? 0 : before; });
  }

  MPI_Comm handle() const noexcept { return comm_; }

 private:
  // Collective: where all ranks tell as many bytes. nullptr: by MPI, on all of them.
  Board* board_for(size_t bytes) {
    if (facts_.nodes > 1 || size_ == 1 || size_ > Board::kMostRanks || bytes > Board::kMostBytes)
      return nullptr;
    if (own_->counts_call() == kCallsBeforeBoard) make_board();
    return own_->board();
  }

  // Collective. Where /dev/shm has no room, MPI goes on.
  void make_board() {
    auto made = make_mpi_segment(comm_, *this, Board::shape(size_));
    if (made) own_->keep_board(std::make_unique<Board>(*std::move(made), rank_, size_));
  }

  template <class Op>
  Result<void> reduce_all(std::span<int64_t> values, MPI_Op by_mpi, Op op) {
    if (size_ == 1) return {};
    Board* const board = board_for(values.size_bytes());
    if (board == nullptr) return reduce(comm_, values, by_mpi);
    return board->meet(std::as_bytes(values), BoardWait(comm_),
                       [&](int, std::span<const std::byte> told) {
                         for (size_t i = 0; i < values.size(); ++i)
                           values[i] = op(values[i], number_at(told, i));
                       });
  }

  // Collective. Those of this node.
  Result<MPI_Comm> node_ranks() {
    if (facts_.nodes == 1) return comm_;
    NodeRanks& ranks = own_->node_ranks();
    if (ranks.comm() != MPI_COMM_NULL) return ranks.comm();
    const Result<void> agreed = agree(*this, ranks.split(comm_));
    if (agreed) return ranks.comm();
    ranks.free();  // nobody has any
    return tl::unexpected(agreed.error());
  }

  // Collective. nullptr: there is none that would do.
  Result<std::shared_ptr<SharedSegment>> kept_segment(MPI_Comm node, const SegmentShape& shape) {
    KeptSegments& segments = own_->segments();
    if (!segments.has_had_any()) return nullptr;
    const Result<int64_t> number = agree_on_kept(shape);
    if (!number) return tl::unexpected(number.error());
    if (*number >= 0 && clear_for_all(node, *segments.at(*number), shape.zeroed_bytes))
      return segments.at(*number);
    segments.drop_idle();  // before as much is asked for once more
    return nullptr;
  }

  // Collective. The number of one that would do, which all ranks have and nobody uses; -1: some
  // rank has none, or another. A rank may have given back what others have kept, and its program
  // may have another handle on the file, which still uses it.
  Result<int64_t> agree_on_kept(const SegmentShape& shape) {
    const int64_t mine = own_->segments().find(shape);
    int64_t most[] = {mine, -mine};
    return all_max(most).map([&] { return most[0] == -most[1] ? mine : -1; });
  }

  // Collective. Every rank has come, so nobody has anything to do there any more. false: it failed
  // on some rank.
  bool clear_for_all(MPI_Comm node, SharedSegment& segment, size_t bytes) {
    segment.use_again();
    Result<void> mine;
    if (rank_in(node) == 0 && !seeded_fault("segment_not_cleared")) mine = segment.clear(0, bytes);
    return agree(*this, mine).has_value();
  }

  std::unique_ptr<Duplicate> own_;
  std::shared_ptr<Kept> kept_;  // who has own_ in the end
  MPI_Comm comm_;
  NodeFacts facts_;
  int rank_ = 0, size_ = 1;
};

Result<std::vector<std::byte>> MpiComm::gather(std::span<const std::byte> mine, int root) {
  if (size_ == 1) return std::vector<std::byte>(mine.begin(), mine.end());
  int64_t total = int64_t(mine.size());
  if (auto r = all_sum({&total, 1}); !r) return tl::unexpected(r.error());
  // Everybody knows the total, so everybody refuses alike.
  if (auto n = int_count("MPI_Igatherv", size_t(total)); !n) return tl::unexpected(n.error());
  const int n = int(mine.size());
  std::vector<int> counts(rank_ == root ? size_t(size_) : 0), offsets(counts.size());
  MPI_Request request = MPI_REQUEST_NULL;
  int rc = PMPI_Igather(&n, 1, MPI_INT, counts.data(), 1, MPI_INT, root, comm_, &request);
  if (auto r = wait("MPI_Igather", rc, request); !r) return tl::unexpected(r.error());
  for (size_t i = 1; i < counts.size(); ++i) offsets[i] = offsets[i - 1] + counts[i - 1];
  std::vector<std::byte> all(rank_ == root ? size_t(total) : 0);
  rc = PMPI_Igatherv(mine.data(), n, MPI_BYTE, all.data(), counts.data(), offsets.data(), MPI_BYTE,
                     root, comm_, &request);
  if (auto r = wait("MPI_Igatherv", rc, request); !r) return tl::unexpected(r.error());
  return all;
}

Result<std::unique_ptr<Comm>> MpiComm::split_by_node() {
  const Result<MPI_Comm> ranks = node_ranks();
  if (!ranks) return tl::unexpected(ranks.error());
  auto part = start_part(*own_, *ranks, facts_.cores_per_node);
  if (!part) return tl::unexpected(std::move(part).error());
  return std::make_unique<MpiComm>(*std::move(part));
}

Result<std::unique_ptr<Comm>> comm_of(Result<Start> start) {
  if (!start) return tl::unexpected(std::move(start).error());
  return std::make_unique<MpiComm>(*std::move(start));
}

}  // namespace

Result<std::unique_ptr<Comm>> make_mpi_comm(MPI_Comm parent) {
  return comm_of(start_on(parent, Alone::sends_none));
}

Result<std::unique_ptr<Comm>> make_mpi_comm_of_threads(MPI_Comm parent) {
  return comm_of(start_on(parent, Alone::sends_to_itself));
}

MPI_Comm handle_of(const Comm& ranks) { return static_cast<const MpiComm&>(ranks).handle(); }

Result<int64_t> sum_before(Comm& ranks, int64_t mine) {
  return static_cast<MpiComm&>(ranks).sum_before(mine);
}

}  // namespace penstock::comm
