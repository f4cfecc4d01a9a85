// Stands in for fallocate, madvise and fstatfs, so that a test decides what they answer.
#include "io/kernel_answers.hpp"

#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace penstock::io {

KernelAnswers answers;

namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

int fail_with(int sys_errno) {
  errno = sys_errno;
  return -1;
}

}  // namespace
}  // namespace penstock::io

extern "C" {
int fallocate(int fd, int mode, off_t offset, off_t n) {
  using namespace penstock::io;
  ++std::atomic_ref(answers.fallocated);  // several threads write at once in some tests
  if (answers.fallocate_interruptions > 0) {
    --answers.fallocate_interruptions;
    return fail_with(EINTR);
  }
  if (answers.fallocate_errno != 0) return fail_with(answers.fallocate_errno);
  return int(::syscall(SYS_fallocate, fd, mode, offset, n));
}

int madvise(void* at, size_t n, int advice) noexcept {
  using namespace penstock::io;
  if (answers.madvise_errno != 0) return fail_with(answers.madvise_errno);
  if (advice == kPopulateWrite) ++std::atomic_ref(answers.populated);
  return int(::syscall(SYS_madvise, at, n, advice));
}

int fstatfs(int fd, struct statfs* found) noexcept {
  const int failed = int(::syscall(SYS_fstatfs, fd, found));
  const int64_t told = penstock::io::answers.allocation_bytes;
  if (failed == 0 && told != 0) found->f_bsize = told;
  return failed;
}
}
