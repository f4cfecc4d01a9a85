// Reads the files back after the clock has stopped and compares every byte with what it should be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "contents.hpp"
#include "layout/file_view.hpp"
#include "pattern.hpp"

namespace penstock::measure {

struct Check {
  int64_t bytes = 0;                  // compared
  int64_t wrong_bytes = 0;            // that differ, are missing, or are too many
  Off first_wrong = -1;               // the lowest file offset of them; -1: none
  int first_worker = -1;              // of the file, whose byte it is; -1: nobody's
  int64_t expected = -1, found = -1;  // that byte; found -1: the file ends before

  void add(const Check& other);
};

// What a file of a pattern must hold: the parts of all its workers.
class Expected {
 public:
  // Fails as make_part() does. `first_worker`: what the contents know the file's first worker by.
  static Result<Expected> make(const PatternChoice& choice, const Amount& amount,
                               int64_t shift_bytes, int first_worker = 0);

  int64_t file_bytes() const noexcept { return file_bytes_; }
  // page[0, e.size()) = the file's bytes of `e`. REQUIRES e in [0, file_bytes()).
  void image(Extent e, std::byte* page);
  // Whose byte it is.
  int owner(Off offset) const;
  // Reads `e` of the file with plain pread(2), in large pieces.
  Result<Check> check(int fd, const std::string& path, Extent e);

 private:
  struct Stream {
    layout::FileView view;
    Contents contents;
    int64_t bytes_per_iteration, bytes;
  };
  void pack(const Stream& s, StreamRange range, std::byte* out) const;

  std::vector<Stream> streams_;
  std::vector<std::byte> packed_, page_, read_;
  int64_t file_bytes_ = 0;
};

// The `slice`th of so many of the file, and with the last one that nothing follows.
Result<Check> check_slice(Expected& expected, const std::string& path, int slice, int slices);

}  // namespace penstock::measure
