// The order of a run: files and memory, old file gone, warm disk, memory regime, sampler, barrier,
// the measured loop, drain, read-back, output.
#include "run.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "actual.hpp"
#include "amount.hpp"
#include "base/clock.hpp"
#include "comm/thread_comm.hpp"
#include "cpus.hpp"
#include "record.hpp"
#include "regime.hpp"
#include "template.hpp"
#include "verify.hpp"

namespace penstock::measure {
namespace {

int64_t ns(double seconds) { return int64_t(seconds * 1e9); }

class Run {
 public:
  Run(const Program& program, const Parameters& p, comm::Comm& team, const Place& place)
      : program_(program), p_(p), team_(team), place_(place) {}

  int run() {
    if (auto ok = comm::agree(team_, set_up()); !ok) return say(ok.error());
    bool going = together("prepare", prepare());
    if (going) {
      measure();
      going = finish_clock();
    }
    if (going) check();
    return print();
  }

 private:
  // --- Set-up: nothing here touches the file system ---

  Result<void> set_up() {
    auto node = team_.split_by_node();
    if (!node) return tl::unexpected(node.error());
    node_ = *std::move(node);
    choose_file();
    // All meet in it: before anything that may fail on one worker alone.
    if (auto ok = make_lock(); !ok) return ok;
    if (auto ok = share_out(); !ok) return ok;
    auto part = make_part(p_.pattern, part_number(), amount_);
    if (!part) return tl::unexpected(part.error());
    part_ = *std::move(part);
    if (file_team_->rank() == 0)
      for (std::string& what : notes_of(p_, file_team_->size(), amount_, part_))
        note(std::move(what));
    auto view = view_of(part_);
    if (!view) return tl::unexpected(view.error());
    view_ = *std::move(view);
    return make_memory();
  }

  Result<void> share_out() {
    const int workers = file_team_->size();
    if (workers < (p_.dedicated ? 2 : 1))
      return fail(ErrorClass::argument, "strategy",
                  p_.strategy +
                      " needs a worker that computes beside the one that writes: at "
                      "least 2 workers, got 1");
    if (__int128(p_.bufsize_bytes) * workers >= (int64_t{1} << 62))
      return fail(ErrorClass::argument, "bufsize",
                  "bufsize times workers must be less than 2^62 bytes, got " +
                      std::to_string(p_.bufsize_bytes) + " times " + std::to_string(workers));
    amount_ = amount_of(p_, workers);
    return calls_fit();
  }

  // Worker 0 gathers every worker's calls, and no message is longer.
  Result<void> calls_fit() const {
    constexpr int64_t kMost = (int64_t{1} << 31) / sizeof(Call);
    if (__int128(p_.iterations) * team_.size() < kMost) return {};
    return fail(ErrorClass::argument, "iters",
                "--iters times workers must be less than " + std::to_string(kMost) + ", got " +
                    std::to_string(p_.iterations) + " times " + std::to_string(team_.size()));
  }

  bool only_writes() const { return p_.dedicated && file_team_->rank() == 0; }
  // Whose part of the file it computes. The one that only writes has a buffer as its neighbour's,
  // and never uses it.
  int part_number() const { return std::max(0, file_team_->rank() - (p_.dedicated ? 1 : 0)); }

  void choose_file() {
    path_ = p_.file;
    file_team_ = &team_;
    if (p_.files == Files::per_node) {
      path_ += ".node" + std::to_string(team_.own_node());
      file_team_ = node_.get();
      first_worker_ = team_.own_node() * team_.size();
    }
    if (p_.files == Files::per_worker) {
      path_ += "." + std::to_string(team_.rank());
      alone_ = std::move(comm::make_thread_team(1).front());
      file_team_ = alone_.get();
      first_worker_ = team_.rank();
    }
  }

  Contents contents_of(int part) const {
    return {p_.seed, first_worker_ + part, p_.memory.shift()};
  }

