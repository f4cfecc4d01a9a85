// Bits are set a word at a time: what falls into one word is joined before it is stored, since the
// word may travel between cores; and whole words are stored without a lock, for which a core would
// wait until the word has come.
#include "exec/dirty_map.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::exec {
namespace {

constexpr int64_t kBits = DirtyMap::kWordBytes;
constexpr uint64_t kAll = ~uint64_t{0};
constexpr Off kGroup = 8;  // words

// Bits [begin, end) of one word. REQUIRES 0 <= begin < end <= 64.
uint64_t bits(int64_t begin, int64_t end) { return (kAll << begin) & (kAll >> (kBits - end)); }

}  // namespace

class DirtyMap::Marker {
 public:
  explicit Marker(std::span<Word> words) : words_(words) {}

  // Of the page.
  void add(Off begin, Off end) {
    const Off whole = (begin + kBits - 1) / kBits, whole_end = end / kBits;
    if (whole > whole_end) return add_to(whole_end, bits(begin % kBits, end % kBits));
    if (begin % kBits != 0) add_to(whole - 1, bits(begin % kBits, kBits));
    for (Off w = whole; w < whole_end; ++w) fill(words_[size_t(w)]);
    if (end % kBits != 0) add_to(whole_end, bits(0, end % kBits));
  }

  void add(const layout::Run& run, Off origin) {
    for (int64_t i = 0; i < run.count; ++i) {
      const Off begin = run.offset + i * run.stride - origin;
      add(begin, begin + run.block);
    }
  }

  int64_t finish() {
    store();
    return newly_;
  }

 private:
  void add_to(Off word, uint64_t mask) {
    if (word != word_) {
      store();
      word_ = word;
    }
    mask_ |= mask;
  }

  void store() {
    if (mask_ == 0) return;
    const uint64_t old = words_[size_t(word_)].fetch_or(mask_, std::memory_order_relaxed);
    if ((mask_ & ~old) != 0) newly_ += std::popcount(mask_ & ~old);
    mask_ = 0;
  }

  // All 64 bytes are ours, so nobody else marks them, or the program writes a byte twice at once.
  void fill(Word& word) {
    const uint64_t old = word.load(std::memory_order_relaxed);
    word.store(kAll, std::memory_order_relaxed);
    if (old != kAll) newly_ += old == 0 ? kBits : std::popcount(~old);
  }

  std::span<Word> words_;
  Off word_ = 0;
  uint64_t mask_ = 0;
  int64_t newly_ = 0;
};

int64_t DirtyMap::mark(Extent e) {
  if (e.empty()) return 0;
  Marker marker(words_);
  marker.add(e.begin - page_.begin, e.end - page_.begin);
  return marker.finish();
}

int64_t DirtyMap::mark(const layout::Run& run) {
  Marker marker(words_);
  marker.add(run, page_.begin);
  return marker.finish();
}

int64_t DirtyMap::mark(layout::Cursor& cursor, int64_t n) {
  Marker marker(words_);
  while (n > 0) {
    const layout::Run run = cursor.next(n);
    marker.add(run, page_.begin);
    n -= run.bytes();
  }
  return marker.finish();
}

// The next word from `w` on that does not lie in a group of words which are all `like`: of a page
// that is full, nearly all words are looked at here.
Off DirtyMap::skip(Off w, uint64_t like) const {
  const auto is_alike = [&] {
    uint64_t differs = 0;
    for (Off i = 0; i < kGroup; ++i)
      differs |= words_[size_t(w + i)].load(std::memory_order_relaxed) ^ like;
    return differs == 0;
  };
  while (w % kGroup == 0 && w + kGroup <= Off(words_.size()) && is_alike()) w += kGroup;
  return w;
}

Off DirtyMap::find(Off from, bool dirty) const {
  const Off end = page_.size();
  const uint64_t none = dirty ? 0 : kAll;
  for (Off w = skip(from / kBits, none); w * kBits < end; w = skip(w + 1, none)) {
    uint64_t word = words_[size_t(w)].load(std::memory_order_relaxed);
    if (!dirty) word = ~word;
    if (w == from / kBits) word &= kAll << (from % kBits);
    if (word != 0) return std::min<Off>(end, w * kBits + std::countr_zero(word));
  }
  return end;
}

Off DirtyMap::end() const noexcept {
  for (auto w = Off(words_.size()); w-- > 0;)
    if (const uint64_t word = words_[size_t(w)].load(std::memory_order_relaxed); word != 0)
      return page_.begin + w * kBits + std::bit_width(word);
  return page_.begin;
}

void DirtyMap::clear() { std::memset(static_cast<void*>(words_.data()), 0, words_.size_bytes()); }

}  // namespace penstock::exec
