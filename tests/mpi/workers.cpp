// Penstock's communicators on MPI ranks, and on threads of MPI ranks: their contract, the
// pipeline's conformance on them, turns between real processes.
//   workers CASE --dir=DIR --threads=N --nodes=N
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "check.hpp"
#include "comm/mpi_comm.hpp"
#include "comm/mpi_hybrid_comm.hpp"
#include "exec/counts.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "io/periodic_sync.hpp"
#include "io/recording_file.hpp"

namespace {

thread_local int64_t system_calls = 0;  // of this worker

}  // namespace

// Instead of the C library's.
extern "C" ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) {
  ++system_calls;
  return ::syscall(SYS_pwrite64, fd, bytes, n, offset);
}

namespace {

using namespace penstock;
using comm::Comm;
using suite::Report;

struct Setup {
  std::string directory;
  int threads = 1;
  int nodes = 1;
};

using Body = std::function<void(Comm&, Report&)>;

// Runs `body` as each of this rank's workers; what they expected becomes the rank's.
void as_workers(std::vector<std::unique_ptr<Comm>>& team, Report& report, const Body& body) {
  std::vector<Report> reports(team.size(), Report(MPI_COMM_WORLD));
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < team.size(); ++i)
    threads.emplace_back([&, i] { body(*team[i], reports[i]); });
  threads.clear();
  for (const Report& r : reports) report.absorb(r);
}

void on_team(const Setup& setup, Report& report, const Body& body) {
  auto team = comm::make_hybrid_team(MPI_COMM_WORLD, setup.threads);
  if (!report.expect(team.has_value(), "a team")) return;
  as_workers(*team, report, body);
}

// --- The contract of Comm ---

std::vector<std::byte> pattern(int seed, size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = std::byte(seed * 31 + int(i));
  return bytes;
}

void check_collectives(Comm& c, Report& report) {
  const int size = c.size();
  for (int round = 0; round < 20; ++round) {
    const int mine = 100 * round + c.rank();
    std::vector<int> all(static_cast<size_t>(size)), expected(all);
    std::iota(expected.begin(), expected.end(), 100 * round);
    const auto done =
        c.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    report.expect(done && all == expected, "allgather in rank order");
    int64_t most[2] = {c.rank() + round, -c.rank()};
    report.expect(c.all_max(most) && most[0] == size - 1 + round && most[1] == 0, "all_max");
    int64_t sum[1] = {c.rank()};
    report.expect(c.all_sum(sum) && sum[0] == size * (size - 1) / 2, "all_sum");
    const int root = round % size;
    const auto gathered = c.gather(pattern(c.rank(), size_t(c.rank() * 3)), root);
    std::vector<std::byte> joined;
    for (int r = 0; r < size && c.rank() == root; ++r) {
      const auto part = pattern(r, size_t(r * 3));
      joined.insert(joined.end(), part.begin(), part.end());
    }
    report.expect(gathered && *gathered == joined, "gather in rank order, on the root alone");
    report.expect(c.barrier().has_value(), "barrier");
  }
}

// Eight messages of different lengths from everyone to everyone, themselves too.
void check_messages(Comm& c, Report& report) {
  constexpr int kEach = 8;
  const auto length = [](int i) { return size_t(i * 5000); };
  auto transfers = c.transfers();
  std::vector<std::vector<std::byte>> out, in;
  for (int peer = 0; peer < c.size(); ++peer)
    for (int i = 0; i < kEach; ++i) {
      out.push_back(pattern(c.rank() * 100 + peer * 10 + i, length(i)));
      in.emplace_back(length(i));
    }
  for (int from = 0; from < c.size(); ++from)
    for (int i = 0; i < kEach; ++i)
      transfers->receive(from, i % 2 == 0 ? 0 : 255, in[size_t(from * kEach + i)]);
  for (int to = 0; to < c.size(); ++to)
    for (int i = 0; i < kEach; ++i)
      transfers->send(to, i % 2 == 0 ? 0 : 255, out[size_t(to * kEach + i)]);
  int events = 0;
  while (transfers->next()) ++events;
  report.expect_equal(events, 2 * kEach * c.size(), "events");
  report.expect(transfers->finish().has_value(), "messages without an error");
  for (int from = 0; from < c.size(); ++from)
    for (int i = 0; i < kEach; ++i)
      report.expect(
          in[size_t(from * kEach + i)] == pattern(from * 100 + c.rank() * 10 + i, length(i)),
          "message " + std::to_string(i) + " of worker " + std::to_string(from));
}

