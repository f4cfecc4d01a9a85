// Positional reads with pread(2).
#include "io/reader.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/descriptor.hpp"

namespace penstock::io {
namespace {

class PreadFile final : public ReadableFile {
 public:
  explicit PreadFile(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  // Invariant: the first `done` bytes have been read.
  Readout read(std::span<std::byte> into, Off offset) override {
    into = into.first(size_t(Extent::of(offset, int64_t(into.size())).size()));
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t n = ::pread(fd(), into.data() + done, into.size() - done, offset + Off(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return {int64_t(done), error_at(offset + Off(done))};
      if (n == 0) break;
      done += size_t(n);
    }
    return {int64_t(done), std::nullopt};
  }

  Result<int64_t> size() override {
    struct stat file {};
    if (::fstat(fd(), &file) != 0) return os_error("fstat", descriptor_.path(), errno);
    return int64_t(file.st_size);
  }

  int fd() const noexcept override { return descriptor_.fd(); }

 private:
  Error error_at(Off offset) const {
    const int number = errno;
    return os_error("pread", descriptor_.path() + ", offset " + std::to_string(offset), number)
        .value();
  }

  Descriptor descriptor_;
};

int64_t told_bytes(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) ? int64_t(file.st_size) : -1;
}

// One that says it is empty and holds a byte does not, unless another rank has just written that.
bool tells_its_end(int fd) {
  const int64_t told = told_bytes(fd);
  char byte;
  if (told != 0) return told > 0;
  return ::pread(fd, &byte, 1, 0) <= 0 || told_bytes(fd) > 0;
}

Result<std::unique_ptr<ReadableFile>> readable(Result<Descriptor> descriptor) {
  if (!descriptor) return tl::unexpected(std::move(descriptor).error());
  if (!tells_its_end(descriptor->fd()))
    return fail(ErrorClass::unsupported, "open for reading",
                "it does not tell where it ends: " + descriptor->path());
  return std::make_unique<PreadFile>(*std::move(descriptor));
}

}  // namespace

Result<std::unique_ptr<ReadableFile>> open_for_reading(const std::string& path) {
  return readable(Descriptor::open_for_reading(path));
}

Result<std::unique_ptr<ReadableFile>> open_again_for_reading(int fd, const std::string& path) {
  return readable(Descriptor::open_again_for_reading(fd, path));
}

}  // namespace penstock::io
