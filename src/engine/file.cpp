// An open file: what is decided at open, per view, per write and at close.
#include "engine/file.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "engine/report.hpp"
#include "engine/select.hpp"
#include "engine/verify.hpp"
#include "io/probe.hpp"

namespace penstock::engine {
namespace {

// A filetype whose description is larger than this is passed through: it would not fit a message.
constexpr size_t kMostDescriptionBytes = size_t{1} << 30;

int64_t ns(double seconds) { return int64_t(seconds * 1e9); }

int size_bucket(int64_t bytes) {
  const int log2 = std::bit_width(uint64_t(std::max<int64_t>(bytes, 1)) - 1);  // rounded up
  return std::clamp((log2 - 4 + 1) / 2, 0, kSizeBuckets - 1);
}

bool is_write(CallKind k) {
  return k == CallKind::write || k == CallKind::write_all || k == CallKind::write_at ||
         k == CallKind::write_at_all;
}

}  // namespace

struct File::State {
  std::unique_ptr<comm::Comm> comm;
  OpenInfo info;
  std::string never_served;   // why no write of this file is served; empty when some may be
  std::string view_unserved;  // why writes through the current view are not
  int64_t served_bytes = kWholeStream;  // of this rank's view
  bool some_view_is_limited = false;    // on any rank
  bool atomic = false;
  io::FileSystem file_system;
  std::unique_ptr<io::MechanismFile> file;
  std::unique_ptr<io::FileSync> sync;
  std::unique_ptr<exec::Pipeline> pipeline;
  std::optional<Verifier> verifier;
  layout::FileView view;
  bool view_regular = true;

  // A collective write waits for other ranks, and these may wait for an independent write of this
  // one: so each kind has a lock of its own.
  std::mutex together, by_itself;
  // Guards what both note down; held for no longer than that.
  std::mutex mutex;
  FileNotes notes;
  exec::Spent spent_together, spent_alone;
  bool others_wrote = false;

