// What statfs(2), fstat(2) and /proc say about the file system of an open file.
#include "io/probe.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <numbers>
#include <sstream>
#include <string_view>

namespace penstock::io {
namespace {

using layout::Sharing;

struct Known {
  uint32_t magic;  // f_type of statfs(2)
  std::string_view name;
  Sharing sharing;
};

// Lustre, GPFS and cluster file systems on a shared disk keep caches coherent with locks, so for
// them ownership is a matter of speed; for NFS it is one of losing bytes.
constexpr Sharing kLocal = Sharing::any, kLocked = Sharing::unit_per_node,
                  kShared = Sharing::unit_keeps_node;
constexpr uint32_t kFuse = 0x65735546;
constexpr std::array kKnown = {
    Known{0x0000EF53, "ext4", kLocal},     Known{0x58465342, "xfs", kLocal},
    Known{0x9123683E, "btrfs", kLocal},    Known{0x01021994, "tmpfs", kLocal},
    Known{0x858458F6, "ramfs", kLocal},    Known{0x958458F6, "hugetlbfs", kLocal},
    Known{0x794C7630, "overlay", kLocal},  Known{0x2FC12FC1, "zfs", kLocal},
    Known{0xF2F52010, "f2fs", kLocal},     Known{0xCA451A4E, "bcachefs", kLocal},
    Known{0x00004D44, "vfat", kLocal},     Known{0x2011BAB0, "exfat", kLocal},
    Known{0x7366746E, "ntfs3", kLocal},    Known{0x3153464A, "jfs", kLocal},
    Known{0x52654973, "reiserfs", kLocal}, Known{0x00006969, "nfs", kShared},
    Known{0x00C36400, "ceph", kShared},    Known{kFuse, "fuse", kShared},
    Known{0x01021997, "9p", kShared},      Known{0xFE534D42, "smb2", kShared},
    Known{0xFF534D42, "cifs", kShared},    Known{0x0000517B, "smb", kShared},
    Known{0x0BD00BD0, "lustre", kLocked},  Known{0x47504653, "gpfs", kLocked},
    Known{0x19830326, "beegfs", kShared},  Known{0x20030528, "pvfs2", kShared},
    Known{0x5346414F, "afs", kShared},     Known{0x6B414653, "kafs", kShared},
    Known{0x73757245, "coda", kShared},    Known{0x01161970, "gfs2", kLocked},
    Known{0x7461636F, "ocfs2", kLocked},   Known{0xAAD7AAEA, "panfs", kShared},
    Known{0x00C0FFEE, "hostfs", kShared},  Known{0xBACBACBC, "vmhgfs", kShared}};

// One not in the table may be shared between nodes without our knowing; taking it for local could
// lose bytes, taking it for shared costs some speed.
FileSystem classify(uint32_t magic) {
  FileSystem fs;
  for (const Known& k : kKnown) {
    if (k.magic != magic) continue;
    fs.type = k.name;
    fs.geometry.sharing = k.sharing;
    return fs;
  }
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", magic);
  fs.type = text;
  fs.geometry.sharing = kShared;
  return fs;
}

// The type of a mount ("fuse.glusterfs", "fuseblk", "virtiofs") by its device, from
// /proc/self/mountinfo: `36 35 98:0 / /mnt rw - ext4 ...`. Empty when it is not there.
std::string mounted_type(dev_t device) {
  std::ostringstream wanted;
  wanted << major(device) << ':' << minor(device);
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, number, word, type;
    words >> id >> parent >> number;
    if (number != wanted.str()) continue;
    while (words >> word && word != "-") {
    }
    if (words >> type) return type;
  }
  return {};
}

// All FUSE file systems have one magic number. Those on a local block device are local; of the
// others nothing is known but that gluster, sshfs, moosefs and the like are among them.
void refine_fuse(FileSystem& fs, dev_t device) {
  const std::string type = mounted_type(device);
  if (type.empty()) return;
  fs.type = type;
  if (type == "fuseblk") fs.geometry.sharing = kLocal;
}

// Nonsense (zero, odd or huge sizes) is taken for "a page".
int64_t plausible_block(int64_t reported, int64_t page) {
  constexpr int64_t kLargest = int64_t{1} << 30;
  const bool good = reported > 0 && reported <= kLargest && std::has_single_bit(uint64_t(reported));
  return good ? reported : page;
}

// The file alone (chattr +S), whatever its mount says. The request is of a long: file systems write
// an int, but FUSE before Linux 5.8 all that its daemon answers.
bool is_marked_synchronous(int fd) {
  int flags[2] = {};
  return ::ioctl(fd, FS_IOC_GETFLAGS, flags) == 0 && (flags[0] & FS_SYNC_FL) != 0;
}

}  // namespace

bool FileSystem::is_coherent() const noexcept { return geometry.sharing != kShared; }

// ceph-fuse (16.2) flushes its own cache before a direct write and keeps what it had read: the
// servers have the new bytes, and the mount reads the old ones for as long as it caches them.
bool FileSystem::sees_direct_writes() const noexcept {
  return type != "fuse.ceph-fuse" && type != "fuse.ceph";
}

bool FileSystem::is_memory() const noexcept {
  return type == "tmpfs" || type == "ramfs" || type == "hugetlbfs";
}

