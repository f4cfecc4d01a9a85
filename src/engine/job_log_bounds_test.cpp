// A job of very many files: its log lists some of them and sums all.
#include <map>

#include "engine/job_log_for_tests.hpp"

namespace penstock::engine::job_log_test {
namespace {

class ManyFiles : public Log {};

// Each of one byte, under a name and with a reason of its own.
void add_files(JobLog& log, int files) {
  for (int i = 0; i < files; ++i) {
    FileReport r = sample("file" + std::to_string(i), 1);
    r.degraded["why " + std::to_string(i)] = 1;
    log.add(r);
  }
}

int64_t sum_of(const json& tally) {
  int64_t sum = 0;
  for (const auto& [what, times] : tally.items()) sum += times.get<int64_t>();
  return sum;
}

TEST_F(ManyFiles, SomeAreListedAndAllSummed) {
  JobLog log = make();
  add_files(log, 5000);
  ASSERT_TRUE(log.write(true, {}));
  const json j = written(log);
  EXPECT_EQ(j["files"].size(), 1000u);
  EXPECT_EQ(j["totals"]["files_not_listed"], 4000);
  EXPECT_EQ(j["totals"]["engine_bytes"], 5000);
  EXPECT_EQ(sum_of(j["totals"]["degraded"]), 5000);
  EXPECT_LE(j["totals"]["degraded"].size(), 1001u);
}

TEST_F(ManyFiles, ThatWentWrongAreListedToo) {
  JobLog log = make();
  add_files(log, 3000);
  FileReport wrong = sample("wrong", 1);
  wrong.sum.errors = 1;
  for (int i = 0; i < 1500; ++i) log.add(wrong);
  ASSERT_TRUE(log.write(true, {}));
  const json j = written(log);
  EXPECT_EQ(j["files"].size(), 2000u);
  EXPECT_EQ(j["files"].back()["path"], "wrong");
  EXPECT_EQ(j["totals"]["files_not_listed"], 2500);
  EXPECT_EQ(j["totals"]["errors"], 1500);
}

TEST_F(ManyFiles, OfAllProcessesSomeAreListedAndAllSummed) {
  JobLog here = make(), there = make();
  add_files(here, 700);
  add_files(there, 1300);
  ASSERT_TRUE(here.merge(there.encode_reports()));
  ASSERT_TRUE(here.write(true, {}));
  const json j = written(here);
  EXPECT_EQ(j["files"].size(), 1000u);
  EXPECT_EQ(j["totals"]["files_not_listed"], 1000);
  EXPECT_EQ(j["totals"]["engine_bytes"], 2000);
}

// Rank 0 takes in what all of them send.
TEST_F(ManyFiles, OfThousandsOfProcessesEachSendsItsShare) {
  JobLog one = make();
  add_files(one, 1000);
  FileReport wrong = sample("wrong", 1);
  wrong.sum.errors = 1;
  one.add(wrong);
  EXPECT_EQ(json::parse(one.encode_reports())["files"].size(), 1001u);
  const json of_1000 = json::parse(one.encode_reports(500));
  EXPECT_EQ(of_1000["files"].size(), 3u) << "two, and what went wrong";
  EXPECT_EQ(of_1000["unlisted"]["files_not_listed"], 998);
  const json of_million = json::parse(one.encode_reports(1'000'000));
  ASSERT_EQ(of_million["files"].size(), 2u);
  EXPECT_EQ(of_million["files"].back()["path"], "wrong");
  JobLog all = make();
  ASSERT_TRUE(all.merge(one.encode_reports(500)));
  ASSERT_TRUE(all.write(true, {}));
  EXPECT_EQ(written(all)["totals"]["engine_bytes"], 1001);
  EXPECT_EQ(written(all)["totals"]["errors"], 1);
}

TEST_F(ManyFiles, OfEachProcessAnEqualShareIsListed) {
  JobLog log = make();
  const auto add_of = [](JobLog& to, const std::string& rank) {
    for (int i = 0; i < 500; ++i) to.add(sample(rank, 1));
  };
  add_of(log, "0");
  log.keep_share(4);
  for (const char* rank : {"1", "2", "3"}) {
    JobLog there = make();
    add_of(there, rank);
    ASSERT_TRUE(log.merge(there.encode_reports(4)));
  }
  ASSERT_TRUE(log.write(true, {}));
  const json j = written(log);
  std::map<std::string, int> listed;
  for (const json& file : j["files"]) ++listed[file["path"].get<std::string>()];
  EXPECT_EQ(listed, (std::map<std::string, int>{{"0", 250}, {"1", 250}, {"2", 250}, {"3", 250}}));
  EXPECT_EQ(j["totals"]["files_not_listed"], 1000);
  EXPECT_EQ(j["totals"]["engine_bytes"], 2000);
}

TEST_F(ManyFiles, AllAreListedWhereOneLogHoldsThemWhoeverHasThem) {
  EXPECT_EQ(JobLog::shares_of(64, 1000), 1);
  EXPECT_EQ(JobLog::shares_of(64, 1001), 64);
  JobLog log = make();
  for (int i = 0; i < 100; ++i) log.add(sample("of all", 1));
  FileReport left = sample("left open", 1);
  left.closed = false;
  log.add(left);
  EXPECT_EQ(log.closed_files(), 100) << "of one that is left open every rank tells its part";
  log.keep_share(JobLog::shares_of(64, 163));
  ASSERT_TRUE(log.write(true, {}));
  EXPECT_EQ(written(log)["files"].size(), 101U);
}

// What is kept of it is what the other process would be told.
TEST_F(ManyFiles, OfALogThatNobodyWritesAreSumsOnly) {
  JobLog log(dir_, facts("app", "17"), Listed::none);
  add_files(log, 1);
  const size_t of_one = log.encode_reports().size();
  for (int i = 0; i < 5000; ++i) log.add(sample("a.dat", 1));
  EXPECT_FALSE(log.empty());
  EXPECT_LT(log.encode_reports().size(), of_one + 20);
  EXPECT_NE(log.summary_line().find("4.9 KiB by engine"), std::string::npos) << log.summary_line();
  FileReport open = sample("late.dat", 3);
  open.closed = false;
  log.add(open);
  FileReport late = sample("late.dat", 1024);
  late.ranks = 1;
  log.add_closed_late(late);
  EXPECT_NE(log.summary_line().find("5.9 KiB by engine"), std::string::npos) << log.summary_line();
  log.clear();
  EXPECT_TRUE(log.empty());
}

}  // namespace
}  // namespace penstock::engine::job_log_test
