// The contract of mmap (docs/decisions/0019-mmap.md): windows are the file's own pages, and the
// file is never longer than what was written. mmap_whole_test.cpp: with window=file.
// mmap_refusals_test.cpp: where the kernel says no.

#include "io/mapped_for_tests.hpp"

namespace penstock::io::mmap_test {
namespace {

using namespace mapped;

class Mmap : public MappedTest {};

TEST_F(Mmap, AStoredByteIsInTheFileBeforeItIsSubmitted) {
  Bytes model = counting_bytes(100'000);
  put(model);
  auto file = open();
  EXPECT_EQ(file->degraded(), "");
  const Extent where{5000, 70'000}, dirty{6000, 6100};
  const Lease lease = file->lease(where).value();
  EXPECT_TRUE(is_mapped());
  store(lease, dirty, kX);
  std::fill_n(model.begin() + 6000, 100, kX);
  EXPECT_EQ(file_.contents(), model);
  file->submit(lease, {&dirty, 1});
  EXPECT_FALSE(is_mapped());
  EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->sync(SyncKind::full));
  EXPECT_TRUE(file->close());
  EXPECT_EQ(file_.contents(), model);
  EXPECT_EQ(file->degraded(), "");
}

TEST_F(Mmap, AWindowOfAHoleHasItsBlocksAndTheFileKeepsItsSize) {
  resize(1 << 20);
  auto file = open();
  const Lease lease = file->lease({65536, 131072}).value();
  EXPECT_TRUE(is_mapped());
  EXPECT_GE(status().st_blocks * 512, 65536);
  EXPECT_EQ(status().st_size, 1 << 20);
  file->submit(lease, {});
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(1 << 20));
}

TEST_F(Mmap, TheEndOfTheFileMayLieInsideAPageOfTheWindow) {
  Bytes model = counting_bytes(10'001);
  put(model);
  auto file = open();
  EXPECT_FALSE(write(*file, {8192, 10'001}, {{9000, 10'001}}, kX));
  EXPECT_EQ(file->degraded(), "");
  std::fill(model.begin() + 9000, model.end(), kX);
  EXPECT_EQ(file_.contents(), model);
}

TEST_F(Mmap, TheFileGrowsToWhatWasWrittenAndNoFurther) {
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 65536}, {{0, 100}, {4096, 5000}}, kX));
  EXPECT_EQ(status().st_size, 5000);
  const Lease unwritten = file->lease({0, 65536}).value();
  file->submit(unwritten, {});
  EXPECT_EQ(status().st_size, 5000);
  EXPECT_EQ(file->degraded(), "");
}

