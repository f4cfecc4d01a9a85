// S3 of benson-2003: one worker does nothing but write. The others hand it the bytes of an
// iteration in one message each and compute on as soon as they are taken; it writes them by the
// engine, where they belong, while the others compute.
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "comm/thread_comm.hpp"
#include "engine/file.hpp"
#include "layout/copy.hpp"
#include "route.hpp"

namespace penstock::measure {
namespace {

constexpr int kWriter = 0;
constexpr int kTag = 0;

int worker_of(int part) { return part + 1; }  // whose part of the amount it is

// --- A worker that computes ---

class HandingRoute final : public Route {
 public:
  HandingRoute(const RouteRequest& request, layout::LoopTree memory_tree)
      : r_(request), memory_tree_(std::move(memory_tree)) {}

  Result<void> open() override {
    transfers_ = r_.comm->transfers();
    return packed_.reserve(r_.memory.contiguous() || by_datatype() ? 0 : size_t(bytes()));
  }

  // Returns when the bytes were taken and may be computed anew.
  Result<void> write(const Piece& piece) override {
    if (r_.memory.contiguous())
      transfers_->send(kWriter, kTag, {piece.memory, size_t(bytes())});
    else if (by_datatype())
      transfers_->send_strided(kWriter, kTag, pieces(piece));
    else
      transfers_->send(kWriter, kTag, pack(piece));
    return transfers_->finish();
  }

  Result<void> read(const Piece&) override {
    return fail(ErrorClass::unsupported, "read", why_engine_cannot_read());
  }
  Result<void> sync() override { return {}; }  // the writer's
  Result<void> close() override { return {}; }

 private:
  int64_t bytes() const noexcept { return r_.part.bytes_per_iteration; }

  // Whole chunks, so that one datatype says where they lie.
  bool by_datatype() const noexcept {
    return r_.method.pack == exec::Pack::datatype && bytes() % r_.memory.len_bytes == 0 &&
           bytes() < INT32_MAX;
  }
  comm::Strided pieces(const Piece& piece) const {
    return {piece.memory, r_.memory.len_bytes, r_.memory.stride_bytes,
            bytes() / r_.memory.len_bytes};
  }
  std::span<const std::byte> pack(const Piece& piece) {
    layout::Cursor cursor(memory_tree_, 0, 1);
    layout::gather(packed_.data(), piece.memory, cursor, bytes());
    return {packed_.data(), size_t(bytes())};
  }

  RouteRequest r_;
  layout::LoopTree memory_tree_;
  AlignedBuffer packed_;
  std::unique_ptr<comm::Transfers> transfers_;
};

// --- The worker that writes ---

class WritingRoute final : public Route {
 public:
  explicit WritingRoute(const RouteRequest& request) : r_(request) {
    r_.method.algorithm =
        plan::find_algorithm(through_pages() ? "designated_writer" : "individual");
    r_.method.parameters = plan::taken_by(*r_.method.algorithm, r_.method.parameters);
    r_.method.pack = exec::Pack::copy;  // of what others send
  }

  // Before the clock, as other routes know their own part.
  Result<void> know_others() {
    for (int part = 0; part < r_.handover.amount.workers; ++part) {
      auto made = make_part(r_.handover.pattern, part, r_.handover.amount);
      if (!made) return tl::unexpected(made.error());
      auto view = view_of(*made);
      if (!view) return tl::unexpected(view.error());
      Other& other = others_.emplace_back();
      other.view = *std::move(view);
      other.bytes = made->bytes_per_iteration;
      if (auto ok = other.buffer.reserve(size_t(other.bytes)); !ok) return ok;
    }
    return {};
  }

  Result<void> open() override {
    transfers_ = r_.comm->transfers();
    if (auto ok = create_file(r_.path); !ok) return ok;
    file_ = engine::File::open(std::move(comm::make_thread_team(1).front()), open_info(r_));
    file_->set_view(layout::FileView(), "");
    if (file_->serves_independent()) return {};
    return fail(ErrorClass::unsupported, "open", file_->why_unserved());
  }

