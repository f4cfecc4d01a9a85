// Long lists of irregular blocks, for who needs what lies in some part of the file only: the list
// is cut into chapters of as many blocks each, its outline says where each chapter begins, and
// whoever has the outline can tell which chapters a part of the file may touch. Both sides of a
// message work that out alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "layout/loop_tree.hpp"

namespace penstock::layout {

class WireReader;

struct ChapterRange {  // half-open
  int64_t begin = 0, end = 0;
  friend bool operator==(const ChapterRange&, const ChapterRange&) = default;
};

class Outline {
 public:
  static constexpr int64_t kLongChapters = 4;  // a list of fewer is sent whole

  // Of a tree that is one long list of adjacent bytes, ascending, and fit to tile a file; nullopt:
  // it is something else, or not longer than a few chapters. REQUIRES blocks_per_chapter >= 1.
  static std::optional<Outline> of(const LoopTree& tree, int64_t blocks_per_chapter);

  int64_t chapters() const noexcept { return int64_t(places_.size()) - 1; }
  int64_t size() const noexcept { return starts_.back(); }  // bytes of data in a tile
  // The ranges of chapters, ascending and apart, that say where the bytes `own` of the stream lie,
  // as far as they lie in `file`, and where own.begin does, which is at `first`; more where it is
  // within a chapter, since where the tile lies is known to the length of that chapter's holes.
  // O(log chapters). REQUIRES 0 <= own.begin < size(), and own not empty.
  std::vector<ChapterRange> needed(StreamRange own, Off first, Extent file) const;

  // To another rank of the same job. `deserialise` takes bytes from anywhere: malformed input is an
  // argument error.
  int64_t serialised_bytes() const noexcept;
  void serialise(std::vector<std::byte>& out) const;
  static bool is_outline(std::span<const std::byte> in) noexcept;
  static Result<Outline> deserialise(std::span<const std::byte> in, int64_t blocks_per_chapter);

  int64_t chapter_bytes(int64_t chapter) const noexcept;
  int64_t chapter_bytes() const noexcept;  // of all
  // REQUIRES the tree that the outline was made of.
  void serialise_chapter(const LoopTree& tree, int64_t chapter, std::vector<std::byte>& out) const;

 private:
  friend class Excerpt;

  bool is_sound() const noexcept;
  bool has_sound_end() const noexcept;
  bool is_narrow(int64_t chapter) const noexcept;
  int64_t blocks_of(int64_t chapter) const noexcept;
  int64_t chapter_at(int64_t position) const noexcept;
  Result<std::shared_ptr<const Node>> read_chapter(int64_t chapter, WireReader& in) const;

  Off true_lb_ = 0, lb_ = 0;
  int64_t extent_ = 0;
  int64_t blocks_ = 0, per_chapter_ = 1;
  int64_t unit_ = 1;         // divides all places and lengths
  int64_t equal_bytes_ = 0;  // of every block; 0: they differ
  Off last_place_ = 0;       // of the last block
  std::vector<Off> places_;  // of each chapter's first block, from the lowest; one past the last
  std::vector<int64_t> starts_;  // of each chapter in the stream; the total
};

// A tree as far as its chapters are known. The bytes of a chapter that is not lie in it adjacent
// from where the chapter begins, so that places in the stream are those of the whole tree, and what
// lies in chapters that are known is where it is. Chapters are nodes of their own: to learn one
// costs its blocks, and a step for each chapter.
class Excerpt {
 public:
  explicit Excerpt(Outline outline);

  const Outline& outline() const noexcept { return outline_; }
  bool knows(int64_t chapter) const noexcept { return known_[size_t(chapter)] != nullptr; }
  // `chapters`, which were not known, ascending, and what serialise_chapter() made of them. After a
  // failure, which malformed input is, nothing was learnt.
  Result<void> learn(std::span<const int64_t> chapters, std::span<const std::byte> in);
  // REQUIRES that some chapter was learnt.
  const LoopTree& tree() const noexcept { return tree_; }

 private:
  using Nodes = std::vector<std::shared_ptr<const Node>>;

  Result<LoopTree> assemble(const Nodes& known) const;

  Outline outline_;
  Nodes known_;  // by chapter; nullptr: not known
  LoopTree tree_;
};

}  // namespace penstock::layout
