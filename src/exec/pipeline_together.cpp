// A collective write from entry to exit: summaries, plan, descriptions, cycles,
// agreement. Whatever fails, each rank plays its part to the end; only a
// broken protocol (a peer's message that cannot be understood) ends the job, because nobody could
// tell the others any more.
#include <algorithm>
#include <climits>

#include "base/clock.hpp"
#include "base/seeded_fault.hpp"
#include "exec/abandon.hpp"
#include "exec/beyond_files.hpp"
#include "exec/cuts.hpp"
#include "exec/gathering.hpp"
#include "exec/intact.hpp"
#include "exec/pipeline_state.hpp"

namespace penstock::exec {
namespace {

// Of ranks that take turns.
int64_t cycle_of(const plan::Parameters& parameters) {
  return parameters.cycle_bytes > 0 ? parameters.cycle_bytes : plan::kDefaultCycleBytes;
}

// Ranks that send together turn to every cycle, since who leads may have no bytes himself. That is
// for calls that bring something to a cycle; in others each rank sends for itself.
constexpr int64_t kBytesWorthACycle = 256;

bool is_sparse(const plan::Plan& plan, const plan::Crowd& crowd) {
  return plan.cycles() > crowd.bytes() / kBytesWorthACycle;
}

// Ranks that overlap may leave gaps, however many bytes they bring. Of views with holes, which
// bytes two ranks have is not known: they are taken for bytes of one.
bool leaves_no_gap(const plan::Crowd& crowd) {
  const bool apart = crowd.extents_disjoint() || !crowd.all_contiguous();
  return apart && crowd.bytes() == crowd.bounds().size();
}

}  // namespace

// --- The call ---

void Pipeline::State::begin(const WriteRequest& request, const Policy& policy, How how) {
  begun = {.own = request.range, .mine = std::nullopt, .earlier = request.earlier};
  degraded.clear();
  const bool local =
      policy.algorithm != nullptr && !policy.algorithm->exchanges && !policy.one_by_one;
  if (!local) begun.summary = summarise(request);
  // Without an exchange nobody needs to know the others: the exit agreement is enough.
  const plan::Crowd crowd = local ? plan::Crowd() : meet(comm, begun.summary, times.plan_s);
  begun.algorithm =
      policy.algorithm != nullptr ? policy.algorithm : &policy.decide(crowd, team, geometry);
  reserve(crowd);
  // Where a rank that failed would have written, nobody is told.
  if (policy.one_by_one && (!crowd.extents_disjoint() || crowd.worst_error() != 0))
    begin_one_by_one(request);
  else if (begun.algorithm->exchanges)
    exchange(request, policy, crowd, how);
  else  // a cycle that `auto` was given is meant for what exchanges
    begin_alone(request, policy.algorithm != nullptr ? policy.parameters : plan::Parameters(), how);
}

WriteOutcome Pipeline::State::end() {
  if (begun.last_staged > 0) stager->wait(*lane, begun.last_staged);
  WriteOutcome outcome;
  if (begun.plan == nullptr) {
    outcome = end_alone();
  } else {
    outcome = conclude(account_of_begun());
    if (begun.spent != nullptr) together = together + *begun.spent;
  }
  outcome.algorithm = begun.algorithm;
  begun = {};
  return outcome;
}

// By one rank for all: the call's blocks come to lie together.
void Pipeline::State::reserve(const plan::Crowd& crowd) {
  if (comm.rank() != 0 || !leaves_no_gap(crowd)) return;
  const Stopwatch watch(times.write_s);
  file.reserve(crowd.bounds());
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

void Pipeline::State::begin_one_by_one(const WriteRequest& request) {
  plan::Parameters turns;
  turns.at_once = 1;
  turns.cycle_bytes = kLastOff;  // all of it at a time
  begun.algorithm = plan::find_algorithm("individual");
  begin_alone(request, turns, How::written);
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
  NodeLeaders* const led = choose_leaders(plan, crowd, policy.exchange);
  layout::Cursor cursor = begun.view.cursor();
  const CollectiveCall call{
      {plan, crowd, begun.view, begun.own, begun.summary, comm.rank(), senders},
      data,
      policy.pack,
      *transfers,
      pools,
      node,
      led,
      cursor,
      times,
      traffic};
  std::optional<StagedPages> staged;
  if (how == How::staged && !begun.algorithm->scatters) {  // else it is written when this returns
    begun.spent = std::make_unique<Spent>();
    begun.pages = std::make_unique<PageAccount>(*begun.spent, sync);
    staged.emplace(staging_area(), file, *begun.pages, *begun.spent);
  }
  using Memory = WriterPages::Memory;
  // Pages that the node fills lie in the segment that it shares, where there is no room to stage.
  const std::optional<int> writer = plan.writer_of(comm.rank());
  Collected collected(call, writer.value_or(0));
  pages.begin(plan, writer, granule_of(call), begun.algorithm->scatters ? &collected : nullptr,
              staged ? &*staged : nullptr,
              staged && node == nullptr ? Memory::of_the_stager : Memory::of_the_file,
              staged ? nullptr : writer_thread(plan));
  whole_places.begin(call, plan.page_bytes());
  run_cycles(call);
  if (node != nullptr) node->end();
  if (staged) begun.last_staged = staged->last();
}

// Every rank its own bytes; end_alone() agrees on how it went.
WriteOutcome Pipeline::State::write_own(const WriteRequest& request,
                                        const plan::Parameters& parameters) {
  AloneContext context{file, staging, sync, times, traffic, parameters.cycle_bytes};
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
  } else if (reaches_beyond_files(*request.view, request.range)) {
    mine = beyond_every_file("write");
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

// The ranks of this node; nullptr on all ranks of the file: there is no communicator for them.
std::unique_ptr<comm::Comm> Pipeline::State::part_of_node() {
  if (why_no_node.empty()) {
    auto part = comm::of_this_node(comm);
    if (part) return *std::move(part);
    why_no_node =
        "ranks of a node share no memory, so messages are used: " + part.error().message();
  }
  note_degraded(why_no_node);
  return nullptr;
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
    auto part = part_of_node();
    if (part == nullptr) return nullptr;
    auto made = NodePages::make(comm, std::move(part), file);
    if (!made) abandon(made.error());
    node_pages = *std::move(made);
  }
  if (node_pages->begin(plan)) return node_pages.get();
  note_degraded(node_pages->why_not());
  return nullptr;
}

// Where the ranks of a node send together to other nodes' writers; nullptr: each for itself.
NodeLeaders* Pipeline::State::choose_leaders(const plan::Plan& plan, const plan::Crowd& crowd,
                                             const Exchange* exchange) {
  const bool asked = exchange != nullptr && exchange->outbox_bytes > 0 && comm.nodes() > 1;
  // Where pages collect scattered bytes, share_pages() has said that messages are used.
  if (!asked || begun.algorithm->scatters || is_sparse(plan, crowd)) return nullptr;
  const Stopwatch watch(times.plan_s);
  if (outbox == nullptr) {
    auto part = part_of_node();
    if (part == nullptr) return nullptr;
    auto made = NodeOutbox::make(comm, std::move(part));
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
  if (degraded.find(why) != std::string::npos) return;  // said of another part of the call
  degraded += (degraded.empty() || why.empty() ? "" : "; ") + why;
}

// A rank turns to the cycles in which it writes or sends, and to no others.
void Pipeline::State::run_cycles(const CollectiveCall& call) {
  SliceQueue slices(plan::Slices(call.plan, call.view, call.own, call.summary, call.rank));
  int mine = next_page(call, 0);
  const auto next = [&](int from) {
    // A leader may send when it has nothing itself.
    if (call.leaders != nullptr) return from < call.plan.cycles() ? from : INT_MAX;
    return std::min(mine, slices.cycle());
  };
  for (int cycle = next(0); cycle != INT_MAX; cycle = next(cycle + 1)) {
    ++traffic.cycles;
    Page* const page = mine == cycle ? turn_to(call, cycle) : nullptr;
    run_cycle(call, cycle, slices, page);
    if (page == nullptr) continue;
    learn_whole(*page);
    pages.submit(cycle);
    mine = next_page(call, cycle + 1);
  }
  pages.finish();
  if (Result<void> r = transfers->finish(); !r) abandon(r.error());
}

// The first cycle at or behind `from` in which this rank writes; INT_MAX when there is none.
int Pipeline::State::next_page(const CollectiveCall& call, int from) const {
  if (from >= pages.cycles()) return INT_MAX;
  const int cycle = next_with_bytes(call, *call.plan.writer_of(call.rank), from);
  return cycle < pages.cycles() ? cycle : INT_MAX;
}

// The page of this cycle. One that is shared is opened a page ahead: while this rank writes, the
// others fill the next. Where a thread writes, this rank is back in time to open it.
Page* Pipeline::State::turn_to(const CollectiveCall& call, int cycle) {
  open_page(call, cycle);
  if (call.node != nullptr && pages.slots() > 1 && !pages.are_behind()) {
    const int ahead = next_page(call, cycle + 1);
    if (ahead != INT_MAX && pages.may_open_beside(ahead, cycle)) open_page(call, ahead);
  }
  return &pages.open(cycle);
}

void Pipeline::State::open_page(const CollectiveCall& call, int cycle) {
  if (pages.is_open(cycle)) return;
  Page& opened = pages.open(cycle);
  expect_whole(opened);
  if (call.node != nullptr) call.node->open(opened, fillers_of(call, opened));
}

// Before it is filled. A page without holes in a call that repeats another needs not be followed.
void Pipeline::State::expect_whole(Page& page) {
  if (!page.usable() || page.list != nullptr || !cycles_end_in_file(*begun.algorithm)) return;
  if (!whole_places.hold(page.where)) return;
  page.known_whole = true;
  page.coverage.add(page.where);
  ++traffic.known_pages;
}

// When it has been filled.
void Pipeline::State::learn_whole(const Page& page) {
  const bool followed = page.usable() && page.list == nullptr && !page.known_whole;
  if (followed && whole_places.would_keep(page.where) && page.coverage.complete())
    whole_places.learn(page.where);
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

}  // namespace penstock::exec
