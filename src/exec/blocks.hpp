// For tests: what a rank writes as equal blocks at equal distances, and what the file holds after
// all ranks have written theirs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/comm.hpp"
#include "exec/pipeline.hpp"
#include "layout/file_view.hpp"

namespace penstock::exec {

struct Blocks {
  // `count` blocks of `bytes`, every `stride`, from file byte `begin` on.
  Blocks(Off begin, int64_t bytes, int64_t stride, int64_t count, std::byte value = std::byte{'x'})
      : view(*layout::FileView::make(
            begin, 1, *layout::LoopTree::resized(layout::LoopTree::bytes(bytes), 0, stride))),
        data(size_t(bytes * count), value) {}

  WriteRequest request() const {
    return {&view,
            {0, int64_t(data.size())},
            data.data(),
            layout::LoopTree::bytes(1),
            int64_t(data.size()),
            ErrorClass::none};
  }

  layout::FileView view;
  std::vector<std::byte> data;
};

inline std::byte value_of(int rank) { return std::byte(rank % 250 + 1); }

// `count` blocks for each rank, dealt to the ranks in turn.
inline Blocks dealt(const comm::Comm& comm, int64_t bytes, int64_t count) {
  return {bytes * comm.rank(), bytes, bytes * comm.size(), count, value_of(comm.rank())};
}

// The file that they make together.
inline void expect_dealt(const std::vector<std::byte>& file, int ranks, int64_t bytes,
                         int64_t count) {
  ASSERT_EQ(file.size(), size_t(bytes * count * ranks));
  for (size_t i = 0; i < file.size(); ++i)
    ASSERT_EQ(file[i], value_of(int(int64_t(i) / bytes % ranks))) << "byte " << i;
}

}  // namespace penstock::exec
