// Positional writes with pwrite(2), done inside submit(); `direct` past the page cache, crumbs
// without a call (io/crumbs.hpp). The reference: no other mechanism may leave different bytes in
// the file.
#include "io/blocking_file.hpp"

namespace penstock::io {
namespace {

class PwriteFile final : public BlockingFile {
 public:
  using BlockingFile::BlockingFile;

  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return file().write(bytes, offset, Way::buffered);
  }
};

}  // namespace

const Mechanism& pwrite_mechanism() {
  static const Mechanism m{
      .name = "pwrite",
      .summary = "positional writes, one call per extent, one mapping for many short ones",
      .alignment_bytes = 1,
      .writes_file = true,
      .takes_direct = true,
      .takes_cold = true,
      .unavailable = nullptr,
      .open = &BlockingFile::open<PwriteFile>};
  return m;
}

}  // namespace penstock::io
