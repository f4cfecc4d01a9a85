// Which way a part goes, and that a refusal costs nothing but the page cache.
#include "io/direct.hpp"

#include <utility>

#include "base/aligned_buffer.hpp"
#include "io/write_fully.hpp"

namespace penstock::io {

Result<std::unique_ptr<DirectFile>> DirectFile::open(const OpenRequest& request) {
  auto buffered = Descriptor::open_for_writing(request.path, request.written);
  if (!buffered) return tl::unexpected(std::move(buffered).error());
  std::unique_ptr<DirectFile> file(new DirectFile(*std::move(buffered)));
  const bool through = request.written == Written::through;
  if (through) file->blocks_.refuse();
  if (request.direct == Direct::always) file->open_direct();
  if (request.direct == Direct::when_cold && !through)
    file->cold_ = std::make_unique<ColdWriter>(file->buffered_, request.cold);
  return Result<std::unique_ptr<DirectFile>>(std::move(file));
}

void DirectFile::open_direct() {
  auto direct = DirectDescriptor::open(buffered_, buffered_.path());
  if (!direct) return refuse(direct.error());
  direct_ = *std::move(direct);
  unit_bytes_ = direct_->unit_bytes();
}

void DirectFile::refuse(const std::string& why) {
  unit_bytes_ = 0;
  const std::lock_guard lock(degraded_mutex_);
  if (degraded_.empty()) degraded_ = "direct: " + why + "; written through the page cache";
}

std::string DirectFile::degraded() const {
  const std::lock_guard lock(degraded_mutex_);
  return degraded_;
}

size_t DirectFile::memory_shift(Off begin) const noexcept {
  return unit_bytes_ == 0 ? 0 : size_t(begin % Off{AlignedBuffer::kAlignment});
}

std::optional<Fault> DirectFile::write(std::span<const std::byte> bytes, Off offset, Way way) {
  // Parts that were cut before a refusal end here as well. Another thread may be refused meanwhile.
  if (way == Way::buffered || unit_bytes_ == 0) return write_buffered(bytes, offset);
  DirectWrite written = direct_->write(bytes, offset);
  if (!written.refusal.empty()) refuse(written.refusal);
  return std::move(written.fault);
}

std::optional<Fault> DirectFile::write_buffered(std::span<const std::byte> bytes, Off offset) {
  reserve_for_cache({offset, offset + Off(bytes.size())});
  if (cold_) return cold_->write(bytes, offset);
  return write_fully(fd(), bytes, offset, buffered_.path());
}

Result<void> DirectFile::close() {
  Result<void> first = direct_ ? direct_->close() : Result<void>();
  Result<void> second = cold_ ? cold_->close() : Result<void>();
  Result<void> third = buffered_.close();
  return !first ? first : !second ? second : third;
}

}  // namespace penstock::io
