// memfd_create(2), and /proc/PID/fd/N of who made it.
#include "base/bell.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/units.hpp"

namespace penstock {
namespace {

constexpr size_t kMapped = kPageStep;

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

std::string path_of(const Bell::Address& a) {
  return "/proc/" + std::to_string(a.pid) + "/fd/" + std::to_string(a.descriptor);
}

int memory_without_name() noexcept {
  const int fd = int(::syscall(SYS_memfd_create, "penstock-bell", MFD_CLOEXEC));
  if (fd < 0) return -1;
  if (::ftruncate(fd, kMapped) == 0) return fd;
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
Bell::~Bell() {
  if (fd_ >= 0) ::close(fd_);
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

// What has this number by now may be something else.
std::unique_ptr<FarBell> FarBell::find(const Bell::Address& a) {
  if (a.inode == 0 || a.pid_namespace != own_pid_namespace()) return nullptr;
  const int fd = ::open(path_of(a).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat found {};
  const bool same = ::fstat(fd, &found) == 0 && uint64_t(found.st_dev) == a.device &&
                    uint64_t(found.st_ino) == a.inode;
  BellMemory memory = same ? BellMemory::of_descriptor(fd) : BellMemory(nullptr);
  ::close(fd);
  if (memory.get() == nullptr) return nullptr;
  return std::make_unique<FarBell>(std::move(memory));
}

void FarBell::ring() const noexcept { ring_at(*memory_.get()); }

// A dead process whose parent has not looked yet has a number too, and the state Z or X in
// "PID (NAME) STATE ...".
bool process_is_gone(const Bell::Address& a) {
  if (a.pid_namespace != own_pid_namespace()) return false;
  const std::string path = "/proc/" + std::to_string(a.pid) + "/stat";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  std::array<char, 256> text{};
  const ssize_t n = ::read(fd, text.data(), text.size());
  const int failed = n < 0 ? errno : 0;
  ::close(fd);
  if (n < 0) return failed == ESRCH;
  const std::string told(text.data(), size_t(n));
  const size_t name_end = told.rfind(')');
  return name_end != told.npos && name_end + 2 < told.size() &&
         std::strchr("ZXx", told[name_end + 2]) != nullptr;
}

}  // namespace penstock
