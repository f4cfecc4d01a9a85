// Wrong usage is refused with the argument, its value and the remedy; what is right is resolved.
#include "parameters.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "strategy.hpp"

namespace penstock::measure::parameters_test {
namespace {

Request read(const std::string& words, Workers workers = Workers::mpi) {
  std::istringstream in("program " + words);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : list) argv.push_back(word.c_str());
  return read_command_line("program", workers, int(argv.size()), argv.data());
}

Parameters good(const std::string& words, Workers workers = Workers::mpi) {
  const Request request = read("-o f " + words, workers);
  EXPECT_EQ(request.kind, Request::Kind::measure) << request.text;
  return request.parameters;
}

std::string refusal(const std::string& words, Workers workers = Workers::mpi) {
  const Request request = read("-o f " + words, workers);
  EXPECT_EQ(request.kind, Request::Kind::wrong) << words;
  return request.text;
}

TEST(Parameters, SizesAreBinaryOrDecimal) {
  EXPECT_EQ(good("--bufsize 4MiB").bufsize_bytes, 4 << 20);
  EXPECT_EQ(good("--bufsize 4MB").bufsize_bytes, 4'000'000);
}

TEST(Parameters, LettersOfIorMeanTheSame) {
  const Parameters p = good("-t 1KiB -s 7 -F -w -Y");
  EXPECT_EQ(p.bufsize_bytes, 1024);
  EXPECT_EQ(p.iterations, 7);
  EXPECT_EQ(p.files, Files::per_worker);
  EXPECT_TRUE(p.sync_each);
  EXPECT_EQ(good("-r --route posix").op, Op::read);
  EXPECT_EQ(good("-c").access, Access::collective);
}

TEST(Parameters, OnlyAFileThatIsReadIsDropped) {
  EXPECT_EQ(good("--op read --route posix --regime dropped").regime, Regime::dropped);
  EXPECT_NE(refusal("--regime dropped").find("--op read"), std::string::npos);
}

TEST(Parameters, PosixCallsAreIndependentUnlessSaidOtherwise) {
  EXPECT_EQ(good("--route posix").access, Access::independent);
  EXPECT_NE(refusal("--route posix --access collective").find("POSIX"), std::string::npos);
}

TEST(Parameters, WorkersWithoutMpiAreTwoThreads) {
  EXPECT_EQ(good("", Workers::threads).threads, 2);
  EXPECT_EQ(good("").threads, 1);
  EXPECT_NE(refusal("--route mpi", Workers::threads).find("mpiexec"), std::string::npos);
}

TEST(Parameters, AStrategyIsAMethodWithItsFiles) {
  const Parameters p = good("--method S1A --syncsize 2MiB");
  EXPECT_EQ(p.strategy, "S1A");
  EXPECT_EQ(to_string(p.method), "individual + none + pwrite + every=2MiB + written");
  EXPECT_EQ(p.files, Files::per_worker);
  EXPECT_EQ(p.access, Access::independent);
  EXPECT_TRUE(p.policy_syncs);
  EXPECT_NE(refusal("--method S1A --files shared").find("per_worker"), std::string::npos);
  EXPECT_EQ(to_string(good("--method S1B --syncsize 1MiB").method),
            "individual + none + pwrite + coordinated=1MiB + written");
}

TEST(Parameters, ADesignatedWriterIsAStrategy) {
  const Parameters p = good("--method S2 --syncsize 1MiB");
  EXPECT_EQ(to_string(p.method), "designated_writer + messages + pwrite + every=1MiB + written");
  EXPECT_EQ(p.files, Files::shared);
  EXPECT_EQ(p.access, Access::collective);
  EXPECT_EQ(why_unavailable(*find_strategy("S2")), "");
}

TEST(Parameters, ADedicatedWriterIsAWorkerOfItsOwn) {
  const Parameters p = good("--method S3 --syncsize 1MiB");
  EXPECT_EQ(to_string(p.method), "dedicated_writer + messages + pwrite + every=1MiB + written");
  EXPECT_TRUE(p.dedicated);
  EXPECT_EQ(p.access, Access::collective);
  EXPECT_FALSE(good("--method dedicated_writer").dedicated) << "a thread of a worker";
  EXPECT_NE(refusal("--method S3 --access independent").find("S3"), std::string::npos);
}

TEST(Parameters, StrategiesWithDatatypesAndWithASyncThreadAreMethods) {
  EXPECT_EQ(to_string(good("--method S2DT").method),
            "designated_writer + messages(pack=datatype) + pwrite + none + written");
  const Parameters p = good("--method S3DT+mmap");
  EXPECT_EQ(to_string(p.method),
            "dedicated_writer + messages(pack=datatype) + mmap + none + written");
  EXPECT_TRUE(p.dedicated);
  EXPECT_EQ(to_string(good("--method S5 --syncsize 1MiB").method),
            "designated_writer + messages + pwrite + background=1MiB + written");
}

TEST(Parameters, AStrategyThatTheEngineLacksIsRefusedInItsWords) {
  for (const Strategy& s : strategies()) {
    if (why_unavailable(s).empty()) continue;
    const std::string why = refusal("--method " + std::string(s.name));
    EXPECT_NE(why.find("in this version"), std::string::npos) << why;
  }
}

TEST(Parameters, AnEngineMethodTakesItsOptions) {
  const Parameters p = good("--method two_phase --writers 3 --cycle 8MiB");
  EXPECT_EQ(p.method.parameters.writers, 3);
  EXPECT_EQ(p.method.parameters.cycle_bytes, 8 << 20);
  EXPECT_NE(refusal("--route posix --writers 3").find("--writers"), std::string::npos);
  EXPECT_NE(refusal("--cycle 100").find("4096"), std::string::npos);
}

TEST(Parameters, TheWordsOfOtherPapersMeanOurs) {
  EXPECT_EQ(to_string(good("--segment 2MB").pattern), "interleaved:2000000");
  EXPECT_NE(refusal("--segment 2MB --pattern contiguous").find("leave one out"), std::string::npos);
}

TEST(Parameters, WinsizeIsTheWindowOfAMechanismThatMaps) {
  EXPECT_EQ(read("--file f --method S1A+mmap --winsize 4MiB").parameters.method.window_bytes,
            int64_t{4} << 20);
}

TEST(Parameters, EveryRefusalNamesTheOptionAndTheValue) {
  for (const auto& [words, option, value] : std::vector<std::array<std::string, 3>>{
           {"--bufsize 4XB", "--bufsize", "4XB"},
           {"--bufsize 0", "--bufsize", "0"},
           {"--iters 0", "--iters", "0"},
           {"--iters many", "--iters", "many"},
           {"--threads 0", "--threads", "0"},
           {"--comptime -1", "--comptime", "-1"},
           {"--route posixx", "--route", "posixx"},
           {"--files mine", "--files", "mine"},
           {"--pattern spiral", "--pattern", "spiral"},
           {"--method two_fase", "--method", "two_fase"},
           {"--len 8", "--stride", "--len"},
           {"--len 64 --stride 8", "--len", "64"},
           {"--winsize 1MiB", "--winsize", "1MiB"},
           {"--hint cb_nodes --route mpi", "--hint", "cb_nodes"},
           {"--hint a=b", "--route mpi", "engine"},
           {"--bins 0.00001", "--bins", "0.00001"},
           {"--seed x", "--seed", "x"},
           {"--op read", "engine", "reads"},
           {"-w -r", "--write", "--read"},
           {"-r -Y --route posix", "--op read", "--sync-each"},
           {"--syncsize 1MiB -Y", "--syncsize", "--sync-each"},
       }) {
    const std::string text = refusal(words);
    EXPECT_NE(text.find(option), std::string::npos) << words << ": " << text;
    EXPECT_NE(text.find(value), std::string::npos) << words << ": " << text;
  }
  EXPECT_NE(read("--iters 3").text.find("--file"), std::string::npos);
  EXPECT_EQ(read("-o f --no-such-option").kind, Request::Kind::wrong);
}

TEST(Parameters, CheckOnlySaysWhatIsWrong) {
  const Request good = read("-o f --iters 3 --check");
  EXPECT_EQ(good.kind, Request::Kind::print);
  EXPECT_EQ(good.text, "");
  EXPECT_EQ(read("-o f --iters 0 --check").kind, Request::Kind::wrong);
}

TEST(Parameters, DescribeListsEveryOptionOfTheTable) {
  const auto j = nlohmann::json::parse(read("--describe").text);
  ASSERT_EQ(j["options"].size(), options().size());
  for (size_t i = 0; i < options().size(); ++i)
    EXPECT_EQ(j["options"][i]["name"], std::string(options()[i].name));
}

TEST(Parameters, ListNamesWhatTheEngineHas) {
  const auto j = nlohmann::json::parse(read("--list", Workers::threads).text);
  EXPECT_EQ(j["routes"].size(), 3u);
  EXPECT_FALSE(j["routes"][1]["available"].get<bool>());
  EXPECT_EQ(j["patterns"].size(), patterns().size());
  EXPECT_GE(j["algorithms"].size(), 3u);
  EXPECT_GE(j["mechanisms"].size(), 2u);
  EXPECT_EQ(j["strategies"][0]["name"], "S1A");
}

TEST(Parameters, HelpAndVersionArePrinted) {
  EXPECT_EQ(read("--help").kind, Request::Kind::print);
  EXPECT_NE(read("--help").text.find("--bufsize"), std::string::npos);
  EXPECT_NE(read("--version").text.find(PENSTOCK_VERSION), std::string::npos);
}

}  // namespace
}  // namespace penstock::measure::parameters_test
