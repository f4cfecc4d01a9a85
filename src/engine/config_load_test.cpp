// Layers, provenance, safety, tables per file, programs left alone, and dumps that are read back.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/config.hpp"

namespace penstock::engine::config_load_test {
namespace {

namespace fs = std::filesystem;

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A home, a working directory below it, an /etc and an installed prefix, all empty.
class Layers : public ::testing::Test {
 protected:
  void SetUp() override {
    ::umask(022);
    std::string name = ::testing::TempDir() + "penstock-layers-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    s_.etc = root_ + "/etc";
    s_.library_directory = root_ + "/opt/lib/penstock";
    s_.directory = root_ + "/home/runs/7";
    s_.user = ::geteuid();
    s_.variables["HOME"] = root_ + "/home";
    fs::create_directories(s_.library_directory);
    fs::create_directories(s_.directory);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string write(const std::string& where, const std::string& text) {
    std::string path = root_ + "/" + where;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  std::string refusal() const {
    const auto c = load_config(s_);
    return c ? "accepted" : c.error().message();
  }
  Config loaded() const {
    const auto c = load_config(s_);
    EXPECT_TRUE(c) << c.error().message();
    return c.value_or(Config());
  }
  int writers() const { return loaded().method.parameters.writers; }

  std::string root_;
  Surroundings s_;
};

std::string source_of(const Config& config, const std::string& key) {
  for (const Assignment& a : dump_settings(config))
    if (a.key == key) return a.source;
  return "?";
}

TEST_F(Layers, EachWinsOverAllBelowIt) {
  EXPECT_EQ(source_of(loaded(), "writers"), "default");
  std::vector<std::string> files;
  for (const auto& [where, n] : std::initializer_list<std::pair<const char*, int>>{
           {"etc/penstock/penstock.toml", 1},
           {"opt/etc/penstock/penstock.toml", 2},
           {"home/.config/penstock/penstock.toml", 3},
           {"home/runs/penstock.toml", 4}}) {
    const std::string path = write(where, "quiet = true\nwriters = " + std::to_string(n) + "\n");
    EXPECT_EQ(writers(), n) << path;
    EXPECT_EQ(source_of(loaded(), "writers"), path + ":2");
  }
  s_.variables["PENSTOCK_CONFIG"] = write("named.toml", "writers = 5\n");
  EXPECT_EQ(writers(), 5);
  s_.variables["PENSTOCK_WRITERS"] = "6";
  EXPECT_EQ(source_of(loaded(), "writers"), "PENSTOCK_WRITERS");
  s_.variables["PENSTOCK_OPTIONS"] = "CONFIG";  // the same file, given as an option
  EXPECT_EQ(writers(), 5);
  s_.variables["PENSTOCK_OPTIONS"] = "CONFIG,WRITERS";
  EXPECT_EQ(source_of(loaded(), "writers"), "--writers");
  EXPECT_EQ(writers(), 6);
}

TEST_F(Layers, TheNearestProjectFileAloneIsRead) {
  write("home/penstock.toml", "quiet = true\nwriters = 1\n");
  write("home/runs/penstock.toml", "writers = 2\n");
  EXPECT_EQ(writers(), 2);
  EXPECT_FALSE(loaded().quiet);
}

TEST_F(Layers, TheConfigurationDirectoryOfXdgReplacesTheHomes) {
  write("home/.config/penstock/penstock.toml", "writers = 3\n");
  write("xdg/penstock/penstock.toml", "writers = 4\n");
  s_.variables["XDG_CONFIG_HOME"] = root_ + "/xdg";
  EXPECT_EQ(writers(), 4);
  s_.variables["XDG_CONFIG_HOME"] = "relative";  // the specification: to be ignored
  EXPECT_EQ(writers(), 3);
}

TEST_F(Layers, IsolatedReadsOnlyWhatWasNamed) {
  write("etc/penstock/penstock.toml", "nonsense = 1\n");
  EXPECT_TRUE(says(refusal(), "penstock.toml:1: key \"nonsense\" is not known"));
  s_.variables["PENSTOCK_ISOLATED"] = "1";
  s_.variables["PENSTOCK_CONFIG"] = write("named.toml", "writers = 5\n");
  EXPECT_EQ(writers(), 5);
}

TEST_F(Layers, WhatDoesNotFitTogetherNamesEverySource) {
  const std::string file = write("home/runs/penstock.toml", "method = 'individual'\n");
  s_.variables["PENSTOCK_WRITERS"] = "2";
  EXPECT_TRUE(says(refusal(), file + ":1 and PENSTOCK_WRITERS: individual has no option writers"));
  s_.variables["PENSTOCK_METHOD"] = "two_phase";
  EXPECT_EQ(writers(), 2);
}

TEST_F(Layers, ObserveAsAnOptionWinsOverAnEarlierOff) {
  write("home/runs/penstock.toml", "method = 'off'\n");
  s_.variables["PENSTOCK_OBSERVE"] = "1";
  s_.variables["PENSTOCK_OPTIONS"] = "OBSERVE";
  EXPECT_EQ(loaded().mode, Mode::observe);
  EXPECT_TRUE(loaded().log);
}

// ---- safety

TEST_F(Layers, WhatIsNoFileOrTooLargeIsRefusedWithTheRemedy) {
  const std::string path = write("home/runs/penstock.toml", std::string((1 << 20) + 1, '#'));
  EXPECT_TRUE(says(refusal(), path + " is larger than 1MiB; remove it")) << refusal();
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_TRUE(says(refusal(), path + " is not a regular file; remove it")) << refusal();
}

TEST_F(Layers, AFileThatOthersMayWriteIsRefusedWithTheRemedy) {
  const std::string path = write("home/.config/penstock/penstock.toml", "quiet = true\n");
  for (const mode_t mode : {0664, 0646}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(says(refusal(), "chmod go-w " + path)) << refusal();
  }
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(loaded().quiet);
}

TEST_F(Layers, ASymbolicLinkIsJudgedByItsTarget) {
  const std::string target = write("target.toml", "quiet = true\n");
  const std::string link = root_ + "/home/runs/penstock.toml";
  fs::create_symlink(target, link);
  EXPECT_TRUE(loaded().quiet);
  ASSERT_EQ(::chmod(target.c_str(), 0666), 0);
  EXPECT_TRUE(says(refusal(), "mode 0666"));
}

TEST_F(Layers, AStrangersFileIsRefusedWhereverItLies) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  constexpr uid_t kStranger = 4321, kUser = 1234;
  s_.user = kUser;
  const std::string project = write("home/runs/7/penstock.toml", "quiet = true\n");
  EXPECT_TRUE(loaded().quiet);  // root's
  ASSERT_EQ(::chown(project.c_str(), kStranger, kStranger), 0);
  EXPECT_TRUE(says(refusal(), project + " belongs to user 4321, who is neither you nor root"));
  EXPECT_TRUE(says(refusal(), "PENSTOCK_ISOLATED=1"));
  s_.variables["PENSTOCK_ISOLATED"] = "1";
  s_.variables["PENSTOCK_CONFIG"] = project;  // naming it does not make it trustworthy
  EXPECT_TRUE(says(refusal(), "name a copy of your own"));
  ASSERT_EQ(::chown(project.c_str(), kUser, kUser), 0);
  EXPECT_TRUE(loaded().quiet);
}

TEST_F(Layers, WhoOwnsTheLibraryMayConfigureItsPrefixAndNothingElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  constexpr uid_t kInstaller = 4321;
  s_.user = 1234;
  const std::string prefix = write("opt/etc/penstock/penstock.toml", "quiet = true\n");
  ASSERT_EQ(::chown(prefix.c_str(), kInstaller, kInstaller), 0);
  EXPECT_TRUE(says(refusal(), "belongs to user 4321"));
  ASSERT_EQ(::chown(s_.library_directory.c_str(), kInstaller, kInstaller), 0);
  EXPECT_TRUE(loaded().quiet);
  const std::string system = write("etc/penstock/penstock.toml", "");
  ASSERT_EQ(::chown(system.c_str(), kInstaller, kInstaller), 0);
  EXPECT_TRUE(says(refusal(), system + " belongs to user 4321"));
}

TEST_F(Layers, ParentsThatAreNotTheUsersAreNotSearched) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  constexpr uid_t kStranger = 4321;
  write("home/penstock.toml", "quiet = true\n");
  EXPECT_TRUE(loaded().quiet);
  ASSERT_EQ(::chown((root_ + "/home").c_str(), kStranger, kStranger), 0);
  EXPECT_FALSE(loaded().quiet);
}

TEST_F(Layers, NothingAtAllIsReadWithGainedPrivileges) {
  write("etc/penstock/penstock.toml", "nonsense = 1\n");
  s_.variables["PENSTOCK_METHOD"] = "nonsense";
  s_.variables["PENSTOCK_DISABLE"] = "nonsense";
  s_.secure = true;
  const auto c = load_config(s_);
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->mode, Mode::off);
}

TEST_F(Layers, TheListOfFilesTellsWhichAreThereAndWhichAreWrong) {
  write("etc/penstock/penstock.toml", "quiet = true\n");
  write("home/.config/penstock/penstock.toml", "quite = true\n");
  const std::vector<ConfigFile> files = config_files(s_);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_TRUE(files[0].exists && files[0].problem.empty());
  EXPECT_FALSE(files[1].exists);
  EXPECT_TRUE(says(files[2].problem, "did you mean \"quiet\"?"));
  EXPECT_STREQ(to_string(files[3].layer), "project");
}

// Also run by the next test, in a copy of this program that gains a privilege.
TEST(ThisProcess, ReadsNothingWhereTheKernelTellsOfGainedPrivileges) {
  const Surroundings s = this_process();
  EXPECT_EQ(s.secure, ::getauxval(AT_SECURE) != 0);
  if (!s.secure) return;
  const auto c = load_config(s);
  if (s.variables.empty() && c && c->mode == Mode::off) std::fputs("nothing was read\n", stderr);
}

// A set-group-id program that another user starts: the kernel itself says AT_SECURE.
TEST_F(Layers, TheKernelTellsOfGainedPrivileges) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a set-group-id program";
  const std::string program = root_ + "/child", said = root_ + "/said";
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  fs::copy_file("/proc/self/exe", program);
  ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  const std::string command =
      "setpriv --reuid 65534 --regid 65534 --clear-groups env PENSTOCK_METHOD=nonsense " + program +
      " --gtest_filter=ThisProcess.* 2> " + said;
  // What it says counts, not its status: a leak checker may not look into such a process.
  const int status = std::system((command + " > /dev/null").c_str());
  std::ifstream file(said);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(says(text, "nothing was read"))
      << status << ": " << text << "is this file system mounted nosuid?";
}

