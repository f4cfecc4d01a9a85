// A communicator that belongs to somebody else. Whoever wants it with one thing changed derives
// from it.
#pragma once

#include "comm/comm.hpp"

namespace penstock::comm {

// The owner must outlive it.
class Borrowed : public Comm {
 public:
  explicit Borrowed(Comm& owner) : c_(owner) {}

  int rank() const noexcept override { return c_.rank(); }
  int size() const noexcept override { return c_.size(); }
  int nodes() const noexcept override { return c_.nodes(); }
  int cores_per_node() const noexcept override { return c_.cores_per_node(); }
  int own_node() const noexcept override { return c_.own_node(); }
  int turn() const noexcept override { return c_.turn(); }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return c_.allgather(mine, all);
  }
  Result<void> all_max(std::span<int64_t> values) override { return c_.all_max(values); }
  Result<void> all_sum(std::span<int64_t> values) override { return c_.all_sum(values); }
  Result<void> barrier() override { return c_.barrier(); }
  Result<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override {
    return c_.gather(mine, root);
  }
  Result<std::shared_ptr<NodeLock>> node_lock() override { return c_.node_lock(); }
  Result<std::shared_ptr<SharedSegment>> shared_segment(const SegmentShape& shape) override {
    return c_.shared_segment(shape);
  }
  Result<std::unique_ptr<Comm>> split_by_node() override { return c_.split_by_node(); }
  Result<std::unique_ptr<Parcels>> parcels() override { return c_.parcels(); }
  Result<std::unique_ptr<Slots>> slots(const SlotsShape& shape) override { return c_.slots(shape); }
  std::unique_ptr<Transfers> transfers() override { return c_.transfers(); }
  void rest() noexcept override { c_.rest(); }

 private:
  Comm& c_;
};

}  // namespace penstock::comm
