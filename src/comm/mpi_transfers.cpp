// Messages by MPI_Isend and MPI_Irecv. Counts of MPI-3 are ints, so a message above
// 1 GiB travels as several pieces, in order; it is done when all of them are.
#include "comm/mpi_transfers.hpp"

#include <string>
#include <utility>
#include <vector>

#include "comm/mpi_wait.hpp"

namespace penstock::comm {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 30;

class MpiTransfers final : public Transfers {
 public:
  explicit MpiTransfers(MPI_Comm comm) : comm_(comm) {}
  ~MpiTransfers() override {
    (void)finish();  // buffers are about to die
    if (vector_.type != MPI_DATATYPE_NULL) PMPI_Type_free(&vector_.type);
  }

  int send(int to, int tag, std::span<const std::byte> bytes) override {
    const int number = new_message(Event::Kind::sent);
    for_each_piece(bytes.size(), [&](size_t at, int n) {
      MPI_Request request = MPI_REQUEST_NULL;
      const int rc = PMPI_Isend(bytes.data() + at, n, MPI_BYTE, to, tag, comm_, &request);
      started("MPI_Isend", rc, request, {number, n});
    });
    return close_message(number);
  }

  // One request of one datatype, so the pieces must be as few bytes as a count can say.
  int send_strided(int to, int tag, const Strided& pieces) override {
    const int number = new_message(Event::Kind::sent);
    MPI_Request request = MPI_REQUEST_NULL;
    int rc = describe(pieces);
    if (rc == MPI_SUCCESS) rc = PMPI_Isend(pieces.first, 1, vector_.type, to, tag, comm_, &request);
    started("MPI_Isend", rc, request, {number, int(pieces.bytes())});
    return close_message(number);
  }

  int receive(int from, int tag, std::span<std::byte> bytes) override {
    const int number = new_message(Event::Kind::received);
    for_each_piece(bytes.size(), [&](size_t at, int n) {
      MPI_Request request = MPI_REQUEST_NULL;
      const int rc = PMPI_Irecv(bytes.data() + at, n, MPI_BYTE, from, tag, comm_, &request);
      started("MPI_Irecv", rc, request, {number, n});
    });
    return close_message(number);
  }

  std::optional<Event> next() override {
    Backoff backoff;
    while (told_ == done_.size()) {
      if (requests_.empty()) return std::nullopt;
      done_.clear();
      told_ = 0;
      test();
      if (done_.empty()) backoff.pause();
    }
    const int number = done_[told_++];
    free_numbers_.push_back(number);
    return Event{messages_[size_t(number)].kind, number};
  }

  const Result<void>& status() const noexcept override { return worst_; }

  Result<void> finish() override {
    while (next()) {
    }
    return std::exchange(worst_, Result<void>{});
  }

 private:
  struct Message {
    Event::Kind kind;
    int pieces_left;  // and one more until close_message
  };
  struct Piece {
    int number;
    int bytes;
  };
  struct Shape {
    int64_t block = 0, stride = 0, count = 0;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  struct Vector {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    Shape shape;
  };

  template <class F>
  static void for_each_piece(size_t bytes, F f) {
    size_t at = 0;
    do {
      const size_t n = std::min(bytes - at, kPieceBytes);
      f(at, int(n));
      at += n;
    } while (at < bytes);
  }

  // Makes vector_ the datatype of these pieces. It is kept, because the messages of a strided
  // buffer are all alike; one that is still being sent lives until then.
  int describe(const Strided& pieces) {
    const Shape shape{pieces.block_bytes, pieces.stride_bytes, pieces.count};
    if (vector_.type != MPI_DATATYPE_NULL && vector_.shape == shape) return MPI_SUCCESS;
    if (vector_.type != MPI_DATATYPE_NULL) PMPI_Type_free(&vector_.type);
    vector_.shape = shape;
    const int rc = PMPI_Type_create_hvector(int(shape.count), int(shape.block), shape.stride,
                                            MPI_BYTE, &vector_.type);
    return rc == MPI_SUCCESS ? PMPI_Type_commit(&vector_.type) : rc;
  }

