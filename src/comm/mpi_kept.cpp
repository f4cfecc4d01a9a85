// Kept in an attribute of the program's communicator, which its duplicates inherit: libraries such
// as HDF5 and PnetCDF open each file on a duplicate of their own.
#include "comm/mpi_kept.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/dealing.hpp"
#include "comm/agreement.hpp"
#include "comm/mpi_ask.hpp"
#include "comm/mpi_handler.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {
namespace {

constexpr size_t kMostLeft = 4;  // of one communicator
// Of all together, files that are open included: MPI libraries have some thousand in all.
constexpr int kMostAlive = 128;

// MPI does not say what its functions do inside the callback that deletes an attribute. What ends
// there is freed when the next file is opened.
class Orphans {
 public:
  void add(std::vector<std::unique_ptr<Duplicate>> duplicates) {
    const std::lock_guard lock(mutex_);
    for (auto& each : duplicates) waiting_.push_back(std::move(each));
  }
  void free() {
    std::vector<std::unique_ptr<Duplicate>> now;
    const std::lock_guard lock(mutex_);
    now.swap(waiting_);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Duplicate>> waiting_;
};

// Never destroyed: MPI may delete attributes after main() has returned.
Orphans& orphans() {
  static auto* const all = new Orphans;
  return *all;
}

using KeptPtr = std::shared_ptr<Kept>;

int copy_kept(MPI_Comm, int, void*, void* value, void* copy, int* copied) {
  *static_cast<void**>(copy) = new KeptPtr(*static_cast<KeptPtr*>(value));
  *copied = 1;
  return MPI_SUCCESS;
}

int delete_kept(MPI_Comm, int, void* value, void*) {
  delete static_cast<KeptPtr*>(value);
  return MPI_SUCCESS;
}

int kept_key() {
  static const int key = [] {
    int k = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(&copy_kept, &delete_kept, &k, nullptr);
    return k;
  }();
  return key;
}

// Threads open files on duplicates of MPI_COMM_WORLD at once, and each looks at what that keeps:
// what one of them sets is not deleted while another copies it.
std::mutex& kept_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

KeptPtr kept_of(MPI_Comm comm) {
  const std::lock_guard lock(kept_mutex());
  const KeptPtr* kept = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, kept_key(), static_cast<void*>(&kept), &found);
  return found != 0 && (*kept)->is_of(comm) ? *kept : nullptr;
}

void set_kept(MPI_Comm comm, const KeptPtr& kept) {
  const std::lock_guard lock(kept_mutex());
  PMPI_Comm_set_attr(comm, kept_key(), new KeptPtr(kept));
}

// A library may have duplicated MPI_COMM_WORLD before anything was kept of it.
KeptPtr known_of(MPI_Comm comm) {
  if (KeptPtr kept = kept_of(comm)) return kept;
  return compared_with_world(comm) == MPI_IDENT ? kept_of(MPI_COMM_WORLD) : nullptr;
}

// Of this process alone: where it is a communicator's first rank, it numbers the duplicates.
int64_t unused_number() {
  static std::atomic<int64_t> next{0};
  return next++;
}

// Not by MPI_Comm_dup: copies of the program's attributes would outlive its files, and even the
// plugin whose functions have to delete them.
Result<MPI_Comm> duplicate(MPI_Comm parent) {
  MPI_Comm dup = MPI_COMM_NULL;
  MPI_Group ranks = MPI_GROUP_NULL;
  PMPI_Comm_group(parent, &ranks);
  const CommHandlerAside aside(parent);
  const int rc = PMPI_Comm_create(parent, ranks, &dup);
  PMPI_Group_free(&ranks);
  if (rc != MPI_SUCCESS) return mpi_error("MPI_Comm_create", rc);
  PMPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  return dup;
}

}  // namespace

Result<std::unique_ptr<Duplicate>> Duplicate::make(MPI_Comm parent, int64_t number) {
  const Result<MPI_Comm> dup = duplicate(parent);
  if (!dup) return tl::unexpected(dup.error());
  return std::make_unique<Duplicate>(*dup, number);
}

