// Cycles allocate nothing: a call of many cycles allocates as often as one of a few, once what is
// kept between calls is there. Every `operator new` and every page-aligned buffer of this process
// is counted, of all threads; what the C library allocates for itself is not ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "base/ticks.hpp"
#include "comm/thread_comm.hpp"
#include "exec/pipeline.hpp"
#include "exec/read_pipeline.hpp"
#include "exec/stager.hpp"
#include "exec/write_behind.hpp"
#include "io/reader.hpp"
#include "io/runs_here.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizer's own allocator must stay: nothing is counted, but its races are looked for.
#define PENSTOCK_COUNTS_ALLOCATIONS 0
#else
#define PENSTOCK_COUNTS_ALLOCATIONS 1
#endif

namespace {

std::atomic<bool> counting = false;
std::atomic<int64_t> allocations = 0;

#if PENSTOCK_COUNTS_ALLOCATIONS
void* counted(void* memory) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
  return memory;
}
#endif

}  // namespace

#if PENSTOCK_COUNTS_ALLOCATIONS
// The array and nothrow forms end here, too.
void* operator new(size_t bytes) {
  if (void* const memory = counted(std::malloc(bytes == 0 ? 1 : bytes))) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  void* memory = nullptr;
  return ::posix_memalign(&memory, alignment, bytes) == 0 ? counted(memory) : nullptr;
}
#endif

namespace penstock::exec::allocations_test {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kLargestBlock = 512;
constexpr int64_t kFew = 4;  // pages of a writer
constexpr int64_t kStagedLimit = 4 * kPage;
constexpr int kTries = 20;  // enough, unless cycles allocate

// How many ranks call, and their many pages of a writer: fewer where threads wait for a core.
struct Team {
  int ranks;
  int64_t many;
};
constexpr Team kFour{4, PENSTOCK_COUNTS_ALLOCATIONS ? 200 : 40};
constexpr Team kOthers[] = {{2, 40}, {8, 40}, {64, 16}};

struct Variant {
  const plan::Algorithm* algorithm;
  const io::Mechanism* mechanism;
  const Exchange* exchange;
  Pack pack = Pack::copy;
  bool in_pieces = false;  // the bytes lie in pieces in memory
  bool staged = false;
  int nodes = 1;
  const io::SyncPolicy* sync = nullptr;
  Team team = kFour;
};

// Blocks dealt to the ranks in turn: every rank has bytes for every page.
struct Dealt {
  Dealt(const comm::Comm& comm, int64_t pages, bool in_pieces)
      : bytes(2 * pages * kPage / comm.size()),
        view(view_of(comm, std::min(kLargestBlock, kPage / comm.size()))),
        memory_type(in_pieces ? *layout::LoopTree::strided(bytes / 256, 256, 300,
                                                           layout::LoopTree::bytes(1))
                              : layout::LoopTree::bytes(1)),
        memory_count(in_pieces ? 1 : bytes),
        memory(size_t(memory_type.extent() * memory_count), std::byte(comm.rank() + 1)) {}
  static layout::FileView view_of(const comm::Comm& comm, int64_t block) {
    const auto tile =
        *layout::LoopTree::resized(layout::LoopTree::bytes(block), 0, block * comm.size());
    return *layout::FileView::make(block * comm.rank(), 1, tile);
  }
  WriteRequest write() const {
    return {&view, {0, bytes}, memory.data(), memory_type, memory_count, ErrorClass::none};
  }
  ReadRequest read() {
    return {&view, {0, bytes}, memory.data(), memory_type, memory_count, ErrorClass::none};
  }

