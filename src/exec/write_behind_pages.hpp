// The node's pages as other nodes' bytes reach them: what shipping sees of write-behind.
#pragma once

#include "exec/shipping.hpp"
#include "exec/write_behind.hpp"

namespace penstock::exec {

class WriteBehind::NodePages final : public Shipping::Pages {
 public:
  NodePages(WriteBehind& behind, const Target& target) : behind_(behind), target_(target) {}
  void put(const layout::Run& run, const std::byte* bytes) override {
    behind_.put(target_, run, bytes);
  }
  void flush() override { behind_.flush_pages(target_); }
  bool holds(const layout::Run& run) const override {
    const int64_t page = behind_.pool_->page_bytes();
    if (run.count > page || run.block > page || run.stride < 0 || run.stride > page) return false;
    return run.offset % page + (run.count - 1) * run.stride + run.block <= page;
  }

 private:
  WriteBehind& behind_;
  const Target& target_;
};

}  // namespace penstock::exec
