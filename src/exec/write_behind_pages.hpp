// The node's pages as other nodes' bytes reach them: what shipping sees of write-behind.
#pragma once

#include "exec/shipping.hpp"
#include "exec/write_behind.hpp"

namespace penstock::exec {

// REQUIRES a run that does not decrease.
inline bool holds(Extent page, const layout::Run& run) noexcept {
  if (run.offset < page.begin || run.offset >= page.end) return false;
  const int64_t room = page.end - run.offset;  // so that no sum below overflows
  if (run.block > room || run.count > room) return false;
  return run.count == 1 || (run.stride <= room && (run.count - 1) * run.stride <= room - run.block);
}

class WriteBehind::NodePages final : public Shipping::Pages {
 public:
  NodePages(WriteBehind& behind, const Target& target) : behind_(behind), target_(target) {}
  void put(const layout::Run& run, const std::byte* bytes) override {
    behind_.put(target_, run, bytes);
  }
  void flush() override { behind_.flush_pages(target_); }
  bool empty() const override { return behind_.pool_->empty(); }
  int64_t failures() const override { return behind_.pool_->losses().failures(); }
  StagedNotes losses() const override {
    StagedNotes losses;
    behind_.pool_->losses().add_to(losses);
    return losses;
  }
  bool holds(const layout::Run& run) const override {
    const PagePool& pool = *behind_.pool_;
    return (run.count == 1 || run.stride >= 0) &&
           exec::holds(pool.extent(run.offset / pool.page_bytes()), run);
  }

 private:
  WriteBehind& behind_;
  const Target& target_;
};

}  // namespace penstock::exec
