// What may never be given back, since the kernel may use it yet; reachable, so that no leak is
// reported.
#pragma once

#include <atomic>
#include <utility>

namespace penstock {

template <class T>
void keep_for_ever(T kept) {
  struct Cell {
    T value;
    Cell* before;
  };
  static std::atomic<Cell*> newest = nullptr;
  auto* const cell = new Cell{std::move(kept), newest.load()};
  while (!newest.compare_exchange_weak(cell->before, cell)) {
  }
}

}  // namespace penstock
