// Where an extent is cut, what the file system says, and what to do when it says no.
#include "io/direct.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/aligned_buffer.hpp"
#include "io/probe.hpp"
#include "io/write_fully.hpp"

namespace penstock::io {
namespace {

constexpr int64_t kLargestUnit = int64_t{1} << 20;
constexpr auto kMemoryAlignment = int64_t{AlignedBuffer::kAlignment};

// Two fields of statx(2)'s answer that headers older than Linux 6.1 do not have.
constexpr unsigned kDioAlign = 0x2000;  // STATX_DIOALIGN
struct StatxAnswer {
  uint32_t mask;
  std::byte between[0x98 - sizeof(uint32_t)];
  uint32_t dio_mem_align, dio_offset_align;
  std::byte rest[0x100 - 0xa0];
};
static_assert(sizeof(StatxAnswer) == 256 && offsetof(StatxAnswer, dio_mem_align) == 0x98);

std::string words(int sys_errno) { return std::strerror(sys_errno); }

bool power_of_two_up_to(int64_t n, int64_t most) {
  return n > 0 && n <= most && std::has_single_bit(uint64_t(n));
}

int open_past_cache(const std::string& path) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// The path may lead to another file by now.
bool same_file(int a, int b) {
  const auto first = identify(a), second = identify(b);
  return first && second && *first == *second;
}

// What the page cache takes and drops at once: a page, and of a local file system with larger
// blocks one of these. What is written past the cache shares none with what goes through it, which
// would read it before and write it back behind.
int64_t cached_bytes(int fd) {
  const auto page = int64_t(::sysconf(_SC_PAGESIZE));
  const auto found = probe(fd);
  if (!found || found->geometry.sharing != layout::Sharing::any) return page;
  return std::max(page, std::min(found->geometry.block_bytes, kLargestUnit));
}

}  // namespace

std::array<Part, 3> cut_for_direct(Extent e, int64_t unit_bytes) noexcept {
  const Part none{{e.end, e.end}};
  if (unit_bytes == 0) return {Part{e}, none, none};
  const Off begin = align_up(e.begin, unit_bytes), end = align_down(e.end, unit_bytes);
  if (begin >= end) return {Part{e}, none, none};
  return {Part{{e.begin, begin}}, Part{{begin, end}, Way::direct}, Part{{end, e.end}}};
}

DirectLimits direct_limits(int fd) {
  StatxAnswer answer{};
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, kDioAlign, &answer) == 0 &&
      (answer.mask & kDioAlign) != 0)
    return {answer.dio_mem_align, answer.dio_offset_align};
  // Older kernels do not tell: a block is a multiple of what a local disk asks for, and network
  // file systems, whose blocks are large, ask for nothing.
  struct stat file {};
  if (::fstat(fd, &file) != 0) return {};
  const int64_t block = power_of_two_up_to(file.st_blksize, int64_t{1} << 16) ? file.st_blksize : 1;
  return {kMemoryAlignment, std::max(block, kMemoryAlignment)};
}

Result<std::unique_ptr<DirectFile>> DirectFile::open(const OpenRequest& request) {
  auto buffered = Descriptor::open_for_writing(request.path, request.written);
  if (!buffered) return tl::unexpected(std::move(buffered).error());
  std::unique_ptr<DirectFile> file(new DirectFile(*std::move(buffered)));
  if (request.direct) file->open_direct();
  if (request.written == Written::through) file->blocks_.refuse();
  return Result<std::unique_ptr<DirectFile>>(std::move(file));
}

DirectFile::~DirectFile() {
  if (direct_fd_ >= 0) ::close(direct_fd_);
}

void DirectFile::open_direct() {
  direct_fd_ = open_past_cache(buffered_.path());
  if (direct_fd_ < 0) return refuse("O_DIRECT is refused: " + words(errno));
  if (!same_file(direct_fd_, fd())) return refuse("the path leads to another file by now");
  if (const auto fs = probe(fd()); fs && !fs->sees_direct_writes())
    return refuse("reads on " + fs->type + " would not see it");
  const DirectLimits limits = direct_limits(direct_fd_);
  if (limits.offset_bytes == 0) return refuse("the file system takes no direct writes here");
  if (!power_of_two_up_to(limits.memory_bytes, kMemoryAlignment) ||
      !power_of_two_up_to(limits.offset_bytes, kLargestUnit))
    return refuse("the file system asks for memory aligned to " +
                  std::to_string(limits.memory_bytes) + " and offsets to " +
                  std::to_string(limits.offset_bytes));
  unit_bytes_ = std::max({limits.offset_bytes, limits.memory_bytes, cached_bytes(fd())});
}

void DirectFile::refuse(const std::string& why) {
  unit_bytes_ = 0;
  const std::lock_guard lock(degraded_mutex_);
  if (degraded_.empty()) degraded_ = "direct: " + why + "; written through the page cache";
}

std::string DirectFile::degraded() const {
  const std::lock_guard lock(degraded_mutex_);
  return degraded_;
}

size_t DirectFile::memory_shift(Off begin) const noexcept {
  return unit_bytes_ == 0 ? 0 : size_t(begin % kMemoryAlignment);
}

std::optional<Fault> DirectFile::write(std::span<const std::byte> bytes, Off offset, Way way) {
  // Parts that were cut before a refusal end here as well. Another thread may be refused meanwhile.
  const int64_t unit = unit_bytes_;
  if (way == Way::buffered || unit == 0) return write_buffered(bytes, offset);
  auto fault = write_fully(direct_fd_, bytes, offset, buffered_.path());
  if (!fault) return fault;
  const int why = fault->error.sys_errno;
  if (why != EINVAL && why != EOPNOTSUPP) return fault;
  // A short write can leave a rest that is not aligned; only otherwise is it a refusal.
  const Off at = fault->first_missing;
  if (at % unit == 0) refuse("a write of whole units was refused: " + words(why));
  return write_fully(fd(), bytes.subspan(size_t(at - offset)), at, buffered_.path());
}

std::optional<Fault> DirectFile::write_buffered(std::span<const std::byte> bytes, Off offset) {
  blocks_.before_writing(fd(), {offset, offset + Off(bytes.size())});
  return write_fully(fd(), bytes, offset, buffered_.path());
}

Result<void> DirectFile::close() {
  const int direct = std::exchange(direct_fd_, -1);
  Result<void> first;
  if (direct >= 0 && ::close(direct) != 0 && errno != EINTR)
    first = os_error("close", buffered_.path(), errno);
  Result<void> second = buffered_.close();
  return first ? second : first;
}

}  // namespace penstock::io
