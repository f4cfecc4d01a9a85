#include "engine/report.hpp"

#include <algorithm>
#include <bit>

#include "base/clock.hpp"
#include "engine/file.hpp"
#include "engine/job_totals.hpp"
#include "exec/abandon.hpp"

namespace penstock::engine {
namespace {

static_assert(sizeof(Counters) % sizeof(int64_t) == 0);
using CounterArray = std::array<int64_t, sizeof(Counters) / sizeof(int64_t)>;

// What the device had when, in order of trust.
struct DeviceFacts {
  bool synced = false;         // an fsync succeeded on every rank after the last write
  int64_t until_sync_ns = 0;   // from the first write to the end of that sync, slowest rank
  int64_t until_close_ns = 0;  // to close
  std::optional<io::Unwritten> unwritten;
  int nodes = 1;
  bool synced_here = false;  // on rank 0 alone, which asks the page cache only where it was not
};

void set_actual_rate(FileReport& r, const DeviceFacts& d) {
  const int64_t bytes = r.sum.engine_bytes + r.sum.passthrough_bytes;
  if (bytes == 0) {
    r.actual_rate_source = "nothing was written";
  } else if (d.synced) {
    r.actual_rate = double(bytes) / (1e-9 * double(std::max<int64_t>(d.until_sync_ns, 1)));
    r.actual_rate_source = "fsync";
  } else if (d.nodes > 1) {
    r.actual_rate_source =
        "not known: on several nodes, and not all was synced after it was written";
  } else if (!d.unwritten && d.synced_here) {
    r.actual_rate_source = "not known: another rank wrote behind the last sync";
  } else if (!d.unwritten) {
    r.actual_rate_source =
        "not known: not all was synced, and the page cache does not tell (cachestat)";
  } else {
    // What was written over is there once.
    const int64_t once = std::min(bytes, d.unwritten->of_bytes);
    const int64_t there = std::max<int64_t>(0, once - d.unwritten->bytes);
    r.actual_rate = double(there) / (1e-9 * double(std::max<int64_t>(d.until_close_ns, 1)));
    r.actual_rate_source = d.unwritten->estimated ? "cachestat, by samples" : "cachestat";
    if (there == 0) r.actual_rate_source += ": at close the device had none of it yet";
  }
}

void set_algorithms(FileReport& r, std::span<const int64_t> calls) {
  for (size_t i = 0; i < calls.size(); ++i)
    if (calls[i] > 0) r.algorithms[std::string(plan::algorithms()[i]->name)] = calls[i];
}

// Names of files may hold the end of a line.
std::string line(char kind, int64_t count, std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return kind + std::to_string(count) + " " + text + "\n";
}

// One line per note: kind, count, text. Only ranks that have something to say send bytes.
std::string encode(const FileNotes& n) {
  std::string out;
  for (const auto& [why, count] : n.degraded) out += line('D', count, why);
  if (!n.first_error.empty()) out += line('E', 0, n.first_error);
  return out;
}

void decode(std::string_view text, FileReport& r) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string what(line.substr(space + 1));
    if (line[0] == 'D')
      add_reason(r.degraded, what, std::atoll(std::string(line.substr(1, space - 1)).c_str()));
    if (line[0] == 'E' && r.first_error.empty()) r.first_error = what;
  }
}

// The others wait for what this rank could not send, and nothing else would tell them.
[[noreturn]] void abandon(Error error, const FileReport& r) {
  error.detail += "; " + r.path + " was written and closed before, as far as the ranks agreed";
  exec::abandon(error);
}

void gather_texts(comm::Comm& comm, const std::string& mine, FileReport& r) {
  const auto all = comm.gather(std::as_bytes(std::span(mine)), 0);
  if (!all) abandon(all.error(), r);
  decode({reinterpret_cast<const char*>(all->data()), all->size()}, r);
}

}  // namespace

void FileNotes::wrote(double begin_s, double end_s) {
  first_write_s = first_write_s == 0 ? begin_s : std::min(first_write_s, begin_s);
  last_write_s = std::max(last_write_s, end_s);
}

void FileNotes::ran(const plan::Algorithm* algorithm, int64_t calls) {
  const auto all = plan::algorithms();
  algorithm_calls.resize(all.size());
  const auto found = std::ranges::find(all, algorithm);
  if (found != all.end()) algorithm_calls[size_t(found - all.begin())] += calls;
}