// To the next worker from memory in pieces, of two shapes in turn: more are in flight than the one
// datatype that is kept.
void check_strided_messages(Comm& c, Report& report) {
  constexpr int64_t kBlock = 24, kStride = 40;
  constexpr int kEach = 6;
  const auto blocks = [](int i) { return int64_t{1000} + 500 * (i % 2); };
  const int to = (c.rank() + 1) % c.size(), from = (c.rank() + c.size() - 1) % c.size();
  auto transfers = c.transfers();
  std::vector<std::vector<std::byte>> out, in;
  for (int i = 0; i < kEach; ++i) {
    out.push_back(pattern(c.rank() * 100 + i, size_t(kStride * blocks(i))));
    in.emplace_back(size_t(kBlock * blocks(i)));
    transfers->receive(from, 7, in.back());
  }
  for (int i = 0; i < kEach; ++i)
    transfers->send_strided(to, 7, {out[size_t(i)].data(), kBlock, kStride, blocks(i)});
  report.expect(transfers->finish().has_value(), "strided messages without an error");
  for (int i = 0; i < kEach; ++i) {
    const auto theirs = pattern(from * 100 + i, size_t(kStride * blocks(i)));
    bool same = true;
    for (int64_t b = 0; b < blocks(i); ++b)
      same = same &&
             std::equal(in[size_t(i)].begin() + b * kBlock,
                        in[size_t(i)].begin() + (b + 1) * kBlock, theirs.begin() + b * kStride);
    report.expect(same, "strided message " + std::to_string(i));
  }
}

void check_wrong_size(Comm& c, Report& report) {
  auto transfers = c.transfers();
  std::vector<std::byte> bytes(c.rank() == 0 ? 10 : 20);
  if (c.rank() == 0) transfers->send(1, 0, bytes);
  if (c.rank() == 1) transfers->receive(0, 0, bytes);
  const auto r = transfers->finish();
  report.expect(r.has_value() == (c.rank() != 1), "a message of the wrong size is an error");
}

void check_agreement(Comm& c, Report& report) {
  Result<void> mine;
  if (c.rank() == c.size() - 1) mine = os_error("pwrite", "x", ENOSPC);
  const auto agreed = comm::agree(c, mine);
  report.expect(!agreed && agreed.error().error_class == ErrorClass::no_space,
                "the worst class on every worker");
  report.expect(comm::agree(c, {}).has_value(), "agreement on success");
}

void contract(const Setup& setup, Report& report) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int again = 0; again < 2; ++again)  // a second team beside what is left of the first
    on_team(setup, report, [&](Comm& c, Report& r) {
      r.expect_equal(c.size(), ranks * setup.threads, "workers");
      r.expect_equal(c.rank() / setup.threads, rank, "rank of the worker");
      check_collectives(c, r);
      check_messages(c, r);
      check_strided_messages(c, r);
      check_wrong_size(c, r);
      check_agreement(c, r);
    });
}

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

void conformance(const Setup& setup, Report& report) {
  on_team(setup, report, [&](Comm& c, Report& r) {
    for (const Variant& v : variants())
      for (uint64_t seed = 0; seed < 10; ++seed) {
        r.begin(std::string(v.algorithm->name) + " " + std::string(v.exchange->name) + " cycle " +
                std::to_string(v.parameters.cycle_bytes) + " seed " + std::to_string(seed));
        run_case(c, r, setup.directory + "/conformance", v, seed * 37);
      }
  });
}

// --- What a call costs ---

void count_calls(Comm& c, Report& report, const std::string& path, const plan::Algorithm& algorithm,
                 const exec::Exchange& exchange, const exec::Deal& deal,
                 const std::vector<int>& nodes) {
  const plan::Parameters parameters = plan::taken_by(algorithm, {2, exec::kCountedCycle});
  const exec::Costs costs(algorithm, parameters, {c.size(), c.nodes(), c.cores_per_node()}, deal,
                          nodes, exchange.shares_pages);
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
  auto part = c.split_by_node();
  if (!report.expect(part.has_value(), "a split")) return nodes;
  const int mine = part->node;
  const auto done =
      c.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(nodes)));
  report.expect(done.has_value(), "allgather");
  return nodes;
}

// src/exec/counts_test.cpp counts the same on threads, and more of it.
void counts(const Setup& setup, Report& report) {
  on_team(setup, report, [&](Comm& c, Report& r) {
    const std::vector<int> nodes = nodes_of(c, r);
    for (const plan::Algorithm* a : plan::algorithms())
      for (const char* exchange : {"messages", "shm"})
        for (const bool holes : {false, true}) {
          if (!a->exchanges) continue;
          r.begin(std::string(a->name) + " " + exchange + (holes ? " with holes" : ""));
          count_calls(c, r, setup.directory + "/counts", *a, *exec::find_exchange(exchange),
                      {c.size(), holes}, nodes);
        }
  });
}

// --- Nodes ---