  int64_t bytes;
  layout::FileView view;
  layout::LoopTree memory_type;
  int64_t memory_count;
  std::vector<std::byte> memory;
};

// How often all ranks together allocate while each calls `call`. The same on every rank.
template <class Call>
int64_t allocations_of(comm::Comm& comm, Call&& call) {
  EXPECT_TRUE(comm.barrier());
  if (comm.rank() == 0) allocations = 0;
  if (comm.rank() == 0) counting = true;
  EXPECT_TRUE(comm.barrier());
  call();
  EXPECT_TRUE(comm.barrier());
  counting = false;
  EXPECT_TRUE(comm.barrier());
  return allocations;
}

// What is kept grows to what was ever in flight at once, which is a matter of chance. So calls are
// repeated until one of many cycles allocates no more than one of a few; where a cycle allocates,
// that never happens.
template <class Few, class Many>
void expect_no_more(comm::Comm& comm, int64_t many_pages, Few&& few, Many&& many) {
  int64_t of_few = 0, of_many = 1;
  for (int i = 0; i < kTries && of_many > of_few; ++i) {
    of_few = allocations_of(comm, few);
    of_many = allocations_of(comm, many);
  }
  EXPECT_LE(of_many, of_few) << "rank " << comm.rank() << ": " << many_pages << " pages against "
                             << kFew;
}

void call(Pipeline& pipeline, const Variant& v, const WriteRequest& request) {
  // Ranks that write their own take turns, unless what they write is staged.
  const plan::Parameters parameters = {2, kPage, 0, 0, v.staged ? 0 : 2};
  const Pipeline::Policy policy{v.algorithm, plan::taken_by(*v.algorithm, parameters), nullptr,
                                v.algorithm->exchanges ? v.exchange : nullptr, v.pack};
  if (v.staged) {
    pipeline.begin_all(request, policy);
    EXPECT_EQ(pipeline.end_all().agreed, ErrorClass::none);
  } else {
    EXPECT_EQ(pipeline.write_all(request, policy).agreed, ErrorClass::none);
  }
}

std::string name_of(const Variant& v) {
  return std::string(v.exchange->name) + (v.pack == Pack::datatype ? ", datatype" : "") +
         (v.in_pieces ? ", in pieces" : "") + (v.staged ? ", staged" : ", written") + ", " +
         std::to_string(v.team.ranks) + " ranks, " + std::to_string(v.nodes) + " nodes";
}

int64_t least_cycles(const Variant& v) {
  return v.algorithm->exchanges ? v.team.many / 2 : 2 * v.team.many / v.team.ranks;
}

void write_as(comm::Comm& comm, const Variant& v, const std::string& path) {
  SCOPED_TRACE(name_of(v));
  auto file = v.mechanism->open({path, kPage});
  ASSERT_TRUE(file) << file.error().message();
  std::unique_ptr<io::FileSync> sync;
  if (v.sync != nullptr) sync = v.sync->open(**file, {kPage, comm.node_lock().value()});
  Pipeline pipeline(comm, **file, {});
  pipeline.set_stager(std::make_shared<Stager>(), kStagedLimit);
  pipeline.set_sync(sync.get());
  const Dealt few(comm, kFew, v.in_pieces), many(comm, v.team.many, v.in_pieces);
  const WriteRequest few_bytes = few.write(), many_bytes = many.write();
  call(pipeline, v, many_bytes);
  call(pipeline, v, few_bytes);
  const int64_t before = pipeline.spent_together().traffic.cycles;
  call(pipeline, v, many_bytes);
  if (!v.staged || v.algorithm->exchanges) {
    EXPECT_GE(pipeline.spent_together().traffic.cycles - before, least_cycles(v))
        << "or the test shows nothing";
  }
  expect_no_more(
      comm, v.team.many, [&] { call(pipeline, v, few_bytes); },
      [&] { call(pipeline, v, many_bytes); });
  pipeline.drain();
  if (sync != nullptr) {
    EXPECT_TRUE(sync->at_close());
  }
  EXPECT_TRUE((*file)->close());
}

void check(const Variant& v) {
  const io::TemporaryFile path;
  comm::run_thread_team(v.team.ranks, [&](comm::Comm& comm) { write_as(comm, v, path.path()); },
                        {.nodes = v.nodes});
}

// Where the bytes come from and where they go is the same code for every mechanism: one of them
// sees all of it.
void check_ways(Variant v) {
  check(v);
  if (v.mechanism->name != "pwrite") return;
  v.in_pieces = true;
  for (const int nodes : {1, 2}) {
    v.nodes = nodes;
    check(v);
  }
  v.pack = Pack::datatype;
  if (v.exchange->takes_pack && v.algorithm->exchanges) check(v);
}

struct Pair {
  const plan::Algorithm* algorithm;
  const io::Mechanism* mechanism;
};

std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const plan::Algorithm* a : plan::algorithms())
    for (const io::Mechanism* m : io::mechanisms())
      if (io::runs_here(*m) && (m->alignment_bytes <= 1 || keeps_pages_apart(*a)))
        all.push_back({a, m});
  return all;
}

class Allocations : public testing::TestWithParam<Pair> {};

TEST_P(Allocations, OfManyCyclesAreThoseOfAFew) {
  const auto [algorithm, mechanism] = GetParam();
  for (const Exchange* e : exchanges())
    if (algorithm->exchanges || e == exchanges().front())
      for (const bool staged : {false, true})
        check_ways({algorithm, mechanism, e, Pack::copy, false, staged});
}

INSTANTIATE_TEST_SUITE_P(Every, Allocations, testing::ValuesIn(pairs()), [](const auto& tested) {
  return std::string(tested.param.algorithm->name) + "_" +
         std::string(tested.param.mechanism->name);
});

// By the reference mechanism: where bytes go does not follow how many bring them.
class AllocationsOfTeams : public testing::TestWithParam<const plan::Algorithm*> {};

