#include "engine/method.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/nearest.hpp"

namespace penstock::engine {
namespace {

std::string canonical(std::string_view text) {
  const auto m = parse_method(text);
  return m ? to_string(*m) : m.error().message();
}

std::string message(std::string_view text) {
  const auto m = parse_method(text);
  return m ? "accepted" : m.error().message();
}

TEST(Method, TheDefaultIsSpelledOut) {
  EXPECT_EQ(to_string(default_method()), "auto + messages + pwrite + none + written");
}

TEST(Method, TrailingChoicesMayBeLeftOut) {
  EXPECT_EQ(canonical("auto"), to_string(default_method()));
  EXPECT_EQ(canonical("two_phase"), "two_phase + messages + pwrite + none + written");
  EXPECT_EQ(canonical("two_phase + messages + null"),
            "two_phase + messages + null + none + written");
  EXPECT_EQ(canonical("individual"), "individual + none + pwrite + none + written");
}

TEST(Method, OptionsAreReadWithOrWithoutSpaces) {
  const char* expected = "two_phase(writers=4, cycle=16MiB) + messages + pwrite + end + written";
  EXPECT_EQ(canonical("two_phase(writers=4,cycle=16MiB)+messages+pwrite+end+written"), expected);
  EXPECT_EQ(canonical("  two_phase ( cycle = 16777216 , writers = 4 )+messages + pwrite + end"),
            expected);
  EXPECT_EQ(canonical("two_phase()"), "two_phase + messages + pwrite + none + written");
}

TEST(Method, ValuesArriveInTheParameters) {
  const auto m = parse_method("two_phase(writers=3, cycle=64KiB)");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->algorithm, plan::find_algorithm("two_phase"));
  EXPECT_EQ(m->parameters.writers, 3);
  EXPECT_EQ(m->parameters.cycle_bytes, 65536);
}

TEST(Method, EveryCombinationThatParsesIsReadBackFromItsCanonicalForm) {
  int parsed = 0;
  for (const auto* a : plan::algorithms())
    for (const auto* m : io::mechanisms())
      for (const auto* s : io::sync_policies()) {
        const std::string text = std::string(a->name) + (a->exchanges ? "+messages+" : "+none+") +
                                 std::string(m->name) + "+" + std::string(s->name) +
                                 (s->takes_bytes ? "=64KiB" : "");
        const auto method = parse_method(text);
        if (!method) continue;  // illegal pairs have their own tests
        ++parsed;
        EXPECT_EQ(canonical(to_string(*method)), to_string(*method));
      }
  EXPECT_GE(parsed, 16);
}

TEST(Method, ASyncThatTakesBytesIsReadInBothSpellings) {
  const char* expected = "individual + none + pwrite + every=4MiB + written";
  EXPECT_EQ(canonical("individual + none + pwrite + every=4MiB"), expected);
  EXPECT_EQ(canonical("individual+none+pwrite+every = 4194304+written"), expected);
  EXPECT_EQ(canonical("individual + none + pwrite + every(bytes=4MiB) + written"), expected);
  EXPECT_EQ(parse_method("auto+messages+pwrite+coordinated=1MB")->sync_bytes, 1000000);
  EXPECT_EQ(default_method().sync_bytes, 0);
}

TEST(Method, ASyncSaysWhatIsWrongWithItsBytes) {
  const auto sync = [](const std::string& text) { return message("auto+messages+pwrite+" + text); };
  EXPECT_EQ(sync("every"), "method: sync every needs its bytes, for example every=4MiB");
  EXPECT_EQ(sync("coordinated()"),
            "method: sync coordinated needs its bytes, for example coordinated=4MiB");
  EXPECT_EQ(sync("every=0"), "method: the bytes of a sync must be at least 1, got 0");
  EXPECT_NE(sync("every=soon").find("soon"), std::string::npos);
  EXPECT_NE(sync("every(byte=1MiB)").find("did you mean \"bytes\"?"), std::string::npos);
  EXPECT_EQ(sync("every(bytes=1MiB, bytes=2MiB)"), "method: bytes is given twice");
  EXPECT_EQ(sync("none=4MiB"), "method: sync none takes no value, got \"4MiB\"");
  EXPECT_EQ(message("two_phase=4"), "method: algorithm two_phase takes no value, got \"4\"");
  EXPECT_EQ(message("auto+messages=4"), "method: exchange messages takes no value, got \"4\"");
}

TEST(Method, ChangedAfterwardsItIsCheckedForBytesThatItsSyncDoesNotTake) {
  Method m = default_method();
  EXPECT_TRUE(check(m));
  m.sync_bytes = 4096;
  EXPECT_FALSE(check(m));
  m.sync = io::find_sync_policy("every");
  EXPECT_TRUE(check(m));
  m.sync_bytes = 0;
  EXPECT_FALSE(check(m));
}

TEST(Method, AMisspeltWordIsNamedWithItsNeighbour) {
  EXPECT_NE(message("two_fase")
                .find("algorithm \"two_fase\" is not known; did you mean "
                      "\"two_phase\"?"),
            std::string::npos);
  EXPECT_NE(message("auto+mesages").find("did you mean \"messages\"?"), std::string::npos);
  EXPECT_NE(message("auto+messages+pwrit").find("did you mean \"pwrite\"?"), std::string::npos);
  EXPECT_NE(message("two_phase(writer=3)").find("did you mean \"writers\"?"), std::string::npos);
  EXPECT_NE(message("auto+messages+pwrite+edn").find("did you mean \"end\"?"), std::string::npos);
}

TEST(Method, WordsAreCaseSensitive) { EXPECT_NE(message("Two_Phase"), "accepted"); }

TEST(Method, WhatTheDesignHasAndThisVersionLacksIsUnsupportedNotUnknown) {
  for (const char* text :
       {"cyclic", "dynamic_segmentation(writers=4, cycle=16MiB)", "auto + shm", "auto+node_leaders",
        "auto + messages + uring(direct, depth=8)", "auto+messages+mmap",
        "auto+messages+pwrite+stream=4MiB", "auto+messages+pwrite+pulse(bytes=1MiB)",
        "auto+messages+pwrite+none+staged(limit=1MiB)", "auto+messages(pack=copy)",
        "auto+messages+pwrite(direct)"}) {
    const auto m = parse_method(text);
    ASSERT_FALSE(m) << text;
    EXPECT_EQ(m.error().error_class, ErrorClass::unsupported) << text;
    EXPECT_NE(m.error().message().find("in this version"), std::string::npos) << text;
  }
}

TEST(Method, IllegalCombinationsSayWhy) {
  EXPECT_NE(message("two_phase + none").find("sends bytes between ranks; use messages"),
            std::string::npos);
  EXPECT_NE(message("auto + none").find("auto may choose one"), std::string::npos);
  EXPECT_NE(message("individual(writers=2)").find("option of individual"), std::string::npos);
}

TEST(Method, LimitsAreNamedWithTheValue) {
  EXPECT_EQ(message("two_phase(cycle=1000)"),
            "method: cycle must be a multiple of 4096 bytes between 4KiB and 1GiB, got 1000");
  EXPECT_NE(message("two_phase(cycle=2GiB)").find("got 2147483648"), std::string::npos);
  EXPECT_NE(message("two_phase(cycle=0)"), "accepted");
  EXPECT_NE(message("two_phase(writers=-1)").find("between 0 and 1048576, got -1"),
            std::string::npos);
  EXPECT_NE(message("two_phase(writers=1048577)").find("got 1048577"), std::string::npos);
  EXPECT_EQ(message("two_phase(writers=1048576)"), "accepted");
  EXPECT_NE(message("two_phase(writers=two)").find("must be an integer, got \"two\""),
            std::string::npos);
}

TEST(Method, BrokenTextIsRefused) {
  for (const char* text :
       {"", " ", "+", "auto+", "auto++pwrite", "two_phase(", "two_phase)", "two_phase(writers=1",
        "two_phase(writers)", "two_phase(,)", "two_phase(writers=1,writers=2)", "off", "observe",
        "(writers=1)", "auto+messages+pwrite+none+written+more", "two_phase(writers=1)x"})
    EXPECT_FALSE(parse_method(text)) << text;
  EXPECT_FALSE(parse_method(std::string(1 << 20, 'a')));
}

TEST(Method, MechanismsOfWholeBlocksNeedAnAlgorithmThatOwnsThem) {
  io::Mechanism direct = *io::find_mechanism("pwrite");
  direct.name = "direct";
  direct.alignment_bytes = 4096;
  Method m = default_method();
  m.mechanism = &direct;
  for (const char* name : {"individual", "two_phase"}) {
    m.algorithm = plan::find_algorithm(name);
    EXPECT_EQ(check(m).has_value(), m.algorithm->owns_blocks) << name;
  }
  m.algorithm = nullptr;  // auto may choose individual
  EXPECT_NE(check(m).error().message().find("owns whole blocks"), std::string::npos);
}

TEST(Method, AMechanismThatThisMachineLacksSaysWhy) {
  io::Mechanism absent = *io::find_mechanism("pwrite");
  absent.unavailable = [] { return std::string("disabled by a test"); };
  Method m = default_method();
  m.mechanism = &absent;
  const auto legal = check(m);
  ASSERT_FALSE(legal);
  EXPECT_EQ(legal.error().error_class, ErrorClass::unsupported);
  EXPECT_NE(legal.error().message().find("disabled by a test"), std::string::npos);
}

RC_GTEST_PROP(Method, NoTextCrashesTheParser, (const std::string& text)) {
  if (const auto m = parse_method(text)) RC_ASSERT(parse_method(to_string(*m)).has_value());
}

TEST(Nearest, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest("writrs", {"writers", "cycle"}), "writers");
  EXPECT_EQ(nearest("zzzzzz", {"writers", "cycle"}), "");
  EXPECT_EQ(nearest("", {"writers"}), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'w'), {"writers"}), "");
}

TEST(Nearest, MessagesNeverPrintControlCharacters) {
  EXPECT_EQ(quote("a\n\x1b[31m"), "\"a??[31m\"");
}

}  // namespace
}  // namespace penstock::engine
