// For tests: ranks on nodes of their own, whose loads are put into their owners' memory.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/thread_comm.hpp"
#include "exec/shipping_for_tests.hpp"

namespace penstock::exec {

inline WriteBehindShape by_rma(int64_t limit) {
  return {.page_bytes = kPage,
          .limit_bytes_per_rank = limit,
          .progress = Progress::rma,
          .load_bytes = kLoad};
}

// Else a slot is free again at some time or other.
inline void until_nobody_takes_out(Rank& rank, comm::Comm& comm) {
  rank.receiving = {};
  EXPECT_TRUE(comm.barrier());
}

// Each rank on a node of its own, so that page i is for rank i mod n alone. Nobody takes anything
// out but by step().
template <class Body>
void on_nodes(int n, const std::string& path, int64_t limit, Body&& body) {
  comm::run_thread_team(n,
                        [&](comm::Comm& comm) {
                          Rank rank(comm, path, by_rma(limit));
                          until_nobody_takes_out(rank, comm);
                          body(rank, comm);
                        },
                        {.nodes = n});
}

// To a page of rank 1, where there are two. Fills one load and begins the next.
inline void write_a_load(Rank& rank, int64_t page, std::byte value = std::byte{7}) {
  const std::vector<std::byte> bytes(100, value);
  for (int i = 0; i < 25; ++i)
    EXPECT_EQ(rank.write(bytes, page * kPage + i * 100).prefix_bytes, 100);
}

inline constexpr std::byte kOld{1}, kNew{2};

// A load that is put, and the first of its bytes once more.
inline void write_and_write_again(Rank& rank) {
  write_a_load(rank, 1, kOld);
  EXPECT_EQ(rank.write(std::vector(100, kNew), kPage).prefix_bytes, 100);
}

}  // namespace penstock::exec
