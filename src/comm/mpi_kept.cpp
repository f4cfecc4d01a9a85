// Kept in an attribute of the program's communicator, which its duplicates inherit: libraries such
// as HDF5 and PnetCDF open each file on a duplicate of their own.
#include "comm/mpi_kept.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "comm/mpi_wait.hpp"

namespace penstock::comm {
namespace {

constexpr size_t kMostLeft = 4;  // of one communicator: libraries have some thousand in all

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

KeptPtr kept_of(MPI_Comm comm) {
  const KeptPtr* kept = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, kept_key(), static_cast<void*>(&kept), &found);
  return found != 0 ? *kept : nullptr;
}

// The whole program's ranks in the order of MPI_COMM_WORLD, whatever communicator it is.
bool is_world(MPI_Comm comm) {
  int same = MPI_UNEQUAL;
  PMPI_Comm_compare(comm, MPI_COMM_WORLD, &same);
  return same == MPI_IDENT || same == MPI_CONGRUENT;
}

// A library may have duplicated MPI_COMM_WORLD before anything was kept of it.
KeptPtr known_of(MPI_Comm comm) {
  if (KeptPtr kept = kept_of(comm)) return kept;
  return is_world(comm) ? kept_of(MPI_COMM_WORLD) : nullptr;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

// Of this process alone: where it is a communicator's first rank, it numbers the duplicates.
int64_t unused_number() {
  static std::atomic<int64_t> next{0};
  return next++;
}

bool mpi_is_over() {
  int finalized = 0;
  PMPI_Finalized(&finalized);
  return finalized != 0;
}

Result<MPI_Comm> duplicate(MPI_Comm parent) {
  MPI_Comm dup = MPI_COMM_NULL;
  if (const int rc = PMPI_Comm_dup(parent, &dup); rc != MPI_SUCCESS)
    return mpi_error("MPI_Comm_dup", rc);
  PMPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  // It would keep itself.
  if (kept_of(dup) != nullptr) PMPI_Comm_delete_attr(dup, kept_key());
  return dup;
}

}  // namespace

Result<std::unique_ptr<Duplicate>> Duplicate::make(MPI_Comm parent, int64_t number) {
  const Result<MPI_Comm> dup = duplicate(parent);
  if (!dup) return tl::unexpected(dup.error());
  return std::make_unique<Duplicate>(*dup, number);
}

Duplicate::~Duplicate() {
  node_ranks_.free();
  if (mpi_is_over()) return;
  if (for_parcels_ != MPI_COMM_NULL) PMPI_Comm_free(&for_parcels_);
  PMPI_Comm_free(&comm_);
}

Result<MPI_Comm> Duplicate::take_for_parcels() {
  if (for_parcels_ != MPI_COMM_NULL) return std::exchange(for_parcels_, MPI_COMM_NULL);
  auto made = duplicate(comm_);
  if (!made) return tl::unexpected(std::move(made).error());
  return *made;
}

void Duplicate::give_back(MPI_Comm for_parcels) noexcept {
  if (for_parcels_ == MPI_COMM_NULL)
    for_parcels_ = for_parcels;
  else if (!mpi_is_over())
    PMPI_Comm_free(&for_parcels);
}

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
  const std::lock_guard lock(mutex_);
  if (left_.size() < kMostLeft) left_.push_back(std::move(duplicate));
}

Result<Start> start_on(MPI_Comm parent) {
  orphans().free();
  const KeptPtr kept = known_of(parent);
  std::unique_ptr<Duplicate> left = kept && !mpi_has_failed() ? kept->take() : nullptr;
  const int64_t number = left ? left->number() : -1;
  int64_t facts[] = {kept ? 0 : 1, number, -number, rank_in(parent) == 0 ? unused_number() : 0};
  MPI_Request request = MPI_REQUEST_NULL;
  const int rc = PMPI_Iallreduce(MPI_IN_PLACE, facts, int(std::size(facts)), MPI_INT64_T, MPI_MAX,
                                 parent, &request);
  if (auto r = wait("MPI_Iallreduce", rc, request); !r) return tl::unexpected(std::move(r).error());
  const bool all_have_kept = facts[0] == 0, all_left_it = facts[1] == -facts[2];
  Start start;
  if (all_have_kept) start.kept = kept;
  if (left && all_left_it) {
    start.own = std::move(left);
    return start;
  }
  if (left) kept->leave(std::move(left));
  auto made = Duplicate::make(parent, facts[3]);
  if (!made) return tl::unexpected(std::move(made).error());
  start.own = *std::move(made);
  return start;
}

void keep(MPI_Comm parent, const KeptPtr& kept) {
  PMPI_Comm_set_attr(parent, kept_key(), new KeptPtr(kept));
  if (is_world(parent) && kept_of(MPI_COMM_WORLD) == nullptr)
    PMPI_Comm_set_attr(MPI_COMM_WORLD, kept_key(), new KeptPtr(kept));
}

}  // namespace penstock::comm
