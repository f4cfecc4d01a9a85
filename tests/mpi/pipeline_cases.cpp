// The pipeline on MPI ranks and threads of them: its conformance, what its calls cost, and turns
// between real processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "exec/counts.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "exec/team.hpp"
#include "io/periodic_sync.hpp"
#include "io/recording_file.hpp"
#include "workers.hpp"

namespace {

thread_local int64_t system_calls = 0;  // of this worker

}  // namespace

// Instead of the C library's.
extern "C" ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) {
  ++system_calls;
  return ::syscall(SYS_pwrite64, fd, bytes, n, offset);
}

namespace workers {
namespace {

// --- The pipeline ---

struct Variant {
  const plan::Algorithm* algorithm;
  plan::Parameters parameters;
  bool interleave;
  const exec::Exchange* exchange;
  exec::Pack pack = exec::Pack::copy;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const plan::Algorithm* a : plan::algorithms())
    for (const exec::Exchange* e : exec::exchanges())
      for (const bool interleave : {true, false}) {
        if (!a->exchanges && e != exec::exchanges().front()) continue;
        all.push_back({a, {}, interleave, e});
        all.push_back({a, plan::taken_by(*a, {2, 4096, 8192, 0, 2}), interleave, e});
        if (a->exchanges && e->takes_pack)
          all.push_back({a, {}, interleave, e, exec::Pack::datatype});
      }
  return all;
}

// Where pages are shared and all workers are on one node, no byte is in a message.
void check_way(const Variant& v, const exec::Pipeline& pipeline, const Comm& c, Report& report) {
  if (v.exchange->shares_pages && v.algorithm->scatters) {
    report.expect_equal(int64_t(pipeline.degraded().empty()), int64_t(c.size() == 1),
                        "says that it did not exchange as asked");
    return;
  }
  report.expect(pipeline.degraded().empty(), "exchanged as asked: " + pipeline.degraded());
  if (v.exchange->shares_pages && c.nodes() == 1)
    report.expect_equal(pipeline.spent_together().traffic.messages, 0, "messages");
}

void run_case(Comm& c, Report& report, const std::string& path, const Variant& v, uint64_t seed) {
  exec::Random random(seed);
  const auto cases = exec::draw_team(random, c.size(), v.interleave);
  const exec::RankCase& mine = cases[size_t(c.rank())];
  if (c.rank() == 0) exec::fill_with_background(path);
  report.expect(c.barrier().has_value(), "barrier");
  auto file = io::find_mechanism("pwrite")->open({path, 4096});
  if (!report.expect(file.has_value(), "open")) return;
  {
    exec::Pipeline pipeline(c, **file, {});
    const exec::WriteRequest request{&mine.view,       mine.range,        mine.memory.data(),
                                     mine.memory_type, mine.memory_count, ErrorClass::none};
    const auto out =
        pipeline.write_all(request, {v.algorithm, v.parameters, nullptr, v.exchange, v.pack});
    check_way(v, pipeline, c, report);
    report.expect(out.agreed == ErrorClass::none, "written");
    report.expect_equal(out.prefix_bytes, mine.range.size(), "count");
  }
  report.expect((*file)->close().has_value(), "close");
  report.expect(c.barrier().has_value(), "barrier");
  if (c.rank() == 0) {
    bool found = false;
    const auto bytes = suite::read_whole(path, &found);
    const auto expected = exec::expectation(cases);
    report.expect(bytes.size() == expected.size() &&
                      std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0,
                  "the bytes of the file");
  }
  report.expect(c.barrier().has_value(), "barrier");
}

// --- What a call costs ---

void count_calls(Comm& c, Report& report, const std::string& path, const plan::Algorithm& algorithm,
                 const exec::Exchange& exchange, const exec::Deal& deal,
                 const std::vector<int>& nodes) {
  const plan::Parameters parameters = plan::taken_by(algorithm, {2, exec::kCountedCycle});
  const plan::Team team = exec::team_of(c);
  const exec::Costs costs(algorithm, parameters, team, deal, nodes, exchange);
  if (c.rank() == 0) suite::write_whole(path, {});
  report.expect(c.barrier().has_value(), "barrier");
  auto file = io::find_mechanism("pwrite")->open({path, 4096});
  if (!report.expect(file.has_value(), "open")) return;
  exec::CommCounts counts;
  exec::CountingComm counting(c, counts);
  {
    exec::Pipeline pipeline(counting, **file, {});
    const plan::Part mine = deal.of(c.rank());
    const std::vector<std::byte> data(size_t(mine.own.size()), std::byte(c.rank() + 1));
    const exec::WriteRequest request{&mine.view,      mine.own,
                                     data.data(),     layout::LoopTree::bytes(1),
                                     mine.own.size(), ErrorClass::none};
    // Where a thread writes for its worker, the worker's own calls say nothing.
    const auto count = [&] {
      const exec::Traffic& traffic = pipeline.spent_together().traffic;
      return exec::Counted{traffic, counts,
                           algorithm.writes_behind ? traffic.writes : system_calls};
    };
    for (int call = 0; call < 2; ++call) {
      const exec::Counted before = count();
      const auto out = pipeline.write_all(request, {&algorithm, parameters, nullptr, &exchange});
      report.expect(out.agreed == ErrorClass::none, "written");
      for (const std::string& line :
           exec::differences(costs.of(c.rank()), count() - before, call > 0))
        report.expect(false, "call " + std::to_string(call) + ": " + line);
    }
  }
  report.expect((*file)->close().has_value(), "close");
}

// Of each worker.
std::vector<int> nodes_of(Comm& c, Report& report) {
  std::vector<int> nodes(static_cast<size_t>(c.size()));
  const int mine = c.own_node();
  const auto done =
      c.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(nodes)));
  report.expect(done.has_value(), "allgather");
  return nodes;
}

