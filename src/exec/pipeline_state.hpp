// What a pipeline keeps between calls, and of the call in progress.
#pragma once

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "exec/alone.hpp"
#include "exec/cycle.hpp"
#include "exec/gathering.hpp"
#include "exec/pipeline.hpp"
#include "exec/staged_stream.hpp"
#include "exec/team.hpp"
#include "exec/turns.hpp"
#include "exec/whole_places.hpp"
#include "exec/write_behind.hpp"
#include "exec/writer_pages.hpp"
#include "io/crumb_trail.hpp"

namespace penstock::exec {

// What a rank writes of a request: nothing when its arguments are wrong.
inline StreamRange taken_part(const WriteRequest& request) {
  return request.argument_error == ErrorClass::none ? request.range : StreamRange{};
}

// A collective write from its beginning to its end. Of a blocking one both are in one call; a
// staged one is left with its bytes on the way.
struct Begun {
  const plan::Algorithm* algorithm = nullptr;
  StreamRange own;
  std::optional<Error> mine;          // what kept this rank from bringing all of it
  std::optional<Error> earlier = {};  // of an earlier write, to be told now
  plan::Summary summary = {};
  layout::FileView view = {};
  std::unique_ptr<const plan::Plan> plan = {};  // nullptr: without an exchange

  // Without an exchange: what was written here.
  std::optional<WriteOutcome> alone = {};
  // Of a staged call: the last of its pieces, and their accounts.
  int64_t last_staged = 0;
  std::shared_ptr<StreamAccount> stream = {};
  std::unique_ptr<Spent> spent = {};
  std::unique_ptr<PageAccount> pages = {};
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): one a file, in order of initialisation
struct Pipeline::State {
  State(comm::Comm& c, io::MechanismFile& f, const layout::Geometry& g)
      : comm(c),
        file(f),
        geometry(g),
        team(team_of(c)),
        transfers(c.transfers()),
        pages(f, together) {}

  enum class How : uint8_t { written, staged };
  void begin(const WriteRequest& request, const Policy& policy, How how);
  WriteOutcome end();
  void begin_one_by_one(const WriteRequest& request);
  void begin_alone(const WriteRequest& request, const plan::Parameters& parameters, How how);
  WriteOutcome end_alone();
  // Of independent writes that are in the file when they return.
  AloneContext by_this_rank() {
    if (trail_ends && trail_ends.exchange(false)) trail.let_go();
    AloneContext c{file, staging_alone, sync, by_itself.times, by_itself.traffic};
    c.trail = &trail;
    return c;
  }
  WriteOutcome alone(const WriteRequest& request, const AloneContext& context);
  WriteOutcome stage(const WriteRequest& request, const std::shared_ptr<StreamAccount>& account,
                     PhaseTimes& spent, int64_t& last);
  StagingArea staging_area() {
    return {*stager, *lane, staged_limit_bytes, retired_pages, retired_pieces};
  }
  WriteOutcome accept(const WriteRequest& request);
  void let_others_finish();
  WriteOutcome stage_alone(const WriteRequest& request);
  void flush_pages();
  WriteBehind::Target by_thread() { return {file, sync, stager.get()}; }
  void stop_receiving();
  void end_shipping();

  // The steps of a collective write.
  plan::Summary summarise(const WriteRequest& request);
  void reserve(const plan::Crowd& crowd);
  std::unique_ptr<const plan::Plan> place(const plan::Algorithm& algorithm, const Policy& policy,
                                          const plan::Crowd& crowd);
  WriteOutcome write_own(const WriteRequest& request, const plan::Parameters& parameters);
  std::optional<Turns> take_turns(const WriteRequest& request, const plan::Parameters& parameters);
  std::unique_ptr<comm::Comm> part_of_node();
  NodePages* share_pages(const plan::Plan& plan, const Exchange* exchange);
  NodeLeaders* choose_leaders(const plan::Plan& plan, const plan::Crowd& crowd,
                              const Exchange* exchange);
  void exchange(const WriteRequest& request, const Policy& policy, const plan::Crowd& crowd,
                How how);
  io::BehindFile* writer_thread(const plan::Plan& plan);
  void note_degraded(const std::string& why);
  void run_cycles(const CollectiveCall& call);
  int next_page(const CollectiveCall& call, int from) const;
  Page* turn_to(const CollectiveCall& call, int cycle);
  void open_page(const CollectiveCall& call, int cycle);
  void expect_whole(Page& page);
  void learn_whole(const Page& page);
  WriteOutcome conclude(const PageAccount& account);
  // Of what was exchanged. Scattered pages are written, not staged.
  const PageAccount& account_of_begun() const noexcept {
    return begun.pages != nullptr ? *begun.pages : pages.account();
  }

