// Mechanisms: how bytes enter a file. Each is one file and one line in
// mechanisms.def. A mechanism owns its buffers, so that an mmap window or a registered
// buffer is filled in place: lease, fill, submit, reap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/extent.hpp"

namespace penstock::io {

struct OpenRequest {
  std::string path;
  int64_t unit_bytes = 4096;  // the geometry's unit, for alignment
};

// A buffer for the bytes of `where`: memory[i] is the file byte where.begin + i.
struct Lease {
  Extent where;
  std::span<std::byte> memory;
  int slot = 0;  // the mechanism's own
};

// What failed, and the first file byte of the submission (in file order) that is not in the file.
// Everything of it before that byte is in the file; nothing is promised of the bytes behind.
struct Fault {
  Error error;
  Off first_missing = 0;
};

enum class SyncKind : uint8_t { data, full };  // fdatasync, fsync

// An open file. Used by one thread at a time, but that write() and sync() may be called by several
// threads at once, also while another is in lease, submit or reap. Destroying it without close()
// discards errors, so nobody does. After a fault the object stays usable: later submissions are
// tried anew.
class MechanismFile {
 public:
  virtual ~MechanismFile() = default;

  // A buffer for `where`, at most slots() at a time. Its contents are undefined.
  virtual Result<Lease> lease(Extent where) = 0;
  // Starts to write the dirty extents (ascending, disjoint, inside lease.where) and takes the lease
  // back. An empty span just gives the lease back: nothing is submitted, nothing is to be reaped.
  virtual void submit(Lease lease, std::span<const Extent> dirty) = 0;
  // Waits for the oldest submission that has not been reaped, and frees its slot. nullopt: all its
  // bytes are in the file, or nothing was submitted.
  virtual std::optional<Fault> reap() = 0;
  virtual int slots() const noexcept = 0;

  // Writes contiguous caller's memory at `offset`, complete on return, without a lease.
  virtual std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) = 0;

  // On the device: all that was written or reaped before.
  virtual Result<void> sync(SyncKind kind) = 0;
  // Closes and reports what the kernel still had to say. Idempotent.
  virtual Result<void> close() = 0;

  virtual int fd() const noexcept = 0;  // -1 for mechanisms without a file
};

struct Mechanism {
  std::string_view name;
  std::string_view summary;
  int64_t alignment_bytes = 1;  // of offsets and lengths; > 1 needs a plan that owns blocks
  bool writes_file = true;  // false for `null`: the suites then check that the file is untouched
  // Empty when usable here, else the reason ("io_uring: disabled by sysctl ...").
  std::string (*unavailable)() = nullptr;  // nullptr: always usable
  // Opens an existing file for writing (no O_CREAT, O_EXCL or O_TRUNC; O_CLOEXEC).
  Result<std::unique_ptr<MechanismFile>> (*open)(const OpenRequest&) = nullptr;
};

std::span<const Mechanism* const> mechanisms();          // in the order of mechanisms.def
const Mechanism* find_mechanism(std::string_view name);  // nullptr when there is none

}  // namespace penstock::io
