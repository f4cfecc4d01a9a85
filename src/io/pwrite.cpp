// Positional writes with pwrite(2), done inside submit(). The reference: no other mechanism may
// leave different bytes in the file.
#include <deque>
#include <utility>

#include "io/buffer_slots.hpp"
#include "io/descriptor.hpp"
#include "io/mechanism.hpp"
#include "io/write_fully.hpp"

namespace penstock::io {
namespace {

class PwriteFile final : public MechanismFile {
 public:
  explicit PwriteFile(Descriptor file) : file_(std::move(file)) {}

  static Result<std::unique_ptr<MechanismFile>> open(const OpenRequest& request) {
    return Descriptor::open_for_writing(request.path).map([](Descriptor&& file) {
      return std::unique_ptr<MechanismFile>(std::make_unique<PwriteFile>(std::move(file)));
    });
  }

  Result<Lease> lease(Extent where) override { return slots_.lease(where); }

  void submit(Lease lease, std::span<const Extent> dirty) override {
    if (dirty.empty()) return slots_.give_back(lease.slot);
    submitted_.push_back({lease.slot, write_all(lease, dirty)});
  }

  std::optional<Fault> reap() override {
    if (submitted_.empty()) return std::nullopt;
    Submission oldest = std::move(submitted_.front());
    submitted_.pop_front();
    slots_.give_back(oldest.slot);
    return std::move(oldest.fault);
  }

  int slots() const noexcept override { return BufferSlots::kSlots; }

  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return write_fully(file_.fd(), bytes, offset, file_.path());
  }

  Result<void> sync(SyncKind kind) override { return file_.sync(kind); }
  Result<void> close() override { return file_.close(); }
  int fd() const noexcept override { return file_.fd(); }

 private:
  struct Submission {
    int slot;
    std::optional<Fault> fault;
  };

  // Stops at the first fault: the extents are in file order, so it is the first missing byte.
  std::optional<Fault> write_all(const Lease& lease, std::span<const Extent> dirty) {
    for (const Extent e : dirty)
      if (auto fault = write(part_of(lease, e), e.begin)) return fault;
    return std::nullopt;
  }

  Descriptor file_;
  BufferSlots slots_;
  std::deque<Submission> submitted_;
};

}  // namespace

const Mechanism& pwrite_mechanism() {
  static const Mechanism m{.name = "pwrite",
                           .summary = "positional writes, one system call per extent",
                           .alignment_bytes = 1,
                           .writes_file = true,
                           .unavailable = nullptr,
                           .open = &PwriteFile::open};
  return m;
}

}  // namespace penstock::io