// The program may have as many files open alone as MPI libraries have communicators, some thousand,
// of which each file of ROMIO's takes one.
Result<std::unique_ptr<Duplicate>> Duplicate::of_one_rank() {
  static auto* const mutex = new std::mutex;
  static MPI_Comm shared = MPI_COMM_NULL;
  const std::lock_guard lock(*mutex);
  if (shared == MPI_COMM_NULL) {
    const Result<MPI_Comm> made = duplicate(MPI_COMM_SELF);
    if (!made) return tl::unexpected(made.error());
    shared = *made;
  }
  auto user = std::make_unique<Duplicate>(shared, 0);
  user->is_shared_ = true;
  --alive_;  // no communicator more
  return user;
}

Duplicate::~Duplicate() {
  node_ranks_.free();
  drop_for_parcels();
  if (is_shared_) return;
  --alive_;
  if (mpi_is_running()) PMPI_Comm_free(&comm_);
}

Result<MPI_Comm> Duplicate::take_for_parcels() {
  if (for_parcels_ != MPI_COMM_NULL) return std::exchange(for_parcels_, MPI_COMM_NULL);
  auto made = duplicate(comm_);
  if (!made) return tl::unexpected(std::move(made).error());
  return *made;
}

void Duplicate::drop_for_parcels() noexcept {
  if (for_parcels_ != MPI_COMM_NULL && mpi_is_running()) PMPI_Comm_free(&for_parcels_);
  for_parcels_ = MPI_COMM_NULL;
}

void Duplicate::give_back(MPI_Comm for_parcels) noexcept {
  if (for_parcels_ == MPI_COMM_NULL)
    for_parcels_ = for_parcels;
  else if (mpi_is_running())
    PMPI_Comm_free(&for_parcels);
}

Kept::Kept(NodeFacts facts, MPI_Comm comm)
    : facts_(facts), ranks_(size_in(comm)), rank_(rank_in(comm)) {}

bool Kept::is_of(MPI_Comm comm) const { return size_in(comm) == ranks_ && rank_in(comm) == rank_; }

Kept::~Kept() { orphans().add(std::move(left_)); }

std::unique_ptr<Duplicate> Kept::take() {
  const std::lock_guard lock(mutex_);
  const auto lowest = std::ranges::min_element(left_, {}, &Duplicate::number);
  if (lowest == left_.end()) return nullptr;
  std::unique_ptr<Duplicate> taken = std::move(*lowest);
  left_.erase(lowest);
  return taken;
}

void Kept::leave(std::unique_ptr<Duplicate> duplicate) {
  if (mpi_has_failed()) return;  // what of it is still on its way, nobody knows
  duplicate->segments().rest();
  const std::lock_guard lock(mutex_);
  if (left_.size() < kMostLeft && !duplicate->ends_with_file())
    left_.push_back(std::move(duplicate));
}

