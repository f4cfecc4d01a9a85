// The list of what streams bring, against a set of bytes.
#include "layout/extent_list.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "layout/file_view.hpp"

namespace penstock::layout::extent_list_test {
namespace {

FileView blocks(Off begin, int64_t bytes, int64_t stride) {
  return *FileView::make(begin, 1, *LoopTree::resized(LoopTree::bytes(bytes), 0, stride));
}

TEST(ExtentList, JoinsWhatTouchesAndPacksIt) {
  Cursor even = blocks(100, 4, 8).cursor(), odd = blocks(104, 4, 8).cursor(),
         far = blocks(1000, 10, 20).cursor();
  const ExtentList::Stream streams[] = {{&far, 15}, {&odd, 8}, {&even, 8}};
  ExtentList list;
  list.assign(streams);
  ASSERT_EQ(list.extents().size(), 3u);
  EXPECT_EQ(list.extents()[0], (Extent{100, 116}));
  EXPECT_EQ(list.extents()[1], (Extent{1000, 1010}));
  EXPECT_EQ(list.extents()[2], (Extent{1020, 1025}));
  EXPECT_EQ(list.bytes(), 31);
  EXPECT_EQ(even.position(), 8);
  size_t near = 0;
  EXPECT_EQ(list.place(1020, near), 26);
  EXPECT_EQ(list.place(101, near), 1);
  EXPECT_EQ(list.place(1000, near), 16);
  EXPECT_EQ(list.place(1024, near), 30);
}

TEST(ExtentList, OfNothingIsEmpty) {
  ExtentList list;
  list.assign({});
  EXPECT_TRUE(list.extents().empty());
  Cursor none = blocks(0, 4, 8).cursor();
  const ExtentList::Stream streams[] = {{&none, 0}};
  list.assign(streams);
  EXPECT_TRUE(list.extents().empty());
  EXPECT_EQ(list.bytes(), 0);
}

RC_GTEST_PROP(ExtentList, HasAPlaceOfItsOwnForEveryByteOfItsStreams, ()) {
  std::vector<FileView> views;
  std::vector<Cursor> cursors;
  std::vector<ExtentList::Stream> streams;
  std::set<Off> bytes;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    const auto block = *rc::gen::inRange<int64_t>(1, 40);
    views.push_back(blocks(*rc::gen::inRange<int64_t>(0, 300), block,
                           block + *rc::gen::inRange<int64_t>(0, 60)));
    cursors.push_back(views.back().cursor());
  }
  for (int i = 0; i < count; ++i) {
    const auto begin = *rc::gen::inRange<int64_t>(0, 50), n = *rc::gen::inRange<int64_t>(0, 200);
    cursors[size_t(i)].seek(begin);
    streams.push_back({&cursors[size_t(i)], n});
    for (int64_t at = begin; at < begin + n; ++at) bytes.insert(views[size_t(i)].offset_of(at));
  }
  ExtentList list;
  list.assign(streams);
  RC_ASSERT(list.bytes() == int64_t(bytes.size()));
  size_t near = 0;
  int64_t place = 0;
  for (const Off b : bytes) RC_ASSERT(list.place(b, near) == place++);
  for (size_t i = 1; i < list.extents().size(); ++i)
    RC_ASSERT(list.extents()[i - 1].end < list.extents()[i].begin);
}

}  // namespace
}  // namespace penstock::layout::extent_list_test
