// Decoding: every combiner against MPI's own definition, on random nested types,
// and what malformed descriptions must lead to.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layout/layout_checks.hpp"

namespace penstock::layout::decode_test {
namespace {

RC_GTEST_PROP(Decode, AgreesWithTheTypemapInEverything, (const std::vector<uint8_t>& seed)) {
  for (const int salt : {1, 2, 3, 4}) {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < 160; ++i) {
      const uint8_t drawn = seed.empty() ? 0 : seed[i % seed.size()];
      bytes.push_back(uint8_t(mix(uint64_t(salt) * 1000 + i, drawn) >> 20));
    }
    for (int aspect = 0; aspect < oracle::kAspects; ++aspect) {
      oracle::Choices choices(bytes);
      RC_ASSERT(oracle::check_random_type(choices, oracle::Aspect(aspect)) == "");
    }
  }
}

RC_GTEST_PROP(Decode, SurvivesNonsense, (const std::vector<uint8_t>& bytes)) {
  oracle::Choices choices(bytes);
  RC_ASSERT(oracle::check_nonsense(choices) == "");
}

TypeDescription over(Combiner combiner, LoopTree child, std::vector<int32_t> integers,
                     std::vector<int64_t> addresses = {}) {
  TypeDescription d;
  d.combiner = combiner;
  d.children = {std::move(child)};
  d.integers = std::move(integers);
  d.addresses = std::move(addresses);
  return d;
}

TEST(Decode, MillionStridedBlocksAreOneRunInUnder4KiB) {
  const auto t = decode(over(Combiner::vector, LoopTree::bytes(8), {1'000'000, 1, 2}));
  ASSERT_TRUE(t);
  EXPECT_LT(t->memory_bytes(), 4096u);
  Cursor c(*t, 0, 1);
  const layout::Run r = c.next(INT64_MAX);
  EXPECT_EQ(r.count, 1'000'000);
  EXPECT_EQ(r.block, 8);
  EXPECT_EQ(r.stride, 16);
}

TEST(Decode, DifferentSpellingsOfOnePatternAreEqual) {
  const LoopTree d = LoopTree::bytes(8);
  const auto by_vector = decode(over(Combiner::vector, d, {4, 2, 3}));
  const auto by_hvector = decode(over(Combiner::hvector, d, {4, 2}, {24}));
  const auto by_index = decode(over(Combiner::indexed, d, {4, 2, 2, 2, 2, 0, 3, 6, 9}));
  const auto with_empty = decode(over(Combiner::indexed, d, {5, 2, 0, 2, 2, 2, 0, 99, 3, 6, 9}));
  ASSERT_TRUE(by_vector && by_hvector && by_index && with_empty);
  EXPECT_EQ(*by_vector, *by_hvector);
  EXPECT_EQ(*by_vector, *by_index);
  EXPECT_EQ(*by_vector, *with_empty);
  EXPECT_EQ(by_vector->hash(), by_index->hash());
}

TEST(Decode, ReportedBoundsWinOverComputedOnes) {
  TypeDescription d;
  d.combiner = Combiner::structure;
  d.integers = {2, 1, 1};
  d.addresses = {0, 8};
  d.children = {LoopTree::bytes(8), LoopTree::bytes(1)};
  EXPECT_EQ(decode(d)->extent(), 9);
  d.reported_bounds = {0, 16};
  EXPECT_EQ(decode(d)->extent(), 16);
  EXPECT_EQ(decode(d)->size(), 9);
}

TEST(Decode, NamesItsErrors) {
  const LoopTree d = LoopTree::bytes(8);
  const auto class_of = [](const TypeDescription& t) { return decode(t).error().error_class; };
  EXPECT_EQ(class_of(over(Combiner::contiguous, d, {-1})), ErrorClass::argument);
  EXPECT_EQ(class_of(over(Combiner::contiguous, d, {})), ErrorClass::argument);
  TypeDescription large = over(Combiner::contiguous, d, {});
  large.large_count = true;
  large.large_counts = {INT64_MAX};
  EXPECT_EQ(class_of(large), ErrorClass::argument);
  large.combiner = Combiner::indexed;
  EXPECT_EQ(class_of(large), ErrorClass::argument);
  EXPECT_EQ(class_of(over(Combiner::indexed, d, {INT32_MAX})), ErrorClass::argument);
  EXPECT_EQ(class_of(over(Combiner::subarray, d, {1, 4, 3, 2, kOrderC})), ErrorClass::argument);
  EXPECT_EQ(class_of(over(Combiner(kCombiners), d, {})), ErrorClass::unsupported);
}

TEST(Decode, RefusesEndlessNesting) {
  // Loops whose copies never continue each other, so that no two levels become one.
  Result<LoopTree> t = LoopTree::bytes(1);
  int levels = 0;
  while (t && levels < 1000) {
    t = LoopTree::strided(2, 1, 3 + levels % 2, *t);
    if (t && t->size() > 1'000'000) break;
    ++levels;
  }
  ASSERT_TRUE(t);
  EXPECT_GT(t->depth(), 15);
  // One more byte at each level: the depth grows and the size hardly does.
  for (int i = 0; i < 200 && t; ++i) {
    const LoopTree::Field fields[] = {{0, 1, *t}, {t->true_ub() + 5, 1, LoopTree::bytes(1)}};
    t = LoopTree::structure(fields);
  }
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().error_class, ErrorClass::unsupported);
}

}  // namespace
}  // namespace penstock::layout::decode_test