// --- Turns ---

// A record in a file that all ranks map.
class SharedRecord {
 public:
  explicit SharedRecord(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(io::SyncRecord)) != 0) std::abort();
    void* at = ::mmap(nullptr, sizeof(io::SyncRecord), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) std::abort();
    record_ = static_cast<io::SyncRecord*>(at);  // zeros are its initial value
    ::close(fd);
  }
  SharedRecord(const SharedRecord&) = delete;
  ~SharedRecord() { ::munmap(record_, sizeof *record_); }
  io::SyncRecord& operator*() const { return *record_; }

 private:
  io::SyncRecord* record_;
};

// Each worker syncs its own file often; with `gate`, or without.
void sync_often(Comm& c, Report& report, const std::string& directory, io::SyncRecord& record,
                std::shared_ptr<Gate> gate) {
  const std::string path = directory + "/own." + std::to_string(c.rank());
  suite::write_whole(path, {});
  auto opened = io::find_mechanism("pwrite")->open({path, 4096});
  if (!report.expect(opened.has_value(), "open")) return;
  io::RecordingFile file(*std::move(opened), record);
  io::PeriodicSync sync(file, 1, std::move(gate));
  const std::byte byte{1};
  for (int i = 0; i < 100; ++i) {
    report.expect(!file.write({&byte, 1}, i), "a byte");
    report.expect(sync.wrote({i, i + 1}, 1).has_value(), "a sync");
  }
  report.expect(sync.at_close().has_value(), "the last sync");
  report.expect(file.close().has_value(), "close");
  report.expect(c.barrier().has_value(), "barrier");
}

}  // namespace

void conformance(const Setup& setup, Report& report) {
  on_team(setup, report, [&](Comm& c, Report& r) {
    for (const Variant& v : variants())
      for (int seed = setup.first_seed; seed < setup.first_seed + setup.seeds; ++seed) {
        r.begin(std::string(v.algorithm->name) + " " + std::string(v.exchange->name) + " cycle " +
                std::to_string(v.parameters.cycle_bytes) + " seed " + std::to_string(seed));
        run_case(c, r, setup.directory + "/conformance", v, uint64_t(seed) * 37);
      }
  });
}

// src/exec/counts_test.cpp counts the same on threads, and more of it.
void counts(const Setup& setup, Report& report) {
  on_team(setup, report, [&](Comm& c, Report& r) {
    const std::vector<int> nodes = nodes_of(c, r);
    for (const plan::Algorithm* a : plan::algorithms())
      for (const char* exchange : {"messages", "shm", "node_leaders"})
        for (const bool holes : {false, true}) {
          if (!a->exchanges) continue;
          r.begin(std::string(a->name) + " " + exchange + (holes ? " with holes" : ""));
          count_calls(c, r, setup.directory + "/counts", *a, *exec::find_exchange(exchange),
                      {c.size(), holes}, nodes);
        }
  });
}

void turns(const Setup& setup, Report& report) {
  const SharedRecord together(setup.directory + "/together"), freely(setup.directory + "/freely");
  on_team(setup, report, [&](Comm& c, Report& r) {
    auto lock = c.node_lock();
    if (!r.expect(lock.has_value(), "a lock")) return;
    sync_often(c, r, setup.directory, *together, *lock);
    r.expect_equal((*together).data, 100 * c.size(), "syncs");
    r.expect(!(*together).crowded, "one sync at a time");
    // The same without a lock, or the test above shows nothing.
    for (int64_t go_on[1] = {1}, tries = 0; go_on[0] != 0 && tries < 20; ++tries) {
      sync_often(c, r, setup.directory, *freely, nullptr);
      go_on[0] = (*freely).crowded ? 0 : 1;
      r.expect(c.all_max(go_on).has_value(), "all_max");
    }
    r.expect((*freely).crowded, "several syncs at a time without a lock");
  });
}

}  // namespace workers
