// Configuration, log and end of a job. Who writes the log: world rank 0; and
// another process under its own name (".rank<N>") as long as it holds reports that world rank 0 may
// never see: while the job runs, and for good when not every rank is known to have an engine,
// since then nobody may wait for anybody in MPI_Finalize. Or when a file that was closed inside the
// library's MPI_Finalize turned out wrong, of which world rank 0 hears no more.
#include "pmpi/job.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "comm/mpi_ask.hpp"
#include "comm/mpi_comm.hpp"
#include "exec/abandon.hpp"
#include "pmpi/real.hpp"

namespace penstock::pmpi {
namespace {

// A program's call is none the worse for its log.
template <class Body>
void if_memory_allows(Body&& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
  }
}

constexpr double kRewrite_s = 5;
constexpr double kRewriteManyFiles_s = 1;
constexpr int64_t kFilesLoggedAtOnce = 100;
constexpr double kLeastPause = 20;  // between two rewrites, in times of what one takes

double unix_s() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

std::string variable(const char* name) {
  const char* value = shim->variable(name);
  return value != nullptr ? value : "";
}

// Launchers number jobs, but what they number may start several, one after the other or at once: a
// batch script, a shell in a step of Slurm's, tasks that are scripts; and PMIx names may come again
// in a later run. So the start is added, and where that may be the same the process.
std::string job_id(double start_unix_s) {
  if (auto id = variable("PENSTOCK_JOB_ID"); !id.empty()) return id;
  const std::string slurm = variable("SLURM_JOB_ID"), step = variable("SLURM_STEP_ID");
  const std::string start = std::to_string(int64_t(start_unix_s));
  const std::string before = slurm.empty() ? "" : slurm + (step.empty() ? "" : "." + step) + "-";
  if (auto id = variable("PMIX_NAMESPACE"); !id.empty()) return before + id + "-" + start;
  return before + start + "-" + std::to_string(getpid());
}

// Of the job, as a program may have changed its own since.
std::string start_directory() {
  if (shim->start_directory != nullptr) return shim->start_directory;
  char path[4096];
  return getcwd(path, sizeof path) != nullptr ? path : ".";
}

std::string absolute(const std::string& path, const std::string& directory) {
  if (path.empty()) return directory;
  return path.front() == '/' ? path : directory + "/" + path;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(text, &length);  // Open MPI counts the NUL at the end
  std::string line(text, std::strcspn(text, "\n"));
  for (char& c : line) c = c == '\t' ? ' ' : c;
  return line;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// With what the program has taken out of its environment since it was started: the ranks that did
// so meet the others as if they had not.
engine::Surroundings surroundings() {
  engine::Surroundings s = engine::this_process();
  s.directory = start_directory();
  for (auto v = shim->start_variables; !s.secure && *v != nullptr; ++v) {
    const std::string_view text(*v);
    const size_t name_size = text.find('=');
    s.variables.emplace(text.substr(0, name_size), text.substr(name_size + 1));
  }
  return s;
}

}  // namespace

// Nobody will call finalize() any more, and what is opened now may stay open.
void Job::begin_late() {
  finished_ = true;
  (void)std::atexit([] { job().finalized(); });
}

void Job::configure() {
  if (shim->is_finalizing != 0) begin_late();
  start_unix_s_ = unix_s();
  start_s_ = now_s();
  start_directory_ = start_directory();
  auto config = engine::load_config(surroundings());
  const bool speaks = shim->speaks != 0;
  if (config) {
    config_ = *std::move(config);
    for (const std::string& notice : config_.notices)
      if (speaks) say("penstock: %s\n", notice.c_str());
    return;
  }
  config_error_ = config.error().message();
  // That all passes is said at the end even to who wants it quiet.
  config_ = engine::load_config_in_spite(surroundings());
  if (speaks || config_.require) {
    say("penstock: %s: %s\n", config_error_.c_str(),
        config_.require ? "PENSTOCK_REQUIRE is set, stopping" : "all writes go to the MPI library");
  }
  if (config_.require) std::_Exit(1);
}

void Job::ensure_log() {
  if (log_) return;
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank_);
  PMPI_Comm_size(MPI_COMM_WORLD, &world_size_);
  engine::JobFacts facts;
  facts.job_id = job_id(start_unix_s_);
  if (world_rank_ != 0) facts.job_id += ".rank" + std::to_string(world_rank_);
  facts.program = program_invocation_short_name;
  facts.mpi_library = mpi_library();
  facts.build = PENSTOCK_FLAVOUR;
  facts.penstock_version = PENSTOCK_VERSION;
  facts.host = host_name();
  facts.ranks = world_size_;
  facts.rank = world_rank_;
  facts.start_unix_s = start_unix_s_;
  facts.start_s = start_s_;
  log_.emplace(absolute(config_.log_dir, start_directory_), std::move(facts),
               config_.log ? engine::Listed::some : engine::Listed::none);
}

