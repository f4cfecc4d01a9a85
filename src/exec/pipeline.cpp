// A collective write from entry to exit: summaries, plan, descriptions, cycles,
// agreement. Whatever fails, each rank plays its part to the end; only a
// broken protocol (a peer's message that cannot be understood) ends the job, because nobody could
// tell the others any more.
#include "exec/pipeline.hpp"

#include <algorithm>
#include <exception>

#include "base/clock.hpp"
#include "base/seeded_fault.hpp"
#include "exec/abandon.hpp"
#include "exec/alone.hpp"
#include "exec/cuts.hpp"
#include "exec/cycle.hpp"
#include "exec/gathering.hpp"
#include "exec/intact.hpp"
#include "exec/staged_stream.hpp"
#include "exec/turns.hpp"
#include "exec/write_behind.hpp"
#include "exec/writer_pages.hpp"

namespace penstock::exec {
namespace {

// What a rank writes of a request: nothing when its arguments are wrong.
StreamRange taken_part(const WriteRequest& request) {
  return request.argument_error == ErrorClass::none ? request.range : StreamRange{};
}

// Of ranks that take turns.
int64_t cycle_of(const plan::Parameters& parameters) {
  return parameters.cycle_bytes > 0 ? parameters.cycle_bytes : plan::kDefaultCycleBytes;
}

StagedNotes joined(StagedNotes a, StagedNotes b) {
  a.accepted_bytes += b.accepted_bytes;
  a.written_bytes += b.written_bytes;
  a.lost_bytes += b.lost_bytes;
  a.failures += b.failures;
  a.failure = worst_of(a.failure, b.failure);
  a.lost.insert(a.lost.end(), b.lost.begin(), b.lost.end());
  a.lost_told_in_part = a.lost_told_in_part || b.lost_told_in_part;
  a.spent = a.spent + b.spent;
  a.taken_over += b.taken_over;
  return a;
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

}  // namespace

struct Pipeline::State {
  State(comm::Comm& c, io::MechanismFile& f, const layout::Geometry& g)
      : comm(c),
        file(f),
        geometry(g),
        team{c.size(), c.nodes(), c.cores_per_node()},
        transfers(c.transfers()),
        pages(f, together) {}

  enum class How : uint8_t { written, staged };
  void begin(const WriteRequest& request, const Policy& policy, How how);
  WriteOutcome end();
  void begin_alone(const WriteRequest& request, const plan::Parameters& parameters, How how);
  WriteOutcome end_alone();
  WriteOutcome alone(const WriteRequest& request, const AloneContext& context);
  WriteOutcome stage(const WriteRequest& request, const std::shared_ptr<StreamAccount>& account,
                     PhaseTimes& spent, int64_t& last);
  StagingArea staging_area() {
    return {*stager, lane, staged_limit_bytes, retired_pages, retired_pieces};
  }
  WriteOutcome accept(const WriteRequest& request);
  WriteOutcome stage_alone(const WriteRequest& request);
  void flush_pages();
  void stop_receiving();
  void end_shipping();

  // The steps of a collective write.
  plan::Summary summarise(const WriteRequest& request);
  std::unique_ptr<const plan::Plan> place(const plan::Algorithm& algorithm, const Policy& policy,
                                          const plan::Crowd& crowd);
  WriteOutcome write_own(const WriteRequest& request, const plan::Parameters& parameters);
  std::optional<Turns> take_turns(const WriteRequest& request, const plan::Parameters& parameters);
  NodePages* share_pages(const plan::Plan& plan, const Exchange* exchange);
  NodeLeaders* choose_leaders(const plan::Plan& plan, const Exchange* exchange);
  void exchange(const WriteRequest& request, const Policy& policy, const plan::Crowd& crowd,
                How how);
  io::BehindFile* writer_thread(const plan::Plan& plan);
  void note_degraded(const std::string& why);
  void run_cycles(const CollectiveCall& call);
  Page* turn_to(const CollectiveCall& call, int cycle);
  WriteOutcome conclude(const PageAccount& account);

  int64_t granule_of(const CollectiveCall& call) const;

