// Positional writes with pwrite(2), done inside submit(); `direct` past the page cache. The
// reference: no other mechanism may leave different bytes in the file.
#include <utility>

#include "io/buffer_slots.hpp"
#include "io/direct.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {
namespace {

class PwriteFile final : public MechanismFile {
 public:
  explicit PwriteFile(std::unique_ptr<DirectFile> file) : file_(std::move(file)) {}

  static Result<std::unique_ptr<MechanismFile>> open(const OpenRequest& request) {
    return DirectFile::open(request).map([](std::unique_ptr<DirectFile>&& file) {
      return std::unique_ptr<MechanismFile>(std::make_unique<PwriteFile>(std::move(file)));
    });
  }

  Result<Lease> lease(Extent where) override {
    return slots_.lease(where, file_->memory_shift(where.begin));
  }

  void submit(Lease lease, std::span<const Extent> dirty) override {
    if (dirty.empty()) return slots_.give_back(lease.slot);
    slots_.settle(lease.slot, write_all(lease, dirty));
  }

  std::optional<Fault> reap() override { return slots_.reap_settled(); }

  int slots() const noexcept override { return BufferSlots::kSlots; }
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) override {
    return slots_.use_memory(buffers);
  }

  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return file_->write(bytes, offset, Way::buffered);
  }

  Result<void> sync(SyncKind kind) override { return file_->sync(kind); }
  Result<void> close() override { return file_->close(); }
  int fd() const noexcept override { return file_->fd(); }
  std::string degraded() const override { return file_->degraded(); }

 private:
  // Stops at the first fault: the extents are in file order, so it is the first missing byte.
  std::optional<Fault> write_all(const Lease& lease, std::span<const Extent> dirty) {
    LeaseBytes memory(lease);
    for (const Extent e : dirty) {
      const std::span<const std::byte> bytes = memory.of(e);
      for (const auto& [where, way] : cut_for_direct(e, file_->unit_bytes()))
        if (auto fault = file_->write(part_of(bytes, e, where), where.begin, way)) return fault;
    }
    return std::nullopt;
  }

  std::unique_ptr<DirectFile> file_;
  BufferSlots slots_;
};

}  // namespace

const Mechanism& pwrite_mechanism() {
  static const Mechanism m{.name = "pwrite",
                           .summary = "positional writes, one system call per extent",
                           .alignment_bytes = 1,
                           .writes_file = true,
                           .takes_direct = true,
                           .default_depth = 0,
                           .unavailable = nullptr,
                           .open = &PwriteFile::open};
  return m;
}

}  // namespace penstock::io