// Memory that a node's workers share, and no other node's.
void check_segment(Comm& c, Comm& own, int node, Report& report) {
  auto segment = c.shared_segment(1 << 20, comm::Room::now);
  if (!report.expect(segment.has_value(), "a segment")) return;
  const std::span<std::byte> memory = (*segment)->memory();
  report.expect(memory.size() >= size_t{1} << 20 && memory[0] == std::byte{0} &&
                    memory[memory.size() - 1] == std::byte{0},
                "zeroed, as large as asked");
  report.expect(c.barrier().has_value(), "barrier");
  memory[size_t(1 + own.rank())] = std::byte(10 * node + own.rank() + 1);
  report.expect(c.barrier().has_value(), "barrier");
  for (int i = 0; i < own.size(); ++i)
    report.expect(memory[size_t(1 + i)] == std::byte(10 * node + i + 1), "what others wrote");
}

void nodes(const Setup& setup, Report& report) {
  on_team(setup, report, [&](Comm& c, Report& r) {
    r.expect_equal(c.nodes(), setup.nodes, "nodes");
    auto part = c.split_by_node();
    if (!r.expect(part.has_value(), "a split")) return;
    Comm& own = *part->comm;
    r.expect_equal(own.nodes(), 1, "nodes of a part");
    r.expect_equal(own.size(), c.size() / setup.nodes, "workers of a part");
    int64_t highest[1] = {part->node};
    r.expect(c.all_max(highest).has_value(), "all_max");
    r.expect_equal(highest[0], setup.nodes - 1, "the last node");
    // All of a part have one number, and keep their order.
    int64_t same[2] = {part->node, -part->node};
    r.expect(own.all_max(same) && same[0] == -same[1], "one number for each part");
    std::vector<int> members(static_cast<size_t>(own.size()));
    const int mine = c.rank();
    r.expect(own.allgather(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(members)))
                 .has_value(),
             "allgather");
    r.expect(std::ranges::is_sorted(members), "a part keeps the order");
    r.expect_equal(members[size_t(own.rank())], mine, "my place in my part");
    check_messages(own, r);
    check_segment(c, own, part->node, r);
    auto lock = c.node_lock();
    if (!r.expect(lock.has_value(), "a lock")) return;
    // Workers of every node are inside at once: the first of each, while the others wait outside.
    if (own.rank() == 0) r.expect((*lock)->enter().has_value(), "inside");
    r.expect(c.barrier().has_value(), "barrier");
    if (own.rank() == 0) (*lock)->leave();
    r.expect((*lock)->enter().has_value(), "inside, all of them in turn");
    (*lock)->leave();
  });
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

// --- What is refused ---

void expect_refused(const Result<std::vector<std::unique_ptr<Comm>>>& team, const char* why,
                    Report& report) {
  if (!report.expect(!team.has_value(), std::string("refused: ") + why)) return;
  const std::string text = team.error().message();
  report.expect(text.find(why) != std::string::npos || text.find("another") != std::string::npos,
                "says why: " + text);
}

void refusals(const Setup& setup, Report& report) {
  expect_refused(comm::make_hybrid_team(MPI_COMM_WORLD, 0), "at least 1", report);
  expect_refused(comm::make_hybrid_team(MPI_COMM_WORLD, setup.threads + report.rank()),
                 "the same on every rank", report);
  expect_refused(comm::make_hybrid_team(MPI_COMM_WORLD, 1 << 20), "use fewer", report);
  on_team(setup, report, [](Comm& c, Report& r) { check_collectives(c, r); });
}

// Without MPI_THREAD_MULTIPLE a rank is one worker and no more.
void single(const Setup& setup, Report& report) {
  expect_refused(comm::make_hybrid_team(MPI_COMM_WORLD, setup.threads), "MPI_THREAD_MULTIPLE",
                 report);
  on_team({setup.directory, 1, 1}, report, [](Comm& c, Report& r) { check_collectives(c, r); });
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const Setup setup{suite::option(argc, argv, "dir", "."),
                    std::stoi(suite::option(argc, argv, "threads", "1")),
                    std::stoi(suite::option(argc, argv, "nodes", "1"))};
  Report report(MPI_COMM_WORLD);
  report.begin(name);
  if (name == "contract")
    contract(setup, report);
  else if (name == "conformance")
    conformance(setup, report);
  else if (name == "counts")
    counts(setup, report);
  else if (name == "nodes")
    nodes(setup, report);
  else if (name == "turns")
    turns(setup, report);
  else if (name == "refusals")
    refusals(setup, report);
  else if (name == "single")
    single(setup, report);
  else
    report.expect(false, "a case is called \"" + name + "\"");
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bool alone = argc > 1 && std::string(argv[1]) == "single";
  int provided = 0;
  MPI_Init_thread(&argc, &argv, alone ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &provided);
  const int code = run(argc, argv);
  MPI_Finalize();
  return code;
}
