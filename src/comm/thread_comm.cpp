// Ranks as threads: mailboxes for messages, a barrier with a board for collectives.
// A message is copied once, by its receiver, straight from the sender's memory, in pieces or not.
#include "comm/thread_comm.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "base/dealing.hpp"
#include "comm/meeting.hpp"
#include "comm/thread_slots.hpp"

namespace penstock::comm {
namespace {

// The sender's, and used again once it was taken.
struct Message {
  Strided pieces;  // one, of a contiguous message
  int sender = 0;
  bool taken = false;       // guarded by the sender's mailbox
  Message* next = nullptr;  // of the same queue, guarded by the receiver's
};

class Queue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void push(Message& m) noexcept {
    m.next = nullptr;
    (empty() ? first_ : last_->next) = &m;
    last_ = &m;
  }
  // REQUIRES !empty().
  Message& pop() noexcept {
    Message& m = *first_;
    first_ = m.next;
    return m;
  }

 private:
  Message* first_ = nullptr;
  Message* last_ = nullptr;
};

// What one rank waits on: messages to it, and news of those it sent.
struct Mailbox {
  // REQUIRES the lock.
  void tell() {
    ++news;
    changed.notify_all();
  }
  // With the lock, which goes meanwhile; until there are news.
  void wait(std::unique_lock<std::mutex>& lock) {
    const int64_t seen = news;
    const auto is_told = [&] { return news != seen; };
    lock.unlock();
    const bool came = comes_soon(is_told);
    lock.lock();
    if (!came) changed.wait(lock, is_told);
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int64_t> news = 0;                 // changed with the lock
  std::map<std::pair<int, int>, Queue> arrived;  // by (sender, tag)
};

struct Team {
  Team(int ranks, bool used)
      : boxes(size_t(ranks)), meeting(ranks), board(size_t(ranks)), used_segments(used) {}

  void meet() { meeting.meet(); }

  std::vector<Mailbox> boxes;
  Meeting meeting;
  std::vector<std::span<const std::byte>> board;  // what each rank shows in a collective
  bool used_segments;
};

using Segment = Result<std::shared_ptr<SharedSegment>>;

// Of what need not be zero nothing is.
void pretend_use(SharedSegment& segment, const SegmentShape& shape) {
  constexpr auto kLeft = std::byte{0xa5};
  std::ranges::fill(segment.memory().subspan(shape.zeroed_bytes), kLeft);
  segment.use_again();
}

// Blocks of a length that the compiler knows, or (0) of any.
template <int64_t kBlock>
void gather(std::byte* out, const Strided& from) {
  const int64_t block = kBlock == 0 ? from.block_bytes : kBlock;
  for (int64_t i = 0; i < from.count; ++i)
    std::memcpy(out + i * block, from.first + i * from.stride_bytes, size_t(block));
}

// REQUIRES that `out` has room for all of them.
void gather(std::byte* out, const Strided& from) {
  if (from.bytes() == 0) return;
  if (from.block_bytes == 8) return gather<8>(out, from);
  if (from.block_bytes == 16) return gather<16>(out, from);
  gather<0>(out, from);
}

class ThreadTransfers final : public Transfers {
 public:
  ThreadTransfers(Team& team, int rank)
      : team_(team), box_(team.boxes[size_t(rank)]), rank_(rank) {}
  ~ThreadTransfers() override { (void)finish(); }

  int send(int to, int tag, std::span<const std::byte> bytes) override {
    return send_strided(to, tag, {bytes.data(), int64_t(bytes.size()), 0, 1});
  }

  int send_strided(int to, int tag, const Strided& pieces) override {
    const int number = place(sends_);
    Message& message = sends_[size_t(number)].emplace(Message{pieces, rank_});
    Mailbox& box = team_.boxes[size_t(to)];
    const std::lock_guard lock(box.mutex);
    box.arrived[{rank_, tag}].push(message);
    box.tell();
    return number;
  }

