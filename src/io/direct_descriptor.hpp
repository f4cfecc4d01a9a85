// A second descriptor of a file, which writes past the page cache (open(2)'s O_DIRECT): whole
// units, from aligned memory. The contract is docs/decisions/0018-direct-io.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "io/cold_memory.hpp"
#include "io/descriptor.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

struct Part {
  Extent where;
  Way way = Way::buffered;
};

// Head, whole units, tail, in file order; some may be empty. All of it is one buffered part when it
// has no whole unit, or the unit is 0.
std::array<Part, 3> cut_for_direct(Extent e, int64_t unit_bytes) noexcept;

// What a file system asks of direct writes, as far as it tells (statx(2), STATX_DIOALIGN).
struct DirectLimits {
  int64_t memory_bytes = 0;  // addresses are multiples of this
  int64_t offset_bytes = 0;  // and offsets and lengths of this; 0: it takes no direct writes
};
DirectLimits direct_limits(int fd);

// What became of a write. `past`: all of it went past the page cache.
struct DirectWrite {
  std::optional<Fault> fault;
  bool past = false;
  std::string refusal;  // why it did not, if that will be so again
};

class DirectDescriptor {
 public:
  // Of the file that `buffered` is open on and lives longer than this, by a name of it; else why
  // there is none.
  static tl::expected<std::unique_ptr<DirectDescriptor>, std::string> open(
      const Descriptor& buffered, const std::string& name);
  ~DirectDescriptor();
  DirectDescriptor(const DirectDescriptor&) = delete;
  DirectDescriptor& operator=(const DirectDescriptor&) = delete;

  int fd() const noexcept { return fd_; }
  int64_t unit_bytes() const noexcept { return unit_bytes_; }  // where parts are cut
  bool takes(const std::byte* memory) const noexcept;          // it is aligned

  // Complete on return. What is refused is written through the page cache. REQUIRES whole units, by
  // the offset and in length.
  DirectWrite write(std::span<const std::byte> bytes, Off offset);

  Result<void> close();  // idempotent

 private:
  DirectDescriptor(int fd, const Descriptor& buffered) noexcept : fd_(fd), buffered_(buffered) {}

  int fd_;
  const Descriptor& buffered_;
  int64_t memory_bytes_ = 0, unit_bytes_ = 0;
};

}  // namespace penstock::io