namespace {

// The C library reads a file for it.
int cores_here() {
  static const auto cores = int(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  return cores;
}

void keep(MPI_Comm parent, const KeptPtr& kept) {
  set_kept(parent, kept);
  if (compared_with_world(parent) == MPI_IDENT && kept_of(MPI_COMM_WORLD) == nullptr)
    set_kept(MPI_COMM_WORLD, kept);
}

tl::unexpected<Error> failed_elsewhere(const char* operation) {
  return fail(ErrorClass::communication, operation, "it failed on another rank");
}

// One rank alone has nothing to agree on.
Result<Start> start_alone(MPI_Comm parent, Alone alone) {
  auto own = alone == Alone::sends_none ? Duplicate::of_one_rank() : Duplicate::make(parent, 0);
  if (!own) return tl::unexpected(std::move(own).error());
  return Start{*std::move(own), {1, cores_here()}, nullptr};
}

// What a rank knows without asking others, once it is split by node. Cores are those of the node,
// not of the launcher's binding to one core.
struct Standing {
  int failed = 0;  // to split
  int first = 0;   // the lowest rank of its node
  int cores = 0;
};

// Nodes are numbered from 0 in the order of their lowest ranks.
NodeFacts facts_of(std::span<const Standing> all, int first) {
  NodeFacts facts{0, all[0].cores};
  std::vector<int> firsts;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    facts.cores_per_node = std::min(facts.cores_per_node, all[rank].cores);
    firsts.push_back(all[rank].first);
    if (all[rank].first != int(rank)) continue;
    ++facts.nodes;
    if (int(rank) < first) ++facts.own_node;
  }
  facts.turn = turn_of(firsts, facts.nodes);
  return facts;
}

// Collective over `parent`: splits it, and all ranks have a part, or none goes on.
Result<NodeFacts> find_nodes(MPI_Comm parent, NodeRanks& node) {
  const Result<void> split = node.split(parent);
  const Standing mine{split ? 0 : 1, split ? node.lowest_in(parent) : 0, cores_here()};
  std::vector<Standing> all(size_t(size_in(parent)));
  MPI_Request request = MPI_REQUEST_NULL;
  const int rc = PMPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                                 parent, &request);
  if (auto r = wait("MPI_Iallgather", rc, request); !r) return tl::unexpected(r.error());
  if (!split) return tl::unexpected(split.error());
  if (std::ranges::any_of(all, [](const Standing& s) { return s.failed != 0; }))
    return failed_elsewhere("MPI_Comm_split_type");
  return facts_of(all, mine.first);
}

// Collective over `all`, of whose ranks those of `part` have one duplicate: all ranks have theirs,
// or none goes on. One that only some have is left: to free it takes all.
Result<MPI_Comm> duplicate_for_all(MPI_Comm part, MPI_Comm all) {
  Result<MPI_Comm> mine = duplicate(part);
  int64_t failed[] = {mine ? 0 : 1};
  if (auto r = reduce(all, failed, MPI_MAX); !r) return tl::unexpected(r.error());
  if (mine && failed[0] != 0) return failed_elsewhere("MPI_Comm_create");
  return mine;
}

// Collective over `parent`, whose ranks MPI deals to nodes. Where there is one, what it has split
// off is the duplicate.
Result<Start> start_on_nodes(MPI_Comm parent, int64_t number) {
  NodeRanks node;
  const Result<NodeFacts> facts = find_nodes(parent, node);
  if (!facts) return tl::unexpected(facts.error());
  if (facts->nodes == 1)
    return Start{std::make_unique<Duplicate>(node.release(), number), *facts, nullptr};
  const Result<MPI_Comm> dup = duplicate_for_all(parent, parent);
  if (!dup) return tl::unexpected(dup.error());
  return Start{std::make_unique<Duplicate>(*dup, number, std::move(node)), *facts, nullptr};
}

// Collective over `parent`.
Result<Start> start_by(MPI_Comm parent, int64_t number, const NodeFacts& facts) {
  const Result<MPI_Comm> dup = duplicate_for_all(parent, parent);
  if (!dup) return tl::unexpected(dup.error());
  return Start{std::make_unique<Duplicate>(*dup, number), facts, nullptr};
}

}  // namespace

bool is_kept(MPI_Comm comm) { return kept_of(comm) != nullptr; }

