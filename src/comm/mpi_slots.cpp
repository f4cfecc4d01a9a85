// A window of MPI on each rank: how many slots are given, how far the owner has come with each, and
// the slots. Operations have requests, which are only tested: MPI_Win_flush would wait for an owner
// that computes, where the network needs its help. Without a flush nobody knows which bytes of a
// parcel have come, so each brings a checksum, and is there when that is right.
#include "comm/mpi_slots.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/extent.hpp"
#include "base/hash.hpp"
#include "comm/mpi_ask.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {
namespace {

// Tests of one request in a call: some microseconds, what a network with RMA needs.
constexpr int kLooks = 50;

// What is in front of a parcel in its slot.
struct Head {
  int64_t turn = 0;  // which parcel of this slot it is; from 1 on after each reopen()
  int64_t sender = 0;
  int64_t bytes = 0;
  Hash checksum = 0;  // of all the others, and of the parcel
};

Hash checksum_of(const Head& head, std::span<const std::byte> bytes) {
  const Hash seed = mix(mix(mix(0, uint64_t(head.turn)), uint64_t(head.sender)), bytes.size());
  std::array<Hash, 4> sums = {seed, seed + 1, seed + 2, seed + 3};  // none waits for another
  size_t at = 0;
  for (; at + sizeof sums <= bytes.size(); at += sizeof sums) {
    std::array<uint64_t, sums.size()> words;
    std::memcpy(words.data(), bytes.data() + at, sizeof words);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = mix(sums[i], words[i]);
  }
  for (; at < bytes.size(); ++at) sums[0] = mix(sums[0], uint64_t(bytes[at]));
  return mix(mix(sums[0], sums[1]), mix(sums[2], sums[3]));
}

// Where things are in everybody's window.
class Plot {
 public:
  explicit Plot(const SlotsShape& shape)
      : shape_(shape),
        first_slot_(align_up(kLine + shape.slots * kWord, kLine)),
        slot_bytes_(align_up(int64_t{sizeof(Head)} + shape.parcel_bytes, kLine)) {}

  const SlotsShape& shape() const noexcept { return shape_; }
  int64_t given() const noexcept { return 0; }
  int64_t turns_done(int slot) const noexcept { return kLine + slot * kWord; }
  int64_t head(int slot) const noexcept { return first_slot_ + slot * slot_bytes_; }
  int64_t parcel(int slot) const noexcept { return head(slot) + int64_t{sizeof(Head)}; }
  int64_t bytes() const noexcept { return head(shape_.slots); }

 private:
  static constexpr int64_t kLine = 64, kWord = sizeof(int64_t);
  SlotsShape shape_;
  int64_t first_slot_;
  int64_t slot_bytes_;
};

struct Window {
  MPI_Win win = MPI_WIN_NULL;
  std::byte* own = nullptr;
};

// What a rank does at one owner's.
struct Lane {
  bool asking = false;
  int64_t ticket = 0;
  int slot = -1;     // none was left
  int64_t turn = 0;  // of the parcel that was put last
  bool put = false;  // it was not given back yet
  Head head;
  std::vector<std::byte> bytes;
  bool looking = false;
  int64_t turns_done = 0;  // as it was seen last
  // Done where they are MPI_REQUEST_NULL.
  MPI_Request ask = MPI_REQUEST_NULL, look = MPI_REQUEST_NULL;
  std::array<MPI_Request, 2> putting = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

  bool quiet() const noexcept { return !asking && !put; }
  Way way() const noexcept {
    if (asking || put) return Way::busy;
    return slot < 0 ? Way::closed : Way::open;
  }
};
using Lanes = std::unordered_map<int, Lane>;  // they do not move

// A window, and what MPI may still read or write for it.
struct Share {
  Window window;
  Lanes lanes;
};

// Collective. What was on its way has come then.
void free_share(Share& share) {
  PMPI_Win_unlock_all(share.window.win);
  for (auto& [owner, lane] : share.lanes)
    for (MPI_Request* request : {&lane.ask, &lane.look, &lane.putting[0], &lane.putting[1]})
      PMPI_Wait(request, MPI_STATUS_IGNORE);
  PMPI_Win_free(&share.window.win);
}

// In the order in which they were made, which is the same wherever ranks have several in common.
class Shares {
 public:
  void add(const std::shared_ptr<Share>& share) {
    const std::lock_guard lock(mutex_);
    all_.push_back(share);
  }
  void remove(const std::shared_ptr<Share>& share) {
    const std::lock_guard lock(mutex_);
    all_.remove(share);
  }
  std::list<std::shared_ptr<Share>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(all_, {});
  }

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<Share>> all_;
};

Shares& shares() {
  static Shares& all = *new Shares;  // outlives every destructor of the program
  return all;
}

