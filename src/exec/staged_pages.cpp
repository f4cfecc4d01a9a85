#include "exec/staged_pages.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <utility>

#include "base/clock.hpp"

namespace penstock::exec {

void StagedPage::assign(const Target& target, int cycle, Extent where,
                        std::span<const Extent> dirty, std::optional<Error> missing) {
  target_ = target;
  cycle_ = cycle;
  where_ = where;
  dirty_.assign(dirty.begin(), dirty.end());
  missing_ = std::move(missing);
}

void StagedPage::write() noexcept {
  try {
    if (missing_)
      target_.account->note_fault(cycle_, where_.begin, {*missing_, where_.begin});
    else if (!dirty_.empty())
      target_.account->settle(cycle_, where_, dirty_, write_extents());
  } catch (const std::exception&) {
    // Only noting allocates, and what cannot be noted must not be lost in silence.
    std::terminate();
  }
}

std::optional<io::Fault> StagedPage::write_extents() {
  const io::FileBytes bytes{where_, memory.first(size_t(where_.size()))};
  target_.spent->traffic.writes += int64_t(dirty_.size());
  const Stopwatch watch(target_.spent->times.write_s);
  return target_.file->write_extents(bytes, dirty_);
}

// To be assigned.
std::unique_ptr<StagedPage> StagedPages::page() {
  std::unique_ptr<StagedPage> again = area_.pages.take();
  return again != nullptr ? std::move(again) : std::make_unique<StagedPage>(area_.pages);
}

Result<AlignedBuffer> StagedPages::memory(Extent where) {
  return area_.stager.memory(where.size(), area_.limit_bytes);
}

void StagedPages::stage(int cycle, Extent where, AlignedBuffer memory,
                        std::span<const Extent> dirty) {
  auto staged = page();
  staged->assign(target_, cycle, where, dirty, std::nullopt);
  staged->memory = std::move(memory);
  last_ = area_.stager.stage(area_.lane, std::move(staged));
}

void StagedPages::stage_copy(int cycle, const io::Lease& page, std::span<const Extent> dirty) {
  if (dirty.empty()) return;
  auto copy = memory(page.where);
  if (!copy) return stage_missing(cycle, page.where, copy.error());
  for (const Extent e : dirty) {
    const auto at = size_t(e.begin - page.where.begin);
    std::memcpy(copy->data() + at, page.memory.data() + at, size_t(e.size()));
  }
  stage(cycle, page.where, *std::move(copy), dirty);
}

void StagedPages::stage_missing(int cycle, Extent where, const Error& why) {
  auto staged = page();
  staged->assign(target_, cycle, where, {}, why);
  last_ = area_.stager.stage(area_.lane, std::move(staged));
}

}  // namespace penstock::exec