void Job::met(bool all_of_world) {
  const std::lock_guard lock(mutex_);
  every_rank_is_here_ = every_rank_is_here_ || all_of_world;
}

void Job::opened(const OpenFile& file) {
  const std::lock_guard lock(mutex_);
  watch_exit();
  ensure_log();
  has_more_to_say_ = has_more_to_say_ || finished_;
  if (file.file->comm().rank() == 0 && written_s_ == 0) write_log(finished_);
}

void Job::closed(const OpenFile& file, engine::FileReport report) {
  const std::lock_guard lock(mutex_);
  if (file.file->comm().rank() != 0) return;  // complete there only
  // In MPI_Finalize. World rank 0 has this rank's part, and hears of nothing any more.
  if (file.reported && handed_over_ && !went_wrong(report)) return;
  const bool wrong = went_wrong(report);
  if_memory_allows([&] {
    if (file.reported)
      log_->add_closed_late(std::move(report));
    else
      log_->add(std::move(report));
  });
  has_more_to_say_ = finished_;
  ++files_closed_;
  if (wrong || is_to_be_logged()) write_log(finished_);
}

// What went wrong is in the log at once: its error may end the job. So is every close, but a job of
// thousands of files does not rewrite it each time; nor do thousands of ranks, each of which has
// files of its own, theirs in one directory.
bool Job::is_to_be_logged() const noexcept {
  const bool many = files_closed_ > (world_rank_ == 0 ? kFilesLoggedAtOnce : 1);
  return !many || is_due(world_rank_ == 0 ? kRewriteManyFiles_s : kRewrite_s, now_s());
}

// A log of thousands of files takes long to write, and is written the less often.
bool Job::is_due(double pause_s, double now) const noexcept {
  return now - written_s_ >= std::max(pause_s, kLeastPause * writing_s_);
}

void Job::tick() {
  // Read without the lock: a stale value costs one early or late rewrite.
  if (written_s_ == 0 || !is_due(kRewrite_s, coarse_now_s())) return;
  const std::lock_guard lock(mutex_);
  written_s_ = coarse_now_s();
  if_memory_allows([&] {
    if (has_news()) write_log(finished_);
  });
}

// Of files that are open there is always some. Thousands of ranks may have had a file of their own
// once, and all of them a log of it beside the others.
bool Job::has_news() const {
  if (files_closed_ != files_logged_) return true;
  return std::ranges::any_of(open_files().all(), [](const OpenFilePtr& file) {
    return !file->reported && file->file->comm().rank() == 0;
  });
}

// Files that another thread is using just now are left out: the log may not wait for them.
std::vector<engine::FileReport> Job::snapshots() const {
  std::vector<engine::FileReport> reports;
  for (const OpenFilePtr& file : open_files().all()) {
    const std::unique_lock lock(file->together, std::try_to_lock);
    if (!lock || file->reported) continue;
    if (file->file->comm().rank() == 0) reports.push_back(file->file->snapshot());
  }
  return reports;
}

namespace {

// What may be there again when the job ends.
bool is_passing(const Error& error) {
  return error.sys_errno == EMFILE || error.sys_errno == ENFILE || error.sys_errno == ENOMEM;
}

}  // namespace

