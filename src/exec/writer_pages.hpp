// A writer's file pages from lease to file: opened in the order of their cycles, filled, submitted,
// and what could not be written noted. Several are under way at a time, as many as the mechanism
// has slots: while one is being written the next is filled. Of a staged call they go to the stager
// instead, and what became of them is known later.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "exec/collected.hpp"
#include "exec/page.hpp"
#include "exec/page_account.hpp"
#include "exec/pipeline.hpp"
#include "exec/staged_pages.hpp"
#include "io/behind.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"
#include "plan/plan.hpp"

namespace penstock::exec {

class WriterPages {
 public:
  WriterPages(io::MechanismFile& file, Spent& spent) : file_(file), spent_(spent) {}
  void set_sync(io::FileSync* sync) noexcept { sync_ = sync; }

  // A new call. `writer`: this rank's, if it is one. `granule` divides every place where a page or
  // a part of it is cut, but for the page's own ends. `collected` says what comes where the plan
  // scatters, and is nullptr where it does not. `staged`: where complete pages go, but of a plan
  // that scatters; nullptr: into the file. `memory` says whose a page is. `behind`: the same file
  // with a thread that writes, started and told of the sync policy, or nullptr.
  enum class Memory : uint8_t { of_the_file, of_the_stager };
  void begin(const plan::Plan& plan, std::optional<int> writer, int64_t granule,
             Collected* collected, StagedPages* staged, Memory memory, io::BehindFile* behind);
  // Pages are written while this rank goes on.
  bool are_behind() const noexcept { return behind_ != nullptr; }
  int cycles() const noexcept { return cycles_; }
  // How many pages may be open or on their way into the file.
  int slots() const noexcept { return file_.slots(); }

  // The page of a cycle, to be filled. Opens it unless it is open; may wait for the oldest write.
  // Cycles may be left out. REQUIRES cycle < cycles(), that no later one was opened before it, and
  // may_open_beside() each that is being filled.
  Page& open(int cycle);
  bool is_open(int cycle) const noexcept { return cycle < next_; }
  // While the page of cycle `other` is being filled.
  bool may_open_beside(int cycle, int other) const noexcept {
    return (cycle - other) % slots() != 0;
  }
  // The page is complete. Pages are submitted in the order of their cycles.
  void submit(int cycle);
  // All that was submitted is in the file, or noted as missing; or it is staged.
  void finish();

  // Of the call so far, unless it is staged.
  const PageAccount& account() const noexcept { return *account_; }

 private:
  struct Slot {
    Page page;
    int64_t granule = 1;
    io::Lease lease;
    AlignedBuffer staged;            // in place of a lease
    std::optional<Error> no_memory;  // why the page has none
    layout::ExtentList list;         // of a page that is one
    std::span<const Extent> dirty;   // as submitted
    std::vector<Extent> sown;        // only in builds that test the tests
    bool submitted = false;          // and not yet reaped
  };

  io::MechanismFile& file() noexcept { return behind_ != nullptr ? *behind_ : file_; }
  Slot& slot(int cycle) noexcept { return slots_[size_t(cycle) % slots_.size()]; }
  void shape(Slot& s);
  void lease(Slot& s);
  void list_dirty(Slot& s, int cycle);
  Result<void> make_ready(Slot& s);
  Result<void> take_memory(Slot& s);
  void give_memory_back(Slot& s);
  void stage(Slot& s);
  Slot* oldest() noexcept;
  int last_begun() noexcept;
  void reap_oldest();
  void reap_all();

  io::MechanismFile& file_;
  Spent& spent_;
  io::FileSync* sync_ = nullptr;
  std::vector<Slot> slots_;

  // Of the call.
  const plan::Plan* plan_ = nullptr;
  io::BehindFile* behind_ = nullptr;
  int writer_ = 0;
  int cycles_ = 0;
  int64_t granule_ = 1;
  Collected* collected_ = nullptr;
  int next_ = 0;  // behind the last cycle whose page was opened
  std::optional<PageAccount> account_;
  StagedPages* staged_ = nullptr;
  Memory memory_ = Memory::of_the_file;
};

}  // namespace penstock::exec
