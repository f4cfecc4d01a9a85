// memfd_create(2), and /proc/PID/fd/N of who made it; pidfd_open(2).
#include "base/bell.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/file_limit.hpp"
#include "base/kept_descriptor.hpp"
#include "base/units.hpp"

namespace penstock {
namespace {

constexpr size_t kMapped = kPageStep;
constexpr long kPidfdOpen = 434;  // SYS_pidfd_open, which older headers lack

BellMemory map(int flags, int fd) noexcept {
  void* at = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, flags, fd, 0);
  return BellMemory(at == MAP_FAILED ? nullptr : static_cast<BellMemory::Words*>(at));
}

// Before it looks for sleepers: who falls asleep looks at the rings after it has said so.
void ring_at(BellMemory::Words& words) noexcept {
  words.rings.fetch_add(1, std::memory_order_seq_cst);
  if (words.asleep.load(std::memory_order_seq_cst) != 0) futex_wake_all(words.rings);
}

uint64_t inode_of(const std::string& path) noexcept {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? uint64_t(found.st_ino) : 0;
}

uint64_t own_pid_namespace() noexcept {
  static const uint64_t inode = inode_of("/proc/self/ns/pid");
  return inode;
}

// Without /proc nobody knows whose numbers are whose.
bool has_own_numbers(const Bell::Address& a) noexcept {
  return a.pid_namespace != 0 && a.pid_namespace == own_pid_namespace();
}

std::string path_of(const Bell::Address& a) {
  return "/proc/" + std::to_string(a.pid) + "/fd/" + std::to_string(a.descriptor);
}

int memory_without_name() noexcept {
  const int fd =
      above_standard_streams(int(::syscall(SYS_memfd_create, "penstock-bell", MFD_CLOEXEC)));
  if (fd < 0) return -1;
  // Past the limit it would be a signal.
  if (Off(kMapped) <= largest_file() && ::ftruncate(fd, kMapped) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

// --- Its memory ---

BellMemory::BellMemory(BellMemory&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
BellMemory::~BellMemory() {
  if (at_ != nullptr) ::munmap(at_, kMapped);
}
BellMemory BellMemory::of_descriptor(int fd) noexcept { return map(MAP_SHARED, fd); }
BellMemory BellMemory::of_this_process() noexcept { return map(MAP_PRIVATE | MAP_ANONYMOUS, -1); }

// --- Here ---

Bell::Address Bell::unheard() noexcept {
  return {.pid_namespace = own_pid_namespace(), .pid = int32_t(::getpid())};
}

// Where the machine has no such memory to share, a bell that this process alone can ring.
std::unique_ptr<Bell> Bell::make() {
  Address address = unheard();
  const int fd = memory_without_name();
  BellMemory memory = fd < 0 ? BellMemory::of_this_process() : BellMemory::of_descriptor(fd);
  if (memory.get() == nullptr) {
    if (fd >= 0) ::close(fd);
    return nullptr;
  }
  struct stat found {};
  if (fd >= 0 && ::fstat(fd, &found) == 0) {
    address.device = uint64_t(found.st_dev);
    address.inode = uint64_t(found.st_ino);
    address.descriptor = fd;
  }
  return std::make_unique<Bell>(std::move(memory), fd, address);
}

Bell::Bell(BellMemory memory, int fd, Address address) noexcept
    : memory_(std::move(memory)), fd_(fd), address_(address) {}
Bell::~Bell() { hide(); }

void Bell::hide() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  address_ = unheard();
}

uint32_t Bell::rings() const noexcept {
  return memory_.get()->rings.load(std::memory_order_acquire);
}

void Bell::sleep(uint32_t heard, std::chrono::nanoseconds at_most) noexcept {
  BellMemory::Words& words = *memory_.get();
  words.asleep.store(1, std::memory_order_seq_cst);
  if (words.rings.load(std::memory_order_seq_cst) == heard)
    futex_wait(words.rings, heard, at_most.count());
  words.asleep.store(0, std::memory_order_relaxed);
}

void Bell::ring() noexcept { ring_at(*memory_.get()); }

// --- Elsewhere ---

namespace {

bool is_of(const Bell::Address& a, const struct stat& file) noexcept {
  return uint64_t(file.st_dev) == a.device && uint64_t(file.st_ino) == a.inode;
}

}  // namespace

// What has this number by now may be something else, and is not even opened: who waits at a pipe
// would wake.
std::unique_ptr<FarBell> FarBell::find(const Bell::Address& a) {
  if (a.inode == 0 || !has_own_numbers(a)) return nullptr;
  const std::string path = path_of(a);
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0 || !is_of(a, file)) return nullptr;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return nullptr;
  const bool same = ::fstat(fd, &file) == 0 && is_of(a, file);
  BellMemory memory = same ? BellMemory::of_descriptor(fd) : BellMemory(nullptr);
  ::close(fd);
  if (memory.get() == nullptr) return nullptr;
  return std::make_unique<FarBell>(std::move(memory));
}

void FarBell::ring() const noexcept { ring_at(*memory_.get()); }

// Its first thread may have ended before others do, and /proc shows the process as dead then. A
// descriptor of it becomes readable with the last one, and also while its parent has not looked.
// Where the machine gives none, only a number that nobody has tells.
bool process_is_gone(const Bell::Address& a) {
  if (!has_own_numbers(a)) return false;
  const int fd = int(::syscall(kPidfdOpen, pid_t(a.pid), 0U));
  if (fd < 0) return ::kill(a.pid, 0) != 0 && errno == ESRCH;
  pollfd ended{.fd = fd, .events = POLLIN, .revents = 0};
  const bool gone = ::poll(&ended, 1, 0) == 1 && (ended.revents & POLLIN) != 0;
  ::close(fd);
  return gone;
}

}  // namespace penstock