void Job::write_log(bool finished) {
  const double begin_s = now_s();
  written_s_ = begin_s;
  if (!config_.log) return;
  Result<void> written = tl::unexpected(Error{ErrorClass::no_memory, ENOMEM, "write", {}});
  if_memory_allows([&] { written = log_->write(finished, snapshots()); });
  written_s_ = now_s();
  writing_s_ = written_s_ - begin_s;
  if (written) files_logged_ = files_closed_;
  if (written || (!finished && is_passing(written.error()))) return;
  if (std::exchange(complained_, true)) return;
  say("penstock: the job log cannot be written: %s; name another directory by --log-dir or "
      "PENSTOCK_LOG_DIR, or say --no-log (PENSTOCK_LOG=0)\n",
      written.error().message().c_str());
}

// Collective over MPI_COMM_WORLD. Until all are here, files take in what others send and answer
// them: a rank that still works by itself waits for that. nullptr: it failed.
std::unique_ptr<comm::Comm> Job::meet_all() {
  auto world = comm::make_mpi_comm(MPI_COMM_WORLD);
  if (!world || !(*world)->barrier()) return nullptr;
  return *std::move(world);
}

// Collective. False when it failed: then every process keeps its own log.
bool Job::merge_all(comm::Comm& world) {
  const bool has_news = !log_->empty();
  const int64_t closed = log_->closed_files();
  int64_t sums[] = {closed > 0 ? 1 : 0, closed};
  const bool counted = world.all_sum(sums).has_value();
  const int shares = counted ? engine::JobLog::shares_of(sums[0], sums[1]) : world_size_;
  std::string mine;
  int64_t failed = 1;
  if_memory_allows([&] {
    if (has_news && world_rank_ != 0) mine = log_->encode_reports(shares);
    failed = 0;
  });
  // Framed by lengths, because the texts arrive as one.
  int64_t length = int64_t(mine.size());
  const auto lengths = world.gather(std::as_bytes(std::span(&length, 1)), 0);
  const auto texts = world.gather(std::as_bytes(std::span(mine)), 0);
  if (!counted || !lengths || !texts) failed = 1;
  if (failed == 0 && world_rank_ == 0) {
    failed = 1;
    if_memory_allows([&] { failed = merge_texts(*lengths, *texts, shares) ? 0 : 1; });
  }
  return world.all_max({&failed, 1}) && failed == 0;
}

// On world rank 0.
bool Job::merge_texts(std::span<const std::byte> lengths, std::span<const std::byte> texts,
                      int shares) {
  const auto* sizes = reinterpret_cast<const int64_t*>(lengths.data());
  const auto* text = reinterpret_cast<const char*>(texts.data());
  bool good = true;
  log_->keep_share(shares);
  for (int i = 0; i < world_size_; text += sizes[i++])
    if (sizes[i] > 0 && !log_->merge(std::string(text, size_t(sizes[i])))) good = false;
  return good;
}

void Job::say_summary() const {
  if (!config_.quiet) say("%s\n", log_->summary_line().c_str());
}

// Those that are not closed in MPI_Finalize nobody closes any more, so each rank reports its own
// part. Whether there are any.
bool Job::take_open_files() {
  std::vector<OpenFilePtr> files = open_files().all();
  std::erase_if(files, [](const OpenFilePtr& file) { return file->reported; });
  for (const OpenFilePtr& file : files) {
    const std::scoped_lock lock(file->together, file->alone);
    (void)file->file->flush(
        engine::Drain::last);  // a failure is counted and noted by the file itself
    if_memory_allows([&] { log_->add(file->file->snapshot()); });
    file->reported = true;
  }
  return !files.empty();
}

// While others still answer. Behind that each writes what it has, and nobody's older bytes are
// under way.
void Job::flush_open_files() {
  for (const OpenFilePtr& file : open_files().all()) {
    const std::scoped_lock lock(file->together, file->alone);
    (void)file->file->flush(engine::Drain::mine);
  }
}

