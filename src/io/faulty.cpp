// Cuts what it passes on where the plan says, and reports the rest as missing.
#include "io/faulty.hpp"

#include <algorithm>

namespace penstock::io {

Off FaultyFile::first_refused(Extent e) {
  const int number = ++writes_;
  if (plan_.write_errno == 0) return e.end;
  if (number == plan_.nth_write) return std::min(e.end - 1, e.begin + plan_.bytes_before_fault);
  return e.contains(plan_.at_offset) ? plan_.at_offset : e.end;
}

Fault FaultyFile::fault_at(Off offset) const {
  return {os_error("write", "made to fail, offset " + std::to_string(offset), plan_.write_errno)
              .value(),
          offset};
}

void FaultyFile::submit(Lease lease, std::span<const Extent> dirty) {
  if (dirty.empty()) return inner().submit(lease, dirty);
  std::vector<Extent> pass;
  std::optional<Fault> fault;
  for (const Extent e : dirty) {
    const Off end = first_refused(e);
    if (end > e.begin) pass.push_back({e.begin, end});
    if (end == e.end) continue;
    fault = fault_at(end);
    break;
  }
  inner().submit(lease, pass);
  submitted_.push_back({!pass.empty(), std::move(fault)});
}

std::optional<Fault> FaultyFile::reap() {
  if (submitted_.empty()) return std::nullopt;
  Submission oldest = std::move(submitted_.front());
  submitted_.pop_front();
  if (oldest.passed_on)
    if (auto earlier = inner().reap()) return earlier;
  return std::move(oldest.fault);
}

std::optional<Fault> FaultyFile::write(std::span<const std::byte> bytes, Off offset) {
  if (bytes.empty()) return std::nullopt;
  const Extent e{offset, offset + Off(bytes.size())};
  const Off end = first_refused(e);
  if (auto earlier = inner().write(bytes.first(size_t(end - offset)), offset)) return earlier;
  if (end == e.end) return std::nullopt;
  return fault_at(end);
}

Result<void> FaultyFile::sync(SyncKind kind) {
  const int number = ++syncs_;
  if (plan_.sync_errno != 0 && (plan_.nth_sync == 0 || plan_.nth_sync == number))
    return os_error("fsync", "made to fail", plan_.sync_errno);
  return inner().sync(kind);
}

Result<void> FaultyFile::close() {
  if (closed_) return {};
  closed_ = true;
  Result<void> closed = inner().close();
  if (plan_.close_errno != 0) return os_error("close", "made to fail", plan_.close_errno);
  return closed;
}

}  // namespace penstock::io