void FileNotes::take(const exec::PhaseTimes& t, const exec::Traffic& traffic) {
  counters.plan_ns = ns(t.plan_s);
  counters.pack_ns = ns(t.pack_s);
  counters.exchange_ns = ns(t.exchange_s);
  counters.write_ns = ns(t.write_s);
  counters.policy_sync_ns = ns(t.sync_s);
  counters.messages = traffic.messages;
  counters.message_bytes = traffic.message_bytes;
  counters.shared_bytes = traffic.shared_bytes;
  counters.file_writes = traffic.writes;
  counters.cycles = traffic.cycles;
  counters.descriptions = traffic.descriptions;
  counters.policy_syncs = traffic.syncs;
}

void FileNotes::take(const exec::ReadSpent& spent) {
  counters.read_ns = ns(spent.read_s);
  counters.file_reads = spent.file.reads;
  counters.file_read_bytes = spent.file.bytes;
  counters.read_messages = spent.messages;
  counters.read_message_bytes = spent.message_bytes;
}

FileReport describe(const OpenInfo& info, const io::FileSystem& fs) {
  FileReport r;
  r.path = info.path;
  r.method = info.config.mode == Mode::serve  ? to_string(info.config.method)
             : info.config.left_alone.empty() ? "observe"
                                              : "off";
  r.file_system = fs.type;
  return r;
}

FileReport local_report(const FileNotes& notes, FileReport base) {
  base.ranks = 1;
  base.sum = notes.counters;
  base.open_to_close_s = now_s() - notes.opened_s;
  if (notes.counters.call_ns > 0)
    base.application_rate = double(notes.counters.engine_bytes + notes.counters.passthrough_bytes) /
                            (1e-9 * double(notes.counters.call_ns));
  base.actual_rate_source = "not known while the file is open";
  set_algorithms(base, notes.algorithm_calls);
  base.degraded = notes.degraded;
  base.first_error = notes.first_error;
  base.progress = notes.progress;
  return base;
}

namespace {

// Everything that is a sum over ranks, by one reduction: calls of each algorithm, what was
// verified, and the counters.
void add_up(comm::Comm& comm, const FileNotes& notes, FileReport& r) {
  const size_t algorithms = plan::algorithms().size();
  std::vector<int64_t> sums = notes.algorithm_calls;
  sums.resize(algorithms);
  sums.insert(sums.end(), {notes.verification.verified_bytes, notes.verification.unverified_bytes,
                           notes.verification.mismatched_bytes});
  const auto mine = std::bit_cast<CounterArray>(notes.counters);
  sums.insert(sums.end(), mine.begin(), mine.end());
  if (const auto summed = comm.all_sum(sums); !summed) abandon(summed.error(), r);
  set_algorithms(r, std::span(sums).first(algorithms));
  const int64_t* const verified = &sums[algorithms];
  r.verified_bytes = verified[0];
  r.unverified_bytes = verified[1];
  r.mismatched_bytes = verified[2];
  CounterArray counters;
  std::copy_n(verified + 3, counters.size(), counters.begin());
  r.sum = std::bit_cast<Counters>(counters);
}

}  // namespace

FileReport merge(comm::Comm& comm, const FileNotes& notes, FileReport base) {
  base.ranks = comm.size();
  base.progress = notes.progress;
  add_up(comm, notes, base);
  const std::string texts = encode(notes);
  const bool wrote = notes.first_write_s > 0;
  const bool unsynced = wrote && notes.synced_s < notes.last_write_s;
  int64_t most[] = {ns(now_s() - notes.opened_s),
                    notes.counters.call_ns,
                    unsynced ? 1 : 0,
                    wrote ? ns(notes.synced_s - notes.first_write_s) : 0,
                    wrote ? ns(now_s() - notes.first_write_s) : 0,
                    texts.empty() ? 0 : 1};
  if (const auto known = comm.all_max(most); !known) abandon(known.error(), base);
  base.open_to_close_s = 1e-9 * double(most[0]);
  const int64_t bytes = base.sum.engine_bytes + base.sum.passthrough_bytes;
  if (most[1] > 0) base.application_rate = double(bytes) / (1e-9 * double(most[1]));
  set_actual_rate(base, {most[2] == 0 && most[3] > 0, most[3], most[4], notes.unwritten,
                         comm.nodes(), notes.synced_s > 0 && !unsynced});
  if (most[5] != 0) gather_texts(comm, texts, base);
  return base;
}

}  // namespace penstock::engine
