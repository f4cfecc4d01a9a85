// The read-back finds every wrong, missing and surplus byte.
#include "verify.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/temporary_file.hpp"
#include "memory.hpp"

namespace penstock::measure::verify_test {
namespace {

const Amount kAmount{3, 4000, 70, 5};

std::vector<std::byte> whole_image(Expected& expected) {
  std::vector<std::byte> image(size_t(expected.file_bytes()));
  expected.image({0, expected.file_bytes()}, image.data());
  return image;
}

// A file with this image; what the checks of all slices say together.
Check check_of(const std::vector<std::byte>& image, Expected& expected, int slices = 1) {
  io::TemporaryFile file;
  const int fd = ::open(file.path().c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(::pwrite(fd, image.data(), image.size(), 0), ssize_t(image.size()));
  ::close(fd);
  Check all;
  for (int slice = 0; slice < slices; ++slice)
    all.add(check_slice(expected, file.path(), slice, slices).value());
  return all;
}

class Image : public testing::TestWithParam<const char*> {
 protected:
  Expected expected_ =
      Expected::make(parse_pattern(GetParam()).value(), kAmount, MemoryShape{}.shift()).value();
};

TEST_P(Image, OfWhatWorkersWriteIsRight) {
  std::vector<std::byte> image(size_t(expected_.file_bytes()));
  for (int w = 0; w < kAmount.workers; ++w) {
    const Part part = make_part(parse_pattern(GetParam()).value(), w, kAmount).value();
    const auto view = view_of(part).value();
    const Contents contents(kAmount.seed, w, MemoryShape{}.shift());
    const Memory memory =
        Memory::make({}, contents, part.bytes_per_iteration, Memory::kShared).value();
    for (int64_t i = 0; i < kAmount.iterations; ++i)
      for (int64_t b = 0; b < part.bytes_per_iteration; ++b)
        image[size_t(view.offset_of(i * part.bytes_per_iteration + b))] = memory.window(i)[b];
  }
  const Check check = check_of(image, expected_);
  EXPECT_EQ(check.bytes, expected_.file_bytes());
  EXPECT_EQ(check.wrong_bytes, 0);
}

TEST_P(Image, OneFlippedBitIsFoundAndNamed) {
  std::vector<std::byte> image = whole_image(expected_);
  const size_t at = image.size() / 2 + 1;
  image[at] ^= std::byte{1};
  const Check check = check_of(image, expected_);
  EXPECT_EQ(check.wrong_bytes, 1);
  EXPECT_EQ(check.first_wrong, Off(at));
  EXPECT_EQ(check.first_worker, expected_.owner(Off(at)));
  EXPECT_EQ(check.expected ^ check.found, 1);
}

TEST_P(Image, MissingBytesAreWrongBytes) {
  std::vector<std::byte> image = whole_image(expected_);
  image.resize(image.size() - 3);
  const Check check = check_of(image, expected_);
  EXPECT_EQ(check.wrong_bytes, 3);
  EXPECT_EQ(check.found, -1);
}

TEST_P(Image, SurplusBytesAreWrongBytes) {
  std::vector<std::byte> image = whole_image(expected_);
  image.resize(image.size() + 5);
  for (const int slices : {1, 3}) {
    const Check check = check_of(image, expected_, slices);
    EXPECT_EQ(check.wrong_bytes, 5);
    EXPECT_EQ(check.first_wrong, expected_.file_bytes());
  }
}

TEST_P(Image, SlicesTogetherCheckEveryByteOnce) {
  std::vector<std::byte> image = whole_image(expected_);
  for (const size_t at : {size_t{0}, image.size() / 3, image.size() - 1}) image[at] ^= std::byte{1};
  for (const int slices : {2, 3, 7}) {
    const Check check = check_of(image, expected_, slices);
    EXPECT_EQ(check.bytes, expected_.file_bytes());
    EXPECT_EQ(check.wrong_bytes, 3);
  }
}

TEST_P(Image, AHoleIsFoundWhereverZerosAreNotExpected) {
  std::vector<std::byte> image = whole_image(expected_);
  std::fill(image.begin() + 1000, image.begin() + 3000, std::byte{0});
  EXPECT_GT(check_of(image, expected_).wrong_bytes, 1900);
}

TEST_P(Image, AnotherFileOfTheRunIsWrong) {
  Expected other = Expected::make(parse_pattern(GetParam()).value(), kAmount, MemoryShape{}.shift(),
                                  kAmount.workers)
                       .value();
  EXPECT_GT(check_of(whole_image(other), expected_).wrong_bytes, expected_.file_bytes() / 2);
}

INSTANTIATE_TEST_SUITE_P(Of, Image,
                         testing::Values("contiguous", "interleaved:100", "slabs3d", "cubes3d",
                                         "irregular:40", "particles"));

TEST(Contents, NeighboursWorkersAndIterationsDiffer) {
  const Contents a(1, 0, 4096), b(1, 1, 4096), c(2, 0, 4096);
  std::vector<std::byte> x(4096), y(4096);
  const auto differ = [&](const Contents& p, int64_t i, const Contents& q, int64_t j) {
    p.fill(x.data(), p.shift(i), 4096);
    q.fill(y.data(), q.shift(j), 4096);
    return x != y;
  };
  EXPECT_TRUE(differ(a, 0, b, 0));
  EXPECT_TRUE(differ(a, 0, c, 0));
  for (int64_t i = 1; i < Contents::kShifts; ++i) EXPECT_TRUE(differ(a, 0, a, i));
}

TEST(Contents, ArePlacesOfOneSequenceHoweverTheyAreCut) {
  const Contents contents(1, 0, 4096);
  std::vector<std::byte> whole(1000), parts(1000);
  contents.fill(whole.data(), 0, 1000);
  for (int64_t at = 0; at < 1000; at += 7)
    contents.fill(parts.data() + at, at, std::min<int64_t>(7, 1000 - at));
  EXPECT_EQ(whole, parts);
}

TEST(MemoryShape, StridedMemoryHoldsTheSameBytesInItsChunks) {
  const MemoryShape strided{8, 32};
  const Contents contents(1, 0, strided.shift());
  const Memory memory = Memory::make(strided, contents, 100, Memory::kShared).value();
  std::vector<std::byte> expected(100);
  for (const int64_t iteration : {0, 1, 60}) {
    contents.fill(expected.data(), contents.shift(iteration), 100);
    for (int64_t b = 0; b < 100; ++b)
      ASSERT_EQ(memory.window(iteration)[b / 8 * 32 + b % 8], expected[size_t(b)]);
  }
  EXPECT_EQ(strided.tree(100)->size(), 100);
}

TEST(Memory, OfASingleReadNothingIsThereBeforeIt) {
  const Contents contents(1, 0, 4096);
  const Memory memory = Memory::make({}, contents, 1000, 1).value();
  int64_t first = -1;
  EXPECT_GT(memory.wrong_bytes(0, first), 900);
}

TEST(Memory, ReadBytesThatAreWrongAreCounted) {
  const Contents contents(1, 0, 4096);
  const Memory memory = Memory::make({}, contents, 1000, 2).value();
  int64_t first = -1;
  EXPECT_GT(memory.wrong_bytes(1, first), 900);  // nothing was read
  contents.fill(memory.window(1), contents.shift(1), 1000);
  EXPECT_EQ(memory.wrong_bytes(1, first), 0);
  memory.window(1)[77] ^= std::byte{1};
  EXPECT_EQ(memory.wrong_bytes(1, first), 1);
  EXPECT_EQ(first, 77);
}

}  // namespace
}  // namespace penstock::measure::verify_test
