#include "exec/writer_pages.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <numeric>
#include <utility>

#include "base/clock.hpp"
#include "exec/sown_faults.hpp"

namespace penstock::exec {

void WriterPages::begin(const plan::Plan& plan, std::optional<int> writer, int64_t granule,
                        Collected* collected, StagedPages* staged, Memory memory,
                        io::BehindFile* behind) {
  assert(staged == nullptr || (collected == nullptr && behind == nullptr));
  plan_ = &plan;
  behind_ = behind;
  writer_ = writer.value_or(0);
  cycles_ = writer ? plan.cycles(*writer) : 0;
  granule_ = granule;
  collected_ = collected;
  if (slots_.empty()) slots_.resize(size_t(file_.slots()));
  next_ = 0;
  account_.emplace(spent_, sync_);
  staged_ = staged;
  memory_ = memory;
}

Page& WriterPages::open(int cycle) {
  Slot& s = slot(cycle);
  if (is_open(cycle)) return s.page;
  while (s.submitted) reap_oldest();
  s.page.writer = writer_;
  s.page.cycle = cycle;
  next_ = cycle + 1;
  shape(s);
  lease(s);
  return s.page;
}

// Which bytes of the file the page will hold.
void WriterPages::shape(Slot& s) {
  s.granule = granule_;
  s.page.list = nullptr;
  if (collected_ == nullptr) {
    s.page.where = plan_->extent(writer_, s.page.cycle);
    return;
  }
  const Collected::Shape collected = collected_->shape(s.page.cycle);
  s.page.where = collected.where;
  s.granule = std::gcd(granule_, collected.granule);
  if (!collected.is_list) return;
  collected_->list(s.list);
  s.page.list = &s.list;
}

void WriterPages::lease(Slot& s) {
  s.page.memory = {};
  s.no_memory.reset();
  if (s.page.where.empty()) return;
  if (Result<void> taken = take_memory(s); !taken) {
    s.no_memory = std::move(taken).error();
    return;
  }
  if (Result<void> ready = make_ready(s); !ready) {
    give_memory_back(s);
    s.no_memory = std::move(ready).error();
    return;
  }
  s.page.memory = s.lease.memory;
}

Result<void> WriterPages::take_memory(Slot& s) {
  const Extent where = s.page.where;
  if (memory_ == Memory::of_the_stager) {
    Result<AlignedBuffer> got = staged_->memory(where);
    if (!got) return tl::unexpected(std::move(got).error());
    s.staged = *std::move(got);
    s.lease = {.where = where, .memory = s.staged.first(size_t(where.size())), .slot = 0};
    return {};
  }
  const bool packed = s.page.list != nullptr;
  Result<io::Lease> got =
      file().lease(packed ? Extent{where.begin, where.begin + s.list.bytes()} : where);
  if (!got) return tl::unexpected(std::move(got).error());
  s.lease = *got;
  s.lease.where = where;
  s.lease.packed = packed;
  return {};
}

void WriterPages::give_memory_back(Slot& s) {
  if (memory_ == Memory::of_the_stager)
    staged_->give_back(std::exchange(s.staged, AlignedBuffer()));
  else
    file().submit(s.lease, {});
}

// What is filled is followed where that is not known beforehand.
Result<void> WriterPages::make_ready(Slot& s) {
  s.page.known_whole = false;
  if (s.page.list != nullptr) return {};
  const Extent where = s.page.where;
  return s.page.coverage.reset(where, std::gcd(s.granule, std::gcd(where.begin, where.end)));
}

// The list of a page of crumbs may take more memory than the page, and where there is none the page
// is as one that has none.
void WriterPages::list_dirty(Slot& s, int cycle) {
  if (!s.page.usable()) return;
  try {
    s.dirty =
        sow_faults(s.lease, cycle,
                   s.page.list != nullptr ? s.list.extents() : s.page.coverage.extents(), s.sown);
  } catch (const std::bad_alloc&) {
    give_memory_back(s);
    s.page.memory = {};
    s.no_memory = Error{ErrorClass::no_memory, 0, "write", "no memory for a list of dirty extents"};
  }
}

void WriterPages::submit(int cycle) {
  Slot& s = slot(cycle);
  list_dirty(s, cycle);
  if (staged_ != nullptr) return stage(s);
  if (!s.page.usable()) {
    reap_all();  // faults are noted in the order of their cycles
    if (s.no_memory)
      account_->note_fault(cycle, s.page.where.begin, {*s.no_memory, s.page.where.begin});
    return;
  }
  spent_.traffic.writes += int64_t(s.dirty.size());
  {
    const Stopwatch watch(spent_.times.write_s);
    file().submit(s.lease, s.dirty);
  }
  s.submitted = true;
  // So that a sync policy hears of it before the next page is written.
  if (!file().starts_writes()) reap_all();
}

// Nothing of it is left to be reaped. Its memory goes along, or is copied and free again.
void WriterPages::stage(Slot& s) {
  const int cycle = s.page.cycle;
  if (s.no_memory) return staged_->stage_missing(cycle, s.page.where, *s.no_memory);
  if (!s.page.usable()) return;
  if (memory_ == Memory::of_the_stager)
    return staged_->stage(cycle, s.page.where, std::exchange(s.staged, AlignedBuffer()), s.dirty);
  staged_->stage_copy(cycle, s.lease, s.dirty);
  file().submit(s.lease, {});
}

void WriterPages::finish() { reap_all(); }

// Of the pages that were submitted and not reaped; nullptr when there is none.
WriterPages::Slot* WriterPages::oldest() noexcept {
  Slot* found = nullptr;
  for (Slot& s : slots_)
    if (s.submitted && (found == nullptr || s.page.cycle < found->page.cycle)) found = &s;
  return found;
}

void WriterPages::reap_all() {
  while (oldest() != nullptr) reap_oldest();
}

// What became of the oldest page that was submitted.
void WriterPages::reap_oldest() {
  Slot& s = *oldest();
  s.submitted = false;
  if (s.dirty.empty()) return;  // given back without a write
  std::optional<io::Fault> fault;
  {
    const Stopwatch watch(spent_.times.write_s);
    fault = file().reap();
  }
  const bool synced = account_->settle(s.page.cycle, s.page.where, s.dirty, fault,
                                       behind_ != nullptr ? behind_->synced() : std::nullopt);
  if (!synced) account_->lose_through(last_begun());
}

// Of whose page anything may have been on its way into the file by now; -1: none.
int WriterPages::last_begun() noexcept {
  if (file_.stores_in_place()) return next_ - 1;
  if (!file_.starts_writes()) return -1;  // a thread writes none, either, before it has synced
  int last = -1;
  for (const Slot& s : slots_)
    if (s.submitted) last = std::max(last, s.page.cycle);
  return last;
}

}  // namespace penstock::exec
