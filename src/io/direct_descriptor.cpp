// Where an extent is cut, what the file system says, and what to do when it says no.
#include "io/direct_descriptor.hpp"

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
#include "base/kept_descriptor.hpp"
#include "base/populate.hpp"
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
    fd = above_standard_streams(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT));
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
  const int64_t page = memory_page_bytes();
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

tl::expected<std::unique_ptr<DirectDescriptor>, std::string> DirectDescriptor::open(
    const Descriptor& buffered, const std::string& name) {
  using std::string_literals::operator""s;
  const int fd = open_past_cache(name);
  if (fd < 0) return tl::unexpected("O_DIRECT is refused: " + words(errno));
  std::unique_ptr<DirectDescriptor> direct(new DirectDescriptor(fd, buffered));
  if (!same_file(fd, buffered.fd()))
    return tl::unexpected("the path leads to another file by now"s);
  if (const auto fs = probe(fd); fs && !fs->sees_direct_writes())
    return tl::unexpected("reads on " + fs->type + " would not see it");
  const DirectLimits limits = direct_limits(fd);
  if (limits.offset_bytes == 0)
    return tl::unexpected("the file system takes no direct writes here"s);
  if (!power_of_two_up_to(limits.memory_bytes, kMemoryAlignment) ||
      !power_of_two_up_to(limits.offset_bytes, kLargestUnit))
    return tl::unexpected("the file system asks for memory aligned to " +
                          std::to_string(limits.memory_bytes) + " and offsets to " +
                          std::to_string(limits.offset_bytes));
  direct->memory_bytes_ = limits.memory_bytes;
  direct->unit_bytes_ = std::max({limits.offset_bytes, limits.memory_bytes, cached_bytes(fd)});
  return direct;
}

DirectDescriptor::~DirectDescriptor() { (void)close(); }

bool DirectDescriptor::takes(const std::byte* memory) const noexcept {
  return reinterpret_cast<uintptr_t>(memory) % uintptr_t(memory_bytes_) == 0;
}

DirectWrite DirectDescriptor::write(std::span<const std::byte> bytes, Off offset) {
  auto fault = write_fully(fd_, bytes, offset, buffered_.path());
  if (!fault) return {.fault = {}, .past = true, .refusal = {}};
  const int why = fault->error.sys_errno;
  // Memory that the device cannot read (EFAULT), such as another device's, the processor may read.
  if (why != EINVAL && why != EOPNOTSUPP && why != EFAULT)
    return {.fault = std::move(fault), .past = false, .refusal = {}};
  // A short write can leave a rest that is not aligned; only otherwise is it a refusal.
  const Off at = fault->first_missing;
  std::string refusal;
  if (at % unit_bytes_ == 0) refusal = "a write of whole units was refused: " + words(why);
  return {.fault =
              write_fully(buffered_.fd(), bytes.subspan(size_t(at - offset)), at, buffered_.path()),
          .past = false,
          .refusal = std::move(refusal)};
}

Result<void> DirectDescriptor::close() {
  const int fd = std::exchange(fd_, -1);
  if (fd >= 0 && ::close(fd) != 0 && errno != EINTR)
    return os_error("close", buffered_.path(), errno);
  return {};
}

}  // namespace penstock::io