// Others answer that there are none: they keep what was written in the files of their layers, in a
// cache of their own or in a daemon, or hand it to a server that has it in memory (NFS, SMB). In
// memory there is nothing to write.
bool FileSystem::counts_dirty_pages() const noexcept {
  constexpr std::array<std::string_view, 16> kCounting = {
      "ext4", "xfs",   "btrfs", "tmpfs", "ramfs",    "hugetlbfs", "f2fs", "bcachefs",
      "vfat", "exfat", "ntfs3", "jfs",   "reiserfs", "ceph",      "gfs2", "ocfs2"};
  return std::ranges::find(kCounting, type) != kCounting.end();
}

Result<FileSystem> probe(int fd) {
  struct statfs volume {};
  struct stat file {};
  if (::fstatfs(fd, &volume) != 0)
    return os_error("fstatfs", "descriptor " + std::to_string(fd), errno);
  if (::fstat(fd, &file) != 0) return os_error("fstat", "descriptor " + std::to_string(fd), errno);
  const auto magic = uint32_t(volume.f_type);
  FileSystem fs = classify(magic);
  if (magic == kFuse) refine_fuse(fs, file.st_dev);
  fs.is_synchronous = (volume.f_flags & ST_SYNCHRONOUS) != 0 || is_marked_synchronous(fd);
  fs.allocation_bytes = int64_t(volume.f_bsize);
  layout::Geometry& g = fs.geometry;
  g.page_bytes = ::sysconf(_SC_PAGESIZE);
  g.block_bytes = plausible_block(file.st_blksize, g.page_bytes);
  // Network file systems report their transfer or stripe size as the preferred block.
  if (g.sharing != kLocal && g.block_bytes > g.page_bytes) g.stripe_bytes = g.block_bytes;
  return fs;
}

namespace {

constexpr int64_t kSamples = 64;
constexpr int64_t kSampleBytes = int64_t{1} << 20;

// length 0: to the end of the file.
std::optional<int64_t> unwritten_within(int fd, int64_t offset, int64_t length) {
  constexpr long kCachestat = 451;  // the same number on every architecture
  const struct { uint64_t offset, length; } range{uint64_t(offset), uint64_t(length)};
  struct {
    uint64_t cached = 0, dirty = 0, under_writeback = 0, evicted = 0, recently_evicted = 0;
  } pages;
  if (::syscall(kCachestat, fd, &range, &pages, 0u) != 0) return std::nullopt;
  return int64_t(pages.dirty + pages.under_writeback) * ::sysconf(_SC_PAGESIZE);
}

// What is cached of a file with holes may all lie between the samples.
bool can_be_sampled(const struct stat& file) {
  return file.st_size > kSamples * kSampleBytes && file.st_blocks >= file.st_size / 512;
}

// The status of a device tells none.
Off length_of(const struct stat& file) noexcept {
  return S_ISREG(file.st_mode) ? file.st_size : std::numeric_limits<Off>::max();
}

// One in each 64th of the file, at the fractions of the golden ratio there: a pattern of the
// program's that comes again and again is not met at the same point each time.
std::optional<int64_t> unwritten_by_samples(int fd, int64_t file_bytes) {
  const int64_t part = file_bytes / kSamples;
  int64_t found = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const double fraction = std::fmod(double(i) * std::numbers::phi, 1.0);
    const int64_t within = int64_t(fraction * double(part - kSampleBytes));
    const auto here = unwritten_within(fd, i * part + within, kSampleBytes);
    if (!here) return std::nullopt;
    found += *here;
  }
  return int64_t(double(found) / double(kSamples * kSampleBytes) * double(file_bytes));
}

}  // namespace

std::optional<int64_t> unwritten_bytes(int fd) { return unwritten_within(fd, 0, 0); }

// A length of 0 would be all that follows.
std::optional<int64_t> unwritten_bytes(int fd, Extent where) {
  if (where.empty()) return 0;
  return unwritten_within(fd, where.begin, where.size());
}

std::optional<Unwritten> about_unwritten(int fd) {
  struct stat file {};
  const auto fs = probe(fd);
  if (!fs || !fs->counts_dirty_pages() || ::fstat(fd, &file) != 0) return std::nullopt;
  const bool samples = can_be_sampled(file);
  const auto bytes = samples ? unwritten_by_samples(fd, file.st_size) : unwritten_bytes(fd);
  if (!bytes) return std::nullopt;
  return Unwritten{*bytes, samples, length_of(file)};
}

std::string why_no_places(const std::string& path) {
  struct stat there {};
  const bool is_pipe = ::stat(path.c_str(), &there) == 0 && S_ISFIFO(there.st_mode);
  return is_pipe ? "bytes of a pipe have no places" : "";
}

namespace {

FileIdentity identity_of(const struct stat& file) {
  return {uint64_t(file.st_dev), uint64_t(file.st_ino)};
}

}  // namespace

Result<FileIdentity> identify(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return os_error("fstat", "descriptor " + std::to_string(fd), errno);
  return identity_of(file);
}

Result<FileIdentity> identify(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return os_error("stat", path, errno);
  return identity_of(file);
}

}  // namespace penstock::io
