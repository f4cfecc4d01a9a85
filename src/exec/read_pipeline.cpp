// A collective read from entry to exit: summaries, plan, end of the file, descriptions, cycles,
// agreement. The end of the file is rank 0's word, so that both sides of every message know its
// size; each reader still sees for itself what it could read.
#include "exec/read_pipeline.hpp"

#include <algorithm>
#include <climits>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "exec/abandon.hpp"
#include "exec/gathering.hpp"
#include "exec/intact.hpp"
#include "exec/read_alone.hpp"
#include "exec/read_cycle.hpp"
#include "exec/team.hpp"

namespace penstock::exec {

// What a reader could not read, as all ranks learn it.
class ReadFaults {
 public:
  void clear() {
    faults_.clear();
    failure_.reset();
    told_ = -1;
  }
  // Of a page whose first wanted byte is `first`.
  void note(int cycle, Off first, Off first_missing, const std::optional<Error>& error) {
    join(faults_, {cycle, cycle + 1, first_missing}, told_, first_missing <= first);
    if (error && (!failure_ || failure_->error_class < error->error_class)) failure_ = error;
  }
  void page_told(int cycle) { told_ = cycle; }
  const std::vector<WriterFault>& all() const noexcept { return faults_; }
  const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  std::vector<WriterFault> faults_;
  std::optional<Error> failure_;
  int told_ = -1;  // the cycle of the page before
};

struct ReadPipeline::State {
  State(comm::Comm& c, io::ReadableFile& f, const layout::Geometry& g)
      : comm(c), file(f), geometry(g), team(team_of(c)), transfers(c.transfers()) {}

  ReadOutcome read_all(const ReadRequest& request, const Pipeline::Policy& policy);

  // The steps of a collective read.
  plan::Summary summarise(const ReadRequest& request);
  std::unique_ptr<const plan::Plan> place(const plan::Algorithm& algorithm,
                                          const plan::Parameters& parameters,
                                          const plan::Crowd& crowd);
  ReadOutcome read_alone(const ReadRequest& request, UserRoom& room);
  ReadOutcome read_together(const ReadRequest& request, const plan::Plan& plan,
                            const plan::Crowd& crowd, UserRoom& room);
  Off agree_on_end();
  std::vector<Peer> introduce(const plan::Plan& plan, const plan::Crowd& crowd,
                              const layout::LoopTree& filetype);
  void run_cycles(const ReadCall& call);
  int next_page(const ReadCall& call, int from) const;
  OutgoingPage& read_page(const ReadCall& call, int cycle, int64_t granule);
  void fill_page(Off file_bytes);
  ReadOutcome conclude(const ReadCall& call);

  int64_t granule_of(const ReadCall& call) const;

  comm::Comm& comm;
  io::ReadableFile& file;
  layout::Geometry geometry;
  plan::Team team;
  std::unique_ptr<comm::Transfers> transfers;
  ExchangePools pools;
  Peers peers;
  OutgoingPage out;
  ReadScratch scratch;
  ReadSpent spent;
  DescriptionBytes description_bytes;

