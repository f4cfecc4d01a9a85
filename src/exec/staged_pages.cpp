#include "exec/staged_pages.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <utility>

#include "base/clock.hpp"

namespace penstock::exec {
namespace {

class StagedPage final : public Staged {
 public:
  StagedPage(io::MechanismFile& file, PageAccount& account, Spent& spent, WriteObserver* observer,
             int cycle, Extent where)
      : file_(file),
        account_(account),
        spent_(spent),
        observer_(observer),
        cycle_(cycle),
        where_(where) {}

  void write() noexcept override {
    try {
      if (missing)
        account_.note_fault(cycle_, where_, {*missing, where_.begin});
      else if (!dirty.empty())
        account_.settle(cycle_, where_, dirty, write_extents());
    } catch (const std::exception&) {
      // Only noting allocates, and what cannot be noted must not be lost in silence.
      std::terminate();
    }
  }

  std::vector<Extent> dirty;
  std::optional<Error> missing;

 private:
  std::optional<io::Fault> write_extents() {
    for (const Extent e : dirty) {
      const std::span<const std::byte> bytes =
          memory.first(size_t(where_.size()))
              .subspan(size_t(e.begin - where_.begin), size_t(e.size()));
      if (observer_ != nullptr) observer_->writing(e.begin, bytes);
      ++spent_.traffic.writes;
      const Stopwatch watch(spent_.times.write_s);
      if (auto fault = file_.write(bytes, e.begin)) return fault;
    }
    return std::nullopt;
  }

  io::MechanismFile& file_;
  PageAccount& account_;
  Spent& spent_;
  WriteObserver* observer_;
  const int cycle_;
  const Extent where_;
};

}  // namespace

Result<AlignedBuffer> StagedPages::memory(Extent where) {
  return area_.stager.memory(where.size(), area_.limit_bytes);
}

void StagedPages::stage(int cycle, Extent where, AlignedBuffer memory,
                        std::span<const Extent> dirty) {
  auto page = std::make_unique<StagedPage>(file_, account_, spent_, observer_, cycle, where);
  page->dirty.assign(dirty.begin(), dirty.end());
  page->memory = std::move(memory);
  last_ = area_.stager.stage(area_.lane, std::move(page));
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
  auto page = std::make_unique<StagedPage>(file_, account_, spent_, observer_, cycle, where);
  page->missing = why;
  last_ = area_.stager.stage(area_.lane, std::move(page));
}

}  // namespace penstock::exec
