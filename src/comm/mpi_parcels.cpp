// Synchronous sends: one that is complete has been matched by its receiver, which is all that the
// barrier needs to know. Probes that give the message out, so that no other thread gets it.
#include "comm/mpi_parcels.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/keep_for_ever.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {
namespace {

constexpr int kTag = 0;

class MpiParcels final : public Parcels {
 public:
  MpiParcels(Duplicate& ranks, MPI_Comm comm, bool multiple)
      : ranks_(ranks), comm_(comm), multiple_(multiple) {}
  MpiParcels(const MpiParcels&) = delete;
  ~MpiParcels() override {
    if (requests_.empty()) {
      ranks_.give_back(comm_);
      return;
    }
    // MPI may still read what is under way.
    keep_for_ever(std::move(buffers_));
    mpi_failures() = true;
  }

  bool by_any_thread() const noexcept override { return multiple_; }

  void send(int to, std::vector<std::byte> bytes) override {
    const int64_t number = sent_++;
    MPI_Request request = MPI_REQUEST_NULL;
    if (!unsent_.empty() || !start(to, bytes, request)) {
      unsent_.push_back({to, std::move(bytes)});
      return;
    }
    requests_.push_back(request);
    numbers_.push_back(number);
    receivers_.push_back(to);
    buffers_.push_back(std::move(bytes));
  }

  std::optional<Parcel> delivered() override {
    int index = MPI_UNDEFINED, done = 0;
    if (requests_.empty()) return std::nullopt;
    const int rc =
        PMPI_Testany(int(requests_.size()), requests_.data(), &index, &done, MPI_STATUS_IGNORE);
    note("MPI_Testany", rc);
    if (rc != MPI_SUCCESS || done == 0 || index == MPI_UNDEFINED) return std::nullopt;
    Parcel parcel{receivers_[size_t(index)], std::move(buffers_[size_t(index)])};
    requests_.erase(requests_.begin() + index);
    numbers_.erase(numbers_.begin() + index);
    receivers_.erase(receivers_.begin() + index);
    buffers_.erase(buffers_.begin() + index);
    return parcel;
  }

  std::vector<Parcel> take_back() override {
    std::vector<Parcel> all;  // the oldest first: none is sent behind one that was refused
    for (size_t i = 0; i < buffers_.size(); ++i) all.push_back({receivers_[i], buffers_[i]});
    std::ranges::move(std::exchange(unsent_, {}), std::back_inserter(all));
    return all;
  }

  int64_t sent() const noexcept override { return sent_; }
  bool are_delivered(int64_t first) const noexcept override {
    return unsent_.empty() && (numbers_.empty() || numbers_.front() >= first);
  }

  std::optional<Parcel> receive() override {
    int found = 0, bytes = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (!note("MPI_Improbe",
              PMPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &found, &message, &status)) ||
        found == 0)
      return std::nullopt;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    Parcel parcel{status.MPI_SOURCE, std::vector<std::byte>(size_t(bytes))};
    if (!note("MPI_Mrecv",
              PMPI_Mrecv(parcel.bytes.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE)))
      return std::nullopt;
    return parcel;
  }

  void arrive() override { note("MPI_Ibarrier", PMPI_Ibarrier(comm_, &barrier_)); }
  bool all_have_arrived() override {
    int done = 0;
    note("MPI_Test", PMPI_Test(&barrier_, &done, MPI_STATUS_IGNORE));
    return done != 0;
  }

  Result<void> status() const override { return status_; }

 private:
  bool start(int to, const std::vector<std::byte>& bytes, MPI_Request& request) {
    return note("MPI_Issend",
                PMPI_Issend(bytes.data(), int(bytes.size()), MPI_BYTE, to, kTag, comm_, &request));
  }
  bool note(const char* operation, int rc) {
    if (rc != MPI_SUCCESS && status_) status_ = mpi_error(operation, rc);
    return rc == MPI_SUCCESS;
  }

  Duplicate& ranks_;
  MPI_Comm comm_;
  const bool multiple_;
  int64_t sent_ = 0;
  // Under way, same index, the oldest first.
  std::vector<MPI_Request> requests_;
  std::vector<int64_t> numbers_;  // of those sent
  std::vector<int> receivers_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<Parcel> unsent_;  // refused by MPI
  MPI_Request barrier_ = MPI_REQUEST_NULL;
  Result<void> status_;
};

}  // namespace

Result<std::unique_ptr<Parcels>> make_mpi_parcels(Duplicate& ranks) {
  const Result<MPI_Comm> comm = ranks.take_for_parcels();
  if (!comm) return tl::unexpected(comm.error());
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  return std::make_unique<MpiParcels>(ranks, *comm, level == MPI_THREAD_MULTIPLE);
}

}  // namespace penstock::comm