  // Takes what every other worker hands over, also after an error: they wait for it.
  Result<void> write(const Piece&) override {
    for (size_t i = 0; i < others_.size(); ++i) receive(int(i));
    Result<void> first;
    while (const auto event = transfers_->next()) {
      Result<void> written = write_one(others_[size_t(sender_[size_t(event->number)])]);
      if (first && !written) first = std::move(written);
    }
    ++iteration_;
    Result<void> received = transfers_->finish();
    return received ? first : received;
  }

  Result<void> read(const Piece&) override {
    return fail(ErrorClass::unsupported, "read", why_engine_cannot_read());
  }

  Result<void> sync() override {
    const ErrorClass c = file_->sync();
    return c == ErrorClass::none ? Result<void>() : failed(c, "sync");
  }

  Result<void> close() override {
    if (!file_) return {};
    report_.emplace();
    const ErrorClass c = file_->close(*report_);
    file_.reset();
    if (c == ErrorClass::none) return {};
    return fail(c, "close", report_->first_error.empty() ? r_.path : report_->first_error);
  }

  const EngineReport* engine_report() const override { return report_ ? &*report_ : nullptr; }

 private:
  struct Other {
    layout::FileView view;
    int64_t bytes = 0;
    AlignedBuffer buffer;
  };

  // Windows, direct and asynchronous writes are of a file page; other mechanisms write the bytes
  // from where they were received.
  bool through_pages() const noexcept {
    const io::Mechanism& m = *r_.method.mechanism;
    return r_.method.direct == io::Direct::always || m.alignment_bytes > 1 || m.default_depth > 0;
  }

  void receive(int part) {
    Other& other = others_[size_t(part)];
    const int number =
        transfers_->receive(worker_of(part), kTag, {other.buffer.data(), size_t(other.bytes)});
    if (sender_.size() <= size_t(number)) sender_.resize(size_t(number) + 1);
    sender_[size_t(number)] = part;
  }

  Result<void> write_one(const Other& other) {
    if (!file_) return {};  // it could not be opened, and that was told
    engine::Write w;
    w.kind = through_pages() ? engine::CallKind::write_at_all : engine::CallKind::write_at;
    w.position_bytes = iteration_ * other.bytes;
    w.memory = other.buffer.data();
    w.memory_type = layout::LoopTree::bytes(1);
    w.memory_count = other.bytes;
    w.view = &other.view;
    const engine::WriteResult done = through_pages() ? file_->write_all(w) : file_->write(w);
    if (done.agreed != ErrorClass::none) return failed(done.agreed, "write");
    if (done.bytes == other.bytes) return {};
    return fail(ErrorClass::internal, "write",
                "success, but a count of " + std::to_string(done.bytes) + " bytes of " +
                    std::to_string(other.bytes));
  }

  Result<void> failed(ErrorClass c, const char* operation) {
    return fail(c, operation, file_->snapshot().first_error);
  }

  RouteRequest r_;
  std::unique_ptr<comm::Transfers> transfers_;
  std::vector<Other> others_;
  std::vector<int> sender_;  // by message number: whose part it is
  std::unique_ptr<engine::File> file_;
  std::optional<engine::FileReport> report_;
  int64_t iteration_ = 0;
};

}  // namespace

Result<std::unique_ptr<Route>> make_dedicated_route(const RouteRequest& request) {
  if (request.comm->rank() == kWriter) {
    auto writing = std::make_unique<WritingRoute>(request);
    if (auto ok = writing->know_others(); !ok) return tl::unexpected(ok.error());
    return writing;
  }
  auto tree = request.memory.tree(request.part.bytes_per_iteration);
  if (!tree) return tl::unexpected(tree.error());
  return std::make_unique<HandingRoute>(request, *std::move(tree));
}

}  // namespace penstock::measure