class MpiSlots final : public Slots {
 public:
  MpiSlots(const Window& window, const Plot& plot, int rank, int ranks)
      : share_(std::make_shared<Share>(Share{window, {}})),
        window_(share_->window),
        lanes_(share_->lanes),
        plot_(plot),
        rank_(rank),
        ranks_(ranks),
        turns_done_(size_t(plot.shape().slots)) {
    shares().add(share_);
  }

  Way way_to(int owner) override {
    const auto [found, is_new] = lanes_.try_emplace(owner);
    Lane& lane = found->second;
    if (is_new) ask(owner, lane);
    for (int look = 0; look < kLooks; ++look) {
      advance(owner, lane);
      if (lane.way() != Way::busy || !status_) break;
    }
    return lane.way();
  }

  void put(int owner, std::vector<std::byte> bytes) override {
    Lane& lane = lanes_.at(owner);
    lane.bytes = std::move(bytes);
    lane.head = {++lane.turn, rank_, int64_t(lane.bytes.size()), 0};
    lane.head.checksum = checksum_of(lane.head, lane.bytes);
    lane.put = true;
    start_put(owner, plot_.parcel(lane.slot), lane.bytes, lane.putting[0]);
    start_put(owner, plot_.head(lane.slot), std::as_bytes(std::span(&lane.head, 1)),
              lane.putting[1]);
  }

  std::optional<Parcel> released() override {
    for (auto& [owner, lane] : lanes_) advance(owner, lane);
    if (back_.empty()) return std::nullopt;
    Parcel parcel = std::move(back_.back());
    back_.pop_back();
    return parcel;
  }

  std::span<const std::byte> on_its_way_to(int owner) const override {
    const auto lane = lanes_.find(owner);
    if (lane == lanes_.end() || !lane->second.put) return {};
    return lane->second.bytes;
  }

  std::vector<Parcel> take_back() override {
    std::vector<Parcel> all = std::exchange(back_, {});
    for (const auto& [owner, lane] : lanes_)
      if (lane.put) all.push_back({owner, lane.bytes});
    return all;
  }

  bool used() const noexcept override { return !lanes_.empty(); }
  bool quiet() const noexcept override {
    return std::ranges::all_of(lanes_, [](const auto& entry) { return entry.second.quiet(); });
  }

  std::optional<Parcel> receive() override {
    const auto given = int(std::min<int64_t>(word(plot_.given()).load(std::memory_order_acquire),
                                             plot_.shape().slots));
    for (int i = 0; i < given; ++i) {
      const int slot = (next_ + i) % given;
      auto parcel = look_into(slot);
      if (!parcel) continue;
      held_ = slot;
      next_ = slot + 1;
      return parcel;
    }
    return std::nullopt;
  }

  void release() override {
    const int64_t done = ++turns_done_[size_t(held_)];
    word(plot_.turns_done(held_)).store(done, std::memory_order_release);
  }

  // Turns go on where no earlier one has been, so nothing that lies in a slot is taken for new.
  void reopen() override {
    lanes_.clear();
    ++epoch_;
    std::ranges::fill(turns_done_, first_turn());
    for (int slot = 0; slot < plot_.shape().slots; ++slot)
      word(plot_.turns_done(slot)).store(first_turn(), std::memory_order_release);
    word(plot_.given()).store(0, std::memory_order_release);
    note("MPI_Win_sync", PMPI_Win_sync(window_.win));
  }

  void free() override {
    shares().remove(share_);
    free_share(*share_);
  }

  Result<void> status() const override { return status_; }

 private:
  int64_t first_turn() const noexcept { return epoch_ << 32; }
  std::atomic_ref<int64_t> word(int64_t at) const noexcept {
    return std::atomic_ref(*reinterpret_cast<int64_t*>(window_.own + at));
  }

  // --- As a sender ---

  void ask(int owner, Lane& lane) {
    static const int64_t kOne = 1;
    lane.asking = true;
    lane.turn = first_turn();
    note("MPI_Rget_accumulate", PMPI_Rget_accumulate(&kOne, 1, MPI_INT64_T, &lane.ticket, 1,
                                                     MPI_INT64_T, owner, MPI_Aint(plot_.given()), 1,
                                                     MPI_INT64_T, MPI_SUM, window_.win, &lane.ask));
  }

  void start_put(int owner, int64_t at, std::span<const std::byte> bytes, MPI_Request& request) {
    const int n = int(bytes.size());
    note("MPI_Rput", PMPI_Rput(bytes.data(), n, MPI_BYTE, owner, MPI_Aint(at), n, MPI_BYTE,
                               window_.win, &request));
  }

  void start_look(int owner, Lane& lane) {
    lane.looking = true;
    note("MPI_Rget",
         PMPI_Rget(&lane.turns_done, 1, MPI_INT64_T, owner, MPI_Aint(plot_.turns_done(lane.slot)),
                   1, MPI_INT64_T, window_.win, &lane.look));
  }

