// What shipping needs for its way of moving loads, agreed on by all ranks.
#include <algorithm>
#include <utility>

#include "exec/abandon.hpp"
#include "exec/shipping.hpp"

namespace penstock::exec {
namespace {

// What a way of moving needs; or why it cannot be had.
struct Means {
  std::unique_ptr<PutLoads> put;
  int64_t put_bytes = 0;  // of this rank, for others
  std::string why_calls;
  std::unique_ptr<comm::Parcels> parcels;  // where they are needed at once
};

// A quarter of what loads may take is where others put theirs: a slot for each of them at most.
comm::SlotsShape slots_for(const comm::Comm& comm, const Shipping::Shape& shape) {
  const int64_t most = shape.limit_bytes / 4 / shape.load_bytes;
  return {int(std::clamp<int64_t>(most, 1, comm.size() - 1)), shape.load_bytes};
}

// Collective.
Means means_to_put(comm::Comm& comm, const Shipping::Shape& shape) {
  const comm::SlotsShape slots = slots_for(comm, shape);
  auto made = on_all_or_abandon(comm, comm.slots(slots));
  if (!made) return {nullptr, 0, made.error().message(), nullptr};
  auto put = std::make_unique<PutLoads>(*std::move(made));
  return {std::move(put), slots.slots * slots.parcel_bytes, "", nullptr};
}

// Collective.
Result<Means> means_to_send(comm::Comm& comm) {
  auto parcels = on_all_or_abandon(comm, comm.parcels());
  if (!parcels) return tl::unexpected(std::move(parcels).error());
  int64_t single[] = {(*parcels)->by_any_thread() ? 0 : 1};
  or_abandon(comm.all_max(single));
  std::string why = single[0] == 0 ? "" : "the program was not granted MPI_THREAD_MULTIPLE";
  return Means{nullptr, 0, std::move(why), *std::move(parcels)};
}

// Collective.
Result<Means> means_for(comm::Comm& comm, const Shipping::Shape& shape) {
  if (shape.progress == Progress::rma) return means_to_put(comm, shape);
  if (shape.progress == Progress::thread) return means_to_send(comm);
  return Means{};
}

}  // namespace

Result<std::unique_ptr<Shipping>> Shipping::make(comm::Comm& comm, const Shape& asked) {
  auto map = map_nodes(comm);
  if (!map) abandon(map.error());
  auto means = means_for(comm, asked);
  if (!means) return tl::unexpected(std::move(means).error());
  Shape shape = asked;
  shape.limit_bytes -= means->put_bytes;
  std::unique_ptr<Shipping> made(
      new Shipping(comm, shape, *std::move(map), std::move(means->parcels), std::move(means->put)));
  if (!means->why_calls.empty()) made->move_by_calls(std::move(means->why_calls));
  return made;
}

Shipping::Shipping(comm::Comm& comm, const Shape& shape, NodeMap map,
                   std::unique_ptr<comm::Parcels> parcels, std::unique_ptr<PutLoads> put)
    : comm_(comm),
      shape_(shape),
      map_(std::move(map)),
      node_(comm.own_node()),
      progress_(shape.progress),
      parcels_(std::move(parcels)),
      put_(std::move(put)),
      buffers_(shape.load_bytes, shape.limit_bytes) {}

// The I/O thread may look for what is old meanwhile. It does not wait for other ranks.
void Shipping::move_by_calls(std::string why) {
  std::unique_ptr<PutLoads> put;
  {
    const std::lock_guard lock(mutex_);
    progress_ = Progress::calls;
    why_calls_ = std::move(why);
    put = std::move(put_);
  }
  if (put != nullptr) put->free();
}

}  // namespace penstock::exec
