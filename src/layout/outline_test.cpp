// Lists in chapters: the whole tree is the oracle of what an excerpt says of a part of the file.
#include "layout/outline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "layout/file_view.hpp"

namespace penstock::layout::outline_test {
namespace {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

int64_t below(Random& random, int64_t n) { return int64_t(random() % uint64_t(n)); }

// Blocks that ascend; of `equal` bytes each, or up to four units.
LoopTree irregular(Random& random, int64_t blocks, int64_t unit, int64_t equal, int64_t most_gap) {
  std::vector<LoopTree::Block> list;
  Off at = unit * below(random, 3);
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t bytes = equal > 0 ? equal : unit * (1 + below(random, 4));
    list.push_back({at, bytes});
    at += bytes + unit * (1 + below(random, most_gap));
  }
  const LoopTree tree = *LoopTree::indexed(list, LoopTree::bytes(1));
  return *LoopTree::resized(tree, 0, at + unit * below(random, 2 * most_gap));
}

LoopTree any_list(Random& random, int64_t most_gap = 5) {
  const int64_t unit = int64_t{1} << below(random, 3), blocks = 30 + below(random, 100);
  return irregular(random, blocks, unit, below(random, 2) * unit * 2, most_gap);
}

Bytes serialised(const Outline& outline) {
  Bytes out;
  outline.serialise(out);
  return out;
}

std::vector<int64_t> numbers(const std::vector<ChapterRange>& ranges) {
  std::vector<int64_t> all;
  for (const ChapterRange& r : ranges)
    for (int64_t c = r.begin; c < r.end; ++c) all.push_back(c);
  return all;
}

// What `all` chapters say that `to` does not know yet.
Result<void> teach(Excerpt& to, const LoopTree& tree, const std::vector<int64_t>& all) {
  std::vector<int64_t> chapters;
  std::ranges::copy_if(all, std::back_inserter(chapters), [&](int64_t c) { return !to.knows(c); });
  Bytes message;
  int64_t bytes = 0;
  for (const int64_t c : chapters) {
    to.outline().serialise_chapter(tree, c, message);
    bytes += to.outline().chapter_bytes(c);
  }
  EXPECT_EQ(int64_t(message.size()), bytes);
  return chapters.empty() ? Result<void>() : to.learn(chapters, message);
}

// Where stream bytes of a part of the file lie, as the exchange asks for them.
std::vector<Off> places(const FileView& view, StreamRange own, Extent file) {
  const StreamRange part = view.clip(own, file);
  std::vector<Off> all{part.begin, part.end};
  if (part.empty()) return {};
  Cursor cursor = view.cursor();
  cursor.seek(part.begin);
  while (cursor.position() < part.end) {
    const Run run = cursor.next(part.end - cursor.position());
    for (int64_t i = 0; i < run.count; ++i)
      for (int64_t b = 0; b < run.block; ++b) all.push_back(run.offset + i * run.stride + b);
  }
  return all;
}

// Calls through one view, each with parts of the file that other writers write.
void check(Random& random, const LoopTree& tree, int64_t per_chapter) {
  const auto outline = Outline::of(tree, per_chapter);
  ASSERT_TRUE(outline);
  Excerpt excerpt(*Outline::deserialise(serialised(*outline), per_chapter));
  for (int call = 0; call < 6; ++call) {
    const int64_t phase = below(random, 2) == 0 ? 0 : below(random, tree.size());
    const StreamRange own{phase, phase + 1 + below(random, 3 * tree.size())};
    const FileView whole = *FileView::make(below(random, 1000), 1, tree);
    const Off first = whole.offset_of(own.begin), end = whole.offset_of(own.end - 1) + 1;
    const Off begin = std::max<Off>(0, first - 5 + below(random, end - first + 10));
    const Extent file{begin, begin + 1 + below(random, end - first + 10)};
    const std::vector<ChapterRange> needed = excerpt.outline().needed(own, first, file);
    ASSERT_EQ(needed, outline->needed(own, first, file));
    ASSERT_TRUE(teach(excerpt, tree, numbers(needed)));
    const FileView origin = *FileView::make(0, 1, excerpt.tree());
    const FileView told = *FileView::make(first - origin.offset_of(phase), 1, excerpt.tree());
    ASSERT_TRUE(told.is_monotone());
    ASSERT_EQ(told.displacement(), whole.displacement());
    ASSERT_EQ(excerpt.tree().true_ub(), tree.true_ub());
    for (int part = 0; part < 4; ++part) {
      const Off at = file.begin + below(random, file.size());
      const Extent page{at, at + 1 + below(random, file.end - at)};
      ASSERT_EQ(places(told, own, page), places(whole, own, page));
    }
  }
}

TEST(Outline, AnExcerptSaysOfItsPartOfTheFileWhatTheTreeSays) {
  Random random(1);
  for (int n = 0; n < 2000; ++n) {
    const LoopTree tree = any_list(random);
    check(random, tree, 1 + below(random, 6));
    if (testing::Test::HasFatalFailure()) FAIL() << "list " << n;
  }
}

TEST(Outline, PlacesThatDoNotFit32BitsTravelAsTheyAre) {
  Random random(2);
  for (int n = 0; n < 100; ++n) {
    check(random, irregular(random, 40, 1, below(random, 2) * 3, int64_t{1} << 40), 3);
    if (testing::Test::HasFatalFailure()) FAIL() << "list " << n;
  }
}

TEST(Outline, WithAllChaptersTheTreeIsWhole) {
  Random random(3);
  for (int n = 0; n < 200; ++n) {
    const LoopTree tree = any_list(random);
    const Outline outline = *Outline::of(tree, 4);
    Excerpt excerpt(outline);
    for (int64_t c = 0; c < outline.chapters(); ++c) ASSERT_TRUE(teach(excerpt, tree, {c}));
    const FileView told = *FileView::make(0, 1, excerpt.tree()),
                   whole = *FileView::make(0, 1, tree);
    const StreamRange tiles{0, 3 * tree.size()};
    ASSERT_EQ(places(told, tiles, {0, kLastOff}), places(whole, tiles, {0, kLastOff}));
    ASSERT_EQ(excerpt.tree().granule(), tree.granule());
  }
}

TEST(Outline, WritersOfOneListGetItAboutOnce) {
  constexpr int64_t kBlocks = 100'000, kWriters = 50;
  Random random(4);
  const LoopTree tree = irregular(random, kBlocks, 8, 0, 30);
  const Outline outline = *Outline::of(tree, 1024);
  const Off share = divide_up(tree.true_ub(), kWriters);
  int64_t chapters = 0;
  for (int64_t w = 0; w < kWriters; ++w)
    for (const ChapterRange& r :
         outline.needed({0, tree.size()}, tree.true_lb(), {w * share, (w + 1) * share}))
      chapters += r.end - r.begin;
  // The one that the list begins in, and those that writers share.
  EXPECT_LE(chapters, outline.chapters() + 2 * kWriters);
  EXPECT_LT(outline.serialised_bytes() * 100, tree.serialised_bytes());
}

TEST(Outline, OnlyLongListsOfBytesThatAscendHaveOne) {
  Random random(5);
  EXPECT_FALSE(Outline::of(LoopTree::bytes(1 << 20), 1));
  EXPECT_FALSE(Outline::of(*LoopTree::strided(1000, 1, 16, LoopTree::bytes(8)), 1));
  const LoopTree list = irregular(random, 40, 1, 0, 5);
  EXPECT_TRUE(Outline::of(list, 10));
  EXPECT_FALSE(Outline::of(list, 11));
  EXPECT_FALSE(Outline::of(*LoopTree::resized(list, 0, list.true_ub() - list.true_lb() - 1), 1));
  const LoopTree::Block back[] = {{8, 1}, {0, 1}, {16, 1}, {40, 1}, {60, 1}};
  EXPECT_FALSE(Outline::of(*LoopTree::indexed(back, LoopTree::bytes(4)), 1));
}

void flip_a_bit(Random& random, Bytes& bytes) {
  bytes[size_t(below(random, int64_t(bytes.size())))] ^= std::byte(1 << below(random, 8));
}

// Values that sums and products overflow with.
void replace_a_word(Random& random, Bytes& bytes) {
  const int64_t wild[] = {0,
                          1,
                          -1,
                          INT64_MAX,
                          INT64_MIN,
                          INT64_MAX - below(random, 100),
                          INT64_MIN + below(random, 100),
                          below(random, 1000)};
  const auto at = size_t(below(random, int64_t(bytes.size() / 8))) * 8;
  std::memcpy(&bytes[at], &wild[below(random, 8)], 8);
}

void damage(Random& random, Bytes& bytes) {
  if (below(random, 3) == 0) return;
  below(random, 2) == 0 ? flip_a_bit(random, bytes) : replace_a_word(random, bytes);
  if (below(random, 10) == 0) bytes.resize(size_t(below(random, int64_t(bytes.size()))));
}

// Chapter after chapter. false: something was refused.
bool learn_damaged(Random& random, const LoopTree& tree, const Outline& outline) {
  Bytes head = serialised(outline);
  damage(random, head);
  auto came = Outline::deserialise(head, 5);
  if (!came) return false;
  Excerpt excerpt(*std::move(came));
  for (int64_t c = 0; c < std::min(outline.chapters(), excerpt.outline().chapters()); ++c) {
    Bytes chapter;
    outline.serialise_chapter(tree, c, chapter);
    damage(random, chapter);
    const int64_t chapters[] = {c};
    if (!excerpt.learn(chapters, chapter)) return false;
    EXPECT_TRUE(excerpt.tree().is_monotone(Cursor::kForever));
    EXPECT_EQ(excerpt.tree().size(), excerpt.outline().size());
    const Off first = excerpt.tree().true_lb() & INT32_MAX;
    (void)excerpt.outline().needed({0, 1 + below(random, excerpt.tree().size())}, first,
                                   {0, 1 + below(random, 10'000)});
  }
  return true;
}

TEST(Outline, BytesFromElsewhereAreNotBelieved) {
  Random random(6);
  int refused = 0;
  constexpr int kLists = 20'000;
  for (int n = 0; n < kLists; ++n) {
    const LoopTree tree = any_list(random);
    refused += learn_damaged(random, tree, *Outline::of(tree, 5)) ? 0 : 1;
  }
  EXPECT_GT(refused, kLists / 2);
  EXPECT_LT(refused, kLists);
}

}  // namespace
}  // namespace penstock::layout::outline_test
