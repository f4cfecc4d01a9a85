// What the asynchronous mechanisms differ in: how the kernel, or the C library, is told to write
// and says that it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "base/extent.hpp"

namespace penstock::io {

inline constexpr int kQueueBuffers = 2;  // that may be registered at a time

struct WriteRequest {
  int token = 0;  // comes back when it is done; in [0, depth), unique among those under way
  int fd = -1;
  std::span<const std::byte> bytes;
  Off offset = 0;
  int buffer = -1;  // the registered one that the bytes lie in; -1: none
};

struct Completion {
  int token = 0;
  int64_t result = 0;  // bytes that were written, or a negative errno
};

// Used by one thread at a time. Destroyed when nothing is under way.
class WriteQueue {
 public:
  virtual ~WriteQueue() = default;

  // Begins the first of `requests` and says how many: maybe not all now, or none. The bytes must
  // stay where they are until the token comes back.
  virtual size_t start(std::span<const WriteRequest> requests) = 0;
  // Waits until at least one is done, and gives as many as are and as fit. REQUIRES that one is
  // under way. An error: the queue is broken, and what becomes of those under way cannot be known.
  virtual Result<size_t> wait(std::span<Completion> done) = 0;

  // From now on this memory is buffer number `buffer`, and the kernel keeps hold of its pages; an
  // empty span: none is. REQUIRES that nothing of the buffer's is under way. After an error the
  // buffer must not be named in a request.
  virtual Result<void> register_memory(int buffer, std::span<std::byte> memory) {
    (void)buffer, (void)memory;
    return fail(ErrorClass::unsupported, "register memory", "this queue has no way to");
  }
};

}  // namespace penstock::io
