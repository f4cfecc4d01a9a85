#include "engine/config.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/config_keys.hpp"

namespace penstock::engine::config_test {
namespace {

// Nothing but these variables: no directory has files for it.
Result<Config> load(const Variables& variables) {
  Surroundings s;
  s.variables = variables;
  s.etc = "/nowhere";
  s.user = ::geteuid();
  return load_config(s);
}

std::string refused(const Variables& variables) {
  const auto c = load(variables);
  return c ? "accepted" : c.error().message();
}

std::string toml_refused(std::string_view text) {
  Config c;
  const auto r = apply_toml(text, c);
  return r ? "accepted" : r.error().message();
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class ConfigFile : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }
  void SetUp() override { ::umask(022); }
  void TearDown() override { ::remove(path_.c_str()); }
  std::string path_ = ::testing::TempDir() + "penstock-config-test-" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + "-" +
                      std::to_string(::getpid()) + ".toml";
};

TEST(Config, WithoutAnyVariableIsTheDefault) {
  const auto c = load({});
  ASSERT_TRUE(c);
  EXPECT_EQ(c->mode, Mode::serve);
  EXPECT_EQ(to_string(c->method), to_string(default_method()));
  EXPECT_TRUE(c->log);
  EXPECT_FALSE(c->require || c->verify || c->quiet || c->all_ranks);
  EXPECT_TRUE(c->log_dir.empty());
}

TEST(Config, EveryVariableReachesItsField) {
  const auto c = load({{"PENSTOCK_METHOD", "two_phase"},
                       {"PENSTOCK_WRITERS", "4"},
                       {"PENSTOCK_CYCLE", "1MiB"},
                       {"PENSTOCK_REQUIRE", "1"},
                       {"PENSTOCK_VERIFY", "true"},
                       {"PENSTOCK_QUIET", "1"},
                       {"PENSTOCK_LOG", "0"},
                       {"PENSTOCK_LOG_DIR", "/logs"},
                       {"PENSTOCK_ALL_RANKS", "1"}});
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(
      to_string(c->method),
      "two_phase(writers=4, cycle=1MiB) + shm + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_TRUE(c->require && c->verify && c->quiet && c->all_ranks);
  EXPECT_FALSE(c->log);
  EXPECT_EQ(c->log_dir, "/logs");
}

TEST(Config, DisableIsANoOpEvenWhenOtherVariablesAreWrong) {
  const auto c = load({{"PENSTOCK_DISABLE", "1"}, {"PENSTOCK_METHOD", "nonsense"}});
  ASSERT_TRUE(c);
  EXPECT_EQ(c->mode, Mode::off);
  EXPECT_EQ(load({{"PENSTOCK_DISABLE", "0"}})->mode, Mode::serve);
}

TEST(Config, OffAndObserveAreWordsOfTheMethod) {
  EXPECT_EQ(load({{"PENSTOCK_METHOD", "off"}})->mode, Mode::off);
  EXPECT_EQ(load({{"PENSTOCK_METHOD", "observe"}})->mode, Mode::observe);
  EXPECT_EQ(load({{"PENSTOCK_OBSERVE", "1"}})->mode, Mode::observe);
  EXPECT_EQ(load({{"PENSTOCK_OBSERVE", "1"}, {"PENSTOCK_METHOD", "two_phase"}})->mode,
            Mode::observe);
  EXPECT_EQ(load({{"PENSTOCK_OBSERVE", "1"}, {"PENSTOCK_METHOD", "off"}})->mode, Mode::off);
}

// Who says 0 on the command line has the team decide, whatever a table says.
TEST(Config, AnOptionThatLeavesTheWritersOpenReachesRanks) {
  const auto launcher = load({{"PENSTOCK_WRITERS", "0"}, {"PENSTOCK_OPTIONS", "WRITERS"}});
  ASSERT_TRUE(launcher);
  std::string line = resolved_toml(*launcher);
  line.insert(line.size() - 1, R"(, file = [{pattern = ["*"], source = "a test", writers = 4}])");
  const auto rank = load({{"PENSTOCK_RESOLVED", line}});
  ASSERT_TRUE(rank) << rank.error().message();
  EXPECT_EQ(for_file(*rank, "x")->method.parameters.writers, 0) << line;
}

TEST(Config, WrongValuesNameTheVariable) {
  EXPECT_TRUE(says(refused({{"PENSTOCK_REQUIRE", "maybe"}}), "PENSTOCK_REQUIRE: require must be"));
  EXPECT_TRUE(says(refused({{"PENSTOCK_METHOD", "two_fase"}}), "PENSTOCK_METHOD: algorithm"));
  EXPECT_TRUE(says(refused({{"PENSTOCK_CYCLE", "1000"}}), "multiple of 4096"));
  EXPECT_TRUE(says(refused({{"PENSTOCK_WRITERS", "many"}}), "must be an integer"));
  EXPECT_TRUE(says(refused({{"PENSTOCK_OBSERVE", "2"}}), "PENSTOCK_OBSERVE"));
  EXPECT_TRUE(says(refused({{"PENSTOCK_DISABLE", "x"}}), "PENSTOCK_DISABLE"));
}

TEST(Config, AnEmptyVariableIsUnset) {
  EXPECT_TRUE(load({{"PENSTOCK_METHOD", ""}, {"PENSTOCK_CONFIG", ""}, {"PENSTOCK_REQUIRE", ""}}));
}

TEST(Config, OptionsThatTheMethodLacksAreRefusedNotDropped) {
  EXPECT_TRUE(says(refused({{"PENSTOCK_METHOD", "individual"}, {"PENSTOCK_WRITERS", "2"}}),
                   "individual has no option writers"));
}

TEST(Config, ALaterMethodReplacesTheEarlierOneWithItsOptions) {
  Config c;
  ASSERT_TRUE(apply_toml("method = 'two_phase(writers=2)'", c));
  ASSERT_TRUE(apply_setting("method", "individual", c));
  EXPECT_EQ(c.method.parameters.writers, 0);
  ASSERT_TRUE(apply_setting("method", "off", c));
  ASSERT_TRUE(apply_setting("method", "two_phase", c));
  EXPECT_EQ(c.mode, Mode::serve);
}

TEST(Config, WhatAReplacedMethodSaidIsNotLeftBehind) {
  Config c;
  ASSERT_TRUE(apply_setting("write_behind", "off", c));
  ASSERT_TRUE(apply_setting("method", "write_behind(page=16MiB, limit=1GiB, seconds=3600)", c));
  ASSERT_TRUE(apply_setting("write_behind_limit", "2GiB", c));
  ASSERT_TRUE(apply_setting("method", "two_phase", c));
  EXPECT_EQ(c.write_behind, WriteBehind::automatic);
  EXPECT_EQ(c.write_behind_page_bytes, 0);
  EXPECT_EQ(c.write_behind_seconds, 0);
  EXPECT_EQ(c.write_behind_limit_bytes, int64_t{2} << 30) << "a later word of its own";
}

TEST(Config, ToObserveNothingLeavesOffWhatAnEarlierLayerSwitchedOff) {
  for (const char* no : {"0", "false"}) {
    Config c;
    ASSERT_TRUE(assign({"method", "off", "", Layer::project}, c));
    ASSERT_TRUE(assign({"observe", no, "", Layer::variable}, c));
    EXPECT_EQ(c.mode, Mode::off);
  }
}

TEST(Config, ATablesPatternMeetsTheShortestAbsolutePath) {
  const std::string here = std::filesystem::current_path().string();
  Config job;
  ASSERT_TRUE(apply_toml("[[file]]\npattern = '" + here + "/sub/*.chk'\nverify = true\n", job));
  for (const char* path : {"sub/a.chk", "./sub/a.chk", "sub//a.chk", "sub/x/../a.chk"})
    EXPECT_TRUE(for_file(job, path)->verify) << path;
  EXPECT_FALSE(for_file(job, "sub/../a.chk")->verify);
  EXPECT_FALSE(for_file(job, "/../sub/a.chk")->verify);
}

TEST(Config, ASettingByNameIsCheckedLikeAVariable) {
  Config c;
  EXPECT_TRUE(apply_setting("verify", "1", c));
  EXPECT_TRUE(c.verify);
  EXPECT_TRUE(apply_setting("read", "pass", c));
  EXPECT_EQ(c.reads, Reads::pass);
  EXPECT_TRUE(says(apply_setting("read", "no", c).error().message(), "engine or pass"));
  EXPECT_TRUE(says(apply_setting("verfy", "1", c).error().message(), "did you mean \"verify\"?"));
  EXPECT_FALSE(apply_setting("log_dir", std::string(5000, 'x'), c));
  EXPECT_FALSE(apply_setting("log_dir", std::string("a\0b", 3), c));
}

TEST(Config, WriteBehindHasItsOwnSizesAndVisibility) {
  Config c;
  EXPECT_TRUE(apply_setting("write_behind", "off", c));
  EXPECT_EQ(c.write_behind, WriteBehind::off);
  EXPECT_TRUE(apply_setting("write_behind_page", "64KiB", c));
  EXPECT_EQ(c.write_behind_page_bytes, 65536);
  EXPECT_TRUE(apply_setting("write_behind_limit", "0", c));
  EXPECT_TRUE(apply_setting("write_behind_seconds", "60", c));
  EXPECT_EQ(c.write_behind_seconds, 60);
  EXPECT_TRUE(apply_setting("method", "write_behind(page=1MiB)", c));
  EXPECT_EQ(c.write_behind, WriteBehind::automatic);
  EXPECT_EQ(c.write_behind_page_bytes, 1 << 20);
  EXPECT_EQ(c.write_behind_seconds, 60) << "of which it says nothing";
  EXPECT_TRUE(says(apply_setting("write_behind_seconds", "-1", c).error().message(), "86400"));
  EXPECT_TRUE(apply_setting("visibility", "relaxed", c));
  EXPECT_EQ(c.visibility, Visibility::relaxed);
  EXPECT_TRUE(says(apply_setting("write_behind", "on", c).error().message(), "auto or off"));
  EXPECT_TRUE(says(apply_setting("write_behind_page", "100", c).error().message(), "4KiB"));
  EXPECT_TRUE(says(apply_setting("visibility", "late", c).error().message(), "relaxed"));
}

TEST(Config, HowBytesMoveBetweenNodesIsNamed) {
  Config c;
  EXPECT_TRUE(apply_setting("write_behind_progress", "thread", c));
  EXPECT_EQ(c.write_behind_progress, exec::Progress::thread);
  EXPECT_TRUE(apply_setting("write_behind_subbuffer", "128KiB", c));
  EXPECT_EQ(c.write_behind_load_bytes, 131072);
  EXPECT_TRUE(apply_setting("write_behind_progress", "rma", c));
  EXPECT_EQ(c.write_behind_progress, exec::Progress::rma);
  EXPECT_TRUE(apply_setting("write_behind_progress", "calls", c));
  EXPECT_EQ(c.write_behind_progress, exec::Progress::calls);
  EXPECT_TRUE(says(apply_setting("write_behind_progress", "mpi", c).error().message(),
                   "calls, thread or rma"));
  EXPECT_TRUE(says(apply_setting("write_behind_subbuffer", "1", c).error().message(), "4KiB"));
}

TEST(Toml, EveryKeyReachesItsField) {
  Config c;
  const auto r = apply_toml(R"(# a job
method = "two_phase + messages + null"
writers = 3
cycle = "64KiB"
require = true
verify = true
quiet = true
log = false
log_dir = "logs"
)",
                            c);
  ASSERT_TRUE(r) << r.error().message();
  EXPECT_EQ(to_string(c.method),
            "two_phase(writers=3, cycle=64KiB) + messages + null + anticipate=1MiB + written");
  EXPECT_TRUE(c.require && c.verify && c.quiet);
  EXPECT_FALSE(c.log);
  EXPECT_EQ(c.log_dir, "logs");
  ASSERT_TRUE(apply_toml("cycle = 8192", c));
  EXPECT_EQ(c.method.parameters.cycle_bytes, 8192);
}

TEST(Toml, AnUnknownKeyIsNamedWithItsNeighbour) {
  EXPECT_TRUE(says(toml_refused("metod = 'auto'"), "did you mean \"method\"?"));
  EXPECT_TRUE(says(toml_refused("[penstock]\nmethod = 'auto'"), "\"penstock\" is not known"));
  EXPECT_TRUE(says(toml_refused("all_ranks = true"), "is not known"));
}

TEST(Toml, AWrongTypeIsNamed) {
  EXPECT_TRUE(says(toml_refused("writers = '4'"), "writers must be an integer, got a string"));
  EXPECT_TRUE(says(toml_refused("writers = 4.0"), "got a floating-point number"));
  EXPECT_TRUE(says(toml_refused("require = 1"), "require must be true or false, got an integer"));
  EXPECT_TRUE(says(toml_refused("method = ['auto']"), "got an array"));
  EXPECT_TRUE(says(toml_refused("method.name = 'auto'"), "got a table"));
  EXPECT_TRUE(says(toml_refused("log_dir = 2001-01-01"), "got a date"));
  EXPECT_TRUE(says(toml_refused("cycle = true"), "got a boolean"));
}

TEST(Toml, ASyntaxErrorNamesItsLine) {
  EXPECT_TRUE(says(toml_refused("quiet = true\nmethod = \n"), "line 2"));
}

TEST(Toml, NothingChangesWhenAnythingIsWrong) {
  Config c;
  EXPECT_FALSE(apply_toml("quiet = true\nwriters = -1", c));
  EXPECT_FALSE(apply_toml("verify = true\nmethod = 'individual'\nwriters = 2", c));
  EXPECT_FALSE(c.quiet || c.verify);
  EXPECT_EQ(to_string(c.method), to_string(default_method()));
}

TEST(Toml, DeepNestingAndEndlessDotsAreRefusedNotFatal) {
  std::string dots = "a";
  for (int i = 0; i < 400'000; ++i) dots += ".a";
  EXPECT_NE(toml_refused(dots + " = 1"), "accepted");
  EXPECT_NE(toml_refused("a = " + std::string(300'000, '[')), "accepted");
  EXPECT_NE(toml_refused(std::string(2 << 20, ' ')), "accepted");
  std::string braces;
  for (int i = 0; i < 100'000; ++i) braces += "{a=";
  EXPECT_NE(toml_refused("a = " + braces), "accepted");
}

TEST(Toml, DotsOfCommentsAreNoKeys) {
  const std::string line = "# " + std::string(2000, '.') + "\n";
  EXPECT_EQ(toml_refused(line + "quiet = true  " + line), "accepted");
  EXPECT_NE(toml_refused(line + "a" + std::string(2000, '.') + "a = 1"), "accepted");
}

TEST(Toml, CharactersBeyondAsciiAreRefusedOutsideStringsAndKeptInside) {
  for (const char* text :
       {"cl\u00e9 = 1", "\ufebf'ui", "quiet = true \u00fc", "\u1681", "\u2cbf = 1"})
    EXPECT_NE(toml_refused(text), "accepted") << text;
  Config c;
  ASSERT_TRUE(apply_toml("log_dir = 'caf\u00e9' # \u00fc", c));
  EXPECT_EQ(c.log_dir, "caf\u00e9");
}

RC_GTEST_PROP(Toml, NoTextCrashesIt, (const std::string& text)) {
  Config c;
  (void)apply_toml(text, c);
  RC_ASSERT(parse_method(to_string(c.method)).has_value());
}

TEST_F(ConfigFile, VariablesWinOverTheFile) {
  write("method = 'two_phase'\nwriters = 2\nquiet = true\n");
  const auto c = load({{"PENSTOCK_CONFIG", path_}, {"PENSTOCK_WRITERS", "5"}});
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->method.parameters.writers, 5);
  EXPECT_TRUE(c->quiet);
}

TEST_F(ConfigFile, AMissingFileIsAnErrorThatSaysWhatToDo) {
  const std::string text = refused({{"PENSTOCK_CONFIG", "/nowhere/penstock.toml"}});
  EXPECT_TRUE(says(text, "PENSTOCK_CONFIG names \"/nowhere/penstock.toml\""));
  EXPECT_TRUE(says(text, "No such file"));
  EXPECT_TRUE(says(text, "leave it out"));
}

TEST_F(ConfigFile, AnErrorInTheFileNamesTheFile) {
  write("cycle = 1000\n");
  EXPECT_TRUE(says(refused({{"PENSTOCK_CONFIG", path_}}), path_ + ":1: cycle must be a multiple"));
}

TEST_F(ConfigFile, WhatIsNotARegularFileOrTooLargeIsRefused) {
  const std::string remedy = "not a regular file; name a TOML file or leave it out";
  EXPECT_TRUE(says(refused({{"PENSTOCK_CONFIG", "/dev/zero"}}), remedy));
  EXPECT_TRUE(says(refused({{"PENSTOCK_CONFIG", "/"}}), remedy));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(says(refused({{"PENSTOCK_CONFIG", path_}}), "not a regular file"));
  ASSERT_EQ(::remove(path_.c_str()), 0);
  write(std::string((1 << 20) + 1, '#'));
  EXPECT_TRUE(says(refused({{"PENSTOCK_CONFIG", path_}}), "larger than 1MiB; name a file of"));
}

}  // namespace
}  // namespace penstock::engine::config_test
