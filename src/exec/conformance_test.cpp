// Every algorithm with every mechanism, on threads, against plain pread. A new algorithm, mechanism
// or sync policy is picked up from its list; nothing here names one, but for the extra parameters
// that some accept. The files lie in PENSTOCK_TEST_DIR, if that is set (tests/fs/product.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <utility>

#include "comm/node_lock.hpp"
#include "comm/thread_comm.hpp"
#include "exec/pairwise.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "exec/stager.hpp"
#include "io/runs_here.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"
#include "io/ways.hpp"

namespace penstock::exec::conformance_test {
namespace {

struct Variant {
  const plan::Algorithm* algorithm;
  const io::Mechanism* mechanism;
  plan::Parameters parameters;
  bool collective;
  const Exchange* exchange = nullptr;
  int nodes = 1;
  io::OpenRequest way = {};
  bool staged = false;  // through the stager, in less memory than the call brings
  Pack pack = Pack::copy;
  const io::SyncPolicy* sync = nullptr;  // nullptr: none
};

// What an algorithm takes of some small parameters, so that pages and stripes are cut often.
std::vector<plan::Parameters> parameters_of(const plan::Algorithm& a) {
  std::vector<plan::Parameters> all = {
      {}, plan::taken_by(a, {1, 4096}), plan::taken_by(a, {2, 8192})};
  if (plan::takes(a, "writer")) all.push_back({0, 4096, 0, 1});
  if (plan::takes(a, "at_once"))
    all.insert(all.end(), {{0, 4096, 0, 0, 1}, {0, 0, 0, 0, 1}, {0, 4096, 0, 0, 3}});
  if (plan::takes(a, "stripe")) all.insert(all.end(), {{3, 4096, 4096}, {2, 4096, 12288}});
  return all;
}

// Each exchange, and where it does one thing in a node and another between nodes, both. Where it
// does something between nodes, a third stands between two others.
int most_nodes(const Exchange& e) {
  if (e.outbox_bytes > 0) return 3;
  return e.shares_pages ? 2 : 1;
}

void add_exchanges(const Variant& v, std::vector<Variant>& all) {
  for (const Exchange* e : exchanges())
    for (int nodes = 1; nodes <= most_nodes(*e); ++nodes) {
      for (const plan::Parameters& p : parameters_of(*v.algorithm))
        for (const Pack pack : {Pack::copy, Pack::datatype})
          if (pack == Pack::copy || e->takes_pack)
            all.push_back({v.algorithm, v.mechanism, p, true, e, nodes, {}, false, pack});
      const plan::Parameters small = plan::taken_by(*v.algorithm, {2, 8192});
      all.push_back({v.algorithm, v.mechanism, small, true, e, nodes, {}, true});
    }
}

bool is_direct(const io::OpenRequest& way) { return way.direct == io::Direct::always; }

// What the engine takes of these, and this machine has (engine/method_test.cpp has the rule too).
bool is_legal(const plan::Algorithm& a, const io::Mechanism& m, const io::OpenRequest& way) {
  if (!io::runs_here(m) || (is_direct(way) && !a.owns_blocks)) return false;
  return m.alignment_bytes <= 1 || keeps_pages_apart(a);
}

std::vector<const Exchange*> exchanges_of(const plan::Algorithm& a) {
  if (!a.exchanges) return {nullptr};
  return {exchanges().begin(), exchanges().end()};
}

// Each exchange once with each option of the mechanism.
void add_ways(const Variant& v, std::vector<Variant>& all) {
  for (const io::OpenRequest& way : io::ways_of(*v.mechanism)) {
    const bool plain = io::name_of_way(*v.mechanism, way) == v.mechanism->name;
    if (plain || !is_legal(*v.algorithm, *v.mechanism, way)) continue;
    for (const Exchange* e : exchanges_of(*v.algorithm)) {
      all.push_back({v.algorithm, v.mechanism, {}, true, e, 1, way});
      if (is_direct(way)) all.push_back({v.algorithm, v.mechanism, {}, true, e, 1, way, true});
    }
  }
}

// Each sync policy with each way of each mechanism, together, staged and alone.
std::vector<Variant> synced_variants() {
  std::vector<Variant> all;
  for (const io::SyncPolicy* sync : io::sync_policies()) {
    const auto add = [&](Variant v) {
      v.sync = sync;
      all.push_back(v);
    };
    for (const plan::Algorithm* a : plan::algorithms())
      for (const io::Mechanism* m : io::mechanisms())
        for (const io::OpenRequest& way : io::ways_of(*m)) {
          if (!is_legal(*a, *m, way)) continue;
          const plan::Parameters small = plan::taken_by(*a, {2, 8192});
          for (const bool staged : {false, true})
            for (const Exchange* e : exchanges_of(*a)) add({a, m, small, true, e, 1, way, staged});
        }
    for (const io::Mechanism* m : io::mechanisms())
      if (io::runs_here(*m))
        for (const bool staged : {false, true})
          add({plan::find_algorithm("individual"), m, {}, false, nullptr, 1, {}, staged});
  }
  return all;
}

std::vector<Variant> unsynced_variants() {
  std::vector<Variant> all;
  for (const plan::Algorithm* a : plan::algorithms())
    for (const io::Mechanism* m : io::mechanisms()) {
      if (!is_legal(*a, *m, {})) continue;
      const Variant v{a, m, {}, true};
      if (a->exchanges) {
        add_exchanges(v, all);
      } else {
        for (const plan::Parameters& p : parameters_of(*a)) all.push_back({a, m, p, true});
        all.push_back({a, m, {}, true, nullptr, 1, {}, true});
      }
      add_ways(v, all);
    }
  for (const io::Mechanism* m : io::mechanisms())
    if (io::runs_here(*m))
      for (const bool staged : {false, true})
        all.push_back({plan::find_algorithm("individual"), m, {}, false, nullptr, 1, {}, staged});
  return all;
}

// A variant's choices, each with its kind.
std::vector<std::string> choices_of(const Variant& v) {
  const plan::Parameters& p = v.parameters;
  std::string parameters = "w" + std::to_string(p.writers);
  for (const int64_t n : {p.cycle_bytes, p.stripe_bytes, int64_t{p.writer}, int64_t{p.at_once}})
    parameters += "," + std::to_string(n);
  std::string exchange = v.exchange == nullptr ? "none" : std::string(v.exchange->name);
  if (v.pack == Pack::datatype) exchange += "(datatype)";
  return {std::string(v.algorithm->name),
          io::name_of_way(*v.mechanism, v.way),
          parameters,
          "by " + exchange,
          std::to_string(v.nodes) + " nodes",
          "sync " + std::string(v.sync == nullptr ? "none" : v.sync->name),
          std::string(v.collective ? "together" : "alone") + (v.staged ? ", staged" : "")};
}

std::vector<Variant> pairs_of(const std::vector<Variant>& all) {
  std::vector<std::vector<std::string>> choices;
  for (const Variant& v : all) choices.push_back(choices_of(v));
  std::vector<Variant> some;
  for (const size_t i : pairwise(choices)) some.push_back(all[i]);
  return some;
}

std::vector<Variant> with(std::vector<Variant> all, const std::vector<Variant>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<Variant> all_variants() { return with(unsynced_variants(), synced_variants()); }

// PENSTOCK_TEST_PAIRWISE: as few variants as still bring each pair of choices together, each with
// one team.
bool only_pairs() { return std::getenv("PENSTOCK_TEST_PAIRWISE") != nullptr; }
// PENSTOCK_TEST_SEEDS: nothing is left out (`make check-full`).
bool whole_product() { return std::getenv("PENSTOCK_TEST_SEEDS") != nullptr; }

// Syncs take the device's time: but in the whole product, only each pair of choices.
std::vector<Variant> variants() {
  if (only_pairs()) return pairs_of(all_variants());
  if (whole_product()) return all_variants();
  return with(unsynced_variants(), pairs_of(synced_variants()));
}

struct Totals {
  std::atomic<int64_t> prefix = 0, written = 0, messages = 0, shared_bytes = 0, syncs = 0;
  std::atomic<int> errors = 0, other_algorithm = 0, degraded = 0;
};

WriteOutcome run_call(Pipeline& pipeline, const Variant& v, const WriteRequest& request) {
  const Pipeline::Policy policy{v.algorithm, v.parameters, nullptr, v.exchange, v.pack};
  if (!v.staged)
    return v.collective ? pipeline.write_all(request, policy) : pipeline.write_alone(request);
  if (v.collective) {
    pipeline.begin_all(request, policy);
    return pipeline.end_all();
  }
  const int64_t before = pipeline.staged_notes().written_bytes;
  WriteOutcome out = pipeline.stage_alone(request);
  pipeline.drain();
  out.written_bytes = pipeline.staged_notes().written_bytes - before;
  return out;
}

constexpr int64_t kSyncBytes = 16384;

std::unique_ptr<io::FileSync> sync_of(const Variant& v, io::MechanismFile& file,
                                      const std::shared_ptr<Gate>& gate) {
  return v.sync == nullptr ? nullptr : v.sync->open(file, {.bytes = kSyncBytes, .gate = gate});
}

void run_rank(comm::Comm& comm, const Variant& v, const std::string& path, const RankCase& c,
              const std::shared_ptr<Gate>& gate, Totals& totals) {
  auto file = v.mechanism->open(io::request_for(path, v.way));
  ASSERT_TRUE(file) << file.error().message();
  const std::unique_ptr<io::FileSync> sync = sync_of(v, **file, gate);
  Pipeline pipeline(comm, **file, {});
  if (sync != nullptr && v.sync->takes_bytes) pipeline.set_sync(sync.get());  // as the engine does
  pipeline.set_stager(std::make_shared<Stager>(), 8192);
  WriteRequest request{&c.view,       c.range,        c.memory.data(),
                       c.memory_type, c.memory_count, ErrorClass::none};
  for (int again = 0; again < 2; ++again) {  // the second time peers know each other's trees
    const int64_t described = pipeline.spent_together().traffic.descriptions;
    const WriteOutcome out = run_call(pipeline, v, request);
    if (again == 0) totals.prefix += out.prefix_bytes;
    if (again == 0) totals.written += out.written_bytes;
    if (out.agreed != ErrorClass::none) ++totals.errors;
    if (v.collective && out.algorithm != v.algorithm) ++totals.other_algorithm;
    if (again == 1) {
      EXPECT_EQ(pipeline.spent_together().traffic.descriptions, described);
    }
  }
  totals.messages += pipeline.spent_together().traffic.messages;
  totals.shared_bytes += pipeline.spent_together().traffic.shared_bytes;
  totals.syncs += pipeline.spent_together().traffic.syncs;
  if (!pipeline.degraded().empty()) ++totals.degraded;
  if (sync != nullptr) {
    EXPECT_TRUE(sync->at_close());
  }
  EXPECT_TRUE((*file)->close());
}

// Bytes went the way that was asked for: on one node in no message, and in none but messages where
// pages are not shared.
void check_ways(const Variant& v, const std::string& path, int ranks, const Totals& totals) {
  const bool shares = v.exchange != nullptr && v.exchange->shares_pages;
  if (shares && v.algorithm->scatters) {
    EXPECT_EQ(totals.degraded, ranks > 1 ? ranks : 0);
    EXPECT_EQ(totals.shared_bytes, 0);
  } else if (shares && v.mechanism->open({.path = path}).value()->use_memory({})) {
    EXPECT_EQ(totals.degraded, 0);
    if (v.nodes == 1) {
      EXPECT_EQ(totals.messages, 0);
    }
  } else {
    EXPECT_EQ(totals.shared_bytes, 0);
  }
}

// The policy did its work: both calls together bring so much that one writer at least has enough.
void check_syncs(const Variant& v, int ranks, const Totals& totals) {
  constexpr std::string_view kOfWriters[] = {"every", "coordinated", "pulse"};
  if (v.sync == nullptr || !v.sync->takes_bytes) {
    EXPECT_EQ(totals.syncs, 0);
    return;
  }
  const bool by_writers = std::ranges::find(kOfWriters, v.sync->name) != std::end(kOfWriters);
  if (by_writers && v.collective && !v.staged && v.mechanism->writes_file) {
    EXPECT_TRUE(totals.syncs > 0 || 2 * totals.written < ranks * kSyncBytes);
  }
}

bool must_not_overlap(const Variant& v) {
  return !kMayOverlap && v.exchange != nullptr && v.exchange->shares_pages;
}

void run_case(const Variant& v, int ranks, uint64_t seed) {
  Random random(seed);
  const bool interleave = draw(random, 0, 2) == 0 || must_not_overlap(v);
  const std::vector<RankCase> cases = draw_team(random, ranks, interleave);
  const io::TemporaryFile file;
  fill_with_background(file.path());
  const std::vector<std::byte> before = file.contents();
  Totals totals;
  const std::shared_ptr<Gate> gate = comm::make_thread_lock();  // for policies that take turns
  comm::run_thread_team(ranks,
                        [&](comm::Comm& comm) {
                          run_rank(comm, v, file.path(), cases[size_t(comm.rank())], gate, totals);
                        },
                        {.nodes = std::min(v.nodes, ranks),
                         .turn = int(seed / 1000 + uint64_t(v.nodes)) % 2,
                         .used_segments = true});
  check_ways(v, file.path(), ranks, totals);
  EXPECT_EQ(totals.errors, 0);
  EXPECT_EQ(totals.other_algorithm, 0);
  int64_t bytes = 0;
  for (const RankCase& c : cases) bytes += c.range.size();
  EXPECT_EQ(totals.prefix, bytes);
  check_syncs(v, ranks, totals);
  EXPECT_TRUE(file.holds(v.mechanism->writes_file ? expectation(cases) : before));
}

// So many, unless PENSTOCK_TEST_SEEDS asks for others (`make check-full` does).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kManySeeds = 3, kFewSeeds = 1;  // a sanitizer makes each several times as long
#else
constexpr uint64_t kManySeeds = 12, kFewSeeds = 3;
#endif

uint64_t many_seeds() {
  const char* asked = std::getenv("PENSTOCK_TEST_SEEDS");
  return asked == nullptr ? kManySeeds : std::max(uint64_t{1}, uint64_t(std::atoll(asked)));
}

// Many for the reference mechanism. What the others add does not follow the views: their own suite
// has more of it.
uint64_t seeds_of(const Variant& v) {
  if (only_pairs()) return 1;
  if (v.sync != nullptr) return whole_product() ? kFewSeeds : 1;
  const bool reference = v.mechanism->name == "pwrite" && v.way.direct == io::Direct::never;
  return reference && v.pack == Pack::copy ? many_seeds() : kFewSeeds;
}

// A context of linux_aio takes tens of milliseconds to end, and each rank of each case has one.
std::vector<int> ranks_of(const Variant& v) {
  const bool leaders = v.exchange != nullptr && v.exchange->outbox_bytes > 0;
  if (v.mechanism->name == "linux_aio" || v.sync != nullptr || only_pairs())
    return {leaders ? 7 : 3};
  if (leaders) return {1, 2, 3, 4, 7};  // nodes of unequal numbers of ranks
  return {1, 2, 3, 4, 8};
}

class Conformance : public testing::TestWithParam<Variant> {};

TEST_P(Conformance, PutsEveryByteOfRandomViewsWhereItBelongs) {
  for (const int ranks : ranks_of(GetParam()))
    for (uint64_t seed = 0; seed < seeds_of(GetParam()); ++seed) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", seed " + std::to_string(seed));
      run_case(GetParam(), ranks, seed * 1000 + uint64_t(ranks));
      if (HasFailure()) return;
    }
}

std::string name_of(const testing::TestParamInfo<Variant>& info) {
  const Variant& v = info.param;
  const plan::Parameters& p = v.parameters;
  return std::string(v.algorithm->name) + "_" + io::name_of_way(*v.mechanism, v.way) + "_w" +
         std::to_string(p.writers) + "_c" + std::to_string(p.cycle_bytes) + "_s" +
         std::to_string(p.stripe_bytes) + "_r" + std::to_string(p.writer) + "_a" +
         std::to_string(p.at_once) +
         (v.exchange != nullptr ? std::string("_").append(v.exchange->name) : "") +
         (v.pack == Pack::datatype ? "_datatype" : "") +
         (v.nodes > 1 ? std::string("_n").append(std::to_string(v.nodes)) : "") +
         (v.sync != nullptr ? std::string("_").append(v.sync->name) : "") +
         (v.collective ? "" : "_alone") + (v.staged ? "_staged" : "");
}

TEST(Pairwise, EveryPairOfChoicesIsStillThere) {
  const auto pairs_in = [](const std::vector<Variant>& variants) {
    std::set<std::pair<std::string, std::string>> pairs;
    for (const Variant& v : variants) {
      const std::vector<std::string> choices = choices_of(v);
      for (size_t i = 0; i < choices.size(); ++i)
        for (size_t j = 0; j < i; ++j) pairs.insert({choices[j], choices[i]});
    }
    return pairs;
  };
  const std::vector<Variant> all = all_variants(), some = pairs_of(all);
  EXPECT_EQ(pairs_in(some), pairs_in(all));
  EXPECT_LT(4 * some.size(), all.size());
}

INSTANTIATE_TEST_SUITE_P(Every, Conformance, testing::ValuesIn(variants()), name_of);

}  // namespace
}  // namespace penstock::exec::conformance_test
