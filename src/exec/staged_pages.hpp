// A writer's file pages of one collective call, staged: full pages go to the stager, which writes
// them while the call returns and the program computes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/page.hpp"
#include "exec/page_account.hpp"
#include "exec/stager.hpp"
#include "io/mechanism.hpp"

namespace penstock::exec {

// A page on its way.
class StagedPage final : public Staged {
 public:
  // All must outlive it.
  struct Target {
    io::MechanismFile* file;
    PageAccount* account;
    Spent* spent;
  };

  explicit StagedPage(Retired<StagedPage>& pool) : pool_(pool) {}
  void assign(const Target& target, int cycle, Extent where, std::span<const Extent> dirty,
              std::optional<Error> missing);
  void write() noexcept override;
  void retire() noexcept override { pool_.give_back(std::unique_ptr<StagedPage>(this)); }

 private:
  std::optional<io::Fault> write_extents();

  Retired<StagedPage>& pool_;
  Target target_{};
  int cycle_ = 0;
  Extent where_;
  std::vector<Extent> dirty_;
  std::optional<Error> missing_;  // why nothing of it can be written
};

class StagedPiece;  // exec/staged_stream.hpp

// Where a file's bytes are staged. All of it outlives what is staged.
struct StagingArea {
  Stager& stager;
  Stager::Lane& lane;
  int64_t limit_bytes;
  Retired<StagedPage>& pages;
  Retired<StagedPiece>& pieces;
};

class StagedPages {
 public:
  // All must outlive what is staged; until all is written the account is the I/O thread's.
  StagedPages(const StagingArea& area, io::MechanismFile& file, PageAccount& account, Spent& spent)
      : area_(area), target_{&file, &account, &spent} {}

  Result<AlignedBuffer> memory(Extent where);  // waits while the bound is reached
  void give_back(AlignedBuffer memory) { area_.stager.give_back(std::move(memory)); }
  // `memory[i]` is the file byte where.begin + i.
  void stage(int cycle, Extent where, AlignedBuffer memory, std::span<const Extent> dirty);
  // The same for a page that lies elsewhere: copies it.
  void stage_copy(int cycle, const io::Lease& page, std::span<const Extent> dirty);
  void stage_missing(int cycle, Extent where, const Error& why);

  // Of the last page so far, in the lane; 0: none.
  int64_t last() const noexcept { return last_; }

 private:
  std::unique_ptr<StagedPage> page();

  const StagingArea area_;
  const StagedPage::Target target_;
  int64_t last_ = 0;
};

}  // namespace penstock::exec