// ---- variables that are not known

TEST_F(Layers, AMisspeltVariableIsSaidAndFatalOnlyWithRequire) {
  s_.variables["PENSTOCK_METHD"] = "two_phase";
  const Config c = loaded();
  ASSERT_EQ(c.notices.size(), 1u);
  EXPECT_TRUE(says(c.notices[0], "\"PENSTOCK_METHD\" is not known"));
  EXPECT_TRUE(says(c.notices[0], "did you mean PENSTOCK_METHOD?"));
  s_.variables["PENSTOCK_REQUIRE"] = "1";
  EXPECT_TRUE(says(refusal(), "did you mean PENSTOCK_METHOD?"));
}

TEST_F(Layers, VariablesOfTestsAndOfThePackageAreKnown) {
  for (const char* name : {"PENSTOCK_TEST_FAULT", "PENSTOCK_SUITE_RUN", "PENSTOCK_SEEDED_FAULT",
                           "PENSTOCK_NATIVE_DIR", "PENSTOCK_JOB_ID", "PENSTOCK_OPTIONS"})
    s_.variables.emplace(name, "x");
  EXPECT_TRUE(loaded().notices.empty());
}

// ---- programs left alone

TEST_F(Layers, AProgramOfTheListIsOffForTheLauncher) {
  const std::string site =
      write("etc/penstock/penstock.toml", "leave_alone = ['ls', 'vasp_*',\n '/opt/site/bin/*']\n");
  write("home/runs/penstock.toml", "leave_alone = 'mine'\n");  // adds, replaces nothing
  const Config c = loaded();
  EXPECT_EQ(why_left_alone(c, {"/usr/bin/cp"}), "");
  EXPECT_TRUE(says(why_left_alone(c, {"/usr/bin/ls"}), "\"ls\", " + site + ":1"));
  EXPECT_NE(why_left_alone(c, {"./vasp_std"}), "");
  EXPECT_NE(why_left_alone(c, {"/opt/site/bin/deep/x"}), "");
  EXPECT_EQ(why_left_alone(c, {"site/bin/x"}), "");
  EXPECT_NE(why_left_alone(c, {"", "mine"}), "");
  s_.reader = Surroundings::Reader::launcher;
  s_.program = {"/usr/bin/ls"};
  EXPECT_EQ(loaded().mode, Mode::off);
}