  Result<void> make_memory() {
    const Contents contents = contents_of(part_number());
    const bool keep_all = p_.op == Op::read && p_.verify == Verify::all;
    auto memory = Memory::make(p_.memory, contents, part_.bytes_per_iteration,
                               keep_all ? p_.iterations : Memory::kShared);
    if (!memory) return tl::unexpected(memory.error());
    memory_.emplace(*std::move(memory));
    return {};
  }

  // Files of their own share one lock; a shared file makes its own.
  Result<void> make_lock() {
    if (p_.route != RouteKind::engine || p_.files == Files::shared) return {};
    auto lock = team_.node_lock();
    if (!lock) return tl::unexpected(lock.error());
    lock_ = *std::move(lock);
    return {};
  }

  RouteRequest request() const {
    RouteRequest r;
    r.path = path_;
    r.part = part_;
    r.view = view_;
    r.memory = p_.memory;
    r.access = p_.access;
    r.op = p_.op;
    r.files = p_.files;
    r.comm = file_team_;
    r.thread = place_.thread;
    r.hints = p_.hints;
    r.method = p_.method;
    r.syncs = p_.end == End::sync || p_.sync_each || (p_.syncsize_bytes > 0 && !p_.policy_syncs);
    r.node_lock = lock_;
    r.handover = {p_.pattern, amount_};
    return r;
  }

  // --- Before the clock ---

  bool first_of_node() const { return node_->rank() == 0; }
  // One worker per file and node acts for all of them.
  bool acts_for_file() const { return p_.files == Files::per_worker || first_of_node(); }

  // Keeps this worker's error; true when no worker has one.
  bool together(const char* where, Result<void> mine) {
    if (!mine && !record_.failure) record_.failure = Failure{where, mine.error()};
    return bool(comm::agree(team_, std::move(mine)));
  }

  Result<void> prepare() {
    Result<void> mine;
    if (file_team_->rank() == 0) mine = remove_old();
    if (mine && team_.rank() == 0 && p_.op == Op::write)
      mine = warm_disk(p_.file, p_.warm_disk_bytes);
    if (p_.op == Op::read)
      mine = comm::agree(team_, std::move(mine)).and_then([&] { return write_input(); });
    if (auto ok = comm::agree(team_, mine); !ok) return mine ? ok : mine;
    set_regime();
    return {};
  }

  // A device would be gone for all, and a directory holds more than an old file.
  Result<void> remove_old() {
    struct stat old {};
    if (::lstat(path_.c_str(), &old) == 0 && !S_ISREG(old.st_mode) && !S_ISLNK(old.st_mode))
      return fail(ErrorClass::file_exists, "unlink", path_ + " is neither a file nor a link");
    if (::unlink(path_.c_str()) == 0 || errno == ENOENT) return {};
    return os_error("unlink", path_, errno);
  }

  // What is to be read. The route that reads takes no part, so that it cannot hide its own faults.
  Result<void> write_input() {
    const Contents contents = contents_of(file_team_->rank());
    auto memory = Memory::make(p_.memory, contents, part_.bytes_per_iteration, Memory::kShared);
    if (!memory) return tl::unexpected(memory.error());
    RouteRequest r = request();
    r.op = Op::write;
    auto route = make_posix_route(r);
    if (!route) return tl::unexpected(route.error());
    Result<void> done = (*route)->open();
    for (int64_t i = 0; done && i < p_.iterations; ++i)
      done = (*route)->write({i * part_.bytes_per_iteration, memory->window(i)});
    if (done) done = (*route)->sync();
    Result<void> closed = (*route)->close();
    if (done) done = closed;
    const bool drop = p_.regime == Regime::cold || p_.regime == Regime::dropped;
    return done && drop ? cool_file(path_) : done;
  }

  // The others wait where all begin for the one that cools memory.
  void set_regime() {
    const bool waits = p_.page_reports == PageReports::wait;
    if (p_.regime == Regime::warm)
      note(node_memory_.warm(p_.warm_memory_bytes, node_->size(), waits));
    else if (p_.regime == Regime::cold && first_of_node())
      note(node_memory_.cool(p_.warm_memory_bytes, waits));
  }

