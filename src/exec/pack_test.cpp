// messages(pack=datatype): which messages are taken from where their bytes lie, counted. That no
// byte differs is the conformance suite's to say.
#include <gtest/gtest.h>

#include "comm/thread_comm.hpp"
#include "exec/cycle.hpp"
#include "exec/pipeline.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::pack_test {
namespace {

constexpr int64_t kMessages = 4;

// What rank 1 sends to rank 0, which writes: kMessages messages from memory of this type.
Traffic sent(const layout::LoopTree& memory_type, Pack pack) {
  const io::TemporaryFile path;
  Traffic traffic;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto file = io::find_mechanism("pwrite")->open({path.path()}).value();
    Pipeline pipeline(comm, *file, {});
    const int64_t bytes = comm.rank() == 1 ? kMessages * kMessageBytes : 0;
    const int64_t count = bytes / memory_type.size();
    const std::vector<std::byte> memory(size_t(count * memory_type.extent()), std::byte{'x'});
    const layout::FileView view;
    const WriteRequest request{&view,         {0, count * memory_type.size()},
                               memory.data(), memory_type,
                               count,         ErrorClass::none};
    const WriteOutcome out = pipeline.write_all(
        request, {plan::find_algorithm("designated_writer"), {}, nullptr, nullptr, pack});
    EXPECT_EQ(out.agreed, ErrorClass::none);
    if (comm.rank() == 1) traffic = pipeline.spent_together().traffic;
    EXPECT_TRUE(file->close());
  });
  EXPECT_EQ(path.contents().size(), size_t(traffic.message_bytes));
  return traffic;
}

layout::LoopTree chunks(int64_t bytes, int64_t stride) {
  return *layout::LoopTree::resized(layout::LoopTree::bytes(bytes), 0, stride);
}

TEST(Pack, StridedMemoryIsOneDatatypePerMessage) {
  const Traffic t = sent(chunks(8, 32), Pack::datatype);
  EXPECT_EQ(t.messages, kMessages);
  EXPECT_EQ(t.unpacked, kMessages);
  EXPECT_EQ(t.message_bytes, kMessages * kMessageBytes);
}

TEST(Pack, CopiesUnlessAskedOtherwise) { EXPECT_EQ(sent(chunks(8, 32), Pack::copy).unpacked, 0); }

TEST(Pack, ContiguousMemoryNeedsNoDatatype) {
  EXPECT_EQ(sent(layout::LoopTree::bytes(64), Pack::datatype).unpacked, 0);
}

// Messages are cut at 256 KiB: where that is inside a chunk the piece is packed.
TEST(Pack, WhatOneDatatypeCannotSayIsPacked) {
  const Traffic t = sent(chunks(3000, 5000), Pack::datatype);
  EXPECT_EQ(t.messages, kMessages);
  EXPECT_EQ(t.unpacked, 0);
  const auto two = *layout::LoopTree::resized(
      *layout::LoopTree::indexed(std::vector<layout::LoopTree::Block>{{0, 8}, {24, 16}},
                                 layout::LoopTree::bytes(1)),
      0, 64);
  EXPECT_EQ(sent(two, Pack::datatype).unpacked, 0);
}

// Bytes one below the other are what Open MPI makes a wrong datatype of.
TEST(Pack, MemoryThatRunsDownwardsIsPacked) {
  constexpr int64_t kBytes = kMessages * kMessageBytes;
  const auto downwards = *layout::LoopTree::strided(kBytes, 1, -1, layout::LoopTree::bytes(1));
  const layout::LoopTree::Block from_the_end[] = {{kBytes - 1, 1}};
  const Traffic t = sent(*layout::LoopTree::indexed(from_the_end, downwards), Pack::datatype);
  EXPECT_EQ(t.messages, kMessages);
  EXPECT_EQ(t.unpacked, 0);
}

}  // namespace
}  // namespace penstock::exec::pack_test