TEST_F(Layers, ARankThatAFileSwitchesOffStillMeetsTheOthersAndSaysWhy) {
  write("etc/penstock/penstock.toml", "leave_alone = ['vasp_*']\n");
  s_.program = {"/apps/vasp_std"};
  Config c = loaded();
  EXPECT_EQ(c.mode, Mode::observe);
  EXPECT_TRUE(c.quiet && !c.log);
  ASSERT_EQ(c.notices.size(), 1u);
  EXPECT_TRUE(says(c.notices[0], "program vasp_std is left alone"));
  s_.variables["PENSTOCK_QUIET"] = "1";
  EXPECT_TRUE(loaded().notices.empty());
  // An option chooses a method all the same; require does not pass by in silence.
  s_.variables["PENSTOCK_REQUIRE"] = "1";
  EXPECT_TRUE(says(refusal(), "but require is set"));
  s_.variables["PENSTOCK_METHOD"] = "two_phase";
  s_.variables["PENSTOCK_OPTIONS"] = "METHOD";
  EXPECT_EQ(loaded().mode, Mode::serve);
}

TEST_F(Layers, ToObserveIsNotToRequire) {
  write("home/runs/penstock.toml", "method = 'observe'\n");
  EXPECT_EQ(loaded().mode, Mode::observe);
  s_.variables["PENSTOCK_REQUIRE"] = "1";
  EXPECT_TRUE(says(refusal(), "takes over nothing, but require is set"));
}

