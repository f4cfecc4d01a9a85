// Penstock's engine, linked in: the same engine::File that serves unmodified programs, over
// threads, MPI ranks or both.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "engine/expected_syncs.hpp"
#include "engine/file.hpp"
#include "io/sync_habit.hpp"
#include "route.hpp"

namespace penstock::measure {
namespace {

class EngineRoute final : public Route {
 public:
  EngineRoute(const RouteRequest& request, layout::LoopTree memory_tree)
      : r_(request), memory_tree_(std::move(memory_tree)) {}

  Result<void> open() override {
    Result<void> created = r_.comm->rank() == 0 ? create_file(r_.path) : Result<void>();
    if (auto ok = comm::agree(*r_.comm, std::move(created)); !ok) return ok;
    file_ = engine::File::open(comm::borrow(*r_.comm), open_info(r_));
    file_->set_view(r_.view, "");
    if (!file_->served()) return unserved();
    if (r_.access == Access::independent && !file_->serves_independent()) return unserved();
    return {};
  }

  Result<void> write(const Piece& piece) override {
    engine::Write w;
    w.position_bytes = piece.position_bytes;
    w.memory = piece.memory;
    w.memory_type = memory_tree_;
    w.memory_count = memory_count_();
    const bool together = r_.access == Access::collective;
    w.kind = together ? engine::CallKind::write_at_all : engine::CallKind::write_at;
    const engine::WriteResult done = together ? file_->write_all(w) : file_->write(w);
    if (done.agreed != ErrorClass::none) return failed(done.agreed, "write");
    if (done.bytes == r_.part.bytes_per_iteration) return {};
    return fail(ErrorClass::internal, "write",
                "success, but a count of " + std::to_string(done.bytes) + " bytes of " +
                    std::to_string(r_.part.bytes_per_iteration));
  }

  Result<void> read(const Piece&) override {
    return fail(ErrorClass::unsupported, "read", why_engine_cannot_read());
  }

  Result<void> sync() override {
    const ErrorClass agreed = file_->sync();
    return agreed == ErrorClass::none ? Result<void>() : failed(agreed, "sync");
  }

  Result<void> close() override {
    if (!file_) return {};
    report_.emplace();
    const ErrorClass agreed = file_->close(*report_);
    const std::string first = report_->first_error;
    file_.reset();
    if (agreed == ErrorClass::none) return {};
    return fail(agreed, "close", first.empty() ? r_.path : first);
  }

  const EngineReport* engine_report() const override { return report_ ? &*report_ : nullptr; }

 private:
  // The type as a program would name it: bytes, so and so many; or one of a strided type.
  int64_t memory_count_() const noexcept {
    return r_.memory.contiguous() ? r_.part.bytes_per_iteration : 1;
  }

  Result<void> unserved() { return fail(ErrorClass::unsupported, "open", file_->why_unserved()); }
  // The detail is in this worker's own notes when it was the one that failed.
  Result<void> failed(ErrorClass c, const char* operation) {
    const std::string own = file_->snapshot().first_error;
    return fail(c, operation, own.empty() ? "another worker of the file failed" : own);
  }

  RouteRequest r_;
  layout::LoopTree memory_tree_;
  std::unique_ptr<engine::File> file_;
  std::optional<engine::FileReport> report_;
};

}  // namespace

Result<void> create_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return os_error("open", path, errno);
  ::close(fd);
  return {};
}

engine::OpenInfo open_info(const RouteRequest& request) {
  engine::expect_syncs_by_symbols();  // which would come later, and undo this
  io::expect_syncs(request.syncs);
  engine::OpenInfo info;
  info.path = request.path;
  info.writable = true;
  info.may_defer = true;  // as of MPI_MODE_WRONLY
  info.config.method = request.method;
  info.config.log = false;
  info.node_lock = request.node_lock;
  return info;
}

std::string why_engine_cannot_read() {
  return "the engine has no reads yet: use --route mpi or posix";
}

Result<std::unique_ptr<Route>> make_engine_route(const RouteRequest& request) {
  if (request.memory.contiguous())
    return std::make_unique<EngineRoute>(request, layout::LoopTree::bytes(1));
  auto tree = request.memory.tree(request.part.bytes_per_iteration);
  if (!tree) return tl::unexpected(tree.error());
  return std::make_unique<EngineRoute>(request, *std::move(tree));
}

}  // namespace penstock::measure
