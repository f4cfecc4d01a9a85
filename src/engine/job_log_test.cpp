// The log as a reader finds it: whole, private, never through a link, and as the published schema
// says. The small validator here knows the part of JSON Schema that the schema uses, and refuses
// what it does not know.
#include "engine/job_log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "engine/job_log_for_tests.hpp"
#include "engine/replace_file.hpp"
#include "engine/report_json.hpp"

namespace penstock::engine::job_log_test {
namespace {

json schema() {
  const fs::path repository = fs::path(__FILE__).parent_path().parent_path().parent_path();
  return json::parse(read(repository / "docs/reference/job-log.schema.json"));
}

// ---- the validator

class Validator {
 public:
  explicit Validator(json schema) : root_(std::move(schema)) {}

  std::vector<std::string> errors(const json& value) {
    errors_.clear();
    check(value, root_, "$");
    return errors_;
  }

 private:
  void check(const json& value, const json& rule, const std::string& at) {
    for (const auto& [word, argument] : rule.items()) check_word(value, rule, word, argument, at);
  }

  void check_word(const json& v, const json& rule, const std::string& word, const json& argument,
                  const std::string& at) {
    static const std::set<std::string> kSilent = {"$schema", "title", "description", "$defs"};
    if (kSilent.contains(word)) return;
    if (word == "$ref")
      return check(v, root_.at(json::json_pointer(std::string(argument).substr(1))), at);
    if (word == "type") return expect(has_type(v, argument), at, "has another type");
    if (word == "const") return expect(v == argument, at, "is not the constant");
    if (word == "enum") return expect(contains(argument, v), at, "is not in the list");
    if (word == "minimum") return expect(!v.is_number() || v >= argument, at, "is too small");
    if (word == "exclusiveMinimum")
      return expect(!v.is_number() || v > argument, at, "is too small");
    if (word == "items") return check_items(v, argument, at);
    if (word == "required") return check_required(v, argument, at);
    if (word == "properties") return check_properties(v, argument, at);
    if (word == "additionalProperties") return check_additional(v, rule, argument, at);
    expect(false, at, "the validator does not know " + word);
  }

  static bool contains(const json& list, const json& v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  }
  static bool has_type(const json& v, const json& type) {
    if (type.is_array())
      return std::any_of(type.begin(), type.end(), [&](const json& t) { return has_type(v, t); });
    if (type == "number") return v.is_number();
    if (type == "integer") return v.is_number_integer();
    return v.type_name() == std::string(type);
  }
  void check_items(const json& v, const json& rule, const std::string& at) {
    for (size_t i = 0; v.is_array() && i < v.size(); ++i)
      check(v[i], rule, at + "[" + std::to_string(i) + "]");
  }
  void check_required(const json& v, const json& names, const std::string& at) {
    for (const json& name : names)
      expect(v.is_object() && v.contains(name), at, "lacks " + std::string(name));
  }
  void check_properties(const json& v, const json& rules, const std::string& at) {
    for (const auto& [name, rule] : rules.items())
      if (v.is_object() && v.contains(name)) check(v[name], rule, at + "." + name);
  }
  void check_additional(const json& v, const json& rule, const json& argument,
                        const std::string& at) {
    for (const auto& [name, member] : v.items())
      if (!rule.contains("properties") || !rule["properties"].contains(name))
        check(member, argument, at + "." + name);
  }
  void expect(bool holds, const std::string& at, const std::string& what) {
    if (!holds) errors_.push_back(at + " " + what);
  }