  int new_message(Event::Kind kind) {
    if (free_numbers_.empty()) {
      free_numbers_.push_back(int(messages_.size()));
      messages_.emplace_back();
    }
    const int number = free_numbers_.back();
    free_numbers_.pop_back();
    messages_[size_t(number)] = {kind, 1};
    return number;
  }

  // A piece that could not start is done, in error: nobody waits for it.
  void started(const char* operation, int rc, MPI_Request request, Piece piece) {
    if (rc != MPI_SUCCESS) {
      note(mpi_error(operation, rc));
      return;
    }
    requests_.push_back(request);
    pieces_.push_back(piece);
    ++messages_[size_t(piece.number)].pieces_left;
  }

  int close_message(int number) {
    piece_done(number);
    return number;
  }

  void piece_done(int number) {
    if (--messages_[size_t(number)].pieces_left == 0) done_.push_back(number);
  }

  void note(Result<void> r) {
    if (!r) mpi_failures() = true;
    if (!r && worst_) worst_ = std::move(r);
  }

  void test() {
    const size_t n = requests_.size();
    statuses_.resize(n);
    indices_.resize(n);
    int completed = 0;
    const int rc =
        PMPI_Testsome(int(n), requests_.data(), &completed, indices_.data(), statuses_.data());
    int error_class = MPI_SUCCESS;
    if (rc != MPI_SUCCESS) PMPI_Error_class(rc, &error_class);
    if (rc != MPI_SUCCESS && error_class != MPI_ERR_IN_STATUS) {
      give_up(rc);
      return;
    }
    for (int i = 0; i < completed; ++i) {
      check_piece(pieces_[size_t(indices_[size_t(i)])], statuses_[size_t(i)], rc != MPI_SUCCESS);
    }
    if (completed > 0) drop_completed();
  }

  void check_piece(const Piece& piece, MPI_Status& status, bool has_error) {
    int n = 0;
    if (has_error && status.MPI_ERROR != MPI_SUCCESS) {
      note(mpi_error("MPI_Testsome", status.MPI_ERROR));
    } else if (messages_[size_t(piece.number)].kind == Event::Kind::received) {
      PMPI_Get_count(&status, MPI_BYTE, &n);
      if (n != piece.bytes) note(wrong_size(piece.bytes, n));
    }
    piece_done(piece.number);
  }

  static Result<void> wrong_size(int expected, int got) {
    return fail(ErrorClass::communication, "receive",
                "expected " + std::to_string(expected) + " bytes, got " + std::to_string(got));
  }

  void drop_completed() {
    size_t kept = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      pieces_[kept++] = pieces_[i];
    }
    requests_.resize(kept);
    pieces_.resize(kept);
  }

  // MPI itself is failing: nothing more will be heard of these messages.
  void give_up(int rc) {
    note(mpi_error("MPI_Testsome", rc));
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] != MPI_REQUEST_NULL) PMPI_Cancel(&requests_[i]);
      if (requests_[i] != MPI_REQUEST_NULL) PMPI_Request_free(&requests_[i]);
      piece_done(pieces_[i].number);
    }
    requests_.clear();
    pieces_.clear();
  }

  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;  // in flight
  std::vector<Piece> pieces_;          // of requests_, same index
  std::vector<Message> messages_;      // by number
  std::vector<int> free_numbers_;
  std::vector<int> done_;
  size_t told_ = 0;  // of done_, by next()
  Vector vector_;    // of the last strided message
  std::vector<MPI_Status> statuses_;
  std::vector<int> indices_;
  Result<void> worst_;
};

}  // namespace

std::unique_ptr<Transfers> make_mpi_transfers(MPI_Comm comm) {
  return std::make_unique<MpiTransfers>(comm);
}

}  // namespace penstock::comm