TEST_F(Layers, OffInAVariableIsATrueNoOp) {
  write("home/runs/penstock.toml", "nonsense = 1\n");
  s_.variables["PENSTOCK_METHOD"] = "off";
  EXPECT_EQ(loaded().mode, Mode::off);
  EXPECT_EQ(source_of(loaded(), "method"), "PENSTOCK_METHOD");
  s_.variables["PENSTOCK_OPTIONS"] = "METHOD";
  EXPECT_EQ(source_of(loaded(), "method"), "--method");
}

TEST_F(Layers, ALaterLayerTakesTheOffOfAVariableBack) {
  s_.variables["PENSTOCK_METHOD"] = "off";
  s_.variables["PENSTOCK_OBSERVE"] = "1";
  EXPECT_EQ(loaded().mode, Mode::off);
  s_.variables["PENSTOCK_OPTIONS"] = "OBSERVE";
  EXPECT_EQ(loaded().mode, Mode::observe);
}

TEST_F(Layers, WhatTheLauncherSaidIsNotSaidAgainByRanks) {
  s_.variables = {{"PENSTOCK_METHD", "x"}, {"PENSTOCK_RESOLVED", "{}"}};
  EXPECT_TRUE(loaded().notices.empty());
}

// ---- tables per file

TEST_F(Layers, ATableOverridesWhatItNamesForTheFilesThatItNames) {
  write("home/runs/penstock.toml", R"(method = "two_phase"
writers = 4
[[file]]
pattern = ["*.chk", "*/restart/*"]
writers = 1
verify = true
[[file]]
pattern = "last.chk"
method = "individual"
)");
  const Config job = loaded();
  EXPECT_EQ(for_file(job, "out.dat")->method.parameters.writers, 4);
  const Config checkpoint = *for_file(job, "/scratch/a/b.chk");
  EXPECT_EQ(checkpoint.method.parameters.writers, 1);
  EXPECT_TRUE(checkpoint.verify);
  EXPECT_EQ(checkpoint.method.algorithm->name, "two_phase");
  EXPECT_TRUE(for_file(job, "/scratch/restart/7/x")->verify);
  EXPECT_EQ(for_file(job, "last.chk")->method.algorithm->name, "individual");
}

