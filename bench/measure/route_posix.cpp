// Plain POSIX calls, as programs without MPI-IO make them: one pwrite(2) or pread(2) per piece that
// is contiguous in the file, from memory that is packed first when it has gaps.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "layout/copy.hpp"
#include "route.hpp"

namespace penstock::measure {
namespace {

class PosixRoute final : public Route {
 public:
  PosixRoute(const RouteRequest& request, layout::LoopTree memory_tree)
      : r_(request), memory_tree_(std::move(memory_tree)) {}
  ~PosixRoute() override {
    if (fd_ >= 0) ::close(fd_);
  }

  Result<void> open() override {
    if (auto ok = packed_.reserve(r_.memory.contiguous() ? 0 : size_t(bytes())); !ok) return ok;
    const int flags = r_.op == Op::write ? O_WRONLY | O_CREAT : O_RDONLY;
    fd_ = ::open(r_.path.c_str(), flags | O_CLOEXEC, 0666);
    if (fd_ < 0) return os_error("open", r_.path, errno);
    return {};
  }

  Result<void> write(const Piece& piece) override {
    std::byte* from = piece.memory;
    if (!r_.memory.contiguous()) {
      layout::Cursor cursor(memory_tree_, 0, 1);
      layout::gather(packed_.data(), piece.memory, cursor, bytes());
      from = packed_.data();
    }
    return each_block(piece, [&](int64_t done, int64_t n, Off offset) {
      return move("pwrite", n, offset, [&](int64_t moved) {
        return ::pwrite(fd_, from + done + moved, size_t(n - moved), offset + moved);
      });
    });
  }

  Result<void> read(const Piece& piece) override {
    std::byte* to = r_.memory.contiguous() ? piece.memory : packed_.data();
    auto moved = each_block(piece, [&](int64_t done, int64_t n, Off offset) {
      return move("pread", n, offset, [&](int64_t had) {
        return ::pread(fd_, to + done + had, size_t(n - had), offset + had);
      });
    });
    if (!moved || r_.memory.contiguous()) return moved;
    layout::Cursor cursor(memory_tree_, 0, 1);
    layout::scatter(piece.memory, 0, cursor, packed_.data(), bytes());
    return {};
  }

  Result<void> sync() override {
    if (::fsync(fd_) != 0) return os_error("fsync", r_.path, errno);
    return {};
  }

  Result<void> close() override {
    if (fd_ < 0) return {};
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0 && errno != EINTR) return os_error("close", r_.path, errno);
    return {};
  }

 private:
  int64_t bytes() const noexcept { return r_.part.bytes_per_iteration; }

  // Calls do_one(bytes of the piece before, bytes, file offset) for each block, in stream order.
  template <class DoOne>
  Result<void> each_block(const Piece& piece, DoOne do_one) {
    layout::Cursor cursor = r_.view.cursor();
    cursor.seek(piece.position_bytes);
    for (int64_t done = 0; done < bytes();) {
      const layout::Run run = cursor.next(bytes() - done);
      for (int64_t i = 0; i < run.count; ++i, done += run.block)
        if (auto ok = do_one(done, run.block, run.offset + i * run.stride); !ok) return ok;
    }
    return {};
  }

  // Until all n bytes are moved: short counts and interruptions only mean one more call.
  template <class Call>
  Result<void> move(const char* operation, int64_t n, Off offset, Call call) {
    for (int64_t moved = 0; moved < n;) {
      const ssize_t now = call(moved);
      if (now < 0 && errno == EINTR) continue;
      const std::string where = r_.path + ", offset " + std::to_string(offset + moved);
      if (now < 0) return os_error(operation, where, errno);
      if (now == 0) return fail(ErrorClass::io, operation, "no byte moved: " + where);
      moved += now;
    }
    return {};
  }

  RouteRequest r_;
  layout::LoopTree memory_tree_;
  AlignedBuffer packed_;
  int fd_ = -1;
};

}  // namespace

Result<std::unique_ptr<Route>> make_posix_route(const RouteRequest& request) {
  auto tree = request.memory.tree(request.part.bytes_per_iteration);
  if (!tree) return tl::unexpected(tree.error());
  return std::make_unique<PosixRoute>(request, *std::move(tree));
}

}  // namespace penstock::measure
