// What is decided when a file is opened, alike on every rank: whether writes and reads are served,
// and with what.
#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "base/boot.hpp"
#include "base/clock.hpp"
#include "base/hash.hpp"
#include "base/memory_limit.hpp"
#include "base/units.hpp"
#include "comm/agreement.hpp"
#include "engine/expected_syncs.hpp"
#include "engine/file_state.hpp"
#include "engine/select.hpp"
#include "exec/abandon.hpp"
#include "exec/write_behind.hpp"
#include "exec/write_behind_shape.hpp"
#include "io/probe.hpp"

namespace penstock::engine {
namespace {

// By Penstock's own words. Libraries hand the hints of one file on to the next (PnetCDF's cb_nodes
// of the file of all ranks comes to that of one), which asks for nothing.
bool names_writers(const Config& config) {
  return std::ranges::any_of(config.given, [](const Assignment& a) {
    if (a.key != "method" || a.layer == Layer::hint) return a.key == "writers" && a.value != "0";
    const Result<Method> named = parse_method(a.value);
    return named && named->parameters.writers != 0;
  });
}

constexpr const char* kDifferentFiles = "ranks see different files under this name";
constexpr const char* kDifferentMethods = "ranks are configured with different methods";
constexpr const char* kAnotherFile =
    "the MPI library has opened another file than is under this name now";
constexpr const char* kOtherNodes =
    "other nodes of the job may write it too, and a node of this file system may not see that";
constexpr const char* kDifferentModes = "ranks opened it with different access modes";

struct Reason {
  bool holds;
  std::string text;
};

// The text of the first that holds; empty when none does.
std::string first_reason(std::initializer_list<Reason> reasons) {
  const auto first = std::ranges::find_if(reasons, &Reason::holds);
  return first != reasons.end() ? first->text : "";
}

// Where that is known.
bool is_library_file(const OpenInfo& info, int fd) {
  if (!info.library_file || fd < 0) return true;
  const auto id = io::identify(fd);
  return id && *id == *info.library_file;
}

// Alike on ranks that have one file open; 0 where there is no descriptor. Nodes give a shared file
// device numbers of their own; and local files, which may have one inode number on each, are not
// shared.
int64_t number_of(int fd, const io::FileSystem& system, int nodes) {
  const auto id = fd < 0 ? std::nullopt : std::optional(io::identify(fd));
  if (!id || !*id) return 0;
  const bool is_local = system.geometry.sharing == layout::Sharing::any;
  uint64_t number = (*id)->inode;
  if (nodes == 1 || is_local) number = mix(number, (*id)->device);
  if (nodes > 1 && is_local) number = mix(number, boot_number());
  return int64_t(number);
}

}  // namespace

// Opens the engine's own descriptor on this rank; why not, when it cannot.
std::string File::State::open_here() {
  const std::string& left_alone = info.config.left_alone;
  if (info.config.mode != Mode::serve) return left_alone.empty() ? "observing only" : left_alone;
  if (!info.opened_here) return "the MPI library could not open the file on some rank";
  if (!info.unserved_why.empty()) return info.unserved_why;
  if (!info.writable) return "not opened for writing";
  if (std::string why = io::why_no_places(info.path); !why.empty()) return why;
  if (std::string why = open_file(io::Written::to_cache); !why.empty()) return why;
  if (file->fd() < 0) return "";
  auto probed = io::probe(file->fd());
  if (!probed) return cannot_open(probed.error());
  file_system = *std::move(probed);
  const bool one_node = comm->nodes() == 1;
  if (info.other_nodes && one_node && info.has_library && !file_system.is_coherent())
    return kOtherNodes;
  // A page that waits in this node's cache may go over what is written beside it on another node.
  // One that never waits is sent as it was written.
  const bool may_wait = file_system.is_coherent() || (one_node && !info.other_nodes);
  if (may_wait && !file_system.is_synchronous) return "";
  (void)file->close();  // nothing was written through it
  return open_file(io::Written::through);
}

std::string File::State::open_file(io::Written written) {
  const Method& method = info.config.method;
  auto opened = method.mechanism->open({.path = info.path,
                                        .unit_bytes = kPageStep,
                                        .direct = method.direct,
                                        .cold = io::cold_rule(),
                                        .depth = method.depth,
                                        .registered = method.registered,
                                        .window_bytes = method.window_bytes,
                                        .written = written});
  if (!opened) return cannot_open(opened.error());
  file = *std::move(opened);
  return is_library_file(info, file->fd()) ? "" : kAnotherFile;
}

std::string File::State::cannot_open(const Error& error) {
  open_failure = error;
  return error.message();
}

// Why this rank's reads are not served; empty when they may be. A descriptor is opened now only for
// a file that is opened for reading alone: programs that write seldom read what they wrote.
std::string File::State::open_for_reads_here() {
  if (info.config.mode != Mode::serve) return "observing only";
  if (info.config.reads == Reads::pass) return "reads are left to the MPI library (read = pass)";
  if (!info.opened_here) return "the MPI library could not open the file on some rank";
  if (!info.unserved_why.empty()) return info.unserved_why;
  if (!info.readable) return "not opened for reading";
  if (std::string why = io::why_no_places(info.path); !why.empty()) return why;
  if (!info.config.method.mechanism->writes_file)
    return "this mechanism writes nothing that could be read back";
  if (info.writable) return "";
  const Result<void> opened = open_readable().and_then([&]() -> Result<void> {
    if (!is_library_file(info, readable->fd()))
      return fail(ErrorClass::unsupported, "open", kAnotherFile);
    auto probed = io::probe(readable->fd());
    if (!probed) return tl::unexpected(probed.error());
    file_system = *std::move(probed);
    return {};
  });
  return opened ? "" : opened.error().message();
}

// Every rank serves or none does; all use the same units and the same file. Files and hints may
// differ between ranks, and verification is collective: one asks, all verify.
void File::State::agree_on_service(const std::string& mine, const std::string& mine_of_reads) {
  layout::Geometry& g = file_system.geometry;
  Config& c = info.config;
  comm::Agreement agreed;
  const auto unserved = agreed.some(!mine.empty()), unread = agreed.some(!mine_of_reads.empty());
  const int fd = file ? file->fd() : readable ? readable->fd() : -1;
  const auto same_file = agreed.alike(number_of(fd, file_system, comm->nodes()));
  const auto same_as_library = agreed.some(!info.has_library_file || info.library_file);
  const auto same_modes = agreed.alike((info.writable ? 1 : 0) + (info.readable ? 2 : 0));
  const auto same_method = agreed.alike(int64_t(std::hash<std::string>{}(to_string(c.method))));
  const auto incoherent = agreed.some(!file_system.is_coherent());
  const auto other_nodes = agreed.some(info.other_nodes);
  const auto synchronous = agreed.some(file_system.is_synchronous);
  const auto page_bytes = agreed.largest(g.page_bytes), block_bytes = agreed.largest(g.block_bytes);
  const auto stripe_bytes =
      agreed.largest(g.stripe_bytes != 0 ? g.stripe_bytes : c.striping_unit_bytes);
  const auto sharing = agreed.largest(int64_t(g.sharing));
  const auto verifies = agreed.some(c.verify);
  const auto not_deferred = agreed.some(!wants_to_defer()), not_lent = agreed.some(!may_lend());
  const auto behind_page_bytes = agreed.largest(c.write_behind_page_bytes);
  const auto behind_limit_bytes = agreed.largest(c.write_behind_limit_bytes);
  const auto behind_load_bytes = agreed.largest(c.write_behind_load_bytes);
  const auto least_memory = agreed.largest(-memory_for_pages());
  const auto same_progress = agreed.alike(int64_t(c.write_behind_progress));
  const Result<void> reached = agreed.reach(*comm);
  // Where the library could not open it the program is told, and nobody is waited for.
  if (info.opened_here) exec::or_abandon(reached);

  never_served = first_reason({{!mine.empty(), mine},
                               {!agreed[same_modes], kDifferentModes},
                               {agreed[unserved], "another rank cannot be served"},
                               {!agreed[same_as_library], kAnotherFile},
                               {!agreed[same_file], kDifferentFiles},
                               {!agreed[same_method], kDifferentMethods}});
  never_read =
      first_reason({{!mine_of_reads.empty(), mine_of_reads},
                    {!agreed[same_modes], kDifferentModes},
                    {agreed[unread], "another rank's reads cannot be served"},
                    {!agreed[same_as_library], kAnotherFile},
                    {!agreed[same_file], kDifferentFiles},
                    {!agreed[same_method], kDifferentMethods},
                    {(comm->nodes() > 1 || agreed[other_nodes]) && agreed[incoherent],
                     "a node of this file system may not see at once what another wrote"}});
  g = {agreed[page_bytes], agreed[block_bytes], agreed[stripe_bytes],
       layout::Sharing(agreed[sharing])};
  seen_by_all = may_share_units(team(), g);
  file_system.is_synchronous = agreed[synchronous];
  c.verify = agreed[verifies];
  may_defer = !agreed[not_deferred];
  lends_on_all = !agreed[not_lent] && comm->nodes() == 1;
  c.write_behind_page_bytes = agreed[behind_page_bytes];
  c.write_behind_limit_bytes = agreed[behind_limit_bytes];
  c.write_behind_load_bytes = agreed[behind_load_bytes];
  most_pages_bytes = -agreed[least_memory];
  if (!agreed[same_progress]) progress_by_calls();
}

// Of a memory limit that nobody asks about a batch system kills the job. A quarter of what is left,
// since the program takes memory too.
int64_t File::State::memory_for_pages() const {
  const bool wanted = info.config.mode == Mode::serve && info.writable;
  const std::optional<int64_t> left = wanted ? memory_left_lately(0) : std::nullopt;
  return left ? *left / 4 : std::numeric_limits<int64_t>::max();
}

void File::State::progress_by_calls() {
  info.config.write_behind_progress = exec::Progress::calls;
  if (may_defer && comm->nodes() > 1)
    notes.degraded["write-behind: progress=calls: ranks are configured with different ones"] = 1;
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
  collective = info.config.method;
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
  if (writers > comm->size() && names_writers(info.config))
    notes.degraded["writers=" + std::to_string(writers) + " is more than the file's " +
                   std::to_string(comm->size()) + " ranks: all of them write"] = 1;
  const int writer = info.config.method.parameters.writer;
  if (writer >= comm->size())
    notes.degraded["writer=" + std::to_string(writer) + " is not among the file's " +
                   std::to_string(comm->size()) + " ranks: the last of them writes"] = 1;
  for (const std::string& why : info.config.ignored_hints) ++notes.degraded[why];
  if (info.config.verify) start_verifier();
  // Last: a thread uses the pipeline then.
  if (!borrow_pages() && (may_defer || lends_on_all)) start_write_behind();
}

void File::State::start_verifier() {
  if (info.config.method.mechanism->writes_file)
    verifier = std::make_shared<Verifier>();
  else
    notes.degraded["verify: this mechanism writes nothing that could be read back"] = 1;
}

// MPI lets a write be seen late where nobody can read it before a sync or a close.
bool File::State::wants_to_defer() const noexcept {
  const bool unseen = !info.readable || info.config.visibility == Visibility::relaxed;
  return may_lend() && unseen;
}

// A node has a few pages, however large somebody wants them.
void File::State::tell_of_pages(const exec::WriteBehind& behind) {
  const int64_t limit = exec::limit_of_node(*comm, info.config.write_behind_limit_bytes);
  if (most_pages_bytes < limit)
    notes.degraded["write-behind: " + format_size(behind.most_bytes()) + " of pages, not " +
                   format_size(limit) + ": a memory limit (cgroup) lets the job have little more"] =
        1;
  if (behind.most_bytes() > limit)
    notes.degraded["write-behind: pages of " + format_size(behind.page_bytes()) +
                   ", of which a node has " +
                   std::to_string(behind.most_bytes() / behind.page_bytes()) +
                   ", are more than write_behind_limit"] = 1;
}

// Collective.
void File::State::start_write_behind() {
  const bool limited = most_pages_bytes < std::numeric_limits<int64_t>::max();
  const std::optional<WriteBehindOptions>& asked = info.config.method.write_behind;
  const int stages = asked ? asked->stages : WriteBehindOptions().stages;
  auto made = exec::WriteBehind::make(*comm,
                                      {.page_bytes = info.config.write_behind_page_bytes,
                                       .limit_bytes_per_rank = info.config.write_behind_limit_bytes,
                                       .progress = info.config.write_behind_progress,
                                       .load_bytes = info.config.write_behind_load_bytes,
                                       .stages = stages,
                                       .most_bytes_per_node = most_pages_bytes,
                                       .memory_left = limited ? memory_left_lately : nullptr},
                                      file_system.geometry, info.stager->bell());
  if (!made) {
    if (may_defer) notes.degraded["write-behind: " + made.error().message()] = 1;
    return;
  }
  tell_of_pages(**made);
  exec::Shipping* const shipping = (*made)->shipping();
  const int64_t page_bytes = (*made)->page_bytes();
  const std::string why = (*made)->why_not_shipped();
  const int seconds = info.config.write_behind_seconds;
  pipeline->set_write_behind(
      *std::move(made), seconds > 0 ? seconds : exec::kWriteBehindSeconds,
      may_defer ? exec::PagesFor::own_writes : exec::PagesFor::other_handles);
  defers = may_defer;
  lends = lends_on_all;
  if (!why.empty()) notes.degraded["write-behind: nodes share no pages: " + why] = 1;
  if (shipping != nullptr) start_shipping(*shipping);
  if (owners_write) give_to_owners(page_bytes);
}

// Collective. How bytes move between nodes; and so whether independent writes are served where
// units belong to nodes, of files that nobody reads meanwhile: a node sees late what another wrote.
void File::State::start_shipping(exec::Shipping& shipping) {
  const std::string asked = exec::to_string(info.config.write_behind_progress);
  if (shipping.progress() != exec::Progress::calls) {
    int64_t without[] = {pipeline->start_shipping() ? 0 : 1};
    exec::or_abandon(comm->all_max(without));
    if (without[0] != 0) {
      pipeline->stop_receiving();
      shipping.move_by_calls("no I/O thread could be started");
    }
  }
  if (!shipping.why_calls().empty())
    notes.degraded["write-behind: progress=calls, not " + asked + ": " + shipping.why_calls()] = 1;
  if (shipping.progress() == exec::Progress::calls && info.config.method.write_behind &&
      info.config.method.write_behind->stages == 1)
    notes.degraded
        ["write-behind: stages=1 gathers as 2 does: progress=calls sends nothing between "
         "collective calls"] = 1;
  owners_write = shipping.owners_alone() && !info.readable;
  notes.progress = exec::to_string(shipping.progress());
}

// Collective writes, too, leave a page to its owner's node: page i is rank i mod n's in both.
void File::State::give_to_owners(int64_t page_bytes) {
  plan::Parameters& p = collective.parameters;
  if (p.writers != 0 || p.writer != 0 || p.stripe_bytes != 0)
    notes.degraded
        ["collective writes go by the pages of independent ones: the method's writers, "
         "writer and stripe do not hold"] = 1;
  collective.algorithm = plan::find_algorithm("cyclic");
  p.writers = comm->size();
  p.stripe_bytes = page_bytes;
}

std::unique_ptr<File> File::open(std::unique_ptr<comm::Comm> comm, const OpenInfo& info) {
  return exec::or_abandon("open", [&] { return open_together(std::move(comm), info); });
}

std::unique_ptr<File> File::open_together(std::unique_ptr<comm::Comm> comm, const OpenInfo& info) {
  auto state = std::make_unique<State>();
  state->comm = std::move(comm);
  state->info = info;
  if (!info.opened_here) state->info.beside.clear();  // the others are as they were
  state->notes.opened_s = now_s();
  expect_syncs_by_symbols();
  const std::string unserved = state->open_here(), unread = state->open_for_reads_here();
  state->look_beside();
  state->agree_on_service(unserved, unread);
  state->start_pipeline();
  state->verify_beside();
  state->forget_beside();
  return std::unique_ptr<File>(new File(std::move(state)));
}

}  // namespace penstock::engine