  json root_;
  std::vector<std::string> errors_;
};

std::vector<std::string> violations(const json& log) { return Validator(schema()).errors(log); }

// ---- the file

TEST_F(Log, TellsHowLongItWasWhoeverSetsTheWallClock) {
  JobLog log = make();
  ASSERT_TRUE(log.write(true, {}));
  const json j = written(log);
  EXPECT_LT(j.at("written_unix_s"), j.at("start_unix_s"));
  EXPECT_GE(j.at("elapsed_s").get<double>(), 7);
  EXPECT_LT(j.at("elapsed_s").get<double>(), 700);
}

TEST_F(Log, IsAsThePublishedSchemaSays) {
  JobLog log = make();
  ASSERT_TRUE(log.write(false, {}));
  EXPECT_EQ(violations(written(log)), std::vector<std::string>{});
  log.add(sample("a.dat", 100));
  FileReport bad = sample("b.dat", 0);
  bad.first_error = "pwrite: No space left on device";
  bad.degraded["not served: atomic mode"] = 2;
  bad.actual_rate = 5;
  bad.closed = false;
  ASSERT_TRUE(log.write(true, {bad}));
  EXPECT_EQ(violations(written(log)), std::vector<std::string>{});
}

TEST_F(Log, SchemaRefusesWhatIsNotALog) {
  JobLog log = make();
  log.add(sample("a.dat", 100));
  ASSERT_TRUE(log.write(true, {}));
  const json good = written(log);
  json bad = good;
  bad.erase("totals");
  EXPECT_FALSE(violations(bad).empty());
  bad = good;
  bad["schema_version"] = kLogSchemaVersion + 1;
  EXPECT_FALSE(violations(bad).empty());
  bad = good;
  bad["files"][0]["engine_bytes"] = -1;
  EXPECT_FALSE(violations(bad).empty());
  bad = good;
  bad["files"][0]["times_s"]["plan"] = "fast";
  EXPECT_FALSE(violations(bad).empty());
}

TEST_F(Log, EveryMemberOfAFileIsInTheSchema) {
  const json described = schema()["$defs"]["file"]["properties"];
  const json file = to_json(sample("a", 1));
  for (const auto& [name, value] : file.items()) EXPECT_TRUE(described.contains(name)) << name;
}

TEST_F(Log, TotalsAreSumsOverClosedAndOpenFiles) {
  JobLog log = make();
  FileReport a = sample("a.dat", 100), b = sample("b.dat", 20), open = sample("c.dat", 3);
  b.sum.passthrough_bytes = 7;
  b.sum.errors = 2;
  a.degraded["why"] = 1;
  open.degraded["why"] = 4;
  log.add(a);
  log.add(b);
  ASSERT_TRUE(log.write(false, {open}));
  const json j = written(log);
  EXPECT_EQ(j["totals"]["engine_bytes"], 123);
  EXPECT_EQ(j["totals"]["passthrough_bytes"], 7);
  EXPECT_EQ(j["totals"]["errors"], 2);
  EXPECT_EQ(j["totals"]["degraded"]["why"], 5);
  EXPECT_EQ(j["files"].size(), 3u);
  EXPECT_EQ(j["state"], "running");
  EXPECT_EQ(j["files"][0]["times_s"]["write"], 1.5);
  EXPECT_EQ(j["files"][0]["algorithms"]["two_phase"], 8);
  EXPECT_EQ(j["files"][0]["sizes"][3]["up_to_bytes"], 1024);
  EXPECT_EQ(j["files"][0]["sizes"][3]["calls"], 8);
  EXPECT_TRUE(j["files"][0]["sizes"].back()["up_to_bytes"].is_null());
}

TEST_F(Log, IsPrivateAndLeavesNothingElse) {
  const mode_t before = ::umask(0);
  JobLog log = make();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(log.write(i == 4, {}));
  ::umask(before);
  struct stat s {};
  ASSERT_EQ(::stat(log.path().c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0600u);
  EXPECT_EQ(entries(), 1u);
}

// Of files, as `ulimit -f` sets it: past it the kernel sends a signal that ends the program.
TEST_F(Log, ThatIsLongerThanALimitIsAnErrorAndLeavesNothing) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100, before.rlim_max};
  JobLog log = make();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = log.write(true, {});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().sys_errno, EFBIG);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Log, ALinkInTheWayIsReplacedNotFollowed) {
  const fs::path victim = dir_ / "victim";
  std::ofstream(victim) << "precious";
  JobLog log = make();
  fs::create_symlink(victim, log.path());
  ASSERT_TRUE(log.write(true, {}));
  EXPECT_EQ(read(victim), "precious");
  EXPECT_FALSE(fs::is_symlink(log.path()));
}