  int receive(int from, int tag, std::span<std::byte> bytes) override {
    const int number = place(receives_);
    receives_[size_t(number)] = Receive{from, tag, bytes, ++posted_};
    return number;
  }

  std::optional<Event> next() override {
    std::unique_lock lock(box_.mutex);
    while (in_flight_ > 0) {
      if (const auto number = sent()) return Event{Event::Kind::sent, *number};
      if (auto found = match()) {
        lock.unlock();
        take(*found->message, found->into);
        return Event{Event::Kind::received, found->number};
      }
      box_.wait(lock);
    }
    return std::nullopt;
  }

  const Result<void>& status() const noexcept override { return status_; }

  Result<void> finish() override {
    while (next()) {
    }
    Result<void> r = std::move(status_);
    status_ = {};
    return r;
  }

 private:
  struct Receive {
    int from, tag;
    std::span<std::byte> into;
    int64_t order;  // of posting: messages match in it
  };
  struct Match {
    Message* message;
    std::span<std::byte> into;
    int number;
  };

  // A slot that is free.
  template <class Slots>
  int place(Slots& slots) {
    ++in_flight_;
    for (size_t i = 0; i < slots.size(); ++i)
      if (!slots[i]) return int(i);
    slots.emplace_back();
    return int(slots.size()) - 1;
  }

  std::optional<int> sent() {
    for (size_t i = 0; i < sends_.size(); ++i) {
      if (!sends_[i] || !sends_[i]->taken) continue;
      sends_[i].reset();
      --in_flight_;
      return int(i);
    }
    return std::nullopt;
  }

  // The oldest receive whose message is here.
  std::optional<Match> match() {
    std::optional<Receive>* best = nullptr;
    for (auto& r : receives_) {
      if (!r || (best != nullptr && (*best)->order < r->order)) continue;
      const auto queue = box_.arrived.find({r->from, r->tag});
      if (queue != box_.arrived.end() && !queue->second.empty()) best = &r;
    }
    if (best == nullptr) return std::nullopt;
    auto& queue = box_.arrived[{(*best)->from, (*best)->tag}];
    Match m{&queue.pop(), (*best)->into, int(best - receives_.data())};
    best->reset();
    --in_flight_;
    return m;
  }

  void take(Message& message, std::span<std::byte> into) {
    Strided& pieces = message.pieces;
    if (pieces.bytes() != int64_t(into.size()))
      status_ = fail(ErrorClass::communication, "receive",
                     "expected " + std::to_string(into.size()) + " bytes, got " +
                         std::to_string(pieces.bytes()));
    else
      gather(into.data(), pieces);
    Mailbox& sender = team_.boxes[size_t(message.sender)];
    const std::lock_guard lock(sender.mutex);
    message.taken = true;
    sender.tell();
  }

  Team& team_;
  Mailbox& box_;
  int rank_;
  std::deque<std::optional<Message>> sends_;  // a deque: messages must not move
  std::vector<std::optional<Receive>> receives_;
  int in_flight_ = 0;
  int64_t posted_ = 0;
  Result<void> status_;
};

// What the parcels of one team share.
struct ParcelHub {
  struct Item {
    Item(int sender, int receiver, std::vector<std::byte> given)
        : from(sender), to(receiver), bytes(std::move(given)) {}
    int from, to;
    std::vector<std::byte> bytes;  // nobody changes them before the sender has them back
    std::atomic<bool> taken = false;
  };
  struct Box {
    std::mutex mutex;
    std::deque<std::shared_ptr<Item>> items;
  };
  explicit ParcelHub(int ranks) : boxes(size_t(ranks)) {}