TEST_P(AllocationsOfTeams, OfManyCyclesAreThoseOfAFew) {
  Variant v{GetParam(), io::find_mechanism("pwrite"), exchanges().front()};
  for (const Team& team : kOthers)
    for (const Exchange* e : exchanges())
      for (const int nodes : {1, 2}) {
        if (!v.algorithm->exchanges && (e != exchanges().front() || nodes > 1)) continue;
        v.team = team;
        if (!v.algorithm->exchanges) v.team.many *= team.ranks / 2;  // as many cycles of each rank
        v.exchange = e;
        v.nodes = nodes;
        check(v);
      }
}

INSTANTIATE_TEST_SUITE_P(Every, AllocationsOfTeams, testing::ValuesIn(plan::algorithms()),
                         [](const auto& tested) { return std::string(tested.param->name); });

class AllocationsOfSyncs : public testing::TestWithParam<const io::SyncPolicy*> {};

TEST_P(AllocationsOfSyncs, OfManyCyclesAreThoseOfAFew) {
  for (const Exchange* e : exchanges())
    check({plan::find_algorithm("cyclic"), io::find_mechanism("pwrite"), e, Pack::copy, false,
           false, 1, GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Every, AllocationsOfSyncs, testing::ValuesIn(io::sync_policies()),
                         [](const auto& tested) { return std::string(tested.param->name); });

// Into a page that is there. By either way, and through a view of very many blocks.
TEST(AllocationsOfAcceptedWrites, AreNone) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto file = io::find_mechanism("pwrite")->open({path.path(), kPage});
    ASSERT_TRUE(file) << file.error().message();
    const auto stager = std::make_shared<Stager>();
    auto behind = WriteBehind::make(comm, {}, {}, stager->bell());
    ASSERT_TRUE(behind) << behind.error().message();
    Pipeline pipeline(comm, **file, {});
    pipeline.set_stager(stager, kStagedLimit);
    pipeline.set_write_behind(*std::move(behind), kWriteBehindSeconds);
    const auto tile = *layout::LoopTree::resized(layout::LoopTree::bytes(40), 0, 160);
    const auto view = *layout::FileView::make(80, 40, tile);
    const std::vector<std::byte> memory(400);
    const auto bytes = int64_t(memory.size());
    const WriteRequest request{
        &view, {800, 800 + bytes}, memory.data(), layout::LoopTree::bytes(1), bytes};
    const layout::Run run{80, 40, 160, bytes / 40};
    const auto accept = [&] { EXPECT_EQ(pipeline.stage_alone(request).prefix_bytes, bytes); };
    const auto add = [&] {
      EXPECT_TRUE(pipeline.stage_run(run, memory.data(), ticks(), Returns::soon));
    };
    accept();
    EXPECT_EQ(allocations_of(comm, accept), 0);
    EXPECT_EQ(allocations_of(comm, add), 0);
    pipeline.drain();
    EXPECT_EQ(pipeline.staged_notes().written_bytes, 3 * bytes);
  });
}

void read_as(comm::Comm& comm, const plan::Algorithm& algorithm, const Team& team, bool in_pieces,
             const std::string& path) {
  SCOPED_TRACE(std::to_string(team.ranks) + " ranks" + (in_pieces ? ", in pieces" : ""));
  const Pipeline::Policy policy{&algorithm, plan::taken_by(algorithm, {2, kPage}), nullptr};
  auto file = io::open_for_reading(path);
  ASSERT_TRUE(file) << file.error().message();
  ReadPipeline pipeline(comm, **file, {});
  Dealt few(comm, kFew, in_pieces), many(comm, team.many, in_pieces);
  const ReadRequest few_bytes = few.read(), many_bytes = many.read();
  const auto read = [&](const ReadRequest& request) {
    EXPECT_EQ(pipeline.read_all(request, policy).agreed, ErrorClass::none);
  };
  read(many_bytes);
  read(few_bytes);
  expect_no_more(
      comm, team.many, [&] { read(few_bytes); }, [&] { read(many_bytes); });
}

class AllocationsOfReads : public testing::TestWithParam<const plan::Algorithm*> {
 protected:
  static void check(const Team& team) {
    const io::TemporaryFile path;
    std::ofstream(path.path(), std::ios::binary) << std::string(size_t(2 * team.many * kPage), 'x');
    for (const bool in_pieces : {false, true})
      comm::run_thread_team(team.ranks, [&](comm::Comm& comm) {
        read_as(comm, *GetParam(), team, in_pieces, path.path());
      });
  }
};

TEST_P(AllocationsOfReads, OfManyCyclesAreThoseOfAFew) {
  check(kFour);
  for (const Team& team : kOthers) check(team);
}

INSTANTIATE_TEST_SUITE_P(Every, AllocationsOfReads, testing::ValuesIn(plan::algorithms()),
                         [](const auto& tested) { return std::string(tested.param->name); });

}  // namespace
}  // namespace penstock::exec::allocations_test