namespace {

// What the ranks that open a file agree on before they have a communicator of Penstock's.
struct Opening {
  bool all_keep = false;           // something of this communicator
  bool same_is_left = false;       // by an earlier file, or nothing is
  std::optional<NodeFacts> facts;  // where all see by themselves that they are on one node
  int64_t number = 0;              // for a new duplicate
  bool too_many = false;           // duplicates are alive
};

// Collective over `parent`.
Result<Opening> agree_on_opening(MPI_Comm parent, const Kept* kept, const Duplicate* left) {
  const int64_t node = node_number();
  Agreement agreed;
  const auto one_keeps_nothing = agreed.some(kept == nullptr);
  const auto same_is_left = agreed.alike(left != nullptr ? left->number() : -1);
  const auto number = agreed.largest(rank_in(parent) == 0 ? unused_number() : 0);
  const auto alive = agreed.largest(Duplicate::alive());
  const auto node_is_unknown = agreed.some(node == 0);
  const auto same_node = agreed.alike(node);
  const auto least_cores = agreed.largest(-cores_here());
  const auto all_max = [&](std::span<int64_t> facts) { return reduce(parent, facts, MPI_MAX); };
  if (auto r = agreed.reach_by(all_max); !r) return tl::unexpected(std::move(r).error());
  Opening opening{!agreed[one_keeps_nothing], agreed[same_is_left], std::nullopt, agreed[number],
                  agreed[alive] >= kMostAlive};
  if (agreed[same_node] && !agreed[node_is_unknown])
    opening.facts = NodeFacts{1, int(-agreed[least_cores]), 0};
  return opening;
}

// Collective over `parent`, of which nothing is kept.
Result<Start> start_keeping(MPI_Comm parent, const Opening& opening) {
  auto start = opening.facts ? start_by(parent, opening.number, *opening.facts)
                             : start_on_nodes(parent, opening.number);
  if (!start) return start;
  start->kept = std::make_shared<Kept>(start->facts, parent);
  keep(parent, start->kept);
  return start;
}

// Collective over `parent`: a new one, where nothing that was left can be used.
Result<Start> start_anew(MPI_Comm parent, const KeptPtr& kept, const Opening& opening) {
  if (!opening.all_keep) return start_keeping(parent, opening);
  auto start = start_by(parent, opening.number, kept->facts());
  if (start) start->kept = kept;
  return start;
}

}  // namespace

Result<Start> start_on(MPI_Comm parent, Alone alone) {
  if (size_in(parent) == 1) return start_alone(parent, alone);
  orphans().free();
  const KeptPtr kept = known_of(parent);
  std::unique_ptr<Duplicate> left = kept && !mpi_has_failed() ? kept->take() : nullptr;
  const auto opening = agree_on_opening(parent, kept.get(), left.get());
  if (!opening) return tl::unexpected(opening.error());
  if (left && opening->same_is_left) return Start{std::move(left), kept->facts(), kept};
  if (left) kept->leave(std::move(left));
  Result<Start> start = start_anew(parent, kept, *opening);
  if (start && opening->too_many) start->own->end_with_file();
  return start;
}

namespace {

// Collective over `all`: what each rank has left, or nullptr on all of them.
Result<std::unique_ptr<Duplicate>> left_part(Duplicate& all) {
  Kept& kept = *all.node_parts().kept;
  std::unique_ptr<Duplicate> left = mpi_has_failed() ? nullptr : kept.take();
  const int64_t number = left ? left->number() : -1;
  int64_t most[] = {number, -number};
  if (auto r = reduce(all.comm(), most, MPI_MAX); !r) return tl::unexpected(std::move(r).error());
  if (most[0] == -most[1]) return left;
  if (left) kept.leave(std::move(left));
  return nullptr;
}

}  // namespace

Result<Start> start_part(Duplicate& all, MPI_Comm node, int cores_per_node) {
  const NodeFacts facts{1, cores_per_node, 0};
  NodeParts& parts = all.node_parts();
  if (parts.made > 0) {
    auto left = left_part(all);
    if (!left) return tl::unexpected(std::move(left).error());
    if (*left != nullptr) return Start{*std::move(left), facts, parts.kept};
  }
  if (parts.made == 0) parts.kept = std::make_shared<Kept>(facts, node);
  const Result<MPI_Comm> dup = duplicate_for_all(node, all.comm());
  if (!dup) return tl::unexpected(dup.error());
  auto own = std::make_unique<Duplicate>(*dup, parts.made++);
  return Start{std::move(own), facts, parts.kept};
}

}  // namespace penstock::comm