  std::vector<Box> boxes;
  std::atomic<int64_t> arrivals = 0;
};

class ThreadParcels final : public Parcels {
 public:
  ThreadParcels(std::shared_ptr<ParcelHub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  bool by_any_thread() const noexcept override { return true; }

  void send(int to, std::vector<std::byte> bytes) override {
    auto item = std::make_shared<ParcelHub::Item>(rank_, to, std::move(bytes));
    sent_.push_back({count_++, item});
    ParcelHub::Box& box = hub_->boxes[size_t(to)];
    const std::lock_guard lock(box.mutex);
    box.items.push_back(std::move(item));
  }

  std::optional<Parcel> delivered() override {
    const auto found = std::ranges::find_if(
        sent_, [](const Sent& s) { return s.item->taken.load(std::memory_order_acquire); });
    if (found == sent_.end()) return std::nullopt;
    Parcel parcel{found->item->to, std::move(found->item->bytes)};
    sent_.erase(found);
    return parcel;
  }

  std::vector<Parcel> take_back() override {
    std::vector<Parcel> all;
    for (const Sent& s : std::exchange(sent_, {})) all.push_back({s.item->to, s.item->bytes});
    return all;
  }

  int64_t sent() const noexcept override { return count_; }
  bool are_delivered(int64_t first) const noexcept override {
    return sent_.empty() || sent_.front().number >= first;
  }

  std::optional<Parcel> receive() override {
    std::shared_ptr<ParcelHub::Item> item;
    {
      ParcelHub::Box& box = hub_->boxes[size_t(rank_)];
      const std::lock_guard lock(box.mutex);
      if (box.items.empty()) return std::nullopt;
      item = std::move(box.items.front());
      box.items.pop_front();
    }
    Parcel parcel{item->from, item->bytes};
    item->taken.store(true, std::memory_order_release);
    return parcel;
  }

  void arrive() override {
    awaited_ += int64_t(hub_->boxes.size());
    hub_->arrivals.fetch_add(1, std::memory_order_acq_rel);
  }
  bool all_have_arrived() override {
    return hub_->arrivals.load(std::memory_order_acquire) >= awaited_;
  }

  Result<void> status() const override { return {}; }

 private:
  const std::shared_ptr<ParcelHub> hub_;
  const int rank_;
  struct Sent {
    int64_t number;
    std::shared_ptr<ParcelHub::Item> item;
  };
  std::vector<Sent> sent_;  // and not given back, the oldest first
  int64_t count_ = 0;
  int64_t awaited_ = 0;
};

class ThreadComm final : public Comm {
 public:
  ThreadComm(std::shared_ptr<Team> team, int rank, const ThreadTeamOptions& options)
      : owned_(std::move(team)),
        team_(*owned_),
        rank_(rank),
        dealing_(size(), options.nodes, options.turn) {}

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return int(team_.board.size()); }
  int nodes() const noexcept override { return dealing_.nodes(); }
  int own_node() const noexcept override { return dealing_.node_of(rank_); }
  int turn() const noexcept override { return dealing_.turn(); }
  int cores_per_node() const noexcept override {
    return std::max(1, int(std::thread::hardware_concurrency()));
  }

  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    together(mine, [&] {
      for (size_t i = 0; i < team_.board.size(); ++i)
        if (!mine.empty())
          std::memcpy(all.data() + i * mine.size(), team_.board[i].data(), mine.size());
    });
    return {};
  }

  Result<void> all_max(std::span<int64_t> values) override {
    return reduce(values, [](int64_t a, int64_t b) { return std::max(a, b); });
  }
  Result<void> all_sum(std::span<int64_t> values) override {
    return reduce(values, [](int64_t a, int64_t b) { return a + b; });
  }
  Result<void> barrier() override {
    team_.meet();
    return {};
  }

  Result<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override {
    std::vector<std::byte> all;
    together(mine, [&] {
      if (rank_ != root) return;
      for (const auto& part : team_.board) all.insert(all.end(), part.begin(), part.end());
    });
    return all;
  }

  Result<std::shared_ptr<NodeLock>> node_lock() override {
    return from_first_of_node<NodeLock>([](int) { return make_thread_lock(); });
  }

