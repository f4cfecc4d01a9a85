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
constexpr Off kGroup = 16;  // words
using Pair = uint64_t __attribute__((vector_size(16)));

// Bits [begin, end) of one word. REQUIRES 0 <= begin < end <= 64.
uint64_t bits(int64_t begin, int64_t end) { return (kAll << begin) & (kAll >> (kBits - end)); }

}  // namespace

class DirtyMap::Marker {
 public:
  explicit Marker(DirtyMap& map)
      : words_(map.words_), touched_(map.touched_), part_bits_(map.part_bits()) {}

  // Of the page.
  void add(Off begin, Off end) {
    const Off whole = (begin + kBits - 1) / kBits, whole_end = end / kBits;
    if (whole > whole_end) return add_to(whole_end, bits(begin % kBits, end % kBits));
    if (begin % kBits != 0) add_to(whole - 1, bits(begin % kBits, kBits));
    if (whole < whole_end) fill(words_.subspan(size_t(whole), size_t(whole_end - whole)));
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
    if ((parts_ & ~touched_.load(std::memory_order_relaxed)) != 0)
      touched_.fetch_or(parts_, std::memory_order_relaxed);
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
    touch(word_, word_);
    const uint64_t old = words_[size_t(word_)].fetch_or(mask_, std::memory_order_relaxed);
    if ((mask_ & ~old) != 0) newly_ += std::popcount(mask_ & ~old);
    mask_ = 0;
  }

  void touch(Off first, Off last) {
    const Off begin = first >> part_bits_, end = (last >> part_bits_) + 1;
    parts_ |= bits(begin, end);
  }

  // All bytes of these words are ours, so nobody else marks them, or the program writes a byte
  // twice at once. Mostly none was dirty.
  void fill(std::span<Word> whole) {
    const auto first = Off(whole.data() - words_.data());
    touch(first, first + Off(whole.size()) - 1);
    uint64_t old = 0;
#pragma GCC unroll 4
    for (const Word& word : whole) old |= word.load(std::memory_order_relaxed);
    newly_ += old == 0 ? int64_t(whole.size()) * kBits : clean_bits(whole);
#pragma GCC unroll 4
    for (Word& word : whole) word.store(kAll, std::memory_order_relaxed);
  }

  static int64_t clean_bits(std::span<const Word> words) {
    int64_t clean = 0;
    for (const Word& word : words) clean += std::popcount(~word.load(std::memory_order_relaxed));
    return clean;
  }

  std::span<Word> words_;
  Word& touched_;
  const int part_bits_;
  Off word_ = 0;
  uint64_t mask_ = 0, parts_ = 0;
  int64_t newly_ = 0;
};

int64_t DirtyMap::mark(Extent e) {
  if (e.empty()) return 0;
  Marker marker(*this);
  marker.add(e.begin - page_.begin, e.end - page_.begin);
  return marker.finish();
}

int64_t DirtyMap::mark(const layout::Run& run) {
  Marker marker(*this);
  marker.add(run, page_.begin);
  return marker.finish();
}

int64_t DirtyMap::mark(layout::Cursor& cursor, int64_t n) {
  Marker marker(*this);
  while (n > 0) {
    const layout::Run run = cursor.next(n);
    marker.add(run, page_.begin);
    n -= run.bytes();
  }
  return marker.finish();
}

// So many words at a time that there are 64 parts at most.
int DirtyMap::part_bits() const noexcept {
  return std::bit_width((words_.size() - 1) / size_t(kBits));
}

// The next word from `w` on that does not lie in a group of words which are all `like`: of a page
// that is full, nearly all words are looked at here, several by an instruction.
Off DirtyMap::skip(Off w, Off end, uint64_t like) const {
  const Pair wanted = {like, like};
  const auto is_alike = [&] {
    Pair differs = {};
    for (Off i = 0; i < kGroup; i += 2) {
      Pair pair;
      std::memcpy(&pair, static_cast<const void*>(&words_[size_t(w + i)]), sizeof pair);
      differs |= pair ^ wanted;
    }
    return (differs[0] | differs[1]) == 0;
  };
  while (w % kGroup == 0 && w + kGroup <= end && is_alike()) w += kGroup;
  return w;
}

Off DirtyMap::find_in(Off w, Off word_end, Off from, bool dirty) const {
  const uint64_t none = dirty ? 0 : kAll;
  for (w = skip(w, word_end, none); w < word_end; w = skip(w + 1, word_end, none)) {
    uint64_t word = words_[size_t(w)].load(std::memory_order_relaxed);
    if (!dirty) word = ~word;
    if (w == from / kBits) word &= kAll << (from % kBits);
    if (word != 0) return w * kBits + std::countr_zero(word);
  }
  return -1;
}

Off DirtyMap::find(Off from, bool dirty) const {
  const uint64_t touched = touched_.load(std::memory_order_relaxed);
  const int shift = part_bits();
  const auto words = Off(words_.size());
  for (Off w = from / kBits, part_end = 0; w < words; w = part_end) {
    part_end = std::min(words, ((w >> shift) + 1) << shift);
    const bool is_touched = (touched >> (w >> shift) & 1) != 0;
    if (!is_touched && !dirty) return std::max(from, w * kBits);
    const Off found = is_touched ? find_in(w, part_end, from, dirty) : -1;
    if (found >= 0) return std::min(page_.size(), found);
  }
  return page_.size();
}

Off DirtyMap::end() const noexcept {
  const uint64_t touched = touched_.load(std::memory_order_relaxed);
  const auto parts = Off(std::bit_width(touched));
  for (Off w = std::min(Off(words_.size()), parts << part_bits()); w-- > 0;)
    if (const uint64_t word = words_[size_t(w)].load(std::memory_order_relaxed); word != 0)
      return page_.begin + w * kBits + std::bit_width(word);
  return page_.begin;
}

void DirtyMap::clear() {
  const size_t part = size_t{1} << part_bits();
  uint64_t touched = touched_.exchange(0, std::memory_order_relaxed);
  for (; touched != 0; touched &= touched - 1) {
    const std::span<Word> rest = words_.subspan(size_t(std::countr_zero(touched)) * part);
    const std::span<Word> words = rest.first(std::min(part, rest.size()));
    std::memset(static_cast<void*>(words.data()), 0, words.size_bytes());
  }
}

void DirtyMap::clear_all() {
  std::memset(static_cast<void*>(words_.data()), 0, words_.size_bytes());
  touched_.store(0, std::memory_order_relaxed);
}

}  // namespace penstock::exec