  void note(std::string what) {
    if (!what.empty()) record_.notes.push_back(std::move(what));
  }

  // --- The clock ---

  Result<std::unique_ptr<Route>> make_route() {
    if (p_.route == RouteKind::posix) return make_posix_route(request());
    if (p_.dedicated) return make_dedicated_route(request());
    if (p_.route == RouteKind::engine) return make_engine_route(request());
    return program_.make_mpi_route(request());
  }

  Plan plan() const {
    Plan plan;
    plan.op = p_.op;
    plan.access = p_.access;
    plan.iterations = p_.iterations;
    plan.bytes_per_iteration = part_.bytes_per_iteration;
    plan.file_bytes_per_iteration = part_.file_bytes_per_iteration;
    // 2 x comptime worker-seconds, shared by the iterations and the workers that compute.
    const int computing = team_.size() - (p_.dedicated ? 1 : 0);
    plan.compute_s = 2 * p_.compute_s / double(p_.iterations) / computing;
    plan.fill = p_.fill;
    if (only_writes()) {
      plan.bytes_per_iteration = 0;  // they are counted where they are computed
      plan.compute_s = 0;
      plan.fill = Fill::once;
    }
    plan.barrier = p_.barrier;
    plan.end = p_.end;
    if (!p_.policy_syncs) plan.sync_every_bytes = p_.syncsize_bytes;
    if (p_.sync_each) plan.sync_every_bytes = 1;
    return plan;
  }

  void start_sampler() {
    if (p_.bin_s == 0 || !first_of_node()) return;
    auto directory = std::filesystem::path(p_.file).parent_path().string();
    auto choice = choose_source(directory.empty() ? "." : directory, files_of_node_);
    sampler_why_ = choice.why;
    sampler_ = std::make_unique<Sampler>(std::move(choice.source), p_.bin_s);
  }

  // The paths of this node's workers, each once, on its first worker.
  Result<void> gather_paths() {
    const std::string mine = path_ + '\0';
    auto all = node_->gather(std::as_bytes(std::span(mine)), 0);
    if (!all) return tl::unexpected(all.error());
    const std::string text(reinterpret_cast<const char*>(all->data()), all->size());
    for (size_t begin = 0; begin < text.size();) {
      files_of_node_.emplace_back(text.c_str() + begin);
      begin += files_of_node_.back().size() + 1;
    }
    std::ranges::sort(files_of_node_);
    files_of_node_.erase(std::unique(files_of_node_.begin(), files_of_node_.end()),
                         files_of_node_.end());
    return {};
  }

  void measure() {
    auto route = make_route();
    Result<void> ready = gather_paths();
    if (ready && !route) ready = tl::unexpected(route.error());
    if (!together("prepare", std::move(ready))) return;
    start_sampler();
    loop_.emplace(team_, **route, *memory_, plan(), p_.bin_s, *place_.pulse);
    const CpuTimes before = first_of_node() ? cpu_times().value_or(CpuTimes{}) : CpuTimes{};
    if (!together("barrier", team_.barrier())) return;
    agreed_ = loop_->run();
    if (const EngineReport* report = (*route)->engine_report(); report && file_team_->rank() == 0)
      record_.engine = *report;
    if (!record_.failure) record_.failure = loop_->failure();
    if (agreed_ == ErrorClass::none) drain();
    if (first_of_node()) record_.cpus = cpus_since(before);
    if (sampler_) sampler_->stop();
    node_memory_.give_back();
    if (agreed_ == ErrorClass::none) record_.overhead_s = loop_->overhead_s();
    route_ = *std::move(route);  // destroyed after everything that might still ask it
  }

  static std::optional<CpuTimes> cpus_since(const CpuTimes& before) {
    const std::optional<CpuTimes> now = cpu_times();
    if (!now) return {};
    return *now - before;
  }