  Result<std::shared_ptr<SharedSegment>> shared_segment(const SegmentShape& shape) override {
    auto made = from_first_of_node<Segment>([&](int) {
      auto segment = std::make_shared<Segment>(make_thread_segment(shape.bytes));
      if (*segment && team_.used_segments) pretend_use(***segment, shape);
      return segment;
    });
    return *made;
  }

  Result<std::unique_ptr<Comm>> split_by_node() override {
    auto team = from_first_of_node<Team>(
        [this](int ranks) { return std::make_shared<Team>(ranks, team_.used_segments); });
    const int before = dealing_.position_of(first_of_node());
    return std::make_unique<ThreadComm>(std::move(team), dealing_.position_of(rank_) - before,
                                        ThreadTeamOptions());
  }

  Result<std::unique_ptr<Parcels>> parcels() override {
    auto hub = from_rank<ParcelHub>(0, [this] { return std::make_shared<ParcelHub>(size()); });
    return std::make_unique<ThreadParcels>(std::move(hub), rank_);
  }

  Result<std::unique_ptr<Slots>> slots(const SlotsShape& shape) override {
    return make_thread_slots(from_rank<SlotHub>(0, [&] { return make_slot_hub(size(), shape); }),
                             rank_);
  }

  std::unique_ptr<Transfers> transfers() override {
    return std::make_unique<ThreadTransfers>(team_, rank_);
  }

 private:
  int first_of_node() const noexcept { return dealing_.first_of(own_node()); }

  // make(ranks of the node) on the node's first rank; all of the node get what it made.
  template <class T, class Make>
  std::shared_ptr<T> from_first_of_node(Make&& make) {
    const int first = first_of_node();
    return from_rank<T>(first, [&] { return make(dealing_.ranks_of(own_node())); });
  }

  // make() on that rank; those who name it get what it made. Collective.
  template <class T, class Make>
  std::shared_ptr<T> from_rank(int maker, Make&& make) {
    std::shared_ptr<T> made;
    if (rank_ == maker) made = make();
    together(std::as_bytes(std::span(&made, 1)), [&] {
      if (rank_ == maker) return;
      made = *reinterpret_cast<const std::shared_ptr<T>*>(team_.board[size_t(maker)].data());
    });
    return made;
  }

  // Shows `mine` to all, lets everyone read the board, and returns when all have read it.
  template <class Read>
  void together(std::span<const std::byte> mine, Read&& read) {
    team_.board[size_t(rank_)] = mine;
    team_.meet();
    read();
    team_.meet();
  }

  template <class Combine>
  Result<void> reduce(std::span<int64_t> values, Combine&& combine) {
    std::vector<int64_t> result(values.begin(), values.end());
    together(std::as_bytes(values), [&] {
      for (const auto& part : team_.board)
        for (size_t i = 0; i < result.size(); ++i) {
          int64_t theirs;
          std::memcpy(&theirs, part.data() + i * sizeof theirs, sizeof theirs);
          result[i] = &part == &team_.board[0] ? theirs : combine(result[i], theirs);
        }
    });
    std::ranges::copy(result, values.begin());
    return {};
  }

  std::shared_ptr<Team> owned_;
  Team& team_;
  int rank_;
  Dealing dealing_;
};

}  // namespace

std::vector<std::unique_ptr<Comm>> make_thread_team(int ranks, const ThreadTeamOptions& options) {
  const auto team = std::make_shared<Team>(ranks, options.used_segments);
  std::vector<std::unique_ptr<Comm>> comms;
  comms.reserve(size_t(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    comms.push_back(std::make_unique<ThreadComm>(team, rank, options));
  return comms;
}

void run_thread_team(int ranks, const std::function<void(Comm&)>& body,
                     const ThreadTeamOptions& options) {
  const std::vector<std::unique_ptr<Comm>> team = make_thread_team(ranks, options);
  std::vector<std::jthread> threads;
  threads.reserve(team.size());
  for (const auto& comm : team) threads.emplace_back([&] { body(*comm); });
}

}  // namespace penstock::comm