TEST_F(Log, MissingDirectoriesAreMadePrivate) {
  JobLog log(dir_ / "deep" / "er", facts("app", "1"));
  ASSERT_TRUE(log.write(true, {}));
  EXPECT_EQ(fs::status(dir_ / "deep").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(fs::exists(log.path()));
}

// A program that changes its root wants none of them there.
TEST_F(Log, DirectoriesAreMadeOnce) {
  JobLog log(dir_ / "deep" / "er", facts("app", "1"));
  ASSERT_TRUE(log.write(false, {}));
  fs::remove_all(dir_ / "deep");
  EXPECT_FALSE(log.write(true, {}));
  EXPECT_EQ(entries(), 0u);
  EXPECT_NE(log.summary_line().find("no log"), std::string::npos);
}

TEST_F(Log, AnUnusableDirectoryIsAnErrorThatNamesIt) {
  std::ofstream(dir_ / "file") << "x";
  JobLog log(dir_ / "file", facts("app", "1"));
  const auto r = log.write(true, {});
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message().find((dir_ / "file").string()), std::string::npos);
  EXPECT_NE(log.summary_line().find("no log"), std::string::npos);
}

TEST_F(Log, AFailedReplacementLeavesNoTemporaryFile) {
  JobLog log = make();
  fs::create_directory(log.path());
  EXPECT_FALSE(log.write(true, {}));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Log, AReaderAlwaysSeesAWholeLog) {
  JobLog log = make();
  for (int i = 0; i < 20; ++i) log.add(sample("file" + std::to_string(i), 1 << 20));
  ASSERT_TRUE(log.write(false, {}));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) (void)log.write(false, {});
    done = true;
  });
  while (!done) EXPECT_FALSE(json::parse(read(log.path()), nullptr, false).is_discarded());
  writer.join();
}

TEST_F(Log, TheNameIsSafeWhateverTheProgramIsCalled) {
  for (const std::string program : {"", "..", "/usr/bin/app", "a b\n;$(x)", "\xff\xfe", "-rf"}) {
    JobLog log = make(program, "../../etc/passwd");
    const fs::path path = log.path();
    EXPECT_EQ(path.parent_path(), dir_) << program;
    EXPECT_EQ(path.filename().string().find("penstock-"), 0u);
    EXPECT_EQ(path.filename().string().find_first_of(" \n;$()\xff"), std::string::npos);
  }
  EXPECT_LT(fs::path(make(std::string(5000, 'x'), std::string(5000, 'y')).path())
                .filename()
                .string()
                .size(),
            200u);
  EXPECT_EQ(make("app", "17").path(), (dir_ / "penstock-app-17.json").string());
}

TEST_F(Log, RanksOfAJobWithALongNameHaveLogsOfTheirOwn) {
  const std::string job(80, 'j');
  EXPECT_NE(make("app", job + ".rank1").path(), make("app", job + ".rank12").path());
  EXPECT_NE(make("app", job).path(), make("app", job + ".rank1").path());
}

TEST_F(Log, ThePathIsFixedBeforeTheProgramChangesItsDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(dir_);
  JobLog log("", facts("app", "1"));
  fs::current_path(before);
  EXPECT_EQ(fs::path(log.path()).parent_path(), fs::canonical(dir_));
}

TEST_F(Log, PathsThatAreNotUtf8AndNumbersThatAreNotFiniteStillGiveJson) {
  JobLog log = make();
  FileReport r = sample("bad-\xff\xc3.dat", 1);
  r.application_rate = std::numeric_limits<double>::infinity();
  r.actual_rate = std::nan("");
  log.add(r);
  ASSERT_TRUE(log.write(true, {}));
  EXPECT_EQ(violations(written(log)), std::vector<std::string>{});
  EXPECT_TRUE(written(log)["files"][0]["application_rate_bytes_per_s"].is_null());
}

// ---- merging