void Job::finalize() {
  const std::lock_guard lock(mutex_);
  if (!comm::mpi_is_running()) return;  // the library will say so
  finished_ = true;
  const bool all_meet = every_rank_is_here_ || config_.all_ranks;
  if (all_meet) ensure_log();
  if (all_meet) flush_open_files();
  const std::unique_ptr<comm::Comm> world = all_meet ? meet_all() : nullptr;
  const bool left_open = take_open_files();
  // They may be closed in the library's MPI_Finalize, and a tool may exit from there.
  if (left_open) (void)std::atexit([] { job().finalized(); });
  const bool merged = world != nullptr && exec::or_abandon("MPI_Finalize: merge job logs",
                                                           [&] { return merge_all(*world); });
  if (world_rank_ != 0 && merged) {
    // World rank 0 has these reports now.
    if (written_s_ != 0 && config_.log) (void)::unlink(log_->path().c_str());
    log_->clear();
    written_s_ = 0;
    handed_over_ = true;
    return;
  }
  if (!log_ || (log_->empty() && !merged)) return;
  write_log(true);
  if (left_open)
    has_more_to_say_ = true;
  else
    say_summary();
}

void Job::finalized() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(has_more_to_say_, false)) return;
  (void)take_open_files();
  if (log_->empty()) return;
  write_log(true);
  say_summary();
}

// Its handlers and destructors may come later, and to MPI_Finalize.
void Job::watch_exit() {
  if (exits_ || finished_) return;
  exits_ = getpid();
  (void)std::atexit([] { job().exits(); });
}

namespace {

// A signal's handler may have ended the program in the middle of a call, of which nobody knows what
// it has in hand, and what a flush of this or another file would wait for.
bool has_call_here(const OpenFilePtr& file) {
  return file->alone.is_held_here() || file->together.is_held_here();
}

void say_what_may_be_lost(const OpenFile& file, const char* of_whom) {
  if (file.file->holds_accepted())
    say("penstock: %s: the program ended in the middle of a call%s, and what was accepted may not "
        "be in the file\n",
        file.path.c_str(), of_whom);
}

// What of it is in the file nobody can ask, since a thread is at work on it.
void say_what_closing_may_lose(const OpenFilePtr& file) {
  if (file->writable)
    say("penstock: %s: the program ended in the middle of its close, and what was accepted may not "
        "be in the file\n",
        file->path.c_str());
}

// Another thread may be in the middle of a call that never ends.
bool is_soon_free(std::unique_lock<CallMutex>& lock) {
  constexpr timespec kPause{0, 10'000'000};
  for (int looks = 0; looks < 100 && !lock.try_lock(); ++looks) nanosleep(&kPause, nullptr);
  return lock.owns_lock();
}

// The end of the program has no call that could tell.
void flush_at_exit(OpenFile& file) {
  std::unique_lock lock(file.alone, std::defer_lock);
  if (is_soon_free(lock)) {
    const auto lost = file.file->flush_at_exit();
    if (!lost) return;
    say("penstock: %s: the program ended without MPI_Finalize, and not all that was accepted is in "
        "the file: %s\n",
        file.path.c_str(), lost->message().c_str());
  } else {
    say_what_may_be_lost(file, " of another thread");
  }
}

}  // namespace

// The MPI library kills the other ranks then, or lets it pass.
void Job::exits() noexcept try {
  if (finished_ || getpid() != exits_) return;
  const std::vector<OpenFilePtr> files = open_files().all(), closing = open_files().closing();
  std::ranges::for_each(closing, say_what_closing_may_lose);
  const bool interrupted = Opening::here() > 0 || std::ranges::any_of(files, has_call_here) ||
                           std::ranges::any_of(closing, has_call_here);
  for (const OpenFilePtr& file : files) {
    if (interrupted)
      say_what_may_be_lost(*file, "");
    else
      flush_at_exit(*file);
  }
} catch (...) {
  say("penstock: internal error at the end of the program\n");
}

Job& job() {
  static Job& the_job = *new Job;  // outlives every destructor of the program
  return the_job;
}

}  // namespace penstock::pmpi
