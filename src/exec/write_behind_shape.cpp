#include "exec/write_behind_shape.hpp"

#include <algorithm>
#include <numeric>

#include "base/units.hpp"

namespace penstock::exec {
namespace {

constexpr int64_t kLeastPage = int64_t{64} << 10, kUsualPage = int64_t{1} << 20,
                  kLargestPage = int64_t{64} << 20;
constexpr int64_t kMostSlots = 1 << 16;

int ranks_per_node(const comm::Comm& comm) { return int(divide_up(comm.size(), comm.nodes())); }

// Half a stripe, or a quarter, as long as it takes: so that the bound holds pages enough.
int64_t part_of_stripe(int64_t stripe_bytes, int64_t most, int64_t step) {
  int64_t part = stripe_bytes;
  while (part > most && part / 2 >= kLeastPage && part % (2 * step) == 0) part /= 2;
  return part;
}

// A stripe, where the file has stripes: two clients then never want the lock of one. Whole units,
// where these belong to the node of a page's owner.
int64_t page_bytes_for(int64_t asked, const layout::Geometry& geometry, int nodes, int64_t most) {
  const bool owned = nodes > 1 && geometry.sharing != layout::Sharing::any;
  const int64_t step = owned ? std::lcm(kPageStep, geometry.unit()) : kPageStep;
  if (asked > 0) return align_up(asked, step);
  if (geometry.stripe_bytes == 0) return align_up(kUsualPage, step);
  const int64_t stripe =
      align_up(std::clamp(geometry.stripe_bytes, kLeastPage, kLargestPage), step);
  return part_of_stripe(stripe, most, step);
}

// Of pages; and of loads, where there are other nodes.
int64_t limit_of(const comm::Comm& comm, int64_t asked) {
  const int64_t limit = asked > 0 ? asked : kWriteBehindLimitBytes;
  return comm.nodes() > 1 ? limit / 2 : limit;
}

}  // namespace

int64_t limit_of_node(const comm::Comm& comm, int64_t asked) {
  return limit_of(comm, asked) * ranks_per_node(comm);
}

PoolShape pool_shape(const comm::Comm& comm, const WriteBehindShape& asked,
                     const layout::Geometry& geometry) {
  PoolShape shape;
  const int64_t limit =
      std::min(limit_of_node(comm, asked.limit_bytes_per_rank), asked.most_bytes_per_node);
  shape.page_bytes = page_bytes_for(asked.page_bytes, geometry, comm.nodes(), limit / kLeastSlots);
  shape.slots = int(std::clamp(limit / shape.page_bytes, kLeastSlots, kMostSlots));
  shape.guests = comm.nodes() == 1 ? comm.size() : 0;
  return shape;
}

Shipping::Shape shipping_shape(const comm::Comm& comm, const WriteBehindShape& asked,
                               const layout::Geometry& geometry) {
  return {asked.progress, asked.load_bytes > 0 ? asked.load_bytes : kSubBufferBytes,
          limit_of(comm, asked.limit_bytes_per_rank), geometry.sharing};
}

// A thread that shares its core with a rank costs more than it hides.
FullPage writer_of_full(const comm::Comm& comm, const WriteBehindShape& asked) {
  if (asked.full != FullPage::as_cores_allow) return asked.full;
  const bool two_each = comm.cores_per_node() >= 2 * ranks_per_node(comm);
  return two_each ? FullPage::by_owner : FullPage::by_ranks;
}

int pages_ahead(const comm::Comm& comm) {
  return std::min(comm.cores_per_node(), ranks_per_node(comm)) + 1;
}

}  // namespace penstock::exec