TEST_F(Log, MergingLosesNothing) {
  FileReport r = sample("far.dat", 55);
  r.first_error = "pwrite: Input/output error";
  r.degraded["why"] = 3;
  r.sum.exchange_ns = 123'456'789;
  r.sum.sizes[15] = 9;
  r.mismatched_bytes = 4;
  JobLog there = make(), here = make();
  there.add(r);
  ASSERT_TRUE(here.merge(there.encode_reports()));
  EXPECT_EQ(here.encode_reports(), there.encode_reports());
  EXPECT_EQ(to_json(report_from_json(to_json(r)).value()), to_json(r));
  EXPECT_EQ(report_from_json(to_json(r))->sum.exchange_ns, 123'456'789);
}

TEST_F(Log, AFileThatIsClosedLateReplacesWhatItsRanksHadSaid) {
  FileReport left = sample("late.dat", 10);
  left.closed = false;
  JobLog log = make();
  for (int rank = 0; rank < 3; ++rank) log.add(left);
  log.add(sample("late.dat", 7));  // closed before, and opened again
  log.add(sample("another.dat", 1));
  FileReport late = sample("late.dat", 35);
  late.ranks = 2;
  late.mismatched_bytes = 4;
  log.add_closed_late(late);
  ASSERT_TRUE(log.write(true, {}));
  EXPECT_EQ(written(log)["totals"]["engine_bytes"], 10 + 7 + 1 + 35);
  EXPECT_EQ(written(log)["totals"]["mismatched_bytes"], 4);
}

// What other ranks said of it came as JSON, which is UTF-8.
TEST_F(Log, AFileThatIsClosedLateIsTheSameWhateverBytesItsNameHas) {
  FileReport left = sample("a\xff", 10);
  left.closed = false;
  JobLog here = make(), there = make();
  here.add(left);
  there.add(left);
  ASSERT_TRUE(here.merge(there.encode_reports()));
  FileReport late = sample("a\xff", 20);
  late.ranks = 2;
  here.add_closed_late(late);
  ASSERT_TRUE(here.write(true, {}));
  EXPECT_EQ(written(here)["totals"]["engine_bytes"], 20);
}

TEST_F(Log, WhatIsNotAnEncodedReportIsRefusedAndChangesNothing) {
  JobLog log = make();
  JobLog other = make();
  other.add(sample("a", 1));
  std::string half = other.encode_reports();
  half.resize(half.size() / 2);
  const json good = json::parse(other.encode_reports());
  json wrong = good, missing = good, no_sum = good;
  wrong["files"][0]["calls"]["write"] = "many";
  missing["files"].push_back(json::object());
  no_sum["unlisted"].erase("errors");
  for (const std::string& text : {std::string(), std::string("{}"), std::string("[]"), half,
                                  wrong.dump(), missing.dump(), no_sum.dump()}) {
    EXPECT_FALSE(log.merge(text)) << text;
    EXPECT_TRUE(log.empty());
  }
  EXPECT_TRUE(log.merge(make().encode_reports()));
  EXPECT_TRUE(log.empty());
}

// ---- the line

TEST_F(Log, TheLineSaysBytesErrorsAndWhereTheLogIs) {
  JobLog log = make();
  FileReport r = sample("a.dat", 13325829734);
  log.add(r);
  ASSERT_TRUE(log.write(true, {}));
  EXPECT_EQ(log.summary_line(),
            "penstock: 12.4 GiB by engine, 0 B passed through, 0 errors, log " + log.path());
}

TEST_F(Log, TheLineNamesWhatDegradedAndWhatDiffers) {
  JobLog log = make();
  FileReport r = sample("a.dat", 0);
  r.sum.errors = 1;
  r.degraded = {{"atomic mode", 2}, {"foreign datarep", 1}, {"third reason", 1}};
  r.mismatched_bytes = 4096;
  log.add(r);
  EXPECT_EQ(log.summary_line(),
            "penstock: 0 B by engine, 0 B passed through, 1 error, 4.0 KiB DIFFER, degraded 4 "
            "times (atomic mode; foreign datarep; ...), no log");
}

TEST(CallKinds, HaveDistinctNames) {
  std::set<std::string> names;
  for (int k = 0; k < int(CallKind::count); ++k) names.insert(to_string(CallKind(k)));
  EXPECT_EQ(names.size(), size_t(CallKind::count));
}

}  // namespace
}  // namespace penstock::engine::job_log_test
