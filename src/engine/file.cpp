// An open file: what is decided at open, per view, per write and at close.
#include "engine/file.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "engine/report.hpp"
#include "engine/select.hpp"
#include "engine/verify.hpp"
#include "exec/read_pipeline.hpp"
#include "io/probe.hpp"
#include "io/reader.hpp"

namespace penstock::engine {
namespace {

// A filetype whose description is larger than this is passed through: it would not fit a message.
constexpr size_t kMostDescriptionBytes = size_t{1} << 30;

int64_t ns(double seconds) { return int64_t(seconds * 1e9); }

int size_bucket(int64_t bytes) {
  const int log2 = std::bit_width(uint64_t(std::max<int64_t>(bytes, 1)) - 1);  // rounded up
  return std::clamp((log2 - 4 + 1) / 2, 0, kSizeBuckets - 1);
}

// Worth walking as loops, rather than as a list.
bool is_regular(const layout::FileView& view) { return view.filetype().memory_bytes() < 1024; }

void tell(std::optional<Error>* to, const Result<void>& mine) {
  if (to != nullptr && !mine) *to = mine.error();
}

bool is_write(CallKind k) {
  return k == CallKind::write || k == CallKind::write_all || k == CallKind::write_at ||
         k == CallKind::write_at_all;
}

// "[0, 4096), [8192, 12288)"
std::string spell(const std::vector<Extent>& places) {
  std::string text;
  for (const Extent e : places)
    text +=
        (text.empty() ? "[" : ", [") + std::to_string(e.begin) + ", " + std::to_string(e.end) + ")";
  return text;
}

// REQUIRES staged.failure.
Error lost_error(const exec::StagedNotes& staged) {
  Error error = *staged.failure;
  error.detail += "; " + std::to_string(staged.lost_bytes) +
                  " bytes that non-blocking writes had accepted are not in the file, in " +
                  spell(staged.lost) + (staged.lost_told_in_part ? " and elsewhere" : "");
  return error;
}

}  // namespace

struct File::State {
  std::unique_ptr<comm::Comm> comm;
  OpenInfo info;
  std::string never_served;   // why no write of this file is served; empty when some may be
  std::string never_read;     // why no read is; as far as is known before the first one
  std::string view_unserved;  // why writes and reads through the current view are not
  int64_t served_bytes = kWholeStream;  // of this rank's view
  bool some_view_is_limited = false;    // on any rank
  bool atomic = false;
  io::FileSystem file_system;
  std::unique_ptr<io::MechanismFile> file;
  std::unique_ptr<io::FileSync> sync;
  std::unique_ptr<exec::Pipeline> pipeline;
  std::unique_ptr<io::ReadableFile> readable;  // opened for the first read that may be served
  std::unique_ptr<exec::ReadPipeline> reads;
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
  exec::ReadSpent spent_reading;
  bool others_wrote = false;
  int64_t told_failures = 0;  // of staged writes, by a call of this rank

  // A collective write that was begun: what it asks for and, as soon as it is known, what it came
  // to. Belongs to who is in a collective call.
  struct Split {
    Write write;
    double seconds;  // inside begin
    std::optional<WriteResult> result = std::nullopt;
  };
  std::optional<Split> split;
  // Some rank may hold bytes of a collective non-blocking write; the same on every rank.
  std::atomic<bool> staged_by_all = false;