  std::string open_here();
  void agree_on_service(const std::string& mine);
  Result<std::shared_ptr<Gate>> gate();
  void start_sync();
  void start_pipeline();
  exec::WriteRequest request(const Write& write) const;
  exec::Pipeline::Policy policy() const;
  WriteResult account(const Write& write, int64_t bytes, const exec::WriteOutcome& outcome,
                      double begin_s);
  void count_pattern(StreamRange range);
  void note_error(const Error& error);
};

// --- Open ---

// Opens the engine's own descriptor on this rank; why not, when it cannot.
std::string File::State::open_here() {
  const std::string& left_alone = info.config.left_alone;
  if (info.config.mode != Mode::serve) return left_alone.empty() ? "observing only" : left_alone;
  if (!info.opened_here) return "the MPI library could not open the file on some rank";
  if (!info.unserved_why.empty()) return info.unserved_why;
  if (!info.writable) return "not opened for writing";
  auto opened = info.config.method.mechanism->open({info.path, 4096});
  if (!opened) return opened.error().message();
  file = *std::move(opened);
  if (file->fd() < 0) return "";
  auto probed = io::probe(file->fd());
  if (!probed) return probed.error().message();
  file_system = *std::move(probed);
  return "";
}

// Every rank serves or none does; all use the same units and the same file.
void File::State::agree_on_service(const std::string& mine) {
  io::FileIdentity id;
  if (file && file->fd() >= 0)
    if (auto found = io::identify(file->fd())) id = *found;
  const auto inode = int64_t(id.inode >> 1);
  const auto method = int64_t(std::hash<std::string>{}(to_string(info.config.method)) >> 1);
  const layout::Geometry& g = file_system.geometry;
  int64_t facts[] = {mine.empty() ? 0 : 1,
                     inode,
                     -inode,
                     method,
                     -method,
                     g.page_bytes,
                     g.block_bytes,
                     g.stripe_bytes,
                     int64_t(g.sharing),
                     info.config.verify ? 1 : 0};
  if (auto r = comm->all_max(facts); !r) never_served = r.error().message();
  if (!mine.empty())
    never_served = mine;
  else if (facts[0] != 0)
    never_served = "another rank cannot be served";
  else if (facts[1] != -facts[2])
    never_served = "ranks see different files under this name";
  else if (facts[3] != -facts[4])
    never_served = "ranks are configured with different methods";
  file_system.geometry = {facts[5], facts[6], facts[7], layout::Sharing(facts[8])};
  // Files and hints may differ between ranks, and verification is collective: one asks, all verify.
  info.config.verify = facts[9] != 0;
}

// What the ranks of a node take turns by.
Result<std::shared_ptr<Gate>> File::State::gate() {
  if (info.node_lock) return info.node_lock;
  if (comm->size() == 1)
    notes.degraded[std::string(info.config.method.sync->name) +
                   ": one rank opened this file, and takes turns with nobody"] = 1;
  return comm->node_lock();
}

// Collective where files are served, since the method is the same on every rank then.
void File::State::start_sync() {
  const Method& method = info.config.method;
  if (!never_served.empty()) return;
  io::SyncRequest request{.bytes = method.sync_bytes, .gate = nullptr};
  if (method.sync->takes_turns) {
    auto made = gate();
    if (!made) {
      never_served = "sync " + std::string(method.sync->name) +
                     " needs a lock that a node's ranks share: " + made.error().message();
      return;
    }
    request.gate = *std::move(made);
  }
  sync = method.sync->open(*file, request);
}

void File::State::start_pipeline() {
  start_sync();
  if (!never_served.empty()) {
    if (file) (void)file->close();  // nothing was written through it
    file.reset();
    return;
  }
  pipeline = std::make_unique<exec::Pipeline>(*comm, *file, file_system.geometry);
  if (info.config.method.sync->takes_bytes) pipeline->set_sync(sync.get());
  const int writers = info.config.method.parameters.writers;
  if (writers > comm->size())
    notes.degraded["writers=" + std::to_string(writers) + " is more than the file's " +
                   std::to_string(comm->size()) + " ranks: all of them write"] = 1;
  if (!info.config.verify) return;
  if (info.config.method.mechanism->writes_file) {
    verifier.emplace();
    pipeline->set_observer(&*verifier);
  } else {
    notes.degraded["verify: this mechanism writes nothing that could be read back"] = 1;
  }
}

std::unique_ptr<File> File::open(std::unique_ptr<comm::Comm> comm, const OpenInfo& info) {
  auto state = std::make_unique<State>();
  state->comm = std::move(comm);
  state->info = info;
  state->notes.opened_s = now_s();
  state->agree_on_service(state->open_here());
  state->start_pipeline();
  return std::unique_ptr<File>(new File(std::move(state)));
}

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::~File() {
  if (state_->file) (void)state_->file->close();
}

bool File::served() const noexcept {
  return state_->never_served.empty() && state_->view_unserved.empty() && !state_->atomic;
}

bool File::serves_independent() const noexcept {
  const comm::Comm& c = *state_->comm;
  return served() &&
         may_share_units({c.size(), c.nodes(), c.cores_per_node()}, state_->file_system.geometry);
}

const std::string& File::why_unserved() const noexcept {
  static const std::string kAtomic = "atomic mode";
  static const std::string kUnits =
      "independent writes of several nodes could share a unit of this network file system";
  if (!state_->never_served.empty()) return state_->never_served;
  if (!state_->view_unserved.empty()) return state_->view_unserved;
  return state_->atomic ? kAtomic : kUnits;
}

const Config& File::config() const noexcept { return state_->info.config; }
const layout::FileView& File::view() const noexcept { return state_->view; }
comm::Comm& File::comm() noexcept { return *state_->comm; }

void File::set_view(layout::FileView view, const std::string& unserved_why, int64_t served_bytes) {
  State& s = *state_;
  s.view = std::move(view);
  s.view_regular = s.view.filetype().memory_bytes() < 1024;
  if (!s.never_served.empty()) return;
  std::string why = unserved_why;
  if (why.empty() && !s.view.is_monotone()) why = "the file view is not monotone";
  if (why.empty() && s.view.filetype().memory_bytes() > kMostDescriptionBytes)
    why = "the filetype's description is larger than 1 GiB";
  int64_t facts[] = {why.empty() ? 0 : 1, served_bytes == kWholeStream ? 0 : 1};
  if (auto r = s.comm->all_max(facts); !r) why = r.error().message();
  s.view_unserved =
      !why.empty() || facts[0] == 0 ? why : "another rank's file view cannot be served";
  s.served_bytes = served_bytes;
  s.some_view_is_limited = facts[1] != 0;
}

bool File::view_is_limited() const noexcept { return state_->some_view_is_limited; }

bool File::keeps_to_view(int64_t end_bytes, Company company) {
  int64_t leaves[] = {end_bytes > state_->served_bytes ? 1 : 0};
  if (company == Company::together && !state_->comm->all_max(leaves)) return false;
  return leaves[0] == 0;
}

void File::set_atomic(bool atomic) { state_->atomic = atomic; }

// --- Write ---

exec::WriteRequest File::State::request(const Write& write) const {
  exec::WriteRequest r;
  r.view = &view;
  r.argument_error = write.argument_error;
  if (write.argument_error != ErrorClass::none) return r;
  r.range = {write.position_bytes,
             write.position_bytes + write.memory_count * write.memory_type.size()};
  r.memory = static_cast<const std::byte*>(write.memory);
  r.memory_type = write.memory_type;
  r.memory_count = write.memory_count;
  return r;
}

exec::Pipeline::Policy File::State::policy() const {
  const Method& m = info.config.method;
  exec::Pipeline::Policy p{m.algorithm, m.parameters, &decide};
  const plan::Team team{comm->size(), comm->nodes(), comm->cores_per_node()};
  // A method that lets ranks write anywhere would lose bytes here: the rule decides instead.
  if (p.algorithm != nullptr && !p.algorithm->owns_blocks &&
      !may_share_units(team, file_system.geometry))
    p.algorithm = nullptr;
  return p;
}

WriteResult File::write_all(const Write& write) {
  State& s = *state_;
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(s.together);
  const exec::WriteRequest r = s.request(write);
  const exec::WriteOutcome outcome = s.pipeline->write_all(r, s.policy());
  const std::lock_guard lock(s.mutex);
  s.spent_together = s.pipeline->spent_together();
  return s.account(write, r.range.size(), outcome, begin_s);
}

WriteResult File::write(const Write& write) {
  State& s = *state_;
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(s.by_itself);
  const exec::WriteRequest r = s.request(write);
  exec::WriteOutcome outcome = s.pipeline->write_alone(r);
  outcome.algorithm = plan::find_algorithm("individual");
  const std::lock_guard lock(s.mutex);
  s.spent_alone = s.pipeline->spent_alone();
  return s.account(write, r.range.size(), outcome, begin_s);
}

WriteResult File::State::account(const Write& write, int64_t bytes,
                                 const exec::WriteOutcome& outcome, double begin_s) {
  const bool good = outcome.agreed == ErrorClass::none;
  const int64_t in_file = good ? bytes : outcome.prefix_bytes;
  const double end_s = now_s();
  notes.wrote(begin_s, end_s);
  Counters& c = notes.counters;
  ++c.calls[size_t(write.kind)];
  ++c.sizes[size_t(size_bucket(bytes))];
  c.engine_bytes += in_file;
  c.call_ns += ns(end_s - begin_s);
  if (write.argument_error == ErrorClass::none)
    count_pattern({write.position_bytes, write.position_bytes + bytes});
  notes.ran(outcome.algorithm);
  if (info.config.method.algorithm != nullptr &&
      outcome.algorithm != info.config.method.algorithm &&
      (write.kind == CallKind::write_all || write.kind == CallKind::write_at_all))
    ++notes.degraded
          ["collective writes ran another algorithm: this file system's units must be owned by one "
           "node"];
  if (!good) {
    ++c.errors;
    if (outcome.mine) note_error(*outcome.mine);
  }
  return {outcome.agreed, good ? bytes : in_file - in_file % view.etype_bytes()};
}

void File::State::count_pattern(StreamRange range) {
  Counters& c = notes.counters;
  if (range.empty() || view.is_contiguous() || view.extent_of(range).size() == range.size())
    ++c.contiguous_calls;
  else
    ++(view_regular ? c.strided_calls : c.irregular_calls);
}

void File::State::note_error(const Error& error) {
  if (!notes.first_error.empty()) return;
  notes.first_error = "rank " + std::to_string(comm->rank()) + ": " + error.message();
}

ErrorClass File::flush() {
  return ErrorClass::none;
}  // every served write returns with its bytes in the file

void File::passed_through(CallKind kind, int64_t bytes, double seconds, const char* function,
                          bool failed) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  Counters& c = s.notes.counters;
  ++c.calls[size_t(kind)];
  if (failed) ++c.errors;
  if (kind == CallKind::read) c.read_bytes += bytes;
  if (kind == CallKind::sync) c.sync_ns += ns(seconds);
  const bool resizes = std::string_view(function).ends_with("set_size");
  s.others_wrote = s.others_wrote || is_write(kind) || resizes;
  if (!is_write(kind)) return;
  const double end_s = now_s();
  s.notes.wrote(end_s - seconds, end_s);
  ++c.passthrough_calls;
  ++c.sizes[size_t(size_bucket(bytes))];
  c.passthrough_bytes += bytes;
  c.call_ns += ns(seconds);
  if (!s.info.config.left_alone.empty()) {
    ++s.notes.degraded[s.info.config.left_alone];
  } else if (s.info.config.mode == Mode::serve) {
    ++s.notes.degraded[std::string(function) + ": " +
                       (serves_independent() ? "not taken over" : why_unserved())];
  }
}

