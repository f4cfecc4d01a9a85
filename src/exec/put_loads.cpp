#include "exec/put_loads.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/seeded_fault.hpp"

namespace penstock::exec {

Traffic PutLoads::put(int owner, SubBuffers& from, Which which) {
  Traffic traffic;
  if (which == Which::full ? !from.has_full(owner) : !from.has(owner)) return traffic;
  if (const auto put = put_.find(owner); put != put_.end() && put->second.asked != Asked::no)
    return traffic;
  if (slots_->way_to(owner) != comm::Way::open) return traffic;
  Put& put = put_[owner];
  // A copy of it that is in the file already may be under what the owner takes out first.
  put.came_s = std::min(from.came_s(owner), now_s());
  put.told_older = false;
  Load load = *from.take_first(owner);
  put.hull = hull_of(put.hull, load.hull());
  std::vector<std::byte> parcel = std::move(load).take();
  if (seeded_fault("put_load_lost")) {
    from.give_back(std::move(parcel));
    return traffic;
  }
  traffic.messages = 1;
  traffic.message_bytes = int64_t(parcel.size());
  slots_->put(owner, std::move(parcel));
  return traffic;
}

// A question that was released has been answered: release() comes after all that it asked for.
bool PutLoads::collect(SubBuffers& to) {
  bool any = false;
  while (auto parcel = slots_->released()) {
    any = true;
    if (ParcelKind(parcel->bytes.front()) == ParcelKind::load)
      to.give_back(std::move(parcel->bytes));
    else
      put_.erase(parcel->peer);
  }
  return any;
}

std::vector<int> PutLoads::owners() const {
  std::vector<int> all;
  for (const auto& [owner, put] : put_) all.push_back(owner);
  return all;
}

bool PutLoads::overlaps(int owner, Extent where) const {
  const auto put = put_.find(owner);
  return put != put_.end() && put->second.hull.overlaps(where);
}

void PutLoads::ask(int owner) {
  const auto put = put_.find(owner);
  if (put != put_.end() && put->second.asked == Asked::no) put->second.asked = Asked::wanted;
}

void PutLoads::ask_owners() {
  for (auto& [owner, put] : put_) {
    if (put.asked != Asked::wanted || slots_->way_to(owner) != comm::Way::open) continue;
    slots_->put(owner, {std::byte(ParcelKind::flush)});
    put.asked = Asked::yes;
  }
}

std::vector<PutLoads::Older> PutLoads::older(double then_s) {
  std::vector<Older> all;
  for (auto& [owner, put] : put_) {
    const auto parcel = slots_->on_its_way_to(owner);
    if (put.told_older || put.came_s > then_s || put.asked == Asked::yes || parcel.empty())
      continue;
    all.push_back({owner, parcel});
    put.told_older = true;
  }
  return all;
}

}  // namespace penstock::exec
