// For tests: what fallocate(2) and madvise(2) answer in this program (kernel_answers_test.cpp).
#pragma once

namespace penstock::io {

struct KernelAnswers {
  int fallocate_errno = 0, madvise_errno = 0;  // 0: the kernel answers
  int fallocate_interruptions = 0;
  int fallocated = 0;  // calls of fallocate, whatever they were answered
  int populated = 0;   // calls of madvise(MADV_POPULATE_WRITE) that the kernel answered
};
extern KernelAnswers answers;  // reset by each test

}  // namespace penstock::io
