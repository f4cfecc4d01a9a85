// mmap(window=file): the file is mapped once, and windows are parts of it
// (docs/decisions/0032-registered-whole-file.md).

#include "io/mapped_for_tests.hpp"

namespace penstock::io::mmap_whole_test {
namespace {

using namespace mapped;

class MmapOfTheWholeFile : public MappedTest {
 protected:
  std::unique_ptr<MechanismFile> open() {
    return find_mechanism("mmap")
        ->open({.path = file_.path(), .window_bytes = kWindowOfFile})
        .value();
  }
};

TEST_F(MmapOfTheWholeFile, WindowsArePartsOfOneMappingThatStaysUntilTheFileIsClosed) {
  Bytes model = counting_bytes(1 << 20);
  put(model);
  auto file = open();
  EXPECT_FALSE(is_mapped()) << "not before it is needed";
  const Extent late{700'000, 900'000}, early{5000, 70'000};
  const Lease second = file->lease(late).value(), first = file->lease(early).value();
  EXPECT_EQ(second.memory.data() - first.memory.data(), late.begin - early.begin);
  EXPECT_EQ(mappings(), 1);
  for (const Lease& lease : {second, first}) {
    store(lease, lease.where, kX);
    std::fill_n(model.begin() + lease.where.begin, lease.where.size(), kX);
    EXPECT_EQ(file_.contents(), model) << "in the file at the store";
    file->submit(lease, {&lease.where, 1});
    EXPECT_FALSE(file->reap());
  }
  EXPECT_EQ(mappings(), 1);
  EXPECT_EQ(file->lease(early).value().memory.data(), first.memory.data()) << "mapped once";
  EXPECT_EQ(file->degraded(), "");
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(is_mapped()) << "a window that is still out";
  file.reset();
  EXPECT_FALSE(is_mapped());
}

TEST_F(MmapOfTheWholeFile, CloseUnmapsIt) {
  resize(65536);
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 65536}, {{0, 65536}}, kX));
  EXPECT_TRUE(is_mapped());
  EXPECT_TRUE(file->sync(SyncKind::full));
  EXPECT_TRUE(file->close());
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(65536, kX));
}

// It is mapped with room to grow, and anew when that is used up.
TEST_F(MmapOfTheWholeFile, AFileThatGrewIsMappedAnewAndWindowsOfBeforeStay) {
  constexpr Off kFar = Off{200} << 20;
  resize(65536);
  auto file = open();
  const Extent old{0, 4096};
  const Lease before = file->lease(old).value();
  EXPECT_FALSE(write(*file, {65536, 200'704}, {{65536, 150'000}}, kX));
  EXPECT_EQ(status().st_size, 150'000);
  EXPECT_EQ(mappings(), 1);
  EXPECT_FALSE(file->write(Bytes(65536, std::byte{'y'}), kFar));
  EXPECT_EQ(status().st_size, kFar + 65536);
  EXPECT_EQ(mappings(), 2);
  store(before, old, kX);
  file->submit(before, {&old, 1});
  EXPECT_EQ(mappings(), 1);
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(file->degraded(), "");
  Bytes model(size_t(kFar) + 65536);
  std::fill_n(model.begin(), 4096, kX);
  std::fill_n(model.begin() + 65536, 150'000 - 65536, kX);
  std::fill_n(model.begin() + kFar, 65536, std::byte{'y'});
  EXPECT_EQ(file_.contents(), model);
}

// What the mapping held before says nothing of what is there now.
TEST_F(MmapOfTheWholeFile, AFileThatWasCutAndGrewAgainIsReservedAnew) {
  put(counting_bytes(1 << 20));
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 1 << 20}, {{0, 1 << 20}}, kX));
  resize(0);
  resize(1 << 20);
  const Extent where{0, 1 << 20};
  const Lease lease = file->lease(where).value();
  EXPECT_GE(status().st_blocks * 512, 1 << 20);
  store(lease, where, std::byte{'y'});
  file->submit(lease, {&where, 1});
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(file_.contents(), Bytes(1 << 20, std::byte{'y'}));
}

TEST_F(MmapOfTheWholeFile, OnlyWhatIsLeasedIsReserved) {
  resize(64 << 20);
  auto file = open();
  EXPECT_FALSE(write(*file, {1 << 20, 2 << 20}, {{1 << 20, 2 << 20}}, kX));
  EXPECT_LT(status().st_blocks * 512, 8 << 20);
}

}  // namespace
}  // namespace penstock::io::mmap_whole_test
