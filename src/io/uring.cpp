// Asynchronous writes by io_uring(7), through liburing, which is linked statically
// (cmake/PenstockUring.cmake) and may be missing. No flags of the ring: who waits need not be who
// submitted.
#include "io/async_file.hpp"

#ifdef PENSTOCK_LIBURING
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#endif

namespace penstock::io {
namespace {

constexpr int kUringDepth = 8;

#ifdef PENSTOCK_LIBURING

class Uring final : public WriteQueue {
 public:
  static Result<std::unique_ptr<WriteQueue>> open(int depth) {
    io_uring ring{};
    if (const int rc = ::io_uring_queue_init(unsigned(depth), &ring, 0); rc < 0)
      return os_error("io_uring_setup", "depth " + std::to_string(depth), -rc);
    return std::unique_ptr<WriteQueue>(std::make_unique<Uring>(ring));
  }

  explicit Uring(const io_uring& ring) : ring_(ring) {}
  ~Uring() override { ::io_uring_queue_exit(&ring_); }

  // What the kernel does not take at once stays in the ring; wait() offers it again.
  size_t start(std::span<const WriteRequest> requests) override {
    size_t begun = 0;
    for (const WriteRequest& r : requests) {
      io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
      if (entry == nullptr) break;
      prepare(entry, r);
      entry->user_data = uint64_t(r.token);
      ++begun;
    }
    if (begun > 0) (void)::io_uring_submit(&ring_);
    return begun;
  }

  Result<size_t> wait(std::span<Completion> done) override {
    for (int refusals = 0;;) {
      if (const size_t n = take(done); n > 0) return n;
      const int rc = ::io_uring_submit_and_wait(&ring_, 1);
      if (rc >= 0 || rc == -EINTR) continue;
      // The kernel is short of memory: for a while it may be so.
      if ((rc != -EAGAIN && rc != -EBUSY) || ++refusals > kMostRefusals)
        return os_error("io_uring_enter", "wait for a write", -rc);
      ::usleep(kPauseUs);
    }
  }

#ifdef PENSTOCK_LIBURING_REGISTERS
  Result<void> register_memory(int buffer, std::span<std::byte> memory) override {
    if (auto table = make_table(); !table) return table;
    const iovec pages{memory.data(), memory.size()};
    const int rc =
        ::io_uring_register_buffers_update_tag(&ring_, unsigned(buffer), &pages, nullptr, 1);
    if (rc == 1) return {};
    return refused_memory(memory.size(), rc < 0 ? -rc : EIO);
  }
#else
  Result<void> register_memory(int, std::span<std::byte>) override {
    return fail(ErrorClass::unsupported, "io_uring_register",
                "Penstock was built with a liburing before 2.1");
  }
#endif

 private:
  static constexpr int kMostRefusals = 1000;
  static constexpr useconds_t kPauseUs = 1000;

  static void prepare(io_uring_sqe* entry, const WriteRequest& r) {
    const auto n = unsigned(r.bytes.size());
    if (r.buffer < 0)
      ::io_uring_prep_write(entry, r.fd, r.bytes.data(), n, uint64_t(r.offset));
    else
      ::io_uring_prep_write_fixed(entry, r.fd, r.bytes.data(), n, uint64_t(r.offset), r.buffer);
  }

#ifdef PENSTOCK_LIBURING_REGISTERS
  // Empty at first. A kernel that has no such table is older than Linux 5.13; one before 5.9 would,
  // when the program forks, leave the pinned pages to the child, and write the old bytes from them.
  Result<void> make_table() {
    if (has_table_) return {};
    if ((ring_.features & IORING_FEAT_RSRC_TAGS) == 0)
      return fail(ErrorClass::unsupported, "io_uring_register", "needs Linux 5.13");
    const std::array<iovec, kQueueBuffers> none{};
    const int rc = ::io_uring_register_buffers(&ring_, none.data(), unsigned(none.size()));
    if (rc < 0) return os_error("io_uring_register", "a table of buffers", -rc);
    has_table_ = true;
    return {};
  }

  static tl::unexpected<Error> refused_memory(size_t bytes, int sys_errno) {
    std::string what = std::to_string(bytes) + " bytes";
    if (sys_errno == ENOMEM) what += ", which may be more than ulimit -l allows";
    return os_error("io_uring_register", what, sys_errno);
  }

  bool has_table_ = false;
#endif

  size_t take(std::span<Completion> done) {
    std::array<io_uring_cqe*, 64> entries;
    const size_t most = std::min(entries.size(), done.size());
    const unsigned n = ::io_uring_peek_batch_cqe(&ring_, entries.data(), unsigned(most));
    for (size_t i = 0; i < n; ++i) done[i] = {int(entries[i]->user_data), int64_t{entries[i]->res}};
    ::io_uring_cq_advance(&ring_, n);
    return n;
  }

  io_uring ring_;
};

std::string refused(int sys_errno) {
  if (sys_errno == ENOSYS) return "this kernel does not have io_uring";
  const std::string why = std::strerror(sys_errno);
  std::ifstream file("/proc/sys/kernel/io_uring_disabled");
  int disabled = 0;
  if (sys_errno == EPERM && file >> disabled && disabled != 0)
    return "io_uring is switched off by sysctl kernel.io_uring_disabled=" +
           std::to_string(disabled);
  if (sys_errno == EPERM) return "io_uring is refused (" + why + "): a container's filter";
  if (sys_errno == ENOMEM) return "io_uring cannot be set up (" + why + "): see ulimit -l";
  return "io_uring cannot be set up (" + why + ")";
}

// Asked once: a ring is dear to make and to take down.
std::string ask_the_kernel() {
  io_uring ring{};
  if (const int rc = ::io_uring_queue_init(2, &ring, 0); rc < 0) return refused(-rc);
  io_uring_probe* const probe = ::io_uring_get_probe_ring(&ring);
  const bool writes = probe != nullptr && ::io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  if (probe != nullptr) ::io_uring_free_probe(probe);
  ::io_uring_queue_exit(&ring);
  return writes ? "" : "this kernel's io_uring lacks IORING_OP_WRITE (Linux 5.6)";
}

std::string why_no_uring() {
  static const std::string why = ask_the_kernel();
  return why;
}

constexpr OpenQueue kOpenQueue = &Uring::open;

#else

std::string why_no_uring() { return "Penstock was built without liburing"; }

Result<std::unique_ptr<WriteQueue>> no_queue(int) {
  return fail(ErrorClass::unsupported, "io_uring", why_no_uring());
}
constexpr OpenQueue kOpenQueue = &no_queue;

#endif

Result<std::unique_ptr<MechanismFile>> open_uring(const OpenRequest& request) {
  return open_async(request, kUringDepth, kOpenQueue);
}

}  // namespace

const Mechanism& uring_mechanism() {
  static const Mechanism m = [] {
    Mechanism made = async_mechanism("uring", "asynchronous writes by io_uring", kUringDepth,
                                     &why_no_uring, &open_uring);
    made.takes_registered = true;
    return made;
  }();
  return m;
}

}  // namespace penstock::io
