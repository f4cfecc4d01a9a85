// What comes together in the pages of a writer whose algorithm collects scattered bytes
// (plan::Algorithm::scatters). A page is one extent, like any other, when that is no larger than
// what the writer collects anyway; else it is a list of extents, which the writer makes from its
// senders' views when it opens the page.
#pragma once

#include <cstdint>
#include <vector>

#include "base/extent.hpp"
#include "layout/extent_list.hpp"

namespace penstock::exec {

struct CollectiveCall;

class Collected {
 public:
  // `call` must outlive it. A rank that is no writer does not ask.
  Collected(const CollectiveCall& call, int writer) : call_(call), writer_(writer) {}

  struct Shape {
    Extent where;         // from the first byte to the last
    int64_t granule = 0;  // divides every place where a part begins or ends
    bool is_list = false;
  };
  Shape shape(int cycle);
  // REQUIRES that shape() was asked for that cycle last.
  void list(layout::ExtentList& into) { into.assign(streams_); }

 private:
  const CollectiveCall& call_;
  int writer_;
  std::vector<layout::ExtentList::Stream> streams_;
};

}  // namespace penstock::exec