void File::degraded(const std::string& why) {
  const std::lock_guard lock(state_->mutex);
  ++state_->notes.degraded[why];
}

// --- Sync and close ---

ErrorClass File::sync() {
  State& s = *state_;
  const double begin_s = now_s();
  Result<void> mine = s.sync ? s.sync->sync(io::SyncKind::full) : Result<void>();
  const Result<void> agreed = comm::agree(*s.comm, mine);
  const std::lock_guard lock(s.mutex);
  const double end_s = now_s();
  ++s.notes.counters.calls[size_t(CallKind::sync)];
  s.notes.counters.sync_ns += ns(end_s - begin_s);
  if (agreed) s.notes.synced_s = end_s;
  if (!mine) s.note_error(mine.error());
  if (!agreed) ++s.notes.counters.errors;
  return agreed ? ErrorClass::none : agreed.error().error_class;
}

ErrorClass File::close(FileReport& report) {
  State& s = *state_;
  Counters& c = s.notes.counters;
  const double begin_s = now_s();
  Result<void> mine;
  if (s.verifier) {
    s.notes.verification = s.verifier->check(*s.comm, s.info.path, s.others_wrote);
    if (s.notes.verification.mismatched_bytes > 0)
      mine = fail(ErrorClass::io, "verify",
                  std::to_string(s.notes.verification.mismatched_bytes) + " bytes of " +
                      s.info.path + " differ from what was written");
  }
  if (s.file && s.file->fd() >= 0) s.notes.unwritten_bytes = io::unwritten_bytes(s.file->fd());
  if (s.file) {
    const double sync_begin_s = now_s();
    Result<void> synced = s.sync->at_close();
    c.sync_ns += ns(now_s() - sync_begin_s);
    if (synced && s.info.config.method.sync->pushes) s.notes.synced_s = now_s();
    Result<void> closed = s.file->close();
    if (mine && !synced) mine = synced;
    if (mine && !closed) mine = closed;
  }
  if (!mine) s.note_error(mine.error());
  const Result<void> agreed = comm::agree(*s.comm, mine);
  if (!agreed) ++c.errors;
  c.close_ns += ns(now_s() - begin_s);
  s.notes.take(s.spent_together.times + s.spent_alone.times,
               s.spent_together.traffic + s.spent_alone.traffic);
  report = merge(*s.comm, s.notes, describe(s.info, s.file_system));
  report.closed = true;
  return agreed ? ErrorClass::none : agreed.error().error_class;
}

FileReport File::snapshot() const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  FileNotes notes = s.notes;
  notes.take(s.spent_together.times + s.spent_alone.times,
             s.spent_together.traffic + s.spent_alone.traffic);
  return local_report(notes, describe(s.info, s.file_system));
}

}  // namespace penstock::engine
