#include "exec/load.hpp"

#include <utility>

namespace penstock::exec {
namespace {

constexpr int64_t kMostHead = 4 * 10;  // of a record: four numbers of 64 bits
constexpr int64_t kLeastRoom = 64;     // for less a block is not split

// Small numbers of either sign become small ones.
uint64_t zigzag(int64_t value) { return (uint64_t(value) << 1) ^ uint64_t(value >> 63); }
int64_t unzigzag(uint64_t value) { return int64_t(value >> 1) ^ -int64_t(value & 1); }

// Without overflow, which only a malformed record brings.
int64_t plus(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
int64_t times(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

Off end_of(const layout::Run& run) {
  return plus(plus(run.offset, run.block), times(run.count - 1, run.stride));
}

}  // namespace

// --- Packing ---

Load::Load(int64_t capacity, std::vector<std::byte> memory)
    : capacity_(capacity), bytes_(std::move(memory)) {
  bytes_.clear();
  bytes_.reserve(size_t(capacity));
  bytes_.push_back(std::byte(ParcelKind::load));
}

int64_t Load::room() const noexcept {
  const int64_t room = capacity_ - int64_t(bytes_.size()) - kMostHead;
  return room < kLeastRoom ? 0 : room;
}

void Load::put(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(std::byte(value | 0x80));
  bytes_.push_back(std::byte(value));
}

std::byte* Load::append(const layout::Run& run) {
  put(zigzag(run.offset - end_));
  put(uint64_t(run.block));
  put(uint64_t(run.count));
  if (run.count > 1) put(zigzag(run.stride));
  layout::Run placed = run;
  if (run.count == 1) placed.stride = 0;
  end_ = end_of(placed);
  hull_ = hull_of(hull_, hull_of(placed));
  const size_t at = bytes_.size();
  bytes_.resize(at + size_t(run.bytes()));
  data_bytes_ += run.bytes();
  return bytes_.data() + at;
}

// --- Unpacking ---

uint64_t LoadReader::get() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = uint64_t(rest_.front());
    rest_ = rest_.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  ok_ = false;
  return 0;
}

std::optional<LoadReader::Record> LoadReader::malformed() {
  ok_ = false;
  return std::nullopt;
}

std::optional<LoadReader::Record> LoadReader::next() {
  if (rest_.empty() || !ok_) return std::nullopt;
  layout::Run run;
  run.offset = plus(end_, unzigzag(get()));
  run.block = int64_t(get());
  run.count = int64_t(get());
  if (run.count > 1) run.stride = unzigzag(get());
  const auto most = int64_t(rest_.size());
  if (!ok_ || run.offset < 0 || run.block < 1 || run.count < 1 || run.block > most ||
      run.count > most / run.block)
    return malformed();
  const auto n = size_t(run.bytes());
  const Record record{run, rest_.first(n)};
  rest_ = rest_.subspan(n);
  end_ = end_of(run);
  return record;
}

}  // namespace penstock::exec
