// Arithmetic of time series.
#include "series.hpp"

#include <algorithm>
#include <cmath>

namespace penstock::measure {

void Bins::put(int64_t bin, double bytes) {
  if (size_t(bin) >= bytes_.size()) bytes_.resize(size_t(bin) + 1);
  bytes_[size_t(bin)] += bytes;
}

void Bins::add(const Call& call, int64_t bytes) {
  const double begin = std::max(0.0, call.begin_s), end = begin + std::max(0.0, call.seconds);
  const auto first = int64_t(begin / bin_s_), last = int64_t(end / bin_s_);
  if (first == last) {
    put(first, double(bytes));
    return;
  }
  double given = 0;
  for (int64_t bin = first; bin < last; ++bin) {
    const double from = std::max(begin, double(bin) * bin_s_), to = double(bin + 1) * bin_s_;
    const double part = double(bytes) * (to - from) / (end - begin);
    put(bin, part);
    given += part;
  }
  put(last, double(bytes) - given);
}

std::vector<int64_t> Bins::values(int64_t bins) const {
  std::vector<int64_t> whole(size_t(bins), 0);
  if (bins == 0) return whole;
  // Rounding the sums, not the bins, keeps the total exact.
  double sum = 0;
  int64_t before = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    sum += bytes_[i];
    const int64_t now = std::llround(sum);
    whole[std::min(i, whole.size() - 1)] += now - before;
    before = now;
  }
  return whole;
}

double at(std::span<const Reading> readings, double at_s) {
  if (readings.empty()) return 0;
  const auto behind = std::ranges::lower_bound(readings, at_s, {}, &Reading::at_s);
  if (behind == readings.begin()) return double(readings.front().bytes);
  if (behind == readings.end()) return double(readings.back().bytes);
  const Reading &a = *(behind - 1), &b = *behind;
  const double share = b.at_s > a.at_s ? (at_s - a.at_s) / (b.at_s - a.at_s) : 1;
  return double(a.bytes) + share * double(b.bytes - a.bytes);
}

std::vector<int64_t> reached_device(std::span<const int64_t> application,
                                    std::span<const int64_t> unwritten) {
  std::vector<int64_t> device(application.size(), 0);
  int64_t moved = 0, reached = 0;
  for (size_t i = 0; i < application.size(); ++i) {
    moved += application[i];
    const bool last = i + 1 == application.size();
    const int64_t now = std::max(reached, last ? moved : moved - unwritten[i]);
    device[i] = now - reached;
    reached = now;
  }
  return device;
}

std::vector<int64_t> counted_by_device(std::span<const int64_t> written, int64_t total) {
  std::vector<int64_t> device(written.size(), 0);
  int64_t reached = 0;
  for (size_t i = 0; i < written.size(); ++i) {
    const bool last = i + 1 == written.size();
    const int64_t now = last ? total : std::clamp(written[i], reached, std::max(reached, total));
    device[i] = std::max<int64_t>(0, now - reached);
    reached = std::max(reached, now);
  }
  return device;
}

}  // namespace penstock::measure
