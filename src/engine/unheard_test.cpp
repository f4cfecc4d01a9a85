// A rank that cannot hear what all decide together ends the job: it would go another way, and the
// others would wait for it.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <utility>

#include "comm/thread_comm.hpp"
#include "engine/file.hpp"
#include "engine/file_for_tests.hpp"
#include "exec/unheard_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::unheard_test {
namespace {

struct Decision {
  const char* what;
  std::function<void(File&)> decide;
  friend std::ostream& operator<<(std::ostream& out, const Decision& d) { return out << d.what; }
};

class EngineUnheardDeathTest : public testing::TestWithParam<Decision> {};

INSTANTIATE_TEST_SUITE_P(
    Every, EngineUnheardDeathTest,
    testing::Values(Decision{"View", [](File& f) { f.set_view({}, "", kWholeStream); }},
                    Decision{"Limit", [](File& f) { f.keeps_to_view(0, Company::together); }},
                    Decision{"Reads", [](File& f) { f.serves_reads(); }},
                    Decision{"Size", [](File& f) { f.preallocate(4096); }}),
    [](const auto& info) { return std::string(info.param.what); });

TEST_P(EngineUnheardDeathTest, EndsTheJob) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const io::TemporaryFile path;
  const auto decide = [&] {
    comm::run_thread_team(2, [&](comm::Comm& owner) {
      auto comm = std::make_unique<exec::Unheard>(owner);
      exec::Unheard& unheard = *comm;
      OpenInfo info = info_for(path.path());
      info.readable = true;
      const auto file = File::open(std::move(comm), info);
      unheard.will_fail(exec::Unheard::Call::all_max, 1);
      GetParam().decide(*file);
      FileReport report;
      EXPECT_EQ(file->close(report), ErrorClass::none);
    });
  };
  EXPECT_DEATH(decide(), "ending the job: collective: a rank is gone");
}

}  // namespace
}  // namespace penstock::engine::unheard_test