  bool writes_nothing() const {
    return p_.route == RouteKind::engine && !p_.method.mechanism->writes_file;
  }

  // Until the device has every byte: outside the application's clock. Collective, so that the
  // node's first worker watches until the last file is drained, not its own alone.
  void drain() {
    const double begin_s = now_s();
    Result<void> mine;
    if (p_.op == Op::write && acts_for_file()) mine = drain_file(path_);
    if (!mine) record_.failure = Failure{"drain", mine.error()};
    const double end_s = now_s();
    loop_->phases().drain_s = end_s - begin_s;
    record_.actual_s = p_.op == Op::read ? loop_->application_s() : end_s - loop_->zero_s();
    if (!comm::agree(team_, std::move(mine)) || writes_nothing()) record_.actual_s = 0;
  }

  // Copies what the loop saw; true when every worker came to the end without an error.
  bool finish_clock() {
    if (loop_) {
      record_.application_s = loop_->application_s();
      record_.done_s = loop_->done_s();
      record_.phases = loop_->phases();
      record_.bytes = loop_->bytes();
      record_.calls = loop_->calls();
      if (p_.bin_s > 0) merge_series();
    }
    Result<void> mine;
    if (record_.failure) mine = tl::unexpected(record_.failure->error);
    return bool(comm::agree(team_, std::move(mine)));
  }

  // Collective. Sums of all workers' bins, and of all nodes' readings at the ends of bins.
  void merge_series() {
    int64_t most[] = {ns(std::max(record_.actual_s, record_.application_s)),
                      sampler_ ? int64_t(sampler_->source().measures()) : 0};
    (void)team_.all_max(most);
    const auto bins = int64_t(std::ceil(double(most[0]) * 1e-9 / p_.bin_s));
    std::vector<int64_t> sums = loop_->bins().values(bins);
    sums.resize(size_t(2 * bins + 3));
    if (sampler_) add_readings(std::span(sums).subspan(size_t(bins)));
    (void)team_.all_sum(sums);
    if (team_.rank() == 0) make_series(sums, bins);
  }

  // Per bin, then the last reading of all, how many there are, and what they cost in ns.
  void add_readings(std::span<int64_t> into) const {
    const auto readings = sampler_->readings(loop_->zero_s());
    const auto bins = int64_t(into.size()) - 3;
    const bool grows = sampler_->source().measures() == Measures::written;
    const double before = grows ? at(readings, 0) : 0;
    for (int64_t i = 0; i < bins; ++i)
      into[size_t(i)] = std::llround(at(readings, double(i + 1) * p_.bin_s) - before);
    into[size_t(bins)] = readings.empty() ? 0 : readings.back().bytes;
    into[size_t(bins) + 1] = int64_t(readings.size());
    into[size_t(bins) + 2] = ns(sampler_->busy_s());
  }

  void make_series(const std::vector<int64_t>& sums, int64_t bins) {
    const auto application = std::span(sums).first(size_t(bins));
    const auto readings = std::span(sums).subspan(size_t(bins), size_t(bins));
    const Measures measures = sampler_->source().measures();
    Series s;
    s.bin_s = p_.bin_s;
    s.application_bytes.assign(application.begin(), application.end());
    s.source = sampler_->source().name();
    s.why = sampler_->failed().empty() ? sampler_why_ : sampler_->failed();
    s.readings = sums[size_t(2 * bins) + 1];
    s.busy_s = double(sums[size_t(2 * bins) + 2]) * 1e-9;
    const bool drained = record_.actual_s > 0 && p_.op == Op::write && sampler_->failed().empty();
    int64_t total = 0;
    for (const int64_t n : application) total += n;
    if (drained && measures == Measures::unwritten) {
      s.actual_bytes = reached_device(application, readings);
      s.left_bytes = sums[size_t(2 * bins)];
    } else if (drained && measures == Measures::written) {
      s.actual_bytes = counted_by_device(readings, total);
    }
    series_ = std::move(s);
  }

  // --- After the clock ---