TEST_F(Layers, APatternWithASlashSeesTheAbsolutePathToo) {
  Config job;
  ASSERT_TRUE(apply_toml(
      "[[file]]\npattern = '" + fs::current_path().string() + "/*.chk'\nverify = true\n", job));
  EXPECT_TRUE(for_file(job, "x.chk")->verify);
  EXPECT_FALSE(for_file(job, "/elsewhere/x.chk")->verify);
}

TEST_F(Layers, ATableCanLeaveAFileAloneAndALaterOneTakeItBack) {
  const std::string file = write("home/runs/penstock.toml",
                                 "[[file]]\npattern = '*.chk'\nmethod = 'off'\n"
                                 "[[file]]\npattern = 'mine.chk'\nmethod = 'two_phase'\n");
  const Config job = loaded();
  EXPECT_EQ(job.mode, Mode::serve);
  const Config left = *for_file(job, "a.chk");
  EXPECT_EQ(left.mode, Mode::observe);
  EXPECT_EQ(left.left_alone, "left alone by [[file]] \"*.chk\" (" + file + ":1)");
  EXPECT_EQ(for_file(job, "mine.chk")->mode, Mode::serve);
}

TEST_F(Layers, OptionsWinOverTables) {
  write("home/runs/penstock.toml", "[[file]]\npattern = '*'\nmethod = 'off'\n");
  s_.variables["PENSTOCK_METHOD"] = "two_phase";
  EXPECT_EQ(for_file(loaded(), "a")->mode, Mode::observe);
  s_.variables["PENSTOCK_OPTIONS"] = "METHOD";
  EXPECT_EQ(for_file(loaded(), "a")->mode, Mode::serve);
}

TEST_F(Layers, WhoObservesTheJobObservesEveryFile) {
  write("home/runs/penstock.toml", "[[file]]\npattern = '*'\nmethod = 'two_phase'\n");
  s_.variables["PENSTOCK_OBSERVE"] = "1";
  EXPECT_EQ(for_file(loaded(), "a")->mode, Mode::observe);
}

TEST_F(Layers, AWrongTableIsNamedBeforeAnyFileIsOpened) {
  const auto refused = [&](const std::string& text) {
    const std::string path = write("home/runs/penstock.toml", text);
    std::string why = refusal();
    EXPECT_TRUE(says(why, path + ":")) << why;
    return why;
  };
  EXPECT_TRUE(says(refused("[[file]]\nmethod = 'off'\n"), "lacks its pattern"));
  EXPECT_TRUE(says(refused("[[file]]\npattern = 3\n"), "must be a pattern or an array"));
  EXPECT_TRUE(says(refused("[[file]]\npatern = '*'\n"), "did you mean \"pattern\"?"));
  EXPECT_TRUE(
      says(refused("[[file]]\npattern = '*'\nquiet = true\n"), "key of [[file]]: \"quiet\""));
  EXPECT_TRUE(says(refused("[[file]]\npattern = '*'\ncycle = 1\n"), "got 1"));
  EXPECT_TRUE(says(refused("file = 3\n"), "[[file]], got an integer"));
  EXPECT_TRUE(says(refused("file = [3]\n"), "[[file]], got an integer"));
  EXPECT_TRUE(says(refused("leave_alone = [1]\n"), "leave_alone must be"));
  EXPECT_TRUE(says(refused("method = 'individual'\n[[file]]\npattern = '*'\nwriters = 2\n"),
                   "[[file]]: individual has no option writers"));
}

// ---- dumps

constexpr const char* kEverything = R"(method = "two_phase"
writers = 3
cycle = "64KiB"
read = "pass"
write_behind = "off"
write_behind_page = "64KiB"
write_behind_limit = "2MiB"
write_behind_seconds = 7
write_behind_progress = "thread"
write_behind_subbuffer = "32KiB"
visibility = "relaxed"
require = true
verify = true
quiet = true
log = false
log_dir = "a \"b\"\\c\td"
leave_alone = ["ls", "vasp_*"]
[[file]]
pattern = ["*.chk", "x"]
method = "off"
[[file]]
pattern = "y"
writers = 2
cycle = 8192
verify = false
)";

