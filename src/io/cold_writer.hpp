// Writes of a file through the page cache, and past it as long as memory is cold.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/bounce.hpp"
#include "io/cold_memory.hpp"
#include "io/descriptor.hpp"
#include "io/direct_descriptor.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

// By several threads at once, but for close().
class ColdWriter {
 public:
  // Of a descriptor that lives longer than this.
  ColdWriter(const Descriptor& buffered, const ColdRule& rule) noexcept
      : buffered_(buffered), memory_(rule) {}

  // Complete on return.
  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset);
  // As a mechanism's file: larger writes keep the disk busier. Not before it is known that they go
  // that way, since a buffer's first touch is cold as well.
  int64_t wanted_bytes() const noexcept { return memory_.kept() ? memory_.most_bytes() : 0; }
  // A write of so many bytes, for now.
  bool goes_past(int64_t bytes) const noexcept {
    return memory_.way() == Way::direct && memory_.concerns(bytes);
  }
  // That were written past the page cache.
  int64_t cold_bytes() const noexcept { return cold_bytes_; }
  Result<void> close();  // idempotent

 private:
  std::optional<Fault> write_piece(std::span<const std::byte> bytes, Off offset);
  std::optional<Fault> write_cached(std::span<const std::byte> bytes, Off offset);
  std::optional<Fault> write_cold(std::span<const std::byte> bytes, Off offset);
  std::optional<Fault> write_units(std::span<const std::byte> bytes, Off offset);
  std::optional<Fault> write_bounced(std::span<const std::byte> bytes, Off offset);
  std::optional<Fault> write_direct(std::span<const std::byte> bytes, Off offset);
  DirectDescriptor* direct();
  void open();

  const Descriptor& buffered_;
  ColdMemory memory_;
  std::once_flag opened_;
  std::unique_ptr<DirectDescriptor> direct_;  // once opened_
  std::atomic<int64_t> cold_bytes_ = 0;
};

}  // namespace penstock::io
