// A writer's file page in one cycle, while ranks fill it.
#pragma once

#include <cstddef>
#include <span>

#include "base/extent.hpp"
#include "io/mechanism.hpp"
#include "layout/coverage.hpp"
#include "layout/extent_list.hpp"

namespace penstock::exec {

// Without memory (none could be had) its bytes are received and dropped, so that nobody hangs; the
// writer has noted the fault.
struct Page {
  int writer = 0;
  int cycle = 0;
  Extent where;
  std::span<std::byte> memory;  // memory[i] is the file byte where.begin + i; empty: there is none
  layout::Coverage coverage;    // of `where`: what has been filled
  bool known_whole = false;     // all of it will be, so that nobody follows what fills it
  // Of a page whose bytes lie scattered over `where`: memory holds these extents, one behind the
  // other, all of which will be filled. nullptr: as above.
  const layout::ExtentList* list = nullptr;

  bool usable() const noexcept { return !memory.empty(); }
  // The place of `bytes` bytes that lie together in the file. REQUIRES usable().
  std::span<std::byte> place(Off begin, int64_t bytes) const noexcept {
    size_t near = 0;
    const int64_t at = list != nullptr ? list->place(begin, near) : begin - where.begin;
    return memory.subspan(size_t(at), size_t(bytes));
  }
};

// Calls visit(memory, bytes) with the place of each block that `to` names in its next n stream
// bytes, in their order. REQUIRES page.list.
template <class Visit>
void for_each_place(const Page& page, layout::Cursor& to, int64_t n, Visit&& visit) {
  size_t near = 0;
  while (n > 0) {
    const layout::Run run = to.next(n);
    for (int64_t i = 0; i < run.count; ++i)
      visit(page.memory.data() + page.list->place(run.offset + i * run.stride, near), run.block);
    n -= run.bytes();
  }
}

}  // namespace penstock::exec