  // What has become of the lane's question, and of its parcel. After a failure nothing any more.
  void advance(int owner, Lane& lane) {
    if (!status_) return;
    if (lane.asking && done(lane.ask)) {
      lane.asking = false;
      if (lane.ticket < plot_.shape().slots) lane.slot = int(lane.ticket);
    }
    if (!lane.put) return;
    if (!lane.looking) start_look(owner, lane);
    if (!done(lane.look)) return;
    lane.looking = false;
    if (lane.turns_done < lane.turn || !done(lane.putting[0]) || !done(lane.putting[1])) return;
    lane.put = false;
    back_.push_back({owner, std::move(lane.bytes)});
  }

  bool done(MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return bool(status_);
    int flag = 0;
    return note("MPI_Test", PMPI_Test(&request, &flag, MPI_STATUS_IGNORE)) && flag != 0;
  }

  // --- As an owner ---

  // Others may be writing there; what was read is used only where its checksum is right.
  std::optional<Parcel> look_into(int slot) const {
    const int64_t turn = word(plot_.head(slot)).load(std::memory_order_acquire);
    if (turn != turns_done_[size_t(slot)] + 1) return std::nullopt;
    Head head;
    std::memcpy(&head, window_.own + plot_.head(slot), sizeof head);
    if (head.turn != turn || head.sender < 0 || head.sender >= ranks_ || head.bytes < 1 ||
        head.bytes > plot_.shape().parcel_bytes)
      return std::nullopt;
    const std::byte* const from = window_.own + plot_.parcel(slot);
    Parcel parcel{int(head.sender), std::vector<std::byte>(from, from + head.bytes)};
    if (checksum_of(head, parcel.bytes) != head.checksum) return std::nullopt;
    return parcel;
  }

  bool note(const char* operation, int rc) {
    if (rc != MPI_SUCCESS && status_) status_ = mpi_error(operation, rc);
    return rc == MPI_SUCCESS;
  }

  const std::shared_ptr<Share> share_;
  const Window& window_;
  Lanes& lanes_;
  const Plot plot_;
  const int rank_, ranks_;
  std::vector<Parcel> back_;
  int64_t epoch_ = 0;  // how often they were reopened
  std::vector<int64_t> turns_done_;
  int held_ = 0;  // that receive() gave out
  int next_ = 0;  // to be looked into
  Result<void> status_;
};

// --- Making it ---

Result<void> checked(const char* operation, int rc) {
  if (rc != MPI_SUCCESS) return mpi_error(operation, rc);
  return {};
}

Result<void> allocate(MPI_Comm mpi, const Plot& plot, Window& window) {
  MPI_Info info = MPI_INFO_NULL;
  PMPI_Info_create(&info);
  // Ranks of one node never put to each other: memory that they share is not wanted (MPICH).
  PMPI_Info_set(info, "alloc_shm", "false");
  const int rc = PMPI_Win_allocate(MPI_Aint(plot.bytes()), 1, info, mpi,
                                   static_cast<void*>(&window.own), &window.win);
  PMPI_Info_free(&info);
  if (rc != MPI_SUCCESS) return mpi_error("MPI_Win_allocate", rc);
  PMPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
  return {};
}

// An owner's looks must see what others put, by and by and without a call to MPI.
Result<void> check_unified(const Window& window) {
  int* model = nullptr;
  int found = 0;
  PMPI_Win_get_attr(window.win, MPI_WIN_MODEL, static_cast<void*>(&model), &found);
  if (found != 0 && *model == MPI_WIN_UNIFIED) return {};
  return fail(ErrorClass::unsupported, "one-sided communication",
              "this MPI library's windows are not of the unified model");
}

Result<void> begin_access(const Plot& plot, const Window& window) {
  std::memset(window.own, 0, size_t(plot.head(0)));
  for (int slot = 0; slot < plot.shape().slots; ++slot)
    std::memset(window.own + plot.head(slot), 0, sizeof(Head));
  if (auto r = checked("MPI_Win_lock_all", PMPI_Win_lock_all(MPI_MODE_NOCHECK, window.win)); !r)
    return r;
  return checked("MPI_Win_sync", PMPI_Win_sync(window.win));
}

}  // namespace

Result<std::unique_ptr<Slots>> make_mpi_slots(MPI_Comm mpi, Comm& comm, const SlotsShape& shape) {
  const Plot plot(shape);
  Window window;
  // Where a rank has no window, those of the others cannot be freed: that is collective.
  if (auto made = agree(comm, allocate(mpi, plot, window)); !made)
    return tl::unexpected(made.error());
  if (auto unified = agree(comm, check_unified(window)); !unified) {
    PMPI_Win_free(&window.win);
    return tl::unexpected(unified.error());
  }
  if (auto begun = agree(comm, begin_access(plot, window)); !begun)
    return tl::unexpected(begun.error());
  return std::make_unique<MpiSlots>(window, plot, comm.rank(), comm.size());
}

void free_left_slots() {
  if (!mpi_is_running()) return;
  for (const auto& share : shares().take()) free_share(*share);
}

}  // namespace penstock::comm
