// How one write goes, and what it took.
#include "io/cold_writer.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/clock.hpp"
#include "base/populate.hpp"
#include "base/seeded_fault.hpp"
#include "io/buffer_slots.hpp"
#include "io/descriptor.hpp"
#include "io/probe.hpp"
#include "io/range_lock.hpp"
#include "io/write_fully.hpp"

namespace penstock::io {
namespace {

// Of the calling thread. What it waits for is not in it.
double processor_s() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

Extent extent_of(std::span<const std::byte> bytes, Off offset) noexcept {
  return {offset, offset + Off(bytes.size())};
}

}  // namespace

// In pieces that end where units do. What is left of a long write may be a short one.
std::optional<Fault> ColdWriter::write(std::span<const std::byte> bytes, Off offset) {
  if (!memory_.concerns(int64_t(bytes.size()))) return write_cached(bytes, offset);
  while (!bytes.empty()) {
    const Off most = memory_.most_bytes();
    const Off end =
        std::min(capped_sum(align_down(offset, most), most), offset + Off(bytes.size()));
    const auto n = size_t(end - offset);
    if (auto fault = write_piece(bytes.first(n), offset)) return fault;
    bytes = bytes.subspan(n);
    offset = end;
  }
  return std::nullopt;
}

std::optional<Fault> ColdWriter::write_piece(std::span<const std::byte> bytes, Off offset) {
  const Way way = memory_.way();
  const double begin_s = now_s(), begin_processor_s = processor_s();
  auto fault = way == Way::direct ? write_cold(bytes, offset) : write_cached(bytes, offset);
  if (!fault)
    memory_.wrote(way,
                  {int64_t(bytes.size()), now_s() - begin_s, processor_s() - begin_processor_s});
  return fault;
}

std::optional<Fault> ColdWriter::write_cached(std::span<const std::byte> bytes, Off offset) {
  return write_fully(buffered_.fd(), bytes, offset, buffered_.path());
}

// Whole units past the page cache, what is before and behind them through it.
std::optional<Fault> ColdWriter::write_cold(std::span<const std::byte> bytes, Off offset) {
  const DirectDescriptor* const file = direct();
  if (file == nullptr) return write_cached(bytes, offset);
  const Extent all = extent_of(bytes, offset);
  for (const auto& [where, way] : cut_for_direct(all, file->unit_bytes())) {
    if (where.empty()) continue;
    const std::span<const std::byte> part = part_of(bytes, all, where);
    auto fault =
        way == Way::direct ? write_units(part, where.begin) : write_cached(part, where.begin);
    if (fault) return fault;
  }
  return std::nullopt;
}

// Nobody makes a page of these ready for stores meanwhile: it would be written back over them.
std::optional<Fault> ColdWriter::write_units(std::span<const std::byte> bytes, Off offset) {
  const RangeLock alone(direct_->fd(), extent_of(bytes, offset));
  if (!alone.held()) return write_cached(bytes, offset);
  return direct_->takes(bytes.data()) ? write_direct(bytes, offset) : write_bounced(bytes, offset);
}

std::optional<Fault> ColdWriter::write_bounced(std::span<const std::byte> bytes, Off offset) {
  const Bounce bounce;
  const std::span<std::byte> memory = bounce.memory();
  if (memory.empty() || !are_readable(bytes)) return write_cached(bytes, offset);
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), memory.size());
    if (!seeded_fault("bounce_forgotten")) std::memcpy(memory.data(), bytes.data(), n);
    if (auto fault = write_direct(memory.first(n), offset)) return fault;
    bytes = bytes.subspan(n);
    offset += Off(n);
  }
  return std::nullopt;
}

// Pages of the range that somebody has made dirty meanwhile, in spite of all, would be written back
// over it; or it is a file system that writes through the page cache whatever it is asked for. Of a
// write that went past in part nothing is known.
std::optional<Fault> ColdWriter::write_direct(std::span<const std::byte> bytes, Off offset) {
  DirectWrite written = direct_->write(bytes, offset);
  if (written.fault) return std::move(written.fault);
  if (!written.past || unwritten_bytes(direct_->fd(), extent_of(bytes, offset)) != 0) {
    memory_.give_up();
    return write_cached(bytes, offset);
  }
  cold_bytes_ += int64_t(bytes.size());
  return std::nullopt;
}

// nullptr: there is none, and nothing will go past the page cache.
DirectDescriptor* ColdWriter::direct() {
  std::call_once(opened_, [this] { open(); });
  return direct_.get();
}

// By its number, since the path may lead elsewhere by now. On file systems of several nodes the
// ranks of two may share a unit, and write it both ways. Dirty pages must be told. Files in memory
// take direct writes since Linux 6.6, and are nowhere but in it.
void ColdWriter::open() {
  const int fd = buffered_.fd();
  const auto found = probe(fd);
  const bool is_local = found && found->geometry.sharing == layout::Sharing::any &&
                        !(found->is_memory() && is_regular_file(fd));
  if (is_local && found->counts_dirty_pages() && unwritten_bytes(fd, {0, 1})) {
    auto opened = DirectDescriptor::open(buffered_, "/proc/self/fd/" + std::to_string(fd));
    if (opened) direct_ = *std::move(opened);
  }
  if (!direct_) memory_.give_up();
}

Result<void> ColdWriter::close() { return direct_ ? direct_->close() : Result<void>(); }

}  // namespace penstock::io
