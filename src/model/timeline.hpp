// Moments of a simulation, thinned out as it goes on, so that their number has a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::model {

// Where the bytes are. sent_bytes == memory_bytes + paged_bytes + disk_bytes at every moment: a
// block counts where it was until its transfer has ended.
struct Moment {
  double time_s = 0;
  int64_t sent_bytes = 0;    // have left the program's buffer
  int64_t memory_bytes = 0;  // of all I/O nodes
  int64_t paged_bytes = 0;   // on their paging disks
  int64_t disk_bytes = 0;    // on their output disks
  friend bool operator==(const Moment&, const Moment&) = default;
};

// Keeps the first moment, the last, and every 2^k-th between them, with the least k for which they
// are at most `most`. REQUIRES most >= 2.
class Timeline {
 public:
  explicit Timeline(size_t most) : most_(most) {}

  void add(const Moment& moment);
  std::vector<Moment> finish() &&;

 private:
  void thin_out();

  size_t most_;
  size_t seen_ = 0;
  size_t stride_ = 1;
  Moment last_;
  std::vector<Moment> kept_;
};

}  // namespace penstock::model
