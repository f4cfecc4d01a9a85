// A collective write from entry to exit: summaries, plan, descriptions, cycles,
// agreement. Whatever fails, each rank plays its part to the end; only a
// broken protocol (a peer's message that cannot be understood) ends the job, because nobody could
// tell the others any more.
#include "exec/pipeline.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>

#include "base/clock.hpp"
#include "base/seeded_fault.hpp"
#include "exec/alone.hpp"
#include "exec/cycle.hpp"
#include "exec/sown_faults.hpp"

namespace penstock::exec {
namespace {

// What a writer could not put into the file, as all ranks learn it: in cycle `begin` the bytes from
// first_missing on, and all of the cycles behind it until `end`.
struct WriterFault {
  int64_t begin = 0, end = 0;  // begin == end: none
  Off first_missing = 0;
};

[[noreturn]] void abandon(const Error& error) {
  std::fprintf(stderr, "penstock: ranks can no longer understand each other, ending the job: %s\n",
               error.message().c_str());
  std::abort();
}

// The first stream byte of a slice that its writer's faults left out; slice.src.end when none. A
// cycle can have two: of a write, and of a sync that lost what was written before.
int64_t first_missing(const layout::FileView& view, const plan::Slice& slice,
                      std::span<const WriterFault> faults) {
  int64_t first = slice.src.end;
  for (const WriterFault& f : faults) {
    if (slice.cycle < f.begin || slice.cycle >= f.end) continue;
    if (slice.cycle > f.begin) return slice.src.begin;
    first = std::min(first,
                     std::clamp(view.position_at(f.first_missing), slice.src.begin, slice.src.end));
  }
  return first;
}

// How much of `own` is in the file, from its beginning. `by_rank`: the same number of faults for
// each rank.
int64_t intact_prefix(const CollectiveCall& call, std::span<const WriterFault> by_rank,
                      size_t per_rank) {
  int64_t end = call.own.end;
  plan::Slices slices(call.plan, call.view, call.own, call.summary, call.rank);
  while (const auto slice = slices.next()) {
    const auto writer = size_t(call.plan.writer_rank(slice->writer));
    const int64_t first =
        first_missing(call.view, *slice, by_rank.subspan(writer * per_rank, per_rank));
    if (first < slice->src.end) end = std::min(end, first);
  }
  return end - call.own.begin;
}

}  // namespace

struct Pipeline::State {
  State(comm::Comm& c, io::MechanismFile& f, const layout::Geometry& g)
      : comm(c),
        file(f),
        geometry(g),
        team{c.size(), c.nodes(), c.cores_per_node()},
        transfers(c.transfers()) {}

  WriteOutcome write_all(const WriteRequest& request, const Policy& policy);
  WriteOutcome alone(const WriteRequest& request, AlignedBuffer& buffer, Spent& spent);

  // The steps of a collective write.
  plan::Summary summarise(const WriteRequest& request);
  plan::Crowd meet(const plan::Summary& mine);
  std::unique_ptr<const plan::Plan> place(const plan::Algorithm& algorithm,
                                          const plan::Parameters& parameters,
                                          const plan::Crowd& crowd);
  void run_cycles(const CollectiveCall& call);
  void fill_and_write(const CollectiveCall& call, int cycle, SliceQueue& slices, int writer);
  void submit(int cycle, io::Lease lease);
  int64_t write_page(int cycle, io::Lease lease, std::span<const Extent> dirty);
  void follow(int cycle, Extent dirty, int64_t bytes);
  WriteOutcome conclude(const CollectiveCall& call);

  void fail_with(const Error& error);
  void record_fault(int cycle, Extent page, const io::Fault& fault);
  std::vector<WriterFault> gather_faults(size_t per_rank);
  int64_t common_granule(const CollectiveCall& call) const;
  uint32_t description_bytes(const layout::LoopTree& filetype);

