// Every byte of every pattern belongs to exactly one worker.
#include "pattern.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::measure::pattern_test {
namespace {

struct Case {
  const char* pattern;
  int workers;
  int64_t bufsize, iterations;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.pattern << " of " << c.workers << " x " << c.iterations << " x " << c.bufsize;
}

// The number of times that each byte of the file is named.
std::vector<int> times_named(const Case& c) {
  const Amount amount{c.workers, c.bufsize, c.iterations, 7};
  const PatternChoice choice = parse_pattern(c.pattern).value();
  std::vector<int> named;
  for (int w = 0; w < c.workers; ++w) {
    const Part part = make_part(choice, w, amount).value();
    const layout::FileView view = view_of(part).value();
    EXPECT_TRUE(view.is_monotone());
    named.resize(size_t(part.file_bytes_per_iteration * c.iterations));
    layout::Cursor cursor = view.cursor();
    for (int64_t left = part.bytes_per_iteration * c.iterations; left > 0;) {
      const layout::Run run = cursor.next(left);
      for (int64_t i = 0; i < run.count; ++i)
        for (int64_t b = 0; b < run.block; ++b) ++named.at(size_t(run.offset + i * run.stride + b));
      left -= run.bytes();
    }
  }
  return named;
}

class EveryPattern : public testing::TestWithParam<Case> {};

TEST_P(EveryPattern, NamesEveryByteOnce) {
  const std::vector<int> named = times_named(GetParam());
  ASSERT_FALSE(named.empty());
  for (size_t i = 0; i < named.size(); ++i) ASSERT_EQ(named[i], 1) << "byte " << i;
}

TEST_P(EveryPattern, WritesAboutWhatWasAskedFor) {
  const Case& c = GetParam();
  const Amount amount{c.workers, c.bufsize, c.iterations, 7};
  const Part part = make_part(parse_pattern(c.pattern).value(), 0, amount).value();
  if (c.bufsize < 40'000) return;  // too small for whole cubes and blocks
  EXPECT_GT(part.file_bytes_per_iteration, c.bufsize * c.workers / 2);
  EXPECT_LT(part.file_bytes_per_iteration, c.bufsize * c.workers * 2);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* pattern : {"contiguous", "interleaved:8", "interleaved:47008", "slabs3d",
                              "cubes3d", "irregular", "irregular:8", "particles"})
    for (const int workers : {1, 2, 3, 4, 6, 12})
      for (const int64_t bufsize : {1, 8, 1000, 100'000})
        all.push_back({pattern, workers, bufsize, 3});
  for (const int workers : {1, 4, 9})
    for (const int64_t bufsize : {1, 100'000}) all.push_back({"btio", workers, bufsize, 2});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, EveryPattern, testing::ValuesIn(cases()));

TEST(Patterns, IrregularTreesAreBoundedHoweverMuchIsWritten) {
  const Amount amount{4, int64_t{1} << 32, 4, 1};
  const Part part = make_part(parse_pattern("irregular:200").value(), 1, amount).value();
  EXPECT_LE(part.tile.blocks.lengths.size(), 40'000u);
  EXPECT_GT(part.bytes_per_iteration, int64_t{1} << 31);
}

TEST(Patterns, LargeFilesNeedSixtyFourBits) {
  const Amount amount{4, int64_t{1} << 40, 1 << 10, 1};
  for (const PatternInfo& info : patterns()) {
    PatternChoice choice{info.kind, 4096};
    const Part part = make_part(choice, 3, amount).value();
    const auto view = view_of(part).value();
    EXPECT_GT(view.offset_of(part.bytes_per_iteration * 1023), int64_t{1} << 50) << info.name;
  }
}

TEST(Patterns, AnAmountBeyondAllFilesIsRefused) {
  const Amount amount{4, int64_t{1} << 50, 1 << 20, 1};
  for (const PatternInfo& info : patterns())
    EXPECT_FALSE(make_part({info.kind, 4096}, 0, amount)) << info.name;
}

TEST(Patterns, BtioNeedsASquareNumberOfWorkers) {
  const auto part = make_part(parse_pattern("btio").value(), 0, {3, 1 << 20, 1, 1});
  ASSERT_FALSE(part);
  EXPECT_NE(part.error().detail.find("1, 4, 9"), std::string::npos);
}

TEST(Patterns, AnUnknownNameIsToldWhatThereIs) {
  const auto choice = parse_pattern("interleave:8");
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.error().detail.find("interleaved:BYTES"), std::string::npos);
  EXPECT_FALSE(parse_pattern("interleaved"));
  EXPECT_FALSE(parse_pattern("interleaved:0"));
  EXPECT_FALSE(parse_pattern("contiguous:8"));
  EXPECT_FALSE(parse_pattern("irregular:4"));
}

TEST(Patterns, ParticleCountsDifferBetweenWorkers) {
  const Amount amount{4, 1 << 20, 1, 3};
  const PatternChoice choice = parse_pattern("particles").value();
  EXPECT_NE(make_part(choice, 0, amount)->bytes_per_iteration,
            make_part(choice, 1, amount)->bytes_per_iteration);
}

}  // namespace
}  // namespace penstock::measure::pattern_test
