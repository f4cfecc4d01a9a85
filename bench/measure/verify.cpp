// The image of a file, made piece by piece and compared.
#include "verify.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/units.hpp"
#include "layout/copy.hpp"

namespace penstock::measure {
namespace {

constexpr int64_t kPieceBytes = 4 * kMiB;

// Bytes that were there; fewer than asked for at the end of the file.
Result<int64_t> read_at(int fd, const std::string& path, std::byte* to, int64_t n, Off offset) {
  int64_t had = 0;
  while (had < n) {
    const ssize_t now = ::pread(fd, to + had, size_t(n - had), offset + had);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return os_error("pread", path + ", offset " + std::to_string(offset + had), errno);
    if (now == 0) break;
    had += now;
  }
  return had;
}

}  // namespace

void Check::add(const Check& other) {
  bytes += other.bytes;
  wrong_bytes += other.wrong_bytes;
  if (other.first_wrong < 0 || (first_wrong >= 0 && first_wrong <= other.first_wrong)) return;
  first_wrong = other.first_wrong;
  first_worker = other.first_worker;
  expected = other.expected;
  found = other.found;
}

Result<Expected> Expected::make(const PatternChoice& choice, const Amount& amount,
                                int64_t shift_bytes, int first_worker) {
  Expected all;
  for (int w = 0; w < amount.workers; ++w) {
    auto part = make_part(choice, w, amount);
    if (!part) return tl::unexpected(part.error());
    auto view = view_of(*part);
    if (!view) return tl::unexpected(view.error());
    all.file_bytes_ = part->file_bytes_per_iteration * amount.iterations;
    all.streams_.push_back({*std::move(view), Contents(amount.seed, first_worker + w, shift_bytes),
                            part->bytes_per_iteration,
                            part->bytes_per_iteration * amount.iterations});
  }
  return all;
}

void Expected::pack(const Stream& s, StreamRange range, std::byte* out) const {
  for (int64_t at = range.begin; at < range.end;) {
    const int64_t iteration = at / s.bytes_per_iteration, within = at % s.bytes_per_iteration;
    const int64_t n = std::min(s.bytes_per_iteration - within, range.end - at);
    s.contents.fill(out, s.contents.shift(iteration) + within, n);
    out += n;
    at += n;
  }
}

void Expected::image(Extent e, std::byte* page) {
  for (const Stream& s : streams_) {
    const StreamRange range = s.view.clip({0, s.bytes}, e);
    if (range.empty()) continue;
    packed_.resize(std::max(packed_.size(), size_t(range.size())));
    pack(s, range, packed_.data());
    layout::Cursor cursor = s.view.cursor();
    cursor.seek(range.begin);
    layout::scatter(page, e.begin, cursor, packed_.data(), range.size());
  }
}

int Expected::owner(Off offset) const {
  for (size_t w = 0; w < streams_.size(); ++w)
    if (!streams_[w].view.clip({0, streams_[w].bytes}, {offset, offset + 1}).empty()) return int(w);
  return -1;
}

Result<Check> Expected::check(int fd, const std::string& path, Extent e) {
  Check all;
  page_.resize(size_t(kPieceBytes));
  read_.resize(size_t(kPieceBytes));
  for (Off at = e.begin; at < e.end; at += kPieceBytes) {
    const int64_t n = std::min(kPieceBytes, e.end - at);
    image({at, at + n}, page_.data());
    const auto had = read_at(fd, path, read_.data(), n, at);
    if (!had) return tl::unexpected(had.error());
    all.bytes += n;
    if (*had == n && std::memcmp(page_.data(), read_.data(), size_t(n)) == 0) continue;
    for (int64_t i = 0; i < n; ++i) {
      if (i < *had && page_[size_t(i)] == read_[size_t(i)]) continue;
      if (all.wrong_bytes++ > 0) continue;
      all.first_wrong = at + i;
      all.first_worker = owner(at + i);
      all.expected = int64_t(page_[size_t(i)]);
      all.found = i < *had ? int64_t(read_[size_t(i)]) : -1;
    }
  }
  return all;
}

Result<Check> check_slice(Expected& expected, const std::string& path, int slice, int slices) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return os_error("open", path, errno);
  const Off end = expected.file_bytes(), share = divide_up(end, slices);
  auto check =
      expected.check(fd, path, {std::min(end, slice * share), std::min(end, (slice + 1) * share)});
  struct stat now {};
  if (check && slice + 1 == slices && ::fstat(fd, &now) == 0 && now.st_size > end)
    check->add({.wrong_bytes = now.st_size - end, .first_wrong = end});
  ::close(fd);
  return check;
}

}  // namespace penstock::measure