  std::string open_here();
  std::string open_for_reads_here();
  Result<void> open_readable();
  std::string why_unread() const;
  void start_reads();
  void note_passed_read(std::string_view function);
  exec::ReadRequest request(const Read& read) const;
  ReadResult account(const exec::ReadOutcome& outcome, double begin_s);
  void agree_on_service(const std::string& mine, const std::string& mine_of_reads);
  Result<std::shared_ptr<Gate>> gate();
  void start_sync();
  void start_pipeline();
  const layout::FileView& view_of(const Write& write) const noexcept;
  exec::WriteRequest request(const Write& write) const;
  exec::Pipeline::Policy policy() const;
  WriteResult account(const Write& write, int64_t bytes, const exec::WriteOutcome& outcome,
                      double begin_s);
  void count_call(const Write& write, int64_t bytes, double seconds);
  bool stages() const noexcept;
  int64_t staged_limit() const noexcept;
  void drain();
  void settle_split();
  std::optional<Error> untold();
  Result<void> all_that_was_accepted() const;
  void take_staged_notes(FileNotes& into) const;
  FileNotes notes_now() const;
  void take_sync_notes(FileNotes& into) const;
  void count_pattern(const Write& write, StreamRange range);
  void note_error(const Error& error);
  void note_mechanism();
};

// --- Open ---

// Opens the engine's own descriptor on this rank; why not, when it cannot.
std::string File::State::open_here() {
  const std::string& left_alone = info.config.left_alone;
  if (info.config.mode != Mode::serve) return left_alone.empty() ? "observing only" : left_alone;
  if (!info.opened_here) return "the MPI library could not open the file on some rank";
  if (!info.unserved_why.empty()) return info.unserved_why;
  if (!info.writable) return "not opened for writing";
  const Method& method = info.config.method;
  auto opened = method.mechanism->open({info.path, 4096, method.direct, method.depth});
  if (!opened) return opened.error().message();
  file = *std::move(opened);
  if (file->fd() < 0) return "";
  auto probed = io::probe(file->fd());
  if (!probed) return probed.error().message();
  file_system = *std::move(probed);
  return "";
}

// Why this rank's reads are not served; empty when they may be. A descriptor is opened now only for
// a file that is opened for reading alone: programs that write seldom read what they wrote.
std::string File::State::open_for_reads_here() {
  if (info.config.mode != Mode::serve) return "observing only";
  if (info.config.reads == Reads::pass) return "reads are left to the MPI library (read = pass)";
  if (!info.opened_here) return "the MPI library could not open the file on some rank";
  if (!info.unserved_why.empty()) return info.unserved_why;
  if (!info.readable) return "not opened for reading";
  if (!info.config.method.mechanism->writes_file)
    return "this mechanism writes nothing that could be read back";
  if (info.writable) return "";
  const Result<void> opened = open_readable().and_then([&]() -> Result<void> {
    auto probed = io::probe(readable->fd());
    if (!probed) return tl::unexpected(probed.error());
    file_system = *std::move(probed);
    return {};
  });
  return opened ? "" : opened.error().message();
}

// The same file that is written, if it is, whatever has its name by now.
Result<void> File::State::open_readable() {
  auto opened = io::open_for_reading(info.path);
  if (!opened) return tl::unexpected(opened.error());
  if (file && file->fd() >= 0) {
    const auto written = io::identify(file->fd()), read = io::identify((*opened)->fd());
    if (!written || !read || *written != *read)
      return fail(ErrorClass::unsupported, "open for reading",
                  "another file has this name by now: " + info.path);
  }
  readable = *std::move(opened);
  return {};
}

// Every rank serves or none does; all use the same units and the same file.
void File::State::agree_on_service(const std::string& mine, const std::string& mine_of_reads) {
  io::FileIdentity id;
  const int fd = file ? file->fd() : readable ? readable->fd() : -1;
  if (fd >= 0)
    if (auto found = io::identify(fd)) id = *found;
  const auto inode = int64_t(id.inode >> 1);
  const auto method = int64_t(std::hash<std::string>{}(to_string(info.config.method)) >> 1);
  layout::Geometry& g = file_system.geometry;
  if (g.stripe_bytes == 0) g.stripe_bytes = info.config.striping_unit_bytes;
  int64_t facts[] = {mine.empty() ? 0 : 1,
                     inode,
                     -inode,
                     method,
                     -method,
                     g.page_bytes,
                     g.block_bytes,
                     g.stripe_bytes,
                     int64_t(g.sharing),
                     info.config.verify ? 1 : 0,
                     mine_of_reads.empty() ? 0 : 1,
                     file_system.is_coherent() ? 0 : 1};
  if (auto r = comm->all_max(facts); !r) never_served = r.error().message();
  if (!mine.empty())
    never_served = mine;
  else if (facts[0] != 0)
    never_served = "another rank cannot be served";
  else if (facts[1] != -facts[2])
    never_served = "ranks see different files under this name";
  else if (facts[3] != -facts[4])
    never_served = "ranks are configured with different methods";
  if (!mine_of_reads.empty())
    never_read = mine_of_reads;
  else if (facts[10] != 0)
    never_read = "another rank's reads cannot be served";
  else if (facts[1] != -facts[2])
    never_read = "ranks see different files under this name";
  else if (comm->nodes() > 1 && facts[11] != 0)
    never_read = "a node of this file system may not see at once what another wrote";
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
    // Of a file that is only read the writes are nobody's, and do not matter.
    if (info.writable && never_read.empty()) never_read = never_served;
    if (file) (void)file->close();  // nothing was written through it
    file.reset();
    return;
  }
  note_mechanism();
  pipeline = std::make_unique<exec::Pipeline>(*comm, *file, file_system.geometry);
  if (info.stager == nullptr) info.stager = std::make_shared<exec::Stager>();
  pipeline->set_stager(info.stager, staged_limit());
  if (info.config.method.sync->takes_bytes) pipeline->set_sync(sync.get());
  const int writers = info.config.method.parameters.writers;
  if (writers > comm->size())
    notes.degraded["writers=" + std::to_string(writers) + " is more than the file's " +
                   std::to_string(comm->size()) + " ranks: all of them write"] = 1;
  const int writer = info.config.method.parameters.writer;
  if (writer >= comm->size())
    notes.degraded["writer=" + std::to_string(writer) + " is not among the file's " +
                   std::to_string(comm->size()) + " ranks: the last of them writes"] = 1;
  for (const std::string& why : info.config.ignored_hints) ++notes.degraded[why];
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
  const std::string unserved = state->open_here(), unread = state->open_for_reads_here();
  state->agree_on_service(unserved, unread);
  state->start_pipeline();
  return std::unique_ptr<File>(new File(std::move(state)));
}

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::~File() {
  state_->drain();
  state_->sync.reset();  // it may be syncing in a thread of its own
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

bool File::serves_reads() {
  State& s = *state_;
  if (!s.why_unread().empty()) return false;
  if (!s.reads) s.start_reads();
  return s.never_read.empty();
}

const Config& File::config() const noexcept { return state_->info.config; }
HintValues File::hints_in_effect() const {
  if (!served()) return {};
  const comm::Comm& c = *state_->comm;
  return engine::hints_in_effect(config(), {c.size(), c.nodes(), c.cores_per_node()},
                                 state_->file_system.geometry);
}
const layout::FileView& File::view() const noexcept { return state_->view; }
comm::Comm& File::comm() noexcept { return *state_->comm; }

void File::set_view(layout::FileView view, const std::string& unserved_why, int64_t served_bytes) {
  State& s = *state_;
  s.view = std::move(view);
  s.view_regular = is_regular(s.view);
  if (!s.never_served.empty() && !s.never_read.empty()) return;
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

const layout::FileView& File::State::view_of(const Write& write) const noexcept {
  return write.view != nullptr ? *write.view : view;
}

exec::WriteRequest File::State::request(const Write& write) const {
  exec::WriteRequest r;
  r.view = &view_of(write);
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
  const plan::Team team{comm->size(), comm->nodes(), comm->cores_per_node()};
  return {fixed(m.algorithm, team, file_system.geometry), m.parameters, &decide, m.exchange,
          m.pack};
}

WriteResult File::write_all(const Write& write) {
  State& s = *state_;
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(s.together);
  s.settle_split();
  s.drain();
  exec::WriteRequest r = s.request(write);
  r.earlier = s.untold();
  const exec::WriteOutcome outcome = s.pipeline->write_all(r, s.policy());
  s.staged_by_all = false;  // all ranks have drained, and met
  const std::lock_guard lock(s.mutex);
  s.spent_together = s.pipeline->spent_together();
  if (!s.pipeline->degraded().empty()) ++s.notes.degraded[s.pipeline->degraded()];
  return s.account(write, r.range.size(), outcome, begin_s);
}

WriteResult File::write(const Write& write) {
  State& s = *state_;
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(s.by_itself);
  s.drain();
  const exec::WriteRequest r = s.request(write);
  exec::WriteOutcome outcome = s.pipeline->write_alone(r);
  outcome.algorithm = plan::find_algorithm("individual");
  const std::optional<Error> earlier = s.untold();
  const std::lock_guard lock(s.mutex);
  s.spent_alone = s.pipeline->spent_alone();
  WriteResult result = s.account(write, r.range.size(), outcome, begin_s);
  if (earlier) result.agreed = worse(result.agreed, earlier->error_class);
  return result;
}

WriteResult File::State::account(const Write& write, int64_t bytes,
                                 const exec::WriteOutcome& outcome, double begin_s) {
  const bool good = outcome.agreed == ErrorClass::none;
  const int64_t in_file = good ? bytes : outcome.prefix_bytes;
  const double end_s = now_s();
  notes.wrote(begin_s, end_s);
  count_call(write, bytes, end_s - begin_s);
  Counters& c = notes.counters;
  c.engine_bytes += in_file;
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
  return {outcome.agreed, good ? bytes : in_file - in_file % view_of(write).etype_bytes(),
          outcome.mine};
}

void File::State::count_call(const Write& write, int64_t bytes, double seconds) {
  Counters& c = notes.counters;
  ++c.calls[size_t(write.kind)];
  ++c.sizes[size_t(size_bucket(bytes))];
  c.call_ns += ns(seconds);
  if (write.argument_error == ErrorClass::none)
    count_pattern(write, {write.position_bytes, write.position_bytes + bytes});
}

void File::State::count_pattern(const Write& write, StreamRange range) {
  Counters& c = notes.counters;
  const layout::FileView& v = view_of(write);
  if (range.empty() || v.is_contiguous() || v.extent_of(range).size() == range.size())
    ++c.contiguous_calls;
  else
    ++((write.view != nullptr ? is_regular(v) : view_regular) ? c.strided_calls
                                                              : c.irregular_calls);
}

// --- Read ---

// Collective, before the first read of a file that is written too.
void File::State::start_reads() {
  const Result<void> mine = readable ? Result<void>() : open_readable();
  int64_t failed[] = {mine ? 0 : 1};
  if (auto r = comm->all_max(failed); !r)
    never_read = r.error().message();
  else if (!mine)
    never_read = mine.error().message();
  else if (failed[0] != 0)
    never_read = "another rank cannot be served";
  if (never_read.empty())
    reads = std::make_unique<exec::ReadPipeline>(*comm, *readable, file_system.geometry);
}

// Why a collective read is not served now; empty when it is, as far as is known before the first.
std::string File::State::why_unread() const {
  if (!never_read.empty()) return never_read;
  if (!view_unserved.empty()) return view_unserved;
  return atomic ? "atomic mode" : "";
}

exec::ReadRequest File::State::request(const Read& read) const {
  exec::ReadRequest r;
  r.view = &view;
  r.argument_error = read.argument_error;
  if (read.argument_error != ErrorClass::none) return r;
  r.range = {read.position_bytes,
             read.position_bytes + read.memory_count * read.memory_type.size()};
  r.memory = static_cast<std::byte*>(read.memory);
  r.memory_type = read.memory_type;
  r.memory_count = read.memory_count;
  return r;
}

ReadResult File::read_all(const Read& read) {
  State& s = *state_;
  const double begin_s = now_s();
  // What this rank has written is in the file before the ranks meet; so is then what all have.
  const ErrorClass flushed = flush(Drain::joint);
  const std::lock_guard one_at_a_time(s.together);
  exec::ReadRequest r = s.request(read);
  if (r.argument_error == ErrorClass::none) r.argument_error = flushed;
  const exec::ReadOutcome outcome = s.reads->read_all(r, s.policy());
  const std::lock_guard lock(s.mutex);
  s.spent_reading = s.reads->spent();
  return s.account(outcome, begin_s);
}

ReadResult File::State::account(const exec::ReadOutcome& outcome, double begin_s) {
  Counters& c = notes.counters;
  ++c.calls[size_t(CallKind::read)];
  ++c.read_calls;
  c.engine_read_bytes += outcome.prefix_bytes;
  c.read_call_ns += ns(now_s() - begin_s);
  if (outcome.agreed != ErrorClass::none) ++c.errors;
  if (outcome.mine) note_error(*outcome.mine);
  return {outcome.agreed, outcome.prefix_bytes, outcome.mine};
}

// What the sync policy did beside the writers, and what it could not do.
void File::State::take_sync_notes(FileNotes& into) const {
  if (!sync) return;
  const io::SyncNotes told = sync->notes();
  into.counters.policy_syncs += told.syncs_behind;
  if (!told.degraded.empty()) into.degraded[told.degraded] = 1;
}

void File::State::note_error(const Error& error) {
  if (!notes.first_error.empty()) return;
  notes.first_error = "rank " + std::to_string(comm->rank()) + ": " + error.message();
}

// What the mechanism does otherwise than asked, as it says at open and may say again by close.
void File::State::note_mechanism() {
  if (const std::string why = file->degraded(); !why.empty())
    notes.degraded[std::string(info.config.method.mechanism->name) + ": " + why] = 1;
}

// --- Staged writes ---

int64_t File::State::staged_limit() const noexcept {
  return info.config.method.staged_bytes.value_or(exec::kStagedLimitBytes);
}
bool File::State::stages() const noexcept { return staged_limit() > 0; }

WriteResult File::stage(const Write& write) {
  State& s = *state_;
  const bool collective = write.kind == CallKind::write_all || write.kind == CallKind::write_at_all;
  if (!s.stages()) return this->write(write);
  if (collective) s.staged_by_all = true;
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(s.by_itself);
  const exec::WriteRequest r = s.request(write);
  // Before its own bytes are on their way, so that what it tells does not depend on the thread.
  const std::optional<Error> earlier = s.untold();
  const exec::WriteOutcome outcome = s.pipeline->stage_alone(r);
  const std::lock_guard lock(s.mutex);
  s.spent_alone = s.pipeline->spent_alone();
  const double end_s = now_s();
  s.notes.wrote(begin_s, end_s);
  s.count_call(write, r.range.size(), end_s - begin_s);
  s.notes.ran(plan::find_algorithm("individual"));
  if (outcome.mine) {
    ++s.notes.counters.errors;
    s.note_error(*outcome.mine);
  }
  const ErrorClass told = earlier ? earlier->error_class : ErrorClass::none;
  const int64_t accepted = outcome.prefix_bytes;
  return {worse(outcome.agreed, told), accepted - accepted % s.view_of(write).etype_bytes(),
          outcome.mine ? outcome.mine : earlier};
}

void File::begin_write_all(const Write& write) {
  State& s = *state_;
  State::Split split{write, 0};
  split.write.memory = nullptr;  // the program's again when this returns
  if (!s.stages()) {
    split.result = write_all(write);
    s.split = std::move(split);
    return;
  }
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(s.together);
  s.settle_split();
  exec::WriteRequest r = s.request(write);
  r.earlier = s.untold();
  s.pipeline->begin_all(r, s.policy());
  split.seconds = now_s() - begin_s;
  s.split = std::move(split);
  const std::lock_guard lock(s.mutex);
  s.notes.wrote(begin_s, begin_s + s.split->seconds);
  s.notes.counters.staged_bytes += r.range.size();
  if (!s.pipeline->degraded().empty()) ++s.notes.degraded[s.pipeline->degraded()];
}

// Collective: what a write that was begun came to, for whoever ends it.
void File::State::settle_split() {
  if (!split || split->result) return;
  const double begin_s = now_s();
  const exec::WriteOutcome outcome = pipeline->end_all();
  const std::lock_guard lock(mutex);
  spent_together = pipeline->spent_together();
  const int64_t bytes = split->write.memory_count * split->write.memory_type.size();
  const bool valid = split->write.argument_error == ErrorClass::none;
  split->result = account(split->write, valid ? bytes : 0, outcome, begin_s - split->seconds);
}

WriteResult File::end_write_all() {
  State& s = *state_;
  const std::lock_guard one_at_a_time(s.together);
  s.settle_split();
  WriteResult result = s.split ? *s.split->result : WriteResult();
  s.split.reset();
  return result;
}

void File::State::drain() {
  if (pipeline != nullptr) pipeline->drain();
}

// What was lost since this was asked last, as one error.
std::optional<Error> File::State::untold() {
  if (pipeline == nullptr) return std::nullopt;
  const exec::StagedNotes staged = pipeline->staged_notes();
  const std::lock_guard lock(mutex);
  if (staged.failures == told_failures) return std::nullopt;
  told_failures = staged.failures;
  ++notes.counters.errors;
  const Error error = lost_error(staged);
  note_error(error);
  return error;
}

// An error as long as something is lost, whoever was told of it.
Result<void> File::State::all_that_was_accepted() const {
  if (pipeline == nullptr) return {};
  const exec::StagedNotes staged = pipeline->staged_notes();
  if (!staged.failure) return {};
  return tl::unexpected(lost_error(staged));
}

ErrorClass File::flush(Drain drain) {
  State& s = *state_;
  if (s.pipeline == nullptr) return ErrorClass::none;
  const bool all = drain == Drain::all || (drain == Drain::joint && s.staged_by_all);
  std::unique_lock one_at_a_time(s.together, std::defer_lock);
  if (drain != Drain::mine) {
    one_at_a_time.lock();
    s.settle_split();
  }
  s.drain();
  const std::optional<Error> mine = s.untold();
  if (!all) return mine ? mine->error_class : ErrorClass::none;
  const Result<void> agreed = comm::agree(*s.comm, mine ? tl::unexpected(*mine) : Result<void>());
  s.staged_by_all = false;
  return agreed ? ErrorClass::none : agreed.error().error_class;
}

void File::State::take_staged_notes(FileNotes& into) const {
  if (pipeline == nullptr) return;
  const exec::StagedNotes staged = pipeline->staged_notes();
  into.counters.staged_bytes += staged.accepted_bytes;
  into.counters.engine_bytes += staged.written_bytes;
  if (staged.failure)
    into.degraded["rank " + std::to_string(comm->rank()) + ": " + lost_error(staged).message()] = 1;
  if (const std::string why = info.stager->degraded(); !why.empty()) into.degraded[why] = 1;
}

void File::passed_through(CallKind kind, int64_t bytes, double seconds, const char* function,
                          bool failed) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  Counters& c = s.notes.counters;
  ++c.calls[size_t(kind)];
  if (failed) ++c.errors;
  if (kind == CallKind::read) c.read_bytes += bytes;
  if (kind == CallKind::read) s.note_passed_read(function);
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

// A collective read that could have been the engine's, and that nobody asked to pass.
void File::State::note_passed_read(std::string_view function) {
  const bool ours = function.starts_with("read_all") || function.starts_with("read_at_all");
  if (!ours || info.config.mode != Mode::serve || info.config.reads == Reads::pass) return;
  if (const std::string why = why_unread(); !why.empty())
    ++notes.degraded[std::string(function) + ": " + why];
}

void File::degraded(const std::string& why) {
  const std::lock_guard lock(state_->mutex);
  ++state_->notes.degraded[why];
}

// --- Sync and close ---

ErrorClass File::sync(std::optional<Error>* own) {
  State& s = *state_;
  const double begin_s = now_s();
  {
    const std::lock_guard one_at_a_time(s.together);
    s.settle_split();
  }
  s.drain();
  (void)s.untold();  // told now
  Result<void> mine = s.sync ? s.sync->sync(io::SyncKind::full) : Result<void>();
  if (Result<void> accepted = s.all_that_was_accepted(); !accepted) mine = accepted;
  const Result<void> agreed = comm::agree(*s.comm, mine);
  s.staged_by_all = false;
  const std::lock_guard lock(s.mutex);
  const double end_s = now_s();
  ++s.notes.counters.calls[size_t(CallKind::sync)];
  s.notes.counters.sync_ns += ns(end_s - begin_s);
  if (agreed) s.notes.synced_s = end_s;
  if (!mine) s.note_error(mine.error());
  if (!agreed) ++s.notes.counters.errors;
  tell(own, mine);
  return agreed ? ErrorClass::none : agreed.error().error_class;
}

ErrorClass File::close(FileReport& report, std::optional<Error>* own) {
  State& s = *state_;
  Counters& c = s.notes.counters;
  const double begin_s = now_s();
  s.settle_split();
  s.drain();
  (void)s.untold();  // told now
  Result<void> mine = s.all_that_was_accepted();
  if (s.verifier) {
    s.notes.verification = s.verifier->check(*s.comm, s.info.path, s.others_wrote);
    if (mine && s.notes.verification.mismatched_bytes > 0)
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
    s.note_mechanism();
    if (mine && !synced) mine = synced;
    if (mine && !closed) mine = closed;
  }
  if (!mine) s.note_error(mine.error());
  tell(own, mine);
  const Result<void> agreed = comm::agree(*s.comm, mine);
  if (!agreed) ++c.errors;
  c.close_ns += ns(now_s() - begin_s);
  report = merge(*s.comm, s.notes_now(), describe(s.info, s.file_system));
  report.closed = true;
  const ErrorClass never_ended = s.split ? s.split->result->agreed : ErrorClass::none;
  return worse(agreed ? ErrorClass::none : agreed.error().error_class, never_ended);
}

// REQUIRES mutex, or nobody else in the file.
FileNotes File::State::notes_now() const {
  FileNotes now = notes;
  exec::Spent spent = spent_together + spent_alone;
  if (pipeline != nullptr) spent = spent + pipeline->staged_notes().spent;
  now.take(spent.times, spent.traffic);
  now.take(spent_reading);
  take_sync_notes(now);
  take_staged_notes(now);
  return now;
}

FileReport File::snapshot() const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  return local_report(s.notes_now(), describe(s.info, s.file_system));
}

}  // namespace penstock::engine