TEST(Dump, IsReadBackAsItself) {
  Config a, b;
  ASSERT_TRUE(apply_toml(kEverything, a));
  const std::string text = dump_toml(a);
  ASSERT_TRUE(apply_toml(text, b)) << text;
  EXPECT_EQ(b.log_dir, a.log_dir);
  EXPECT_EQ(b.files.size(), 2u);
  EXPECT_EQ(resolved_toml(b).substr(0, 200), resolved_toml(a).substr(0, 200));
  Config defaults, again;
  ASSERT_TRUE(apply_toml(dump_toml(defaults), again)) << dump_toml(defaults);
  EXPECT_EQ(to_string(again.method), to_string(defaults.method));
}

TEST_F(Layers, WhatWasResolvedReachesARankWholeInOneLine) {
  s_.variables["PENSTOCK_CONFIG"] = write("all.toml", kEverything);
  s_.variables["PENSTOCK_CYCLE"] = "128KiB";
  s_.variables["PENSTOCK_OPTIONS"] = "CYCLE";
  const Config launcher = loaded();
  const std::string line = resolved_toml(launcher);
  EXPECT_EQ(line.find('\n'), line.npos);

  write("etc/penstock/penstock.toml", "nonsense of another node");
  s_.variables = {{"PENSTOCK_RESOLVED", line}, {"HOME", root_}};
  const Config rank = loaded();
  EXPECT_EQ(to_string(rank.method), to_string(launcher.method));
  EXPECT_TRUE(rank.require && rank.verify && rank.quiet && !rank.log);
  EXPECT_EQ(rank.log_dir, launcher.log_dir);
  EXPECT_EQ(rank.leave_alone.size(), 2u);
  const Config file = *for_file(rank, "x");
  EXPECT_TRUE(says(file.left_alone, root_ + "/all.toml:18"));  // who said so is not lost
  EXPECT_EQ(for_file(rank, "y")->method.parameters.cycle_bytes, 128 * 1024);  // the option wins
}

// A rank whose node refuses the method must not leave the others waiting at the end.
TEST_F(Layers, WhoMeetsAndWhereTheLogGoesIsKnownInSpiteOfWhatIsRefused) {
  write("etc/penstock/penstock.toml", "require = true\nlog = false\nlog_dir = '/elsewhere'\n");
  s_.variables = {{"PENSTOCK_METHOD", "bogus"}, {"PENSTOCK_ALL_RANKS", "1"},
                  {"PENSTOCK_LOG_DIR", "logs"}, {"PENSTOCK_REQUIRE", "perhaps"},
                  {"PENSTOCK_CYCLE", "abc"},    {"PENSTOCK_OPTIONS", "ALL_RANKS,LOG_DIR"}};
  EXPECT_TRUE(says(refusal(), "bogus"));
  const Config some = load_config_in_spite(s_);
  EXPECT_TRUE(some.all_ranks && !some.log && some.require && some.log_dir == "logs");
}

TEST_F(Layers, AResolvedConfigurationThatIsNoneIsRefused) {
  for (const char* text : {"{", "3", "{}\nquiet = true", "{quite = true}"}) {
    s_.variables["PENSTOCK_RESOLVED"] = text;
    EXPECT_TRUE(says(refusal(), "PENSTOCK_RESOLVED")) << text << ": " << refusal();
  }
}

RC_GTEST_PROP(Dump, AnyTextSurvivesQuoting, (std::string text)) {
  for (char& c : text) c = char(1 + (static_cast<unsigned char>(c) & 0x7e));
  text += "'''\"\"\"";
  Config a, b;
  RC_PRE(bool(apply_setting("log_dir", text, a)));
  const auto read = apply_toml(dump_toml(a), b);
  RC_ASSERT(read.has_value());
  RC_ASSERT(a.log_dir == b.log_dir);
}

}  // namespace
}  // namespace penstock::engine::config_load_test
