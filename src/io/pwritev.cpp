// Vectored positional writes with pwritev(2). One call carries up to IOV_MAX pieces that are
// contiguous in the file and scattered in memory. With `direct` a lease's whole units, which lie in
// one piece, go past the page cache.
#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "base/seeded_fault.hpp"
#include "io/blocking_file.hpp"

namespace penstock::io {
namespace {

using Pieces = std::span<const std::span<const std::byte>>;
static_assert(kGatheredPieces == IOV_MAX);

// What is left of the pieces. Invariant: it stands at a byte that is not written, or is done.
class PieceCursor {
 public:
  explicit PieceCursor(Pieces pieces) : pieces_(pieces) { skip_finished(); }

  bool done() const noexcept { return pieces_.empty(); }

  // The next pieces, as many as `batch` takes; how many.
  int peek(std::span<iovec> batch) const noexcept {
    const size_t n = std::min(batch.size(), pieces_.size());
    for (size_t i = 0; i < n; ++i) batch[i] = entry(pieces_[i].subspan(i == 0 ? within_ : 0));
    return int(n);
  }

  void advance(size_t bytes) noexcept {
    within_ += bytes;
    skip_finished();
  }

 private:
  static iovec entry(std::span<const std::byte> piece) noexcept {
    return {const_cast<std::byte*>(piece.data()), piece.size()};  // the call only reads
  }
  void skip_finished() noexcept {
    while (!pieces_.empty() && within_ >= pieces_.front().size()) {
      within_ -= pieces_.front().size();
      pieces_ = pieces_.subspan(1);
    }
  }

  Pieces pieces_;
  size_t within_ = 0;  // of the first one, behind us
};

Extent extent_of(Pieces pieces, Off offset) noexcept {
  Extent all{offset, offset};
  for (const auto& piece : pieces) all.end += Off(piece.size());
  return all;
}

class PwritevFile final : public BlockingFile {
 public:
  using BlockingFile::BlockingFile;

  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return write_pieces({&bytes, 1}, offset);
  }

  std::optional<Fault> write_pieces(Pieces pieces, Off offset) override {
    file().reserve(extent_of(pieces, offset));
    iovec batch[kGatheredPieces];  // left uninitialised: most calls carry a few
    // Invariant: everything before `offset` is in the file, and the cursor stands at its byte.
    for (PieceCursor cursor(pieces); !cursor.done();) {
      const int count = cursor.peek(batch);
      const ssize_t n = ::pwritev(file().fd(), batch, count, offset);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return missing_from(offset, n < 0 ? errno : EIO);
      if (seeded_fault("short_vector_ignored")) return std::nullopt;
      cursor.advance(size_t(n));  // a short write only moves it less far
      offset += n;
    }
    return std::nullopt;
  }
  bool gathers() const noexcept override { return true; }

 private:
  Fault missing_from(Off offset, int sys_errno) const {
    const std::string where = file().path() + ", offset " + std::to_string(offset);
    return {os_error("pwritev", where, sys_errno).value(), offset};
  }
};

}  // namespace

const Mechanism& pwritev_mechanism() {
  static const Mechanism m{.name = "pwritev",
                           .summary = "vectored positional writes: memory in pieces is not packed",
                           .alignment_bytes = 1,
                           .writes_file = true,
                           .takes_direct = true,
                           .unavailable = nullptr,
                           .open = &BlockingFile::open<PwritevFile>};
  return m;
}

}  // namespace penstock::io