  int64_t granule_of(const CollectiveCall& call) const;

  comm::Comm& comm;
  io::MechanismFile& file;
  layout::Geometry geometry;
  plan::Team team;
  std::unique_ptr<comm::Transfers> transfers;
  ExchangePools pools;
  Peers peers;
  std::string why_no_node;  // the same on all ranks, but for the words
  std::unique_ptr<NodePages> node_pages;
  std::unique_ptr<NodeOutbox> outbox;
  std::optional<NodeLeaders> leaders;
  io::FileSync* sync = nullptr;
  AlignedBuffer staging, staging_alone;
  // Of who is in write_alone.
  io::CrumbTrail trail{comm.size() > 1 ? io::Writers::several : io::Writers::one};
  std::atomic<bool> trail_ends = false;  // all ranks have met: the file may become another
  Spent together, by_itself;
  PhaseTimes& times = together.times;
  Traffic& traffic = together.traffic;
  WriterPages pages;
  WholePlaces whole_places;
  std::unique_ptr<io::BehindFile> behind;  // made for the first algorithm that asks for it
  DescriptionBytes description_bytes;

  std::shared_ptr<Stager> stager;
  // Of all pipelines of this process that share pages: what one of them has staged, the others wait
  // for.
  std::shared_ptr<Stager::Lane> lane = std::make_shared<Stager::Lane>();
  int64_t staged_limit_bytes = 0;
  Retired<StagedPage> retired_pages;
  Retired<StagedPiece> retired_pieces;
  const std::shared_ptr<StreamAccount> staged_alone = std::make_shared<StreamAccount>();
  // nullptr, or kept for other handles: the lane takes what is staged alone.
  std::unique_ptr<WriteBehind> write_behind;
  PagesFor pages_for = PagesFor::own_writes;
  // Writes this rank's pages that are full or wanted, and sees to it that nothing stays there for
  // long.
  struct Service final : Chore {
    explicit Service(State& s) : state(s) {}
    // Where there is no memory for a list of pages they are looked at once more when it is due.
    void run(Why why) noexcept override {
      try {
        const WriteBehind::Target target = state.by_thread();
        state.write_behind->serve_asked(target);
        if (why == Why::due) state.write_behind->serve_older(target, seconds);
      } catch (const std::bad_alloc&) {
      }
    }
    // Between nodes bytes get old in two places, each looked at that often.
    std::chrono::microseconds pause() const noexcept override {
      return Chore::pause() / (state.write_behind->shipping() != nullptr ? 2 : 1);
    }
    State& state;
    double seconds = 0;
  };
  Service service{*this};
  std::atomic<bool> serves = false;
  // Takes in what other nodes send; more often while they do.
  struct Receiving final : Chore {
    explicit Receiving(State& s) : state(s) {}
    void run(Why why) noexcept override {
      if (why == Why::due) busy = state.write_behind->step(state.by_thread());
    }
    std::chrono::microseconds pause() const noexcept override {
      return std::chrono::microseconds{busy ? 100 : 2000};
    }
    State& state;
    bool busy = false;
  };
  Receiving receiving{*this};
  bool receives = false;

  // Of the call in progress.
  Begun begun;
  std::string degraded;
};

}  // namespace penstock::exec
