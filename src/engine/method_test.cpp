#include "engine/method.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/units.hpp"
#include "engine/method_product.hpp"
#include "engine/nearest.hpp"

namespace penstock::engine::method_test {
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
  EXPECT_EQ(to_string(default_method()),
            "auto + shm + pwrite(direct=cold) + anticipate=1MiB + written");
}

TEST(Method, TrailingChoicesMayBeLeftOut) {
  EXPECT_EQ(canonical("auto"), to_string(default_method()));
  EXPECT_EQ(canonical("two_phase"),
            "two_phase + shm + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(canonical("two_phase + messages + null"),
            "two_phase + messages + null + anticipate=1MiB + written");
  EXPECT_EQ(canonical("auto + node_leaders"),
            "auto + node_leaders + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(canonical("individual"),
            "individual + none + pwrite(direct=cold) + anticipate=1MiB + written");
}

// It is not spelled, so a rank that is handed the spelling would not have it.
TEST(Method, AnExchangeOfWhatSendsNothingIsNone) {
  const Method asked = *parse_method("individual + messages(pack=datatype)");
  const Method handed_on = *parse_method(to_string(asked));
  EXPECT_EQ(asked.exchange, handed_on.exchange);
  EXPECT_EQ(asked.pack, handed_on.pack);
}

TEST(Method, OptionsAreReadWithOrWithoutSpaces) {
  const char* expected = "two_phase(writers=4, cycle=16MiB) + messages + pwrite + end + written";
  EXPECT_EQ(canonical("two_phase(writers=4,cycle=16MiB)+messages+pwrite+end+written"), expected);
  EXPECT_EQ(canonical("  two_phase ( cycle = 16777216 , writers = 4 )+messages + pwrite + end"),
            expected);
  EXPECT_EQ(canonical("two_phase()"),
            "two_phase + shm + pwrite(direct=cold) + anticipate=1MiB + written");
}

TEST(Method, ValuesArriveInTheParameters) {
  const auto m = parse_method("two_phase(writers=3, cycle=64KiB)");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->algorithm, plan::find_algorithm("two_phase"));
  EXPECT_EQ(m->parameters.writers, 3);
  EXPECT_EQ(m->parameters.cycle_bytes, 65536);
}

