// Every algorithm with every mechanism, on threads, against plain pread. A new
// algorithm or mechanism is picked up from its list; nothing here names one, but for the extra
// parameters that some accept.
#include <gtest/gtest.h>

#include <atomic>

#include "comm/thread_comm.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec {
namespace {

struct Variant {
  const plan::Algorithm* algorithm;
  const io::Mechanism* mechanism;
  plan::Parameters parameters;
  bool collective;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const plan::Algorithm* a : plan::algorithms())
    for (const io::Mechanism* m : io::mechanisms()) {
      if (m->unavailable != nullptr && !m->unavailable().empty()) continue;
      if (m->alignment_bytes > 1 && !a->owns_blocks) continue;
      all.push_back({a, m, {}, true});
      if (!a->exchanges) continue;
      all.push_back({a, m, {1, 4096}, true});
      all.push_back({a, m, {2, 8192}, true});
    }
  for (const io::Mechanism* m : io::mechanisms())
    if (m->alignment_bytes <= 1) all.push_back({plan::find_algorithm("individual"), m, {}, false});
  return all;
}

struct Totals {
  std::atomic<int64_t> prefix = 0, written = 0;
  std::atomic<int> errors = 0, other_algorithm = 0;
};

void run_rank(comm::Comm& comm, const Variant& v, const std::string& path, const RankCase& c,
              Totals& totals) {
  auto file = v.mechanism->open({path, 4096});
  ASSERT_TRUE(file) << file.error().message();
  Pipeline pipeline(comm, **file, {});
  WriteRequest request{&c.view,       c.range,        c.memory.data(),
                       c.memory_type, c.memory_count, ErrorClass::none};
  for (int again = 0; again < 2; ++again) {  // the second time peers know each other's trees
    const int64_t described = pipeline.spent_together().traffic.descriptions;
    const WriteOutcome out = v.collective
                                 ? pipeline.write_all(request, {v.algorithm, v.parameters, nullptr})
                                 : pipeline.write_alone(request);
    if (again == 0) totals.prefix += out.prefix_bytes;
    if (again == 0) totals.written += out.written_bytes;
    if (out.agreed != ErrorClass::none) ++totals.errors;
    if (v.collective && out.algorithm != v.algorithm) ++totals.other_algorithm;
    if (again == 1) {
      EXPECT_EQ(pipeline.spent_together().traffic.descriptions, described);
    }
  }
  EXPECT_TRUE((*file)->close());
}

void run_case(const Variant& v, int ranks, uint64_t seed) {
  Random random(seed);
  const bool interleave = draw(random, 0, 2) == 0;
  const std::vector<RankCase> cases = draw_team(random, ranks, interleave);
  const io::TemporaryFile file;
  fill_with_background(file.path());
  const std::vector<std::byte> before = file.contents();
  Totals totals;
  comm::run_thread_team(ranks, [&](comm::Comm& comm) {
    run_rank(comm, v, file.path(), cases[size_t(comm.rank())], totals);
  });
  EXPECT_EQ(totals.errors, 0);
  EXPECT_EQ(totals.other_algorithm, 0);
  int64_t bytes = 0;
  for (const RankCase& c : cases) bytes += c.range.size();
  EXPECT_EQ(totals.prefix, bytes);
  EXPECT_TRUE(file.contents() == (v.mechanism->writes_file ? expectation(cases) : before));
}

class Conformance : public testing::TestWithParam<Variant> {};

TEST_P(Conformance, PutsEveryByteOfRandomViewsWhereItBelongs) {
  for (const int ranks : {1, 2, 3, 4, 8})
    for (uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", seed " + std::to_string(seed));
      run_case(GetParam(), ranks, seed * 1000 + uint64_t(ranks));
      if (HasFailure()) return;
    }
}

std::string name_of(const testing::TestParamInfo<Variant>& info) {
  const Variant& v = info.param;
  return std::string(v.algorithm->name) + "_" + std::string(v.mechanism->name) + "_w" +
         std::to_string(v.parameters.writers) + "_c" + std::to_string(v.parameters.cycle_bytes) +
         (v.collective ? "" : "_alone");
}

INSTANTIATE_TEST_SUITE_P(Every, Conformance, testing::ValuesIn(variants()), name_of);

}  // namespace
}  // namespace penstock::exec