  comm::Comm& comm;
  io::MechanismFile& file;
  layout::Geometry geometry;
  plan::Team team;
  std::unique_ptr<comm::Transfers> transfers;
  ExchangePools pools;
  Peers peers;
  std::unique_ptr<NodePages> node_pages;
  std::unique_ptr<NodeOutbox> outbox;
  std::optional<NodeLeaders> leaders;
  WriteObserver* observer = nullptr;
  io::FileSync* sync = nullptr;
  AlignedBuffer staging, staging_alone;
  Spent together, by_itself;
  PhaseTimes& times = together.times;
  Traffic& traffic = together.traffic;
  WriterPages pages;
  std::unique_ptr<io::BehindFile> behind;  // made for the first algorithm that asks for it
  DescriptionBytes description_bytes;

  std::shared_ptr<Stager> stager;
  Stager::Lane lane;
  int64_t staged_limit_bytes = 0;
  Retired<StagedPage> retired_pages;
  Retired<StagedPiece> retired_pieces;
  const std::shared_ptr<StreamAccount> staged_alone = std::make_shared<StreamAccount>();
  std::unique_ptr<WriteBehind> write_behind;  // nullptr: the lane takes what is staged alone
  // Writes this rank's pages that are full or wanted, and sees to it that nothing stays there for
  // long.
  struct Service final : Chore {
    explicit Service(State& s) : state(s) {}
    void run(Why why) noexcept override {
      const WriteBehind::Target target{state.file, state.observer, state.sync};
      state.write_behind->serve_asked(target);
      if (why == Why::due) state.write_behind->serve_older(target, seconds);
    }
    State& state;
    double seconds = 0;
  };
  Service service{*this};
  bool serves = false;
  // Takes in what other nodes send; more often while they do.
  struct Receiving final : Chore {
    explicit Receiving(State& s) : state(s) {}
    void run(Why why) noexcept override {
      if (why == Why::due)
        busy = state.write_behind->step({state.file, state.observer, state.sync});
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

// --- The call ---

void Pipeline::State::begin(const WriteRequest& request, const Policy& policy, How how) {
  begun = {.own = request.range, .mine = std::nullopt, .earlier = request.earlier};
  degraded.clear();
  const bool local = policy.algorithm != nullptr && !policy.algorithm->exchanges;
  if (!local) begun.summary = summarise(request);
  // Without an exchange nobody needs to know the others: the exit agreement is enough.
  const plan::Crowd crowd = local ? plan::Crowd() : meet(comm, begun.summary, times.plan_s);
  begun.algorithm =
      policy.algorithm != nullptr ? policy.algorithm : &policy.decide(crowd, team, geometry);
  if (begun.algorithm->exchanges)
    exchange(request, policy, crowd, how);
  else  // a cycle that `auto` was given is meant for what exchanges
    begin_alone(request, local ? policy.parameters : plan::Parameters(), how);
}

WriteOutcome Pipeline::State::end() {
  if (begun.last_staged > 0) stager->wait(lane, begun.last_staged);
  WriteOutcome outcome;
  if (begun.plan == nullptr) {
    outcome = end_alone();
  } else {
    outcome = conclude(begun.pages != nullptr ? *begun.pages : pages.account());
    if (begun.spent != nullptr) together = together + *begun.spent;
  }
  outcome.algorithm = begun.algorithm;
  begun = {};
  return outcome;
}

// --- Without an exchange ---

// Ranks that take turns have no use for a stager: it would write for all of them at once.
void Pipeline::State::begin_alone(const WriteRequest& request, const plan::Parameters& parameters,
                                  How how) {
  if (how == How::written || parameters.at_once > 0) {
    begun.alone = write_own(request, parameters);
    return;
  }
  begun.stream = std::make_shared<StreamAccount>();
  begun.alone = stage(request, begun.stream, times, begun.last_staged);
}

WriteOutcome Pipeline::State::end_alone() {
  WriteOutcome outcome = *std::move(begun.alone);
  if (begun.stream != nullptr) {
    const StagedNotes notes = begun.stream->notes();
    const int64_t first = begun.stream->first_missing(begun.own.begin + outcome.prefix_bytes);
    outcome.prefix_bytes = first - begun.own.begin;
    outcome.written_bytes = notes.written_bytes;
    outcome.mine = worst_of(outcome.mine, notes.failure);
    together = together + notes.spent;
  }
  outcome.mine = worst_of(outcome.mine, begun.earlier);
  const Result<void> agreed =
      comm::agree(comm, outcome.mine ? tl::unexpected(*outcome.mine) : Result<void>());
  outcome.agreed = agreed ? ErrorClass::none : agreed.error().error_class;
  return outcome;
}

// --- With one ---

void Pipeline::State::exchange(const WriteRequest& request, const Policy& policy,
                               const plan::Crowd& crowd, How how) {
  begun.plan = place(*begun.algorithm, policy, crowd);
  if (begun.summary.bytes == 0) begun.own = {};
  begun.view = *request.view;
  UserData data(request.memory, request.memory_type, request.memory_count, begun.own.begin);
  std::vector<Peer> senders;
  {
    const Stopwatch watch(times.plan_s);
    auto introduced = peers.introduce(comm, *transfers, *begun.plan, crowd, begun.view.filetype());
    if (!introduced) abandon(introduced.error());
    senders = *std::move(introduced);
    pools.require(senders.empty());
    traffic.descriptions = peers.descriptions();
    auto known = learn_cuts(std::move(begun.plan), comm, *transfers, {begun.view, begun.own},
                            begun.summary, senders, traffic);
    if (!known) abandon(known.error());
    begun.plan = *std::move(known);
  }
  const plan::Plan& plan = *begun.plan;
  NodePages* const node = share_pages(plan, policy.exchange);
  NodeLeaders* const led = choose_leaders(plan, policy.exchange);
  layout::Cursor cursor = begun.view.cursor();
  const CollectiveCall call{plan, crowd,       begun.view, begun.own, begun.summary, comm.rank(),
                            data, policy.pack, *transfers, pools,     senders,       node,
                            led,  cursor,      times,      traffic};
  std::optional<StagedPages> staged;
  if (how == How::staged && !begun.algorithm->scatters) {  // else it is written when this returns
    begun.spent = std::make_unique<Spent>();
    begun.pages = std::make_unique<PageAccount>(*begun.spent, observer, sync);
    staged.emplace(staging_area(), file, *begun.pages, *begun.spent, observer);
  }
  using Memory = WriterPages::Memory;
  // Pages that the node fills lie in the segment that it shares, where there is no room to stage.
  const std::optional<int> writer = plan.writer_of(comm.rank());
  Collected collected(call, writer.value_or(0));
  pages.begin(plan, writer, granule_of(call), begun.algorithm->scatters ? &collected : nullptr,
              staged ? &*staged : nullptr,
              staged && node == nullptr ? Memory::of_the_stager : Memory::of_the_file,
              staged ? nullptr : writer_thread(plan));
  run_cycles(call);
  if (staged) begun.last_staged = staged->last();
}

// Every rank its own bytes; end_alone() agrees on how it went.
WriteOutcome Pipeline::State::write_own(const WriteRequest& request,
                                        const plan::Parameters& parameters) {
  AloneContext context{file, staging, observer, sync, times, traffic, parameters.cycle_bytes};
  std::optional<Turns> turns = take_turns(request, parameters);
  if (turns) {
    context.turns = &*turns;
    context.cycle_bytes = cycle_of(parameters);
  }
  WriteOutcome outcome = alone(request, context);
  if (Result<void> r = transfers->finish(); !r) abandon(r.error());
  return outcome;
}

// nullopt where all may write at once. The ranks agree on the rounds first: each takes part in all
// of them.
std::optional<Turns> Pipeline::State::take_turns(const WriteRequest& request,
                                                 const plan::Parameters& parameters) {
  if (parameters.at_once == 0 || parameters.at_once >= comm.size()) return std::nullopt;
  const Stopwatch watch(times.plan_s);
  int64_t rounds[] = {divide_up(taken_part(request).size(), cycle_of(parameters))};
  if (Result<void> r = comm.all_max(rounds); !r) abandon(r.error());
  return Turns(comm, *transfers, parameters.at_once, rounds[0]);
}

// What this rank brings: nothing when its arguments or its memory failed it.
plan::Summary Pipeline::State::summarise(const WriteRequest& request) {
  plan::Summary s;
  std::optional<Error>& mine = begun.mine;
  // A rank that brings nothing may still write what others bring.
  const Result<void> room = pools.reserve();
  if (request.argument_error != ErrorClass::none) {
    mine = Error{request.argument_error, 0, "write", "the arguments are not valid on this rank"};
  } else if (!room) {
    mine = room.error();
  } else {
    s = plan::summarise(*request.view, request.range,
                        description_bytes.of(request.view->filetype()));
  }
  if (mine) s.error = uint32_t(mine->error_class);
  return s;
}

std::unique_ptr<const plan::Plan> Pipeline::State::place(const plan::Algorithm& algorithm,
                                                         const Policy& policy,
                                                         const plan::Crowd& crowd) {
  plan::Parameters parameters = policy.parameters;
  parameters.cycle_bytes = cycle_for(parameters.cycle_bytes, algorithm, policy.exchange, team);
  // Pure and fed alike, so it fails on every rank or on none; parameters were checked when parsed.
  auto plan = algorithm.place(parameters, team, crowd, geometry);
  if (!plan) abandon(plan.error());
  return *std::move(plan);
}

// Where the pages of this node's writers are filled by all of its ranks; nullptr: by messages.
NodePages* Pipeline::State::share_pages(const plan::Plan& plan, const Exchange* exchange) {
  const bool asked = exchange != nullptr && exchange->shares_pages && comm.size() > 1;
  if (!asked || begun.algorithm->scatters) {
    if (node_pages != nullptr) node_pages->rest();
    // Only the writer knows how such a page is laid out.
    if (asked) note_degraded("pages that collect scattered bytes are filled by messages");
    return nullptr;
  }
  const Stopwatch watch(times.plan_s);
  if (node_pages == nullptr) {
    auto made = NodePages::make(comm, file);
    if (!made) abandon(made.error());
    node_pages = *std::move(made);
  }
  if (node_pages->begin(plan)) return node_pages.get();
  note_degraded(node_pages->why_not());
  return nullptr;
}

// Where the ranks of a node send together to other nodes' writers; nullptr: each for itself.
NodeLeaders* Pipeline::State::choose_leaders(const plan::Plan& plan, const Exchange* exchange) {
  const bool asked = exchange != nullptr && exchange->outbox_bytes > 0 && comm.nodes() > 1;
  // Where pages collect scattered bytes, share_pages() has said that messages are used.
  if (!asked || begun.algorithm->scatters) return nullptr;
  const Stopwatch watch(times.plan_s);
  if (outbox == nullptr) {
    auto made = NodeOutbox::make(comm);
    if (!made) abandon(made.error());
    outbox = *std::move(made);
    leaders.emplace(*outbox);
  }
  if (outbox->begin(plan, exchange->outbox_bytes)) return &*leaders;
  note_degraded(outbox->why_not());
  return nullptr;
}

// The thread that writes this rank's pages; nullptr: this one does.
io::BehindFile* Pipeline::State::writer_thread(const plan::Plan& plan) {
  if (!begun.algorithm->writes_behind || !plan.writer_of(comm.rank())) return nullptr;
  if (behind == nullptr) behind = std::make_unique<io::BehindFile>(file);
  behind->set_sync(sync);
  const Result<void> started = behind->start();
  if (started) return behind.get();
  note_degraded(
      std::string(begun.algorithm->name) +
      ": its thread could not be started, so the rank writes itself: " + started.error().message());
  return nullptr;
}

void Pipeline::State::note_degraded(const std::string& why) {
  degraded += (degraded.empty() || why.empty() ? "" : "; ") + why;
}

void Pipeline::State::run_cycles(const CollectiveCall& call) {
  SliceQueue slices(plan::Slices(call.plan, call.view, call.own, call.summary, call.rank));
  // A leader may send when it has nothing itself.
  const int sending = call.leaders != nullptr ? call.plan.cycles()
                                              : call.plan.cycles_of(call.summary, call.rank).end;
  for (int cycle = 0; cycle < std::max(pages.cycles(), sending); ++cycle) {
    ++traffic.cycles;
    Page* const page = cycle < pages.cycles() ? turn_to(call, cycle) : nullptr;
    run_cycle(call, cycle, slices, page);
    if (page != nullptr) pages.submit(cycle);
  }
  pages.finish();
  if (Result<void> r = transfers->finish(); !r) abandon(r.error());
}

// The page of this cycle. One that is shared is opened a cycle ahead: while this rank writes, the
// others fill the next. Where a thread writes, this rank is back in time to open it.
Page* Pipeline::State::turn_to(const CollectiveCall& call, int cycle) {
  const int ahead = call.node != nullptr && pages.slots() > 1 && !pages.are_behind() ? 1 : 0;
  const int last = std::min(cycle + ahead, pages.cycles() - 1);
  for (int next = cycle; next <= last; ++next) {
    if (pages.is_open(next)) continue;
    const Page& opened = pages.open(next);
    if (call.node != nullptr) call.node->open(opened, fillers_of(call, opened));
  }
  return &pages.open(cycle);
}

// --- Errors and counts ---

WriteOutcome Pipeline::State::conclude(const PageAccount& account) {
  WriteOutcome outcome;
  outcome.prefix_bytes = begun.own.size();
  outcome.written_bytes = account.written_bytes();
  outcome.mine = worst_of(worst_of(begun.mine, account.failure()), begun.earlier);
  const Verdict verdict = exec::conclude(comm, outcome.mine, account.faults());
  outcome.agreed = verdict.agreed;
  if (verdict.faults_per_rank > 0) {
    plan::Slices slices(*begun.plan, begun.view, begun.own, begun.summary, comm.rank());
    outcome.prefix_bytes = intact_prefix(*begun.plan, begun.view, begun.own, slices, verdict.faults,
                                         verdict.faults_per_rank);
  }
  if (seeded_fault("error_swallowed") && comm.rank() == comm.size() - 1)
    outcome.agreed = ErrorClass::none;
  return outcome;
}

// The greatest unit that divides every place where a page or a part of it is cut, but for the
// page's own ends.
int64_t Pipeline::State::granule_of(const CollectiveCall& call) const {
  int64_t g = kMessageBytes;
  if (!call.own.empty()) g = common_granule(g, call.view, call.summary);
  for (const Peer& p : call.peers) g = common_granule(g, p.part.view, p.summary);
  return g;
}

WriteOutcome Pipeline::State::alone(const WriteRequest& request, const AloneContext& context) {
  const StreamRange own = taken_part(request);
  UserData data(request.memory, request.memory_type, request.memory_count, own.begin);
  WriteOutcome outcome = exec::write_alone(context, *request.view, own, data);
  if (request.argument_error == ErrorClass::none) return outcome;
  outcome.agreed = request.argument_error;
  outcome.mine = Error{request.argument_error, 0, "write", "the arguments are not valid"};
  return outcome;
}

// Copies the bytes to where the I/O thread takes them from.
WriteOutcome Pipeline::State::stage(const WriteRequest& request,
                                    const std::shared_ptr<StreamAccount>& account,
                                    PhaseTimes& spent, int64_t& last) {
  WriteOutcome outcome;
  if (request.argument_error != ErrorClass::none) {
    outcome.mine = Error{request.argument_error, 0, "write", "the arguments are not valid"};
  } else {
    UserData data(request.memory, request.memory_type, request.memory_count, request.range.begin);
    StagedStream staged = stage_stream(staging_area(), {file, observer, sync}, account,
                                       *request.view, request.range, data, spent);
    outcome.prefix_bytes = staged.bytes;
    outcome.mine = std::move(staged.mine);
    last = staged.last;
  }
  if (outcome.mine) outcome.agreed = outcome.mine->error_class;
  return outcome;
}

// Into the pages that the node shares; where the machine has no memory for any, or no thread that
// bounds their stay, into the file.
WriteOutcome Pipeline::State::accept(const WriteRequest& request) {
  WriteOutcome outcome;
  if (serves) outcome = write_behind->write({file, observer, sync}, request);
  StreamRange rest = request.range;
  rest.begin += outcome.prefix_bytes;
  if (rest.empty() || outcome.mine) return outcome;
  if (write_behind->shipping() != nullptr && write_behind->shipping()->owners_alone()) {
    outcome.mine = Error{ErrorClass::no_memory, 0, "write behind",
                         "no memory for file pages, and no other way into this file system"};
    outcome.agreed = outcome.mine->error_class;
    return outcome;
  }
  flush_pages();
  UserData data(request.memory, request.memory_type, request.memory_count, request.range.begin);
  WriteOutcome last =
      exec::write_alone({file, staging_alone, observer, sync, by_itself.times, by_itself.traffic},
                        *request.view, rest, data);
  write_behind->note_written(last.written_bytes);
  last.prefix_bytes += outcome.prefix_bytes;
  return last;
}

WriteOutcome Pipeline::State::stage_alone(const WriteRequest& request) {
  if (write_behind != nullptr && request.argument_error == ErrorClass::none) return accept(request);
  int64_t last = 0;
  return stage(request, staged_alone, by_itself.times, last);
}

void Pipeline::State::flush_pages() {
  if (write_behind != nullptr) write_behind->flush({file, observer, sync});
}

void Pipeline::State::stop_receiving() {
  if (receives) stager->remove(receiving);
  receives = false;
}

void Pipeline::State::end_shipping() {
  stop_receiving();
  if (write_behind != nullptr) write_behind->end_shipping({file, observer, sync});
}

// --- The public face ---

Pipeline::Pipeline(comm::Comm& comm, io::MechanismFile& file, const layout::Geometry& geometry)
    : state_(std::make_unique<State>(comm, file, geometry)) {}
Pipeline::~Pipeline() {
  state_->end_shipping();  // other ranks may be gone
  drain();
  if (state_->serves) state_->stager->remove(state_->service);
}

WriteOutcome Pipeline::write_all(const WriteRequest& request, const Policy& policy) {
  try {
    state_->begin(request, policy, State::How::written);
    return state_->end();
  } catch (const std::exception& e) {
    // Out of memory in the middle: the other ranks wait for messages that will never come.
    abandon(Error{ErrorClass::no_memory, 0, "collective write", e.what()});
  }
}
void Pipeline::begin_all(const WriteRequest& request, const Policy& policy) {
  try {
    state_->begin(request, policy, State::How::staged);
  } catch (const std::exception& e) {
    abandon(Error{ErrorClass::no_memory, 0, "collective write", e.what()});
  }
}
WriteOutcome Pipeline::end_all() {
  try {
    return state_->end();
  } catch (const std::exception& e) {
    abandon(Error{ErrorClass::no_memory, 0, "collective write", e.what()});
  }
}
WriteOutcome Pipeline::write_alone(const WriteRequest& request) {
  State& s = *state_;
  return s.alone(request, {s.file, s.staging_alone, s.observer, s.sync, s.by_itself.times,
                           s.by_itself.traffic});
}
WriteOutcome Pipeline::stage_alone(const WriteRequest& request) {
  return state_->stage_alone(request);
}
void Pipeline::drain() {
  drain_lane();
  state_->flush_pages();
}
void Pipeline::drain_lane() {
  if (state_->stager != nullptr) state_->stager->drain(state_->lane);
}
Off Pipeline::pages_end() const {
  return state_->write_behind != nullptr ? state_->write_behind->end() : 0;
}
void Pipeline::drain_together() {
  drain_lane();
  flush_pages_together();
}
void Pipeline::flush_pages_together() {
  State& s = *state_;
  if (s.write_behind != nullptr) s.write_behind->flush_together({s.file, s.observer, s.sync});
}
void Pipeline::flush_pages() { state_->flush_pages(); }
bool Pipeline::start_shipping() {
  State& s = *state_;
  s.receives = s.serves && s.stager->add(s.receiving);
  return s.receives;
}
void Pipeline::stop_receiving() { state_->stop_receiving(); }
void Pipeline::end_shipping() { state_->end_shipping(); }
StagedNotes Pipeline::staged_notes() const {
  StagedNotes notes = state_->staged_alone->notes();
  if (state_->write_behind != nullptr)
    notes = joined(std::move(notes), state_->write_behind->notes());
  return notes;
}
void Pipeline::set_write_behind(std::unique_ptr<WriteBehind> behind, double seconds) {
  state_->write_behind = std::move(behind);
  state_->service.seconds = seconds;
  state_->serves = state_->stager->add(state_->service);
}
void Pipeline::set_stager(std::shared_ptr<Stager> stager, int64_t limit_bytes) {
  state_->stager = std::move(stager);
  state_->staged_limit_bytes = limit_bytes;
}
void Pipeline::set_observer(WriteObserver* observer) noexcept {
  state_->observer = observer;
  state_->pages.set_observer(observer);
}
void Pipeline::set_sync(io::FileSync* sync) noexcept {
  state_->sync = sync;
  state_->pages.set_sync(sync);
}
const std::string& Pipeline::degraded() const noexcept { return state_->degraded; }
const Spent& Pipeline::spent_together() const noexcept { return state_->together; }
const Spent& Pipeline::spent_alone() const noexcept { return state_->by_itself; }

}  // namespace penstock::exec
