// pthread mutexes, robust and shared between processes: the kernel passes the lock of a process
// that died on, and no waiter needs MPI.
#include "comm/shared_mutex.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace penstock::comm {
namespace {

constexpr const char* kDirectory = "/dev/shm/";

// A mapped page with the mutex at its beginning.
class SharedMutex final : public NodeLock {
 public:
  explicit SharedMutex(pthread_mutex_t* mutex) : mutex_(mutex) {}
  SharedMutex(const SharedMutex&) = delete;
  ~SharedMutex() override { ::munmap(mutex_, sizeof *mutex_); }

  Result<void> enter() override {
    int rc = ::pthread_mutex_lock(mutex_);
    // The holder died inside. It guarded turns, not data: there is nothing to repair.
    if (rc == EOWNERDEAD) rc = ::pthread_mutex_consistent(mutex_);
    if (rc != 0) return os_error("pthread_mutex_lock", "the lock of this node's ranks", rc);
    return {};
  }
  void leave() noexcept override { ::pthread_mutex_unlock(mutex_); }

 private:
  pthread_mutex_t* mutex_;
};

// Closed at the end of the scope: the mapping keeps the page.
class Opened {
 public:
  Opened(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  Opened(const Opened&) = delete;
  ~Opened() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

std::string path_of(const std::string& name) { return kDirectory + name; }

Result<pthread_mutex_t*> map(const Opened& file, const std::string& path) {
  void* at =
      ::mmap(nullptr, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (at == MAP_FAILED) return os_error("mmap", path, errno);
  return static_cast<pthread_mutex_t*>(at);
}

int initialise(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  int rc = ::pthread_mutexattr_init(&attributes);
  if (rc != 0) return rc;
  rc = ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (rc == 0) rc = ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  if (rc == 0) rc = ::pthread_mutex_init(mutex, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  return rc;
}

Result<std::shared_ptr<NodeLock>> make_in(const Opened& file, const std::string& path) {
  // ftruncate alone would succeed on a full /dev/shm, and the first touch would kill us (SIGBUS).
  if (const int rc = ::posix_fallocate(file.fd(), 0, sizeof(pthread_mutex_t)); rc != 0)
    return os_error("posix_fallocate", path, rc);
  Result<pthread_mutex_t*> mutex = map(file, path);
  if (!mutex) return tl::unexpected(std::move(mutex).error());
  auto lock = std::make_shared<SharedMutex>(*mutex);
  if (const int rc = initialise(*mutex); rc != 0) return os_error("pthread_mutex_init", path, rc);
  return lock;
}

}  // namespace

std::string unused_mutex_name() {
  static std::atomic<int> count = 0;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);  // a process number comes back, a moment does not
  std::string name = "penstock-lock";
  for (const int64_t part : {int64_t{::getuid()}, int64_t{::getpid()}, int64_t{now.tv_sec},
                             int64_t{now.tv_nsec}, int64_t{count++}})
    name += "-" + std::to_string(part);
  return name;
}

Result<std::shared_ptr<NodeLock>> make_shared_mutex(const std::string& name) {
  const std::string path = path_of(name);
  const Opened file(path, O_RDWR | O_CREAT | O_EXCL);
  if (file.fd() < 0) return os_error("open", path, errno);
  auto made = make_in(file, path);
  if (!made) forget_mutex_name(name);
  return made;
}

Result<std::shared_ptr<NodeLock>> open_shared_mutex(const std::string& name) {
  const std::string path = path_of(name);
  const Opened file(path, O_RDWR);
  if (file.fd() < 0) return os_error("open", path, errno);
  Result<pthread_mutex_t*> mutex = map(file, path);
  if (!mutex) return tl::unexpected(std::move(mutex).error());
  return std::make_shared<SharedMutex>(*mutex);
}

void forget_mutex_name(const std::string& name) noexcept { ::unlink(path_of(name).c_str()); }

}  // namespace penstock::comm
