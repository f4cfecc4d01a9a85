// Asynchronous writes by the kernel's older interface, io_submit(2), by its system calls
// themselves. Asynchronous for direct writes; of buffered ones io_submit returns after the copy.
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "io/async_file.hpp"

namespace penstock::io {
namespace {

constexpr int kLinuxAioDepth = 8;

int set_up(int depth, aio_context_t& context) {
  return ::syscall(SYS_io_setup, unsigned(depth), &context) == 0 ? 0 : errno;
}

class LinuxAio final : public WriteQueue {
 public:
  static Result<std::unique_ptr<WriteQueue>> open(int depth) {
    aio_context_t context = 0;
    const int sys_errno = set_up(depth, context);
    if (sys_errno == EAGAIN)
      return os_error("io_setup", "more than sysctl fs.aio-max-nr allows", sys_errno);
    if (sys_errno != 0) return os_error("io_setup", "depth " + std::to_string(depth), sys_errno);
    return std::unique_ptr<WriteQueue>(std::make_unique<LinuxAio>(context, size_t(depth)));
  }

  LinuxAio(aio_context_t context, size_t depth)
      : context_(context), blocks_(depth), batch_(depth), events_(depth) {}
  ~LinuxAio() override { ::syscall(SYS_io_destroy, context_); }

  size_t start(std::span<const WriteRequest> requests) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      const WriteRequest& r = requests[i];
      iocb& block = blocks_[size_t(r.token)];
      block = {};
      block.aio_data = uint64_t(r.token);
      block.aio_lio_opcode = IOCB_CMD_PWRITE;
      block.aio_fildes = uint32_t(r.fd);
      block.aio_buf = reinterpret_cast<uintptr_t>(r.bytes.data());
      block.aio_nbytes = r.bytes.size();
      block.aio_offset = r.offset;
      batch_[i] = &block;
    }
    const long begun = ::syscall(SYS_io_submit, context_, long(requests.size()), batch_.data());
    return begun < 0 ? 0 : size_t(begun);
  }

  Result<size_t> wait(std::span<Completion> done) override {
    const size_t most = std::min(done.size(), events_.size());
    for (;;) {
      const long n = ::syscall(SYS_io_getevents, context_, 1L, long(most), events_.data(), nullptr);
      if (n < 0 && errno != EINTR) return os_error("io_getevents", "wait for a write", errno);
      if (n <= 0) continue;
      for (size_t i = 0; i < size_t(n); ++i) done[i] = {int(events_[i].data), events_[i].res};
      return size_t(n);
    }
  }

 private:
  aio_context_t context_;
  std::vector<iocb> blocks_;  // by token
  std::vector<iocb*> batch_;
  std::vector<io_event> events_;
};

// EAGAIN is of the moment: others use up what there is.
std::string ask_the_kernel() {
  aio_context_t context = 0;
  const int sys_errno = set_up(1, context);
  if (sys_errno == 0) ::syscall(SYS_io_destroy, context);
  if (sys_errno == 0 || sys_errno == EAGAIN) return "";
  if (sys_errno == ENOSYS) return "this kernel does not have io_setup";
  return std::string("io_setup is refused (") + std::strerror(sys_errno) + ")";
}

std::string why_no_aio() {
  static const std::string why = ask_the_kernel();
  return why;
}

Result<std::unique_ptr<MechanismFile>> open_linux_aio(const OpenRequest& request) {
  return open_async(request, kLinuxAioDepth, &LinuxAio::open);
}

}  // namespace

const Mechanism& linux_aio_mechanism() {
  static const Mechanism m =
      async_mechanism("linux_aio", "asynchronous writes by the kernel's older interface",
                      kLinuxAioDepth, &why_no_aio, &open_linux_aio);
  return m;
}

}  // namespace penstock::io
