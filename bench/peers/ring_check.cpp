// Chunk by chunk: what should be there is laid out through the views, then compared.
#include "ring_check.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "../measure/contents.hpp"
#include "base/units.hpp"
#include "layout/copy.hpp"

namespace penstock::peers {
namespace {

constexpr int64_t kChunk = 4 * kMiB;

// A worker's stream bytes as one run of memory: windows of its contents, iteration after iteration.
void stream_bytes(const measure::Contents& contents, int64_t per_iteration, StreamRange range,
                  std::byte* out) {
  for (Off at = range.begin; at < range.end;) {
    const int64_t iteration = at / per_iteration, within = at % per_iteration;
    const int64_t n = std::min(range.end - at, per_iteration - within);
    contents.fill(out, contents.shift(iteration) + within, n);
    out += n;
    at += n;
  }
}

void lay_out(const CheckedFile& file, int worker, uint64_t seed, Extent chunk,
             std::vector<std::byte>& packed, std::byte* expected) {
  const layout::FileView& view = file.views[size_t(worker)];
  const StreamRange all{0, file.iterations * file.bytes_per_iteration[size_t(worker)]};
  const StreamRange part = view.clip(all, chunk);
  if (part.empty()) return;
  const measure::Contents contents(seed, worker, file.shift_bytes);
  packed.resize(size_t(part.size()));
  stream_bytes(contents, file.bytes_per_iteration[size_t(worker)], part, packed.data());
  auto cursor = view.cursor();
  cursor.seek(part.begin);
  layout::scatter(expected, chunk.begin, cursor, packed.data(), part.size());
}

Result<void> read_fully(int fd, std::byte* to, Extent extent, const std::string& path) {
  for (Off at = extent.begin; at < extent.end;) {
    const ssize_t n = ::pread(fd, to + (at - extent.begin), size_t(extent.end - at), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("pread", path, errno);
    if (n == 0) {  // the file ends too soon: what is not there is wrong
      std::memset(to + (at - extent.begin), 0, size_t(extent.end - at));
      return {};
    }
    at += n;
  }
  return {};
}

void compare(const std::byte* found, const std::byte* expected, Extent chunk, Found& sum) {
  if (std::memcmp(found, expected, size_t(chunk.size())) == 0) return;
  for (Off i = 0; i < chunk.size(); ++i) {
    if (found[i] == expected[i]) continue;
    if (sum.wrong_bytes++ == 0) sum.first_wrong = chunk.begin + i;
  }
}

}  // namespace

Result<Found> check_file(const CheckedFile& file, const std::string& path, uint64_t seed,
                         Extent share) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return os_error("open", path, errno);
  std::vector<std::byte> found(kChunk), expected(kChunk), packed;
  Found sum;
  Result<void> ok;
  for (Off at = share.begin; ok && at < share.end; at += kChunk) {
    const Extent chunk{at, std::min(at + kChunk, share.end)};
    for (int worker = 0; worker < int(file.views.size()); ++worker)
      lay_out(file, worker, seed, chunk, packed, expected.data());
    ok = read_fully(fd, found.data(), chunk, path);
    if (ok) compare(found.data(), expected.data(), chunk, sum);
  }
  ::close(fd);
  if (!ok) return tl::unexpected(ok.error());
  return sum;
}

}  // namespace penstock::peers