// Also what a lease held, once it is known which of its bytes were written.
TEST_F(Mmap, WhatGrowsTheFileIsStoredThroughAWindow) {
  auto file = open();
  const Bytes bytes(100'000, kX);
  const int before = answers.populated;
  EXPECT_FALSE(file->write(bytes, 0));
  EXPECT_FALSE(write(*file, {100'000, 400'000}, {{100'000, 300'000}}, kX));
  EXPECT_EQ(answers.populated, before + 2);
  EXPECT_FALSE(file->write(std::span(bytes).first(100), 300'000)) << "too short to be mapped";
  EXPECT_EQ(answers.populated, before + 2);
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(300'100, kX));
  EXPECT_EQ(file->degraded(), "");
}

TEST_F(Mmap, APageThatReachesBehindTheEndKeepsWhatIsBeforeIt) {
  Bytes model = counting_bytes(10'000);
  put(model);
  auto file = open();
  EXPECT_FALSE(write(*file, {8192, 20'480}, {{8200, 8300}, {9999, 12'288}}, kX));
  model.resize(12'288);
  std::fill_n(model.begin() + 8200, 100, kX);
  std::fill(model.begin() + 9999, model.end(), kX);
  EXPECT_EQ(file_.contents(), model);
}

TEST_F(Mmap, WindowsAndOrdinaryBuffersAreReapedInOrder) {
  resize(65536);
  auto file = open();
  const Extent inside{0, 65536}, behind{65536, 131072};
  const Lease first = file->lease(behind).value(), second = file->lease(inside).value();
  EXPECT_TRUE(is_mapped());
  store(second, inside, std::byte{'y'});
  store(first, behind, kX);
  file->submit(first, {&behind, 1});
  file->submit(second, {&inside, 1});
  EXPECT_FALSE(file->reap());
  EXPECT_FALSE(file->reap());
  Bytes model(131072, kX);
  std::fill_n(model.begin(), 65536, std::byte{'y'});
  EXPECT_EQ(file_.contents(), model);
}

TEST_F(Mmap, WindowsAreUnmappedOverAndOver) {
  resize(1 << 20);
  auto file = open();
  for (int i = 0; i < 500; ++i)
    ASSERT_FALSE(write(*file, {4096 * (i % 200), 1 << 20}, {{4096 * (i % 200), 820'000}}, kX));
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file->degraded(), "");
}

TEST_F(Mmap, AWindowThatIsStillOutIsUnmappedWithTheFile) {
  resize(65536);
  auto file = open();
  (void)file->lease({0, 65536}).value();
  EXPECT_TRUE(file->close());
  file.reset();
  EXPECT_FALSE(is_mapped());
}

TEST_F(Mmap, NothingIsMappedWhereWritesHaveToBeOnTheDevice) {
  resize(1 << 20);
  auto file =
      find_mechanism("mmap")->open({.path = file_.path(), .written = Written::through}).value();
  const Lease lease = file->lease({0, 65536}).value();
  EXPECT_FALSE(is_mapped());
  file->submit(lease, {});
  const int before = answers.populated;
  EXPECT_FALSE(file->write(Bytes(100'000, kX), 0));
  EXPECT_EQ(answers.populated, before);
  EXPECT_NE(file->degraded().find("on the device"), std::string::npos);
}

// Pages that nobody stores to would be faulted in.
TEST_F(Mmap, ALeaseIsAWindowOnlyWhileLeasesAreFilled) {
  constexpr Off kBytes = 1 << 20;
  resize(kBytes);
  auto file = open();
  EXPECT_FALSE(write(*file, {0, kBytes}, {{0, 4096}, {kBytes - 4096, kBytes}}, kX));
  const Lease after_scattered = file->lease({0, kBytes}).value();
  EXPECT_FALSE(is_mapped());
  store(after_scattered, {0, kBytes}, kX);
  const Extent all{0, kBytes};
  file->submit(after_scattered, {&all, 1});
  EXPECT_FALSE(file->reap());
  const Lease after_filled = file->lease({0, kBytes}).value();
  EXPECT_TRUE(is_mapped());
  file->submit(after_filled, {});
  EXPECT_EQ(file_.contents(), Bytes(kBytes, kX));
  EXPECT_EQ(file->degraded(), "");
}

// benson-2003's windows: mapped, filled by many writes, and left for the next.
TEST_F(Mmap, AWindowOfBytesStaysForTheWritesInIt) {
  constexpr int64_t kWindow = 1 << 20;
  constexpr int kMostKept = 8;
  const Bytes bytes(65536, kX);
  auto file = find_mechanism("mmap")->open({.path = file_.path(), .window_bytes = kWindow}).value();
  for (Off at = 0; at < 10 * kWindow; at += 65536) {
    ASSERT_FALSE(file->write(bytes, at));
    EXPECT_EQ(mappings(), std::min(kMostKept, int(at / kWindow) + 1));
    EXPECT_EQ(status().st_size, at + 65536);
  }
  EXPECT_FALSE(file->write(bytes, 10 * kWindow - 100)) << "in two windows: mapped for itself";
  EXPECT_EQ(mappings(), kMostKept);
  EXPECT_TRUE(file->close());
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(10 * kWindow - 100 + 65536, kX));
}

}  // namespace
}  // namespace penstock::io::mmap_test
