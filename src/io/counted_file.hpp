// For tests: the blocking mechanisms' file, and how often it was asked for a call of write(2).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "io/blocking_file.hpp"

namespace penstock::io {

class CountedFile final : public BlockingFile {
 public:
  using BlockingFile::BlockingFile;

  static std::unique_ptr<CountedFile> open(const OpenRequest& request) {
    auto opened = BlockingFile::open<CountedFile>(request).value();
    return std::unique_ptr<CountedFile>(static_cast<CountedFile*>(opened.release()));
  }

  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    ++writes;
    return file().write(bytes, offset, Way::buffered);
  }

  std::atomic<int> writes = 0;
};

}  // namespace penstock::io