TEST(Method, AnAlgorithmHasItsOwnOptions) {
  EXPECT_EQ(canonical("cyclic(cycle=1MiB, stripe=4MiB, writers=3)"),
            "cyclic(writers=3, stripe=4MiB, cycle=1MiB) + shm + pwrite(direct=cold) + "
            "anticipate=1MiB + written");
  EXPECT_EQ(canonical("designated_writer(writer=5)"),
            "designated_writer(writer=5) + shm + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(parse_method("cyclic(stripe=64KiB)")->parameters.stripe_bytes, 65536);
  EXPECT_EQ(parse_method("designated_writer(writer=5)")->parameters.writer, 5);
  EXPECT_EQ(canonical("designated_writer(writer=0)"), canonical("designated_writer"));
}

TEST(Method, RanksThatWriteForThemselvesMayTakeTurns) {
  EXPECT_EQ(
      canonical("individual(cycle=1MiB, at_once=3)"),
      "individual(at_once=3, cycle=1MiB) + none + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(parse_method("individual(at_once=3)")->parameters.at_once, 3);
  EXPECT_EQ(canonical("individual(at_once=0)"), canonical("individual"));
  EXPECT_EQ(message("individual(at_once=-1)"),
            "method: at_once must be between 0 and 1048576, got -1");
  EXPECT_NE(message("individual(at_once=1048577)").find("got 1048577"), std::string::npos);
  EXPECT_NE(message("individual(at_once=two)").find("at_once must be an integer"),
            std::string::npos);
  EXPECT_NE(message("two_phase(at_once=2)").find("option of two_phase"), std::string::npos);
}

TEST(Method, ADedicatedWriterTakesWhatADesignatedOneDoes) {
  EXPECT_EQ(canonical("dedicated_writer(writer=2, cycle=1MiB) + shm"),
            "dedicated_writer(writer=2, cycle=1MiB) + shm + pwrite(direct=cold) + anticipate=1MiB "
            "+ written");
  EXPECT_NE(message("dedicated_writer(writers=2)").find("did you mean \"writer\"?"),
            std::string::npos);
}

TEST(Method, MessagesAreMadeOfCopiesOrOfDatatypes) {
  EXPECT_EQ(
      canonical("two_phase + messages(pack=datatype)"),
      "two_phase + messages(pack=datatype) + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(canonical("two_phase + messages(pack=copy)"), canonical("two_phase + messages"));
  EXPECT_EQ(parse_method("auto + messages(pack=datatype)")->pack, exec::Pack::datatype);
  EXPECT_NE(message("two_phase + messages(pack=datatypes)").find("did you mean \"datatype\"?"),
            std::string::npos);
  EXPECT_NE(message("two_phase + messages(pak=copy)").find("option of messages"),
            std::string::npos);
  EXPECT_NE(message("two_phase + messages(pack=copy, pack=copy)").find("twice"), std::string::npos);
  EXPECT_NE(message("two_phase + shm(pack=datatype)").find("no option \"pack\""),
            std::string::npos);
  EXPECT_NE(message("two_phase + node_leaders(pack=datatype)").find("no option \"pack\""),
            std::string::npos);
  Method m = *parse_method("two_phase + messages(pack=datatype)");
  m.exchange = exec::find_exchange("shm");
  EXPECT_NE(check(m).error().message().find("no option pack"), std::string::npos);
}

TEST(Method, AnOptionOfAnotherAlgorithmIsRefused) {
  EXPECT_NE(message("designated_writer(writers=2)").find("did you mean \"writer\"?"),
            std::string::npos);
  EXPECT_NE(message("two_phase(stripe=4MiB)").find("option of two_phase: \"stripe\""),
            std::string::npos);
  EXPECT_NE(message("auto(stripe=4MiB)").find("option of auto"), std::string::npos);
  EXPECT_EQ(message("cyclic(stripe=1000)"),
            "method: stripe must be a multiple of 4096 bytes between 4KiB and 1GiB, got 1000");
  EXPECT_EQ(message("designated_writer(writer=-1)"),
            "method: writer must be a rank, between 0 and 1048575, got -1");
  Method m = *parse_method("designated_writer");
  m.parameters.writers = 2;  // by --writers
  EXPECT_NE(check(m).error().message().find("designated_writer has no option writers"),
            std::string::npos);
}

// What docs/methods.md lists as refused, said once more: by the names of the choices.
bool goes_together(const Combination& c) {
  const std::string_view algorithm = std::string_view(c[0]).substr(0, c[0].find('('));
  const std::string_view mechanism = c[2];
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, algorithm) != names.end();
  };
  if (c[1] == "none" && algorithm != "individual") return false;
  if (algorithm == "write_behind" && c[4] == "written") return false;
  if (mechanism.starts_with("mmap"))
    return !is_one_of({"auto", "dynamic_segmentation", "static_segmentation"});
  if (mechanism.find("(direct") != mechanism.npos && mechanism != "pwrite(direct=cold)")
    return is_one_of(
        {"two_phase", "cyclic", "designated_writer", "dedicated_writer", "write_behind"});
  return true;
}

bool is_not_here(const Result<Method>& method) {
  return !method && method.error().error_class == ErrorClass::unsupported &&
         method.error().message().find("cannot be used here") != std::string::npos;
}

TEST(Method, OfAllCombinationsThoseAreRefusedThatDoNotGoTogether) {
  int accepted = 0;
  for (const Combination& choices : method_product()) {
    const std::string text = text_of(choices);
    const auto method = parse_method(text);
    if (goes_together(choices) && is_not_here(method)) continue;  // on this machine
    EXPECT_EQ(method.has_value(), goes_together(choices)) << text;
    if (!method) continue;
    ++accepted;
    EXPECT_EQ(canonical(to_string(*method)), to_string(*method));
  }
  EXPECT_GE(accepted, 1000);
}

TEST(Method, ASyncThatTakesBytesIsReadInBothSpellings) {
  const char* expected = "individual + none + pwrite + every=4MiB + written";
  EXPECT_EQ(canonical("individual + none + pwrite + every=4MiB"), expected);
  EXPECT_EQ(canonical("individual+none+pwrite+every = 4194304+written"), expected);
  EXPECT_EQ(canonical("individual + none + pwrite + every(bytes=4MiB) + written"), expected);
  EXPECT_EQ(parse_method("auto+messages+pwrite+coordinated=1MB")->sync_bytes, 1000000);
  EXPECT_EQ(canonical("auto+messages+pwrite+stream=4MiB"),
            "auto + messages + pwrite + stream=4MiB + written");
  EXPECT_EQ(canonical("individual+none+pwrite+background=4194304"),
            "individual + none + pwrite + background=4MiB + written");
  EXPECT_EQ(canonical("two_phase+messages+pwrite+pulse(bytes=3MiB)"),
            "two_phase + messages + pwrite + pulse=3MiB + written");
  EXPECT_EQ(default_method().sync_bytes, 1 << 20);
  EXPECT_EQ(parse_method("auto + shm + pwrite + none")->sync_bytes, 0);
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
  Method m = *parse_method("auto + shm + pwrite + none");
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

TEST(Method, AWordInTheWrongPlaceIsToldItsOwn) {
  const std::string order = "algorithm + exchange + mechanism + sync + return";
  for (const char* text : {"auto + pwrite", "auto + pwrte"})
    EXPECT_TRUE(message(text).ends_with("; mechanism pwrite has its place in " + order)) << text;
  EXPECT_TRUE(
      message("auto + shm + every=4MiB").ends_with("; sync every has its place in " + order));
  EXPECT_TRUE(message("auto + written").ends_with("; return written has its place in " + order));
  EXPECT_TRUE(
      message("auto + shm + staged").ends_with("; return staged has its place in " + order));
  EXPECT_TRUE(message("auto + shm + none").ends_with("; sync none has its place in " + order));
  EXPECT_TRUE(message("shm").ends_with("; exchange shm has its place in " + order));
  EXPECT_TRUE(message("auto + shm + pwrite + stream=2MiB + cycle=1MiB")
                  .ends_with("; cycle is an option of algorithms, as in individual(cycle=..)"));
  EXPECT_EQ(message("auto + nonsense").find("place"), std::string::npos);
}

TEST(Method, SegmentationTakesWritersAndCycle) {
  EXPECT_EQ(canonical("dynamic_segmentation(writers=4, cycle=16MiB)"),
            "dynamic_segmentation(writers=4, cycle=16MiB) + shm + pwrite(direct=cold) + "
            "anticipate=1MiB + written");
  EXPECT_EQ(canonical("static_segmentation + shm"),
            "static_segmentation + shm + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_NE(message("static_segmentation(stripe=1MiB)").find("option of static_segmentation"),
            std::string::npos);
  EXPECT_NE(message("dynamic_segmentation(writers=1) + messages + mmap").find("owns whole blocks"),
            std::string::npos);
}

TEST(Method, WordsAreCaseSensitive) { EXPECT_NE(message("Two_Phase"), "accepted"); }

TEST(Method, WhatTheDesignHasAndThisVersionLacksIsUnsupportedNotUnknown) {
  const auto m = parse_method("auto+shm(pack=copy)");
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().error_class, ErrorClass::unsupported);
  EXPECT_NE(m.error().message().find("in this version"), std::string::npos);
}

TEST(Method, WriteBehindIsShortForCyclicAndStaged) {
  const auto m = parse_method("write_behind");
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_EQ(m->algorithm, plan::find_algorithm("cyclic"));
  EXPECT_GT(m->staged_bytes.value_or(0), 0);
  EXPECT_EQ(m->write_behind, WriteBehindOptions());
  const std::string rest = " + shm + pwrite(direct=cold) + anticipate=1MiB + staged(limit=256MiB)";
  EXPECT_EQ(canonical("write_behind"), "write_behind(stages=2)" + rest);
  const std::string all =
      "write_behind(stages=1, page=64KiB, limit=2MiB, seconds=3, writers=2, cycle=1MiB)" + rest;
  EXPECT_EQ(canonical(all), all);
  EXPECT_EQ(parse_method(all)->write_behind, (WriteBehindOptions{1, 65536, 2 << 20, 3}));
  EXPECT_NE(message("write_behind(stages=3)").find("stages must be 1 or 2"), std::string::npos);
  EXPECT_NE(message("write_behind(page=1)").find("4KiB"), std::string::npos);
  EXPECT_NE(message("write_behind(pages=1)").find("did you mean \"page\""), std::string::npos);
  EXPECT_NE(message("write_behind(page=4KiB, page=8KiB)").find("given twice"), std::string::npos);
  EXPECT_NE(message("cyclic(page=4KiB)").find("option of cyclic"), std::string::npos);
  EXPECT_NE(message("write_behind+shm+pwrite+none+written").find("staged"), std::string::npos);
}

TEST(Method, StagedTakesALimitAndWrittenLeavesItOpen) {
  EXPECT_FALSE(default_method().staged_bytes);
  EXPECT_EQ(canonical("auto+messages+pwrite+none+staged"),
            "auto + messages + pwrite + none + staged(limit=256MiB)");
  EXPECT_EQ(canonical("auto+messages+pwrite+none+staged(limit=64MiB)"),
            "auto + messages + pwrite + none + staged(limit=64MiB)");
  EXPECT_EQ(parse_method("auto+messages+pwrite+none+staged(limit=0)")->staged_bytes, 0);
  const std::string before = "auto+messages+pwrite+none+staged";
  EXPECT_NE(message(before + "(limit=1)").find("must be 0 or between 4KiB"), std::string::npos);
  EXPECT_NE(message(before + "(limit=1MiB, limit=2MiB)").find("given twice"), std::string::npos);
  EXPECT_NE(message(before + "(limits=1MiB)").find("did you mean \"limit\"?"), std::string::npos);
  EXPECT_NE(message(before + "=4MiB").find("takes no value"), std::string::npos);
}

TEST(Method, IllegalCombinationsSayWhy) {
  EXPECT_NE(message("two_phase + none").find("sends bytes between ranks; use messages"),
            std::string::npos);
  EXPECT_NE(message("auto + none").find("auto may choose one"), std::string::npos);
  EXPECT_NE(message("individual(writers=2)").find("option of individual"), std::string::npos);
  EXPECT_NE(message("auto+messages+mmap").find("owns whole blocks"), std::string::npos);
  EXPECT_EQ(canonical("two_phase+messages+mmap"),
            "two_phase + messages + mmap + anticipate=1MiB + written");
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

TEST(Method, MechanismsOfWholeBlocksNeedAnAlgorithmThatKeepsPagesApart) {
  io::Mechanism direct = *io::find_mechanism("pwrite");
  direct.name = "direct";
  direct.alignment_bytes = 4096;
  Method m = default_method();
  m.mechanism = &direct;
  for (const plan::Algorithm* a : plan::algorithms()) {
    m.algorithm = a;
    EXPECT_EQ(check(m).has_value(), a->owns_blocks || a->name == "individual") << a->name;
  }
  m.algorithm = nullptr;  // auto may choose individual
  EXPECT_NE(check(m).error().message().find("owns whole blocks"), std::string::npos);
}

TEST(Method, OptionsOfAMechanismAreReadAndSpelledOut) {
  const char* expected = "two_phase + messages + linux_aio(direct, depth=16) + none + written";
  EXPECT_EQ(canonical("two_phase + messages + linux_aio(direct, depth=16) + none"), expected);
  EXPECT_EQ(canonical("two_phase+messages+linux_aio( depth = 16,direct )+none"), expected);
  EXPECT_EQ(canonical("two_phase + messages + pwrite(direct)"),
            "two_phase + messages + pwrite(direct) + anticipate=1MiB + written");
  EXPECT_EQ(canonical("individual + none + posix_aio(depth=2)"),
            "individual + none + posix_aio(depth=2) + anticipate=1MiB + written");
  EXPECT_EQ(canonical("auto + messages + posix_aio()"),
            "auto + messages + posix_aio + anticipate=1MiB + written");
  const auto m = parse_method(expected);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->direct, io::Direct::always);
  EXPECT_EQ(m->depth, 16);
  EXPECT_EQ(canonical("two_phase + shm + uring(depth=4, registered, direct)"),
            "two_phase + shm + uring(direct, registered, depth=4) + anticipate=1MiB + written");
  EXPECT_TRUE(parse_method("two_phase + shm + uring(registered)")->registered);
  EXPECT_EQ(canonical("two_phase + shm + mmap( window = file )"),
            "two_phase + shm + mmap(window=file) + anticipate=1MiB + written");
  EXPECT_EQ(parse_method("two_phase + shm + mmap(window=file)")->window_bytes, io::kWindowOfFile);
  EXPECT_EQ(canonical("individual + none + mmap(window=1MiB) + none"),
            "individual + none + mmap(window=1MiB) + none + written");
  EXPECT_NE(message("two_phase+messages+mmap(window=65537)").find("a multiple of 4096"),
            std::string::npos);
  EXPECT_EQ(canonical("individual + none + pwrite( direct = cold )"),
            "individual + none + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(parse_method("auto + shm + pwrite")->direct, io::Direct::never);
  EXPECT_EQ(default_method().window_bytes, io::kWindowOfCycle);
  EXPECT_FALSE(default_method().registered);
  EXPECT_EQ(default_method().direct, io::Direct::when_cold);
  EXPECT_EQ(default_method().depth, 0);
}

TEST(Method, EveryOptionThatAMechanismTakesIsReadBackFromItsCanonicalForm) {
  int parsed = 0;
  for (const auto* a : plan::algorithms())
    for (const auto* m : io::mechanisms()) {
      std::string options = m->takes_direct && a->owns_blocks ? "direct, " : "";
      if (m->takes_registered) options += "registered, ";
      if (m->takes_window) options += "window=file, ";
      if (m->default_depth > 0) options += "depth=3, ";
      if (!options.empty()) options.resize(options.size() - 2);
      const auto method =
          parse_method(std::string(a->name) + (a->exchanges ? "+messages+" : "+none+") +
                       std::string(m->name) + "(" + options + ")");
      if (!method) continue;  // absent from this machine, or illegal for another reason
      ++parsed;
      EXPECT_EQ(canonical(to_string(*method)), to_string(*method));
      EXPECT_EQ(method->depth, m->default_depth > 0 ? 3 : 0);
      EXPECT_EQ(method->registered, m->takes_registered);
      EXPECT_EQ(method->window_bytes == io::kWindowOfFile, m->takes_window);
    }
  EXPECT_GE(parsed, 6);
}

TEST(Method, AnOptionThatAMechanismDoesNotTakeIsNamed) {
  EXPECT_EQ(message("two_phase+messages+null(direct)"),
            "method: mechanism null takes no options, got \"direct\"; leave it out");
  EXPECT_EQ(message("two_phase+messages+pwrite(depth=8)"),
            "method: option of pwrite: \"depth\" is not known. Valid: direct");
  EXPECT_NE(message("two_phase+messages+linux_aio(dept=8)").find("did you mean \"depth\"?"),
            std::string::npos);
  EXPECT_EQ(message("two_phase+messages+pwrite(direct=yes)"),
            "method: direct takes no value, or cold, got \"yes\"");
  EXPECT_NE(message("two_phase+messages+uring(direct=cold)").find("direct=cold needs mechanism"),
            std::string::npos);
  EXPECT_EQ(message("two_phase+messages+pwrite(direct, direct)"), "method: direct is given twice");
  EXPECT_EQ(message("two_phase+messages+pwrite(registered)"),
            "method: option of pwrite: \"registered\" is not known. Valid: direct");
  EXPECT_EQ(
      message("two_phase+messages+mmap(window=cycle)"),
      "method: window must be file, or a multiple of 4096 bytes between 64KiB and 1024GiB, got "
      "\"cycle\"");
  EXPECT_EQ(message("two_phase+messages+mmap(window=file,window=file)"),
            "method: window is given twice");
  EXPECT_EQ(message("two_phase+messages+mmap(direct)"),
            "method: option of mmap: \"direct\" is not known. Valid: window");
  EXPECT_EQ(message("two_phase+messages+posix_aio(depth=2, depth=2)"),
            "method: depth is given twice");
  EXPECT_EQ(message("two_phase+messages+pwrite=4"),
            "method: mechanism pwrite takes no value, got \"4\"");
}

TEST(Method, DepthHasLimits) {
  for (const char* depth : {"0", "-1", "1025"})
    EXPECT_EQ(message("auto+messages+posix_aio(depth=" + std::string(depth) + ")"),
              "method: depth must be between 1 and 1024, got " + std::string(depth));
  EXPECT_EQ(message("auto+messages+posix_aio(depth=many)"),
            "method: depth must be an integer, got \"many\"");
  EXPECT_EQ(message("auto+messages+posix_aio(depth)"),
            "method: depth must be an integer, got \"\"");
  EXPECT_EQ(message("auto+messages+posix_aio(depth=1024)"), "accepted");
}

TEST(Method, DirectNeedsAnAlgorithmThatOwnsWholeBlocks) {
  EXPECT_EQ(
      message("auto+messages+pwrite(direct)"),
      "method: direct needs an algorithm that owns whole blocks, such as two_phase, got auto, "
      "which may choose one that does not");
  EXPECT_EQ(message("individual+none+posix_aio(direct)"),
            "method: direct needs an algorithm that owns whole blocks, such as two_phase, got "
            "individual, whose ranks may share one");
  Method m = *parse_method("two_phase + messages + pwrite(direct)");
  m.algorithm = nullptr;
  EXPECT_FALSE(check(m));
  m = default_method();
  m.depth = 4;  // pwrite takes none
  EXPECT_FALSE(check(m));
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
}  // namespace penstock::engine::method_test
