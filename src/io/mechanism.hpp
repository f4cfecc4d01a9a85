// Mechanisms: how bytes enter a file. Each is one file and one line in
// mechanisms.def. A mechanism owns its buffers, so that an mmap window or a registered
// buffer is filled in place: lease, fill, submit, reap.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "io/cold_memory.hpp"

namespace penstock::io {

class CrumbTrail;

// Bytes of a file that stay mapped at a time, a multiple of the page size; or one of these.
inline constexpr int64_t kWindowOfCycle = 0;         // what is written, while it is
inline constexpr int64_t kWindowOfFile = INT64_MAX;  // all of it, until the file is closed

// What a write may leave in this node's memory when it returns: all of it, or nothing (O_DSYNC).
enum class Written : uint8_t { to_cache, through };

// Which writes go past the page cache where that can be (docs/decisions/0018-direct-io.md); the
// last is of memory that is cold, as its rule says (docs/decisions/0078-cold-memory.md).
enum class Direct : uint8_t { never, always, when_cold };

// A mechanism must not be given what its descriptor does not take (the parser of methods sees to
// it).
struct OpenRequest {
  std::string path = {};
  int64_t unit_bytes = 4096;  // the geometry's unit, for alignment
  Direct direct = Direct::never;
  ColdRule cold = {};  // of Direct::when_cold
  int depth = 0;       // writes under way at a time; 0: the mechanism's own default
  // The kernel keeps hold of the leases' memory (docs/decisions/0032-registered-whole-file.md).
  bool registered = false;
  int64_t window_bytes = kWindowOfCycle;
  Written written = Written::to_cache;  // every mechanism takes it
};

// A buffer for the bytes of `where`: memory[i] is the file byte where.begin + i.
struct Lease {
  Extent where;
  std::span<std::byte> memory;
  int slot = 0;  // the mechanism's own
  // Set, with a larger `where`, by who fills the buffer with bytes that lie scattered over the
  // file: memory holds the dirty extents one behind the other.
  bool packed = false;
};

// The same of memory that is only read.
struct FileBytes {
  Extent where;
  std::span<const std::byte> memory;
  bool packed = false;
};
inline FileBytes bytes_of(const Lease& lease) noexcept {
  return {lease.where, lease.memory, lease.packed};
}

// Where dirty extents lie in that memory. They are asked for in their order; those that touch may
// be asked for as one.
class DirtyBytes {
 public:
  explicit DirtyBytes(const FileBytes& bytes) noexcept : bytes_(bytes) {}

  std::span<const std::byte> of(Extent e) noexcept {
    assert(bytes_.where.begin <= e.begin && e.end <= bytes_.where.end);
    const size_t at = bytes_.packed ? std::exchange(behind_, behind_ + size_t(e.size()))
                                    : size_t(e.begin - bytes_.where.begin);
    return bytes_.memory.subspan(at, size_t(e.size()));
  }

 private:
  const FileBytes bytes_;
  size_t behind_ = 0;  // what was asked for
};

// What failed, and the first file byte of the submission (in file order) that is not in the file.
// Everything of it before that byte is in the file; nothing is promised of the bytes behind.
struct Fault {
  Error error;
  Off first_missing = 0;
};

enum class SyncKind : uint8_t { data, full };  // fdatasync, fsync

inline constexpr size_t kGatheredPieces = 1024;  // IOV_MAX of Linux

// An open file. Used by one thread at a time, but that write(), write_pieces(), write_extents() and
// sync() may be called by several threads at once, also while another is in lease, submit or reap;
// and that lease() and submit() of nothing may be called while another thread submits and reaps
// other leases. Destroying it without close() discards errors, so nobody does. After a fault the
// object stays usable: later submissions are tried anew.
class MechanismFile {
 public:
  virtual ~MechanismFile() = default;

