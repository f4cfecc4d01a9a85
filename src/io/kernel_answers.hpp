// For tests: what fallocate(2), madvise(2) and fstatfs(2) answer in this program
// (kernel_answers_test.cpp).
#pragma once

#include <cstdint>

namespace penstock::io {

struct KernelAnswers {
  int fallocate_errno = 0, madvise_errno = 0;  // 0: the kernel answers
  int fallocate_interruptions = 0;
  int64_t allocation_bytes = 0;  // f_bsize; 0: the kernel answers
  int fallocated = 0;            // calls of fallocate, whatever they were answered
  int populated = 0;             // calls of madvise(MADV_POPULATE_WRITE) that the kernel answered
};
extern KernelAnswers answers;  // reset by each test

}  // namespace penstock::io
