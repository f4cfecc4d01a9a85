// What the file system under a path is, where its files may be cut, and how
// much of a file the device does not have yet.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "layout/geometry.hpp"

namespace penstock::io {

struct FileSystem {
  std::string type;  // "ext4", "tmpfs", "nfs", "lustre", "fuse", ... or "0x..." when not known
  layout::Geometry geometry;
  // What a file takes room in, f_bsize: of xfs not what it prefers to be written by, which is a
  // page.
  int64_t allocation_bytes = 0;
  bool is_synchronous = false;  // mounted with `sync`, or the file is chattr +S

  // What one node has written another node reads at once, without a sync between: local, or with
  // distributed locks on its caches.
  bool is_coherent() const noexcept;

  // A read through the page cache sees what this node has written past it.
  bool sees_direct_writes() const noexcept;

  // Regular files are in memory alone. (A device may lie in such a one, and is itself elsewhere.)
  bool is_memory() const noexcept;

  // What cachestat(2) says of a file is true.
  bool counts_dirty_pages() const noexcept;
};

// Of an open descriptor. Network file systems get Sharing::unit_keeps_node, or unit_per_node where
// their nodes' caches are coherent.
Result<FileSystem> probe(int fd);

// Bytes of the file in the page cache that are dirty or under write-back, by cachestat(2)
// (Linux >= 6.5); nullopt where the kernel lacks it. It looks at every page that is cached. Not
// true but where the file system counts_dirty_pages().
std::optional<int64_t> unwritten_bytes(int fd);
std::optional<int64_t> unwritten_bytes(int fd, Extent where);

struct Unwritten {
  int64_t bytes = 0;
  bool estimated = false;  // from samples
  int64_t of_bytes = 0;    // the file's length; of a device, no bound
};

// The same where nobody has the time, and nullopt where it would not be true: of a file above 64
// MiB that has no holes 64 pieces of 1 MiB are asked for, spread over it, and the rest is taken to
// be like them.
std::optional<Unwritten> about_unwritten(int fd);

// Why nothing can be written at a place of what the path means; empty where it can, or nothing is
// there. To open a pipe may wait for ever, for another process to open its other end.
std::string why_no_places(const std::string& path);

// Device and inode, to see that two descriptors are one file.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
Result<FileIdentity> identify(int fd);
Result<FileIdentity> identify(const std::string& path);

}  // namespace penstock::io
