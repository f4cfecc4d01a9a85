// What one rank ships to another at a time: strided runs of file bytes, each with its bytes. A
// record says where the run begins, behind the end of the record before, its block, how many blocks
// there are and how far apart, as numbers of seven bits a byte; then come the bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/extent.hpp"
#include "layout/cursor.hpp"

namespace penstock::exec {

// The first byte of a parcel between the ranks of a file.
enum class ParcelKind : uint8_t {
  load,   // a Load
  flush,  // please: what I sent you before is to be in the file
  done,   // it is
};

inline Extent hull_of(const layout::Run& run) noexcept {
  const Off last = run.offset + (run.count - 1) * (run.count > 1 ? run.stride : 0);
  return {std::min(run.offset, last), std::max(run.offset, last) + run.block};
}
using penstock::hull_of;

// Being packed.
class Load {
 public:
  // REQUIRES capacity >= kLeastBytes.
  static constexpr int64_t kLeastBytes = 1024;
  // Takes the memory of an earlier one where that is given.
  explicit Load(int64_t capacity, std::vector<std::byte> memory = {});

  // Bytes of data that a record may bring; 0: the load is full.
  int64_t room() const noexcept;
  // Of a record, where its run.bytes() bytes go. REQUIRES run.bytes() <= room().
  std::byte* append(const layout::Run& run);

  bool empty() const noexcept { return data_bytes_ == 0; }
  int64_t data_bytes() const noexcept { return data_bytes_; }
  Extent hull() const noexcept { return hull_; }  // of the file's bytes in it
  std::span<const std::byte> parcel() const noexcept { return bytes_; }
  // Whether any record came since note_copied().
  bool has_news() const noexcept { return bytes_.size() > copied_; }
  bool is_copied() const noexcept { return copied_ > 0; }  // in part, maybe
  void note_copied() noexcept { copied_ = bytes_.size(); }
  void note_not_copied() noexcept { copied_ = 0; }
  std::vector<std::byte> take() && noexcept { return std::move(bytes_); }

 private:
  void put(uint64_t value);

  int64_t capacity_;
  std::vector<std::byte> bytes_;
  Off end_ = 0;  // of the last record
  int64_t data_bytes_ = 0;
  Extent hull_;
  size_t copied_ = 0;
};

// Reads the records of a parcel of kind load.
class LoadReader {
 public:
  struct Record {
    layout::Run run;
    std::span<const std::byte> bytes;
  };
  explicit LoadReader(std::span<const std::byte> parcel) noexcept : rest_(parcel.subspan(1)) {}

  // nullopt: the end, or not a record; then ok() is false.
  std::optional<Record> next();
  bool ok() const noexcept { return ok_; }

 private:
  uint64_t get();
  std::optional<Record> malformed();

  std::span<const std::byte> rest_;
  Off end_ = 0;
  bool ok_ = true;
};

}  // namespace penstock::exec
