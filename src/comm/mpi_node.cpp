// Who is on whose node: what each rank sees of its own, or what MPI_Comm_split_type says, so that
// MPI's own ways to pretend nodes hold.
#include "comm/mpi_node.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/boot.hpp"
#include "base/hash.hpp"
#include "comm/mpi_ask.hpp"
#include "comm/mpi_handler.hpp"
#include "comm/shared_mutex.hpp"

namespace penstock::comm {
namespace {

// The node's first rank makes something under a name and tells the others the name. It lives, and
// takes the name away, when all have opened it.
template <class T>
class FromFirst {
 public:
  using Make = std::function<Result<std::shared_ptr<T>>(const std::string& name)>;

  explicit FromFirst(MPI_Comm node) : node_(node) {}
  FromFirst(const FromFirst&) = delete;
  ~FromFirst() {
    if (name_[0] != '\0' && rank_in(node_) == 0) forget_segment_name(name_.data());
  }

  Result<std::shared_ptr<T>> get(std::string_view what, const Make& make, const Make& open) {
    const bool first = rank_in(node_) == 0;
    Result<std::shared_ptr<T>> mine = nullptr;
    if (first) mine = make_first(what, make);
    // An empty name tells the others that there is nothing to open.
    if (Result<void> told = tell(); !told) return tl::unexpected(told.error());
    return first ? std::move(mine) : open_made(what, open);
  }

 private:
  Result<std::shared_ptr<T>> make_first(std::string_view what, const Make& make) {
    const std::string name = unused_segment_name(what);
    if (name.size() >= name_.size())
      return fail(ErrorClass::internal, "shared memory", "the name is too long: " + name);
    auto made = make(name);
    if (made) std::memcpy(name_.data(), name.data(), name.size());
    return made;
  }

  Result<void> tell() {
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc = PMPI_Ibcast(name_.data(), int(name_.size()), MPI_CHAR, 0, node_, &request);
    return wait("MPI_Ibcast", rc, request);
  }

  Result<std::shared_ptr<T>> open_made(std::string_view what, const Make& open) {
    if (name_[0] == '\0')
      return fail(ErrorClass::communication, std::string(what),
                  "the first rank of this node could not make it");
    return open(name_.data());
  }

  MPI_Comm node_;
  std::array<char, 128> name_{};
};

// Collective over `all`. All get theirs or all fail.
template <class T>
Result<std::shared_ptr<T>> from_first_of_node(MPI_Comm node, Comm& all, std::string_view what,
                                              const typename FromFirst<T>::Make& make,
                                              const typename FromFirst<T>::Make& open) {
  FromFirst<T> from_first(node);
  Result<std::shared_ptr<T>> got = from_first.get(what, make, open);
  const Result<void> mine = got ? Result<void>() : Result<void>(tl::unexpected(got.error()));
  // Nobody leaves it before all have come, which is what the first waits for too.
  if (auto agreed = agree(all, mine); got && !agreed) return tl::unexpected(agreed.error());
  return got;
}

}  // namespace

namespace {

// MPICH's and what descends of it: MPIR_CVAR_NUM_CLIQUES, MPICH_NOLOCAL and so on.
bool pretends_nodes(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return name.starts_with("MPI") &&
         (name.ends_with("NOLOCAL") || name.find("CLIQUES") != name.npos);
}

bool mpi_may_pretend_nodes() {
  for (char** each = environ; each != nullptr && *each != nullptr; ++each)
    if (pretends_nodes(*each)) return true;
  return false;
}

Hash machine_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  PMPI_Get_processor_name(name.data(), &length);
  return std::hash<std::string_view>{}({name.data(), size_t(length)});
}

int64_t find_node_number() {
  const uint64_t boot = boot_number();
  struct stat memory {};
  if (boot == 0 || mpi_may_pretend_nodes() || ::stat("/dev/shm", &memory) != 0) return 0;
  return int64_t(mix(mix(mix(boot, memory.st_dev), memory.st_ino), machine_name()) | 1);
}

}  // namespace

int64_t node_number() {
  static const int64_t number = find_node_number();
  return number;
}

void NodeRanks::free() {
  if (comm_ != MPI_COMM_NULL && mpi_is_running()) PMPI_Comm_free(&comm_);
  comm_ = MPI_COMM_NULL;
}

Result<void> NodeRanks::split(MPI_Comm mpi) {
  if (comm_ != MPI_COMM_NULL) return {};
  const CommHandlerAside aside(mpi);
  const int rc =
      PMPI_Comm_split_type(mpi, MPI_COMM_TYPE_SHARED, rank_in(mpi), MPI_INFO_NULL, &comm_);
  if (rc != MPI_SUCCESS) return mpi_error("MPI_Comm_split_type", rc);
  PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  return {};
}

int NodeRanks::lowest_in(MPI_Comm mpi) const {
  MPI_Group here = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  PMPI_Comm_group(comm_, &here);
  PMPI_Comm_group(mpi, &all);
  const int first = 0;  // they are in the order of `mpi`
  int lowest = 0;
  PMPI_Group_translate_ranks(here, 1, &first, all, &lowest);
  PMPI_Group_free(&here);
  PMPI_Group_free(&all);
  return lowest;
}

Result<std::shared_ptr<NodeLock>> make_mpi_node_lock(MPI_Comm node, Comm& all) {
  return from_first_of_node<NodeLock>(node, all, "lock", &make_shared_mutex, &open_shared_mutex);
}

Result<std::shared_ptr<SharedSegment>> make_mpi_segment(MPI_Comm node, Comm& all,
                                                        const SegmentShape& shape) {
  return from_first_of_node<SharedSegment>(
      node, all, "pages",
      [&](const std::string& name) { return make_segment(name, shape.bytes, shape.room); },
      [&](const std::string& name) { return open_segment(name, shape.bytes, shape.room); });
}

}  // namespace penstock::comm
