// Accepts every byte and drops it: what is left of the time is Penstock's own.
#include <utility>

#include "io/buffer_slots.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {
namespace {

class NullFile final : public MechanismFile {
 public:
  static Result<std::unique_ptr<MechanismFile>> open(const OpenRequest&) {
    return std::make_unique<NullFile>();
  }

  Result<Lease> lease(Extent where) override { return slots_.lease(where); }
  void submit(Lease lease, std::span<const Extent>) override { slots_.give_back(lease.slot); }
  std::optional<Fault> reap() override { return std::nullopt; }
  int slots() const noexcept override { return BufferSlots::kSlots; }
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) override {
    return slots_.use_memory(buffers);
  }
  std::optional<Fault> write(std::span<const std::byte>, Off) override { return std::nullopt; }
  Result<void> sync(SyncKind) override { return {}; }
  Result<void> close() override { return {}; }
  int fd() const noexcept override { return -1; }

 private:
  BufferSlots slots_;
};

}  // namespace

const Mechanism& null_mechanism() {
  static const Mechanism m{.name = "null",
                           .summary = "drops every byte, to time everything but the file",
                           .alignment_bytes = 1,
                           .writes_file = false,
                           .takes_direct = false,
                           .default_depth = 0,
                           .unavailable = nullptr,
                           .open = &NullFile::open};
  return m;
}

}  // namespace penstock::io
