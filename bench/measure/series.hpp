// Bytes per bin of time: what the workers' calls moved, and what reached the device meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace penstock::measure {

// One call: when it began (s since the clock started) and how long it took.
struct Call {
  double begin_s = 0;
  double seconds = 0;
};

// The bytes of a call are spread evenly over its time.
class Bins {
 public:
  explicit Bins(double bin_s) : bin_s_(bin_s) {}
  void add(const Call& call, int64_t bytes);
  // Padded with zeros, or with what is behind the end added to the last: `bins` values.
  std::vector<int64_t> values(int64_t bins) const;

 private:
  void put(int64_t bin, double bytes);

  double bin_s_;
  std::vector<double> bytes_;
};

// A reading at a time (s since the clock started; before it: negative).
struct Reading {
  double at_s = 0;
  int64_t bytes = 0;
};

// The reading at `at_s`, in a straight line between those around it. REQUIRES ascending times.
// 0 when there are none.
double at(std::span<const Reading> readings, double at_s);

// Bytes on the device per bin, when `unwritten[i]` of what `application` had moved by the end of
// bin i were still on their way. Never negative; the last bin completes the sum.
std::vector<int64_t> reached_device(std::span<const int64_t> application,
                                    std::span<const int64_t> unwritten);
// The same when the device's own counter had grown by `written[i]` at the end of bin i, of at most
// `total` bytes.
std::vector<int64_t> counted_by_device(std::span<const int64_t> written, int64_t total);

}  // namespace penstock::measure