  comm::Comm& comm;
  io::MechanismFile& file;
  layout::Geometry geometry;
  plan::Team team;
  std::unique_ptr<comm::Transfers> transfers;
  ExchangePools pools;
  Peers peers;
  layout::Coverage coverage;
  WriteObserver* observer = nullptr;
  io::FileSync* sync = nullptr;
  AlignedBuffer staging, staging_alone;
  Spent together, by_itself;
  PhaseTimes& times = together.times;
  Traffic& traffic = together.traffic;
  Hash described_shape = 0;
  uint32_t described_bytes = 0;

  // Of the call in progress.
  std::optional<Error> mine;
  std::vector<WriterFault> faults;  // of this rank as a writer
  int64_t written = 0;
  int64_t granule = 1;
  // What it wrote since the policy's last sync: from this cycle and file byte on.
  struct Unsynced {
    int cycle;
    Off begin;
    int64_t bytes;
  };
  std::optional<Unsynced> unsynced;
};

// --- The call ---

WriteOutcome Pipeline::State::write_all(const WriteRequest& request, const Policy& policy) {
  mine.reset();
  faults.clear();
  written = 0;
  unsynced.reset();
  const bool local = policy.algorithm != nullptr && !policy.algorithm->exchanges;
  const plan::Summary summary = local ? plan::Summary() : summarise(request);
  // Without an exchange nobody needs to know the others: the exit agreement is enough.
  const plan::Crowd crowd = local ? plan::Crowd() : meet(summary);
  const plan::Algorithm& algorithm =
      policy.algorithm != nullptr ? *policy.algorithm : policy.decide(crowd, team, geometry);
  if (!algorithm.exchanges) {
    WriteOutcome outcome = alone(request, staging, together);
    if (Result<void> agreed =
            comm::agree(comm, outcome.mine ? tl::unexpected(*outcome.mine) : Result<void>());
        !agreed)
      outcome.agreed = agreed.error().error_class;
    outcome.algorithm = &algorithm;
    return outcome;
  }

  const auto plan = place(algorithm, policy.parameters, crowd);
  const bool takes_part = summary.bytes > 0;
  const StreamRange own = takes_part ? request.range : StreamRange{};
  UserData data(request.memory, request.memory_type, request.memory_count, own.begin);
  std::vector<Peer> senders;
  {
    const Stopwatch watch(times.plan_s);
    auto introduced = peers.introduce(comm, *transfers, *plan, crowd, request.view->filetype());
    if (!introduced) abandon(introduced.error());
    senders = *std::move(introduced);
    traffic.descriptions = peers.descriptions();
  }
  const CollectiveCall call{*plan, crowd,      *request.view, own,     summary, comm.rank(),
                            data,  *transfers, pools,         senders, times,   traffic};
  granule = common_granule(call);
  run_cycles(call);
  WriteOutcome outcome = conclude(call);
  outcome.algorithm = &algorithm;
  return outcome;
}

// What this rank brings: nothing when its arguments or its memory failed it.
plan::Summary Pipeline::State::summarise(const WriteRequest& request) {
  plan::Summary s;
  if (request.argument_error != ErrorClass::none) {
    mine = Error{request.argument_error, 0, "write", "the arguments are not valid on this rank"};
  } else if (Result<void> r = pools.reserve(); !r) {
    mine = r.error();
  } else {
    s = plan::summarise(*request.view, request.range, description_bytes(request.view->filetype()));
  }
  if (mine) s.error = uint32_t(mine->error_class);
  return s;
}

uint32_t Pipeline::State::description_bytes(const layout::LoopTree& filetype) {
  if (described_bytes != 0 && described_shape == filetype.hash()) return described_bytes;
  std::vector<std::byte> out;
  filetype.serialise(out);
  described_shape = filetype.hash();
  described_bytes = uint32_t(out.size());
  return described_bytes;
}

plan::Crowd Pipeline::State::meet(const plan::Summary& summary) {
  const Stopwatch watch(times.plan_s);
  std::vector<plan::Summary> all(size_t(comm.size()));
  const Result<void> r =
      comm.allgather(std::as_bytes(std::span(&summary, 1)), std::as_writable_bytes(std::span(all)));
  if (!r) abandon(r.error());
  return plan::Crowd::from(all);
}

std::unique_ptr<const plan::Plan> Pipeline::State::place(const plan::Algorithm& algorithm,
                                                         const plan::Parameters& parameters,
                                                         const plan::Crowd& crowd) {
  auto plan = algorithm.place(parameters, team, crowd, geometry);
  // Pure and fed alike, so it fails on every rank or on none; parameters were checked when parsed.
  if (!plan) abandon(plan.error());
  return *std::move(plan);
}

void Pipeline::State::run_cycles(const CollectiveCall& call) {
  SliceQueue slices(plan::Slices(call.plan, call.view, call.own, call.summary, call.rank));
  const std::optional<int> writer = call.plan.writer_of(call.rank);
  const int my_cycles = writer ? call.plan.cycles(*writer) : 0;
  const int sending = call.plan.cycles_of(call.summary, call.rank).end;
  for (int cycle = 0; cycle < std::max(my_cycles, sending); ++cycle) {
    ++traffic.cycles;
    if (cycle < my_cycles)
      fill_and_write(call, cycle, slices, *writer);
    else
      run_cycle(call, cycle, slices, nullptr);
  }
  if (Result<void> r = transfers->finish(); !r) abandon(r.error());
}

void Pipeline::State::fill_and_write(const CollectiveCall& call, int cycle, SliceQueue& slices,
                                     int writer) {
  const Extent where = call.plan.extent(writer, cycle);
  Result<io::Lease> lease = file.lease(where);
  Result<void> ready =
      lease ? coverage.reset(where, std::gcd(granule, std::gcd(where.begin, where.end)))
            : Result<void>();
  PageToFill page{writer, where, lease && ready ? &*lease : nullptr, &coverage};
  run_cycle(call, cycle, slices, &page);
  if (page.lease != nullptr) return submit(cycle, *lease);
  const Error error = lease ? ready.error() : lease.error();
  if (lease) file.submit(*lease, {});
  record_fault(cycle, where, {error, where.begin});
}

void Pipeline::State::submit(int cycle, io::Lease lease) {
  std::vector<Extent> sown;  // only in builds that test the tests
  const std::span<const Extent> dirty = sow_faults(lease, cycle, coverage.extents(), sown);
  if (observer != nullptr)
    for (const Extent e : dirty)
      observer->writing(
          e.begin, lease.memory.subspan(size_t(e.begin - lease.where.begin), size_t(e.size())));
  traffic.writes += int64_t(dirty.size());
  const int64_t bytes = write_page(cycle, std::move(lease), dirty);
  written += bytes;
  if (bytes > 0) follow(cycle, {dirty.front().begin, dirty.back().end}, bytes);
}

// How many of the dirty bytes are in the file now.
int64_t Pipeline::State::write_page(int cycle, io::Lease lease, std::span<const Extent> dirty) {
  const Extent where = lease.where;
  const Stopwatch watch(times.write_s);
  file.submit(std::move(lease), dirty);
  const std::optional<io::Fault> f = file.reap();
  if (f) record_fault(cycle, where, *f);
  if (f && observer != nullptr) observer->missed({f->first_missing, where.end});
  const Off end = f ? f->first_missing : where.end;
  int64_t bytes = 0;
  for (const Extent e : dirty) bytes += std::max<int64_t>(0, std::min(e.end, end) - e.begin);
  return bytes;
}

// Tells the sync policy what a page brought into the file. When the sync fails that it asks for, no
// byte of this call since the last one is certain to be in the file.
void Pipeline::State::follow(int cycle, Extent dirty, int64_t bytes) {
  if (sync == nullptr) return;
  if (!unsynced) unsynced = {cycle, dirty.begin, 0};
  unsynced->bytes += bytes;
  const Stopwatch watch(times.sync_s);
  const Result<bool> pushed = sync->wrote(bytes);
  if (pushed && !*pushed) return;
  if (pushed) {
    ++traffic.syncs;
  } else {
    fail_with(pushed.error());
    faults.push_back({unsynced->cycle, cycle + 1, unsynced->begin});
    written -= unsynced->bytes;
    if (observer != nullptr) observer->missed({unsynced->begin, dirty.end});
  }
  unsynced.reset();
}

// --- Errors and counts ---

void Pipeline::State::fail_with(const Error& error) {
  if (!mine || mine->error_class < error.error_class) mine = error;
}

// A disk that is full fails every later cycle from its first byte: they join the fault before.
void Pipeline::State::record_fault(int cycle, Extent page, const io::Fault& f) {
  fail_with(f.error);
  if (!faults.empty() && faults.back().end == cycle && f.first_missing <= page.begin)
    ++faults.back().end;
  else
    faults.push_back({cycle, cycle + 1, f.first_missing});
}

std::vector<WriterFault> Pipeline::State::gather_faults(size_t per_rank) {
  std::vector<WriterFault> mine_padded(per_rank), all(per_rank * size_t(comm.size()));
  std::ranges::copy(faults, mine_padded.begin());
  const Result<void> r =
      comm.allgather(std::as_bytes(std::span(mine_padded)), std::as_writable_bytes(std::span(all)));
  if (!r) abandon(r.error());
  return all;
}

// One all-reduce when all is well; only after a failure every writer's faults are told to all.
WriteOutcome Pipeline::State::conclude(const CollectiveCall& call) {
  WriteOutcome outcome;
  outcome.prefix_bytes = call.own.size();
  outcome.written_bytes = written;
  int64_t worst[2] = {mine ? int64_t(mine->error_class) : 0, int64_t(faults.size())};
  if (Result<void> r = comm.all_max(worst); !r) abandon(r.error());
  outcome.agreed = ErrorClass(worst[0]);
  outcome.mine = mine;
  if (worst[1] > 0) {
    const auto per_rank = size_t(worst[1]);
    outcome.prefix_bytes = intact_prefix(call, gather_faults(per_rank), per_rank);
  }
  if (seeded_fault("error_swallowed") && call.rank == comm.size() - 1)
    outcome.agreed = ErrorClass::none;
  return outcome;
}

// The greatest unit that divides every place where a page or a part of it is cut, but for the
// page's own ends.
int64_t Pipeline::State::common_granule(const CollectiveCall& call) const {
  int64_t g = kMessageBytes;
  if (!call.own.empty()) {
    g = std::gcd(g, call.view.granule());
    g = std::gcd(g, std::gcd(call.summary.lo, call.summary.hi));
  }
  for (const Peer& p : call.peers) {
    g = std::gcd(g, p.part.view.granule());
    g = std::gcd(g, std::gcd(p.summary.lo, p.summary.hi));
  }
  return g;
}

WriteOutcome Pipeline::State::alone(const WriteRequest& request, AlignedBuffer& buffer,
                                    Spent& spent) {
  WriteOutcome outcome;
  if (request.argument_error != ErrorClass::none) {
    outcome.agreed = request.argument_error;
    outcome.mine = Error{request.argument_error, 0, "write", "the arguments are not valid"};
    return outcome;
  }
  UserData data(request.memory, request.memory_type, request.memory_count, request.range.begin);
  return exec::write_alone({file, buffer, observer, sync, spent.times, spent.traffic},
                           *request.view, request.range, data);
}

// --- The public face ---

Pipeline::Pipeline(comm::Comm& comm, io::MechanismFile& file, const layout::Geometry& geometry)
    : state_(std::make_unique<State>(comm, file, geometry)) {}
Pipeline::~Pipeline() = default;

WriteOutcome Pipeline::write_all(const WriteRequest& request, const Policy& policy) {
  try {
    return state_->write_all(request, policy);
  } catch (const std::exception& e) {
    // Out of memory in the middle: the other ranks wait for messages that will never come.
    abandon(Error{ErrorClass::no_memory, 0, "collective write", e.what()});
  }
}
WriteOutcome Pipeline::write_alone(const WriteRequest& request) {
  return state_->alone(request, state_->staging_alone, state_->by_itself);
}
void Pipeline::set_observer(WriteObserver* observer) noexcept { state_->observer = observer; }
void Pipeline::set_sync(io::FileSync* sync) noexcept { state_->sync = sync; }
const Spent& Pipeline::spent_together() const noexcept { return state_->together; }
const Spent& Pipeline::spent_alone() const noexcept { return state_->by_itself; }

}  // namespace penstock::exec