  void check() {
    if (p_.verify == Verify::none) {
      verify_why_ = "--verify none";
    } else if (writes_nothing()) {
      verify_why_ = "mechanism " + std::string(p_.method.mechanism->name) + " writes no file";
    } else {
      Result<void> done = p_.op == Op::read ? check_memory() : check_file();
      if (!done) record_.failure = Failure{"verify", done.error()};
    }
  }

  Result<void> check_memory() {
    Check check;
    for (int64_t i = 0; i < p_.iterations; ++i) {
      int64_t first = 0;
      const int64_t wrong = memory_->wrong_bytes(i, first);
      Check one{.bytes = part_.bytes_per_iteration, .wrong_bytes = wrong};
      if (wrong > 0) {
        one.first_wrong = view_.offset_of(i * part_.bytes_per_iteration + first);
        one.first_worker = team_.rank();
      }
      check.add(one);
    }
    record_.check = check;
    record_.check_file = path_;
    return {};
  }

  // Every worker checks a slice of its file, not the one that it wrote where it can be helped.
  Result<void> check_file() {
    auto expected = Expected::make(p_.pattern, amount_, p_.memory.shift(), first_worker_);
    if (!expected) return tl::unexpected(expected.error());
    const int workers = file_team_->size();
    auto check = check_slice(*expected, path_, (file_team_->rank() + 1) % workers, workers);
    if (!check) return tl::unexpected(check.error());
    if (p_.dedicated && check->first_worker >= 0) ++check->first_worker;  // parts begin at worker 1
    record_.check = *check;
    record_.check_file = path_;
    return {};
  }

  // --- Output ---

  // Wrong usage that shows only with the number of workers: the worker that knows why says it.
  int say(const Error& agreed) {
    record_.failure = Failure{"set up", agreed};
    auto records = gather_records(team_, record_);
    if (!records || team_.rank() != 0) return kWrongUsage;
    std::string text = agreed.message();
    for (const Record& r : *records)
      if (r.failure && r.failure->error.detail.find("another ") == std::string::npos)
        text = r.failure->error.message();
    std::fprintf(stderr, "%s: %s\n", program_.name.c_str(), text.c_str());
    return kWrongUsage;
  }

  int print() {
    auto records = gather_records(team_, record_);
    int64_t code[] = {kFailed};
    if (records && team_.rank() == 0) {
      const Json line =
          line_of(program_, p_, place_, team_.nodes(), *records, series_, verify_why_);
      std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
      std::fflush(stdout);
      const Json& v = line["verified"];
      const bool wrong = !v.is_null() && v["wrong_bytes"] != 0;
      code[0] = !line["error"].is_null() || wrong ? kFailed : kMeasured;
    }
    if (!records && team_.rank() == 0)
      std::fprintf(stderr, "%s: %s\n", program_.name.c_str(), records.error().message().c_str());
    if (team_.rank() != 0) code[0] = kMeasured;
    return team_.all_max(code) ? int(code[0]) : kFailed;
  }

  const Program& program_;
  const Parameters& p_;
  comm::Comm& team_;
  Place place_;
  std::unique_ptr<comm::Comm> node_;
  std::unique_ptr<comm::Comm> alone_;
  comm::Comm* file_team_ = nullptr;
  int first_worker_ = 0;  // what the contents know the file's first by: no two files are alike
  std::shared_ptr<comm::NodeLock> lock_;
  std::string path_, sampler_why_, verify_why_;
  std::vector<std::string> files_of_node_;
  Amount amount_;
  Part part_;
  layout::FileView view_;
  std::optional<Memory> memory_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Route> route_;
  std::optional<Loop> loop_;
  ErrorClass agreed_ = ErrorClass::none;
  std::optional<Series> series_;
  Record record_;
  NodeMemory node_memory_;
};

}  // namespace

int run_worker(const Program& program, const Parameters& parameters, comm::Comm& team,
               const Place& place) {
  return Run(program, parameters, team, place).run();
}

}  // namespace penstock::measure