  // A buffer for `where`, at most slots() at a time. Its contents are undefined. It may be the
  // file's own pages, so only bytes that will be submitted as dirty may be stored to.
  virtual Result<Lease> lease(Extent where) = 0;
  // Starts to write the dirty extents (ascending, disjoint, inside lease.where) and takes the lease
  // back. A mechanism that gives out the file's own pages (alignment_bytes > 1) takes no packed
  // one. An empty span just gives the lease back: nothing is submitted, nothing is to be reaped.
  virtual void submit(Lease lease, std::span<const Extent> dirty) = 0;
  // Waits for the oldest submission that has not been reaped, and frees its slot. nullopt: all its
  // bytes are in the file, or nothing was submitted.
  virtual std::optional<Fault> reap() = 0;
  virtual int slots() const noexcept = 0;
  // submit() only starts writes, so that several submissions at a time keep the device busy.
  virtual bool starts_writes() const noexcept { return false; }
  // Leases are the file's own pages: what is stored there may be on its way before submit().
  virtual bool stores_in_place() const noexcept { return false; }
  // From now on leases are parts of these page-aligned buffers, slots() of equal size, which must
  // live until the next call of this function; none: of the file's own memory again. REQUIRES that
  // no lease is out. `unsupported` when the mechanism's memory cannot be chosen, and nothing is
  // changed.
  virtual Result<void> use_memory(std::span<const std::span<std::byte>> buffers);
  // Nothing is leased from memory that was given by use_memory() any more, nor is it to be used
  // otherwise: writes whose end is not known may still read it.
  virtual bool has_lost_memory() { return false; }

  // Writes contiguous caller's memory at `offset`, complete on return, without a lease.
  virtual std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) = 0;
  // The same for pieces of memory that follow each other in the file from `offset` on. By default
  // one write() for each.
  virtual std::optional<Fault> write_pieces(std::span<const std::span<const std::byte>> pieces,
                                            Off offset);
  // Writes parts of caller's memory, the dirty extents (ascending, disjoint, inside bytes.where),
  // as submit() does those of a lease. By default one write() for each run of extents that touch.
  virtual std::optional<Fault> write_extents(const FileBytes& bytes, std::span<const Extent> dirty);
  // Puts a short piece into the file where `trail`, of the calling thread and of this file, has led
  // to it. false: it is still to be written. By default always.
  virtual bool store_next(CrumbTrail& trail, std::span<const std::byte> bytes, Off offset);
  // write_pieces() is one call for up to kGatheredPieces of them, so packing them first is waste.
  virtual bool gathers() const noexcept { return false; }

  // What write() would be given at once, if its memory has so much; 0: no matter how much. It may
  // change with every write.
  virtual int64_t wanted_bytes() const noexcept { return 0; }

  // A hint: every byte of `where` will be written, through this object or another. By several
  // threads at once, as write(). By default nothing is made of it.
  virtual void reserve(Extent where);

  // On the device: all that was written or reaped before.
  virtual Result<void> sync(SyncKind kind) = 0;
  // Closes and reports what the kernel still had to say. Idempotent.
  virtual Result<void> close() = 0;

  // Written past the page cache since memory was cold (Direct::when_cold); at any time.
  virtual int64_t cold_bytes() const noexcept { return 0; }
  virtual int fd() const noexcept = 0;                 // -1 for mechanisms without a file
  virtual std::string degraded() const { return {}; }  // served, but not as asked: why
};

struct Mechanism {
  std::string_view name;
  std::string_view summary;
  // Where writers meet in the file; > 1 needs a plan that owns blocks. The first and the last byte
  // of a write may lie anywhere all the same.
  int64_t alignment_bytes = 1;
  bool writes_file = true;    // false for `null`: the suites then check that the file is untouched
  bool takes_direct = false;  // Direct::always
  bool takes_cold = false;    // Direct::when_cold
  bool takes_registered = false;
  bool takes_window = false;
  int default_depth = 0;  // OpenRequest::depth where it is left open; 0: takes none
  // Empty when usable here, else the reason ("io_uring: disabled by sysctl ...").
  std::string (*unavailable)() = nullptr;  // nullptr: always usable
  // Opens an existing file for writing (no O_CREAT, O_EXCL or O_TRUNC; O_CLOEXEC).
  Result<std::unique_ptr<MechanismFile>> (*open)(const OpenRequest&) = nullptr;
};

std::span<const Mechanism* const> mechanisms();          // in the order of mechanisms.def
const Mechanism* find_mechanism(std::string_view name);  // nullptr when there is none

}  // namespace penstock::io