  // Of the call in progress.
  std::optional<Error> mine;  // what kept this rank from taking part with its range
  ReadFaults faults;
};

// --- The call ---

namespace {

// What lies beyond all offsets lies behind the end of every file.
ReadRequest within_files(ReadRequest request) {
  if (request.argument_error != ErrorClass::none) return request;
  const int64_t end = request.view->position_at(kLastOff);
  request.range.end = std::max(request.range.begin, std::min(request.range.end, end));
  return request;
}

}  // namespace

// All ranks meet even where each reads by itself: what another rank has written before its call is
// in the file then.
ReadOutcome ReadPipeline::State::read_all(const ReadRequest& asked,
                                          const Pipeline::Policy& policy) {
  const ReadRequest request = within_files(asked);
  mine.reset();
  faults.clear();
  const plan::Crowd crowd = meet(comm, summarise(request), spent.plan_s);
  const plan::Algorithm& algorithm =
      policy.algorithm != nullptr ? *policy.algorithm : policy.decide(crowd, team, geometry);
  UserRoom room(request.memory, request.memory_type, request.memory_count, request.range.begin);
  ReadOutcome outcome;
  if (algorithm.exchanges) {
    const auto plan = place(algorithm, policy.parameters, crowd);
    outcome = read_together(request, *plan, crowd, room);
  } else {
    outcome = read_alone(request, room);
  }
  outcome.algorithm = &algorithm;
  return outcome;
}

// A reader's page is one extent of the file: where a writer's is a list of what lies scattered,
// the bytes are read by even domains instead.
std::unique_ptr<const plan::Plan> ReadPipeline::State::place(const plan::Algorithm& algorithm,
                                                             const plan::Parameters& parameters,
                                                             const plan::Crowd& crowd) {
  const plan::Algorithm& cuts = algorithm.scatters ? *plan::find_algorithm("two_phase") : algorithm;
  // Pure and fed alike, so it fails on every rank or on none; parameters were checked when parsed.
  auto plan = cuts.place(plan::taken_by(cuts, parameters), team, crowd, geometry);
  if (!plan) abandon(plan.error());
  return *std::move(plan);
}

// What this rank wants: nothing when its arguments or its memory failed it.
plan::Summary ReadPipeline::State::summarise(const ReadRequest& request) {
  plan::Summary s;
  // A rank that takes nothing may still read for others.
  const Result<void> room = pools.reserve();
  if (request.argument_error != ErrorClass::none)
    mine = Error{
        request.argument_error, 0, "read",
        "this rank cannot take part: its arguments are not valid, or what it wrote before is lost"};
  else if (!room)
    mine = room.error();
  if (mine)
    s.error = uint32_t(mine->error_class);
  else
    s = plan::summarise(*request.view, request.range,
                        description_bytes.of(request.view->filetype()));
  return s;
}

ReadOutcome ReadPipeline::State::read_alone(const ReadRequest& request, UserRoom& room) {
  ReadOutcome outcome;
  if (!mine)
    outcome = exec::read_alone({file, out.page, spent}, *request.view, request.range, room);
  outcome.mine = worst_of(mine, outcome.mine);
  const Result<void> agreed =
      comm::agree(comm, outcome.mine ? tl::unexpected(*outcome.mine) : Result<void>());
  outcome.agreed = agreed ? ErrorClass::none : agreed.error().error_class;
  return outcome;
}

// Asked for after all have met, since a rank may have written just before it came. Where it cannot
// be had the file seems empty, and the error is told at the exit.
Off ReadPipeline::State::agree_on_end() {
  const Stopwatch watch(spent.plan_s);
  int64_t end[] = {0};
  if (comm.rank() == 0) {
    if (Result<int64_t> bytes = file.size(); bytes)
      end[0] = *bytes;
    else
      mine = std::move(bytes).error();
  }
  if (Result<void> r = comm.all_max(end); !r) abandon(r.error());
  return end[0];
}

ReadOutcome ReadPipeline::State::read_together(const ReadRequest& request, const plan::Plan& plan,
                                               const plan::Crowd& crowd, UserRoom& room) {
  const layout::FileView& view = *request.view;
  const StreamRange own = mine ? StreamRange{} : request.range;
  const Off file_bytes = agree_on_end();
  std::vector<Peer> takers = introduce(plan, crowd, view.filetype());
  pools.require(takers.empty());
  layout::Cursor cursor = view.cursor();
  const ReadCall call{{plan, crowd, view, own, crowd.summary(comm.rank()), comm.rank(), takers},
                      file_bytes,
                      view.position_at(file_bytes),
                      room,
                      *transfers,
                      pools,
                      cursor,
                      spent};
  run_cycles(call);
  return conclude(call);
}

std::vector<Peer> ReadPipeline::State::introduce(const plan::Plan& plan, const plan::Crowd& crowd,
                                                 const layout::LoopTree& filetype) {
  const Stopwatch watch(spent.plan_s);
  auto introduced = peers.introduce(comm, *transfers, plan, crowd, filetype);
  if (!introduced) abandon(introduced.error());
  spent.descriptions = peers.descriptions();
  return *std::move(introduced);
}

// A rank turns to the cycles in which it reads or receives, and to no others.
void ReadPipeline::State::run_cycles(const ReadCall& call) {
  SliceQueue slices(plan::Slices(call.plan, call.view, call.own, call.summary, call.rank));
  const int64_t granule = granule_of(call);
  int mine = next_page(call, 0);
  for (;;) {
    const int cycle = std::min(mine, slices.cycle());
    if (cycle == INT_MAX) break;
    ++spent.cycles;
    OutgoingPage* const page = mine == cycle ? &read_page(call, cycle, granule) : nullptr;
    run_read_cycle(call, cycle, slices, page, scratch);
    if (page != nullptr) mine = next_page(call, cycle + 1);
  }
  if (Result<void> r = transfers->finish(); !r) abandon(r.error());
}

// The first cycle at or behind `from` in which somebody wants bytes that this rank reads; INT_MAX
// when there is none.
int ReadPipeline::State::next_page(const ReadCall& call, int from) const {
  const auto writer = call.plan.writer_of(call.rank);
  if (!writer) return INT_MAX;
  const int cycle = next_with_bytes(call, *writer, from);
  return cycle < call.plan.cycles(*writer) ? cycle : INT_MAX;
}

// The page of this cycle: nothing where the file has ended before it.
OutgoingPage& ReadPipeline::State::read_page(const ReadCall& call, int cycle, int64_t granule) {
  out.writer = *call.plan.writer_of(call.rank);
  out.cycle = cycle;
  out.deliveries.clear();
  const Extent where = call.plan.extent(out.writer, out.cycle);
  if (where.empty() || where.begin >= call.file_bytes) return out;
  const int64_t cut = std::gcd(granule, std::gcd(where.begin, where.end));
  const Result<void> ready = out.page.reset(where, cut);
  collect_wanted(call, out);
  if (ready)
    fill_page(call.file_bytes);
  else
    faults.note(out.cycle, where.begin, where.begin, ready.error());
  faults.page_told(out.cycle);
  return out;
}

void ReadPipeline::State::fill_page(Off file_bytes) {
  const Stopwatch watch(spent.read_s);
  out.page.fill(file, file_bytes, spent.file);
  if (const auto missing = out.page.missing())
    faults.note(out.cycle, out.page.first_wanted(), *missing, out.page.error());
}

// --- Errors and counts ---

ReadOutcome ReadPipeline::State::conclude(const ReadCall& call) {
  ReadOutcome outcome;
  outcome.prefix_bytes =
      std::clamp(call.readable_end, call.own.begin, call.own.end) - call.own.begin;
  outcome.mine = worst_of(mine, faults.failure());
  const Verdict verdict = exec::conclude(comm, outcome.mine, faults.all());
  outcome.agreed = verdict.agreed;
  if (verdict.faults_per_rank == 0) return outcome;
  plan::Slices slices(call.plan, call.view, call.own, call.summary, call.rank);
  outcome.prefix_bytes =
      std::min(outcome.prefix_bytes, intact_prefix(call.plan, call.view, call.own, slices,
                                                   verdict.faults, verdict.faults_per_rank));
  return outcome;
}

// The greatest unit that divides every place where what is wanted of a page begins or ends, but for
// the page's own ends.
int64_t ReadPipeline::State::granule_of(const ReadCall& call) const {
  int64_t g = kMessageBytes;
  if (!call.own.empty()) g = common_granule(g, call.view, call.summary);
  for (const Peer& taker : call.peers) g = common_granule(g, taker.part.view, taker.summary);
  return g;
}

// --- The public face ---

ReadPipeline::ReadPipeline(comm::Comm& comm, io::ReadableFile& file,
                           const layout::Geometry& geometry)
    : state_(std::make_unique<State>(comm, file, geometry)) {}
ReadPipeline::~ReadPipeline() = default;

ReadOutcome ReadPipeline::read_all(const ReadRequest& request, const Pipeline::Policy& policy) {
  return or_abandon("collective read", [&] { return state_->read_all(request, policy); });
}
const ReadSpent& ReadPipeline::spent() const noexcept { return state_->spent; }

}  // namespace penstock::exec
