#include "io/bounce.hpp"

#include <array>
#include <mutex>
#include <utility>

namespace penstock::io {
namespace {

constexpr size_t kMostKept = 4;

struct Kept {
  std::mutex mutex;
  std::array<AlignedBuffer, kMostKept> buffers;  // some of them are empty
};

// Never destroyed: a file may be closed while the process ends.
Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

}  // namespace

Bounce::Bounce() {
  {
    const std::lock_guard lock(kept().mutex);
    for (AlignedBuffer& free : kept().buffers)
      if (buffer_.size() == 0) std::swap(buffer_, free);
  }
  if (buffer_.size() == 0) (void)buffer_.reserve(kBytes);
}

Bounce::~Bounce() {
  const std::lock_guard lock(kept().mutex);
  for (AlignedBuffer& free : kept().buffers)
    if (free.size() == 0) std::swap(buffer_, free);
}

}  // namespace penstock::io
