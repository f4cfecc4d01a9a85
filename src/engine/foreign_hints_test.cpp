// What hints of MPI and ROMIO do to a configuration, and what is told back.
#include "engine/foreign_hints.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "engine/method.hpp"

namespace penstock::engine::foreign_hints_test {
namespace {

Config hinted(const HintValues& given, const char* method = "auto") {
  Config config;
  config.method = *parse_method(method);
  apply_foreign_hints(given, config);
  return config;
}

std::string method_of(const HintValues& given, const char* method = "auto") {
  const Config config = hinted(given, method);
  EXPECT_TRUE(config.ignored_hints.empty());
  return to_string(config.method);
}

std::string ignored(const HintValues& given, const char* method = "auto") {
  const Config config = hinted(given, method);
  EXPECT_EQ(to_string(config.method), to_string(*parse_method(method))) << "it was not ignored";
  EXPECT_EQ(config.striping_unit_bytes, 0);
  if (config.ignored_hints.size() != 1) return "not noted once";
  return config.ignored_hints.front();
}

bool says(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(ForeignHints, FillWhatIsOpen) {
  EXPECT_EQ(method_of({{"cb_nodes", "3"}, {"cb_buffer_size", "65536"}}),
            "auto(writers=3, cycle=64KiB) + shm + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(method_of({{"cb_nodes", "3"}, {"cb_buffer_size", "65536"}}, "cyclic(stripe=1MiB)"),
            "cyclic(writers=3, stripe=1MiB, cycle=64KiB) + shm + pwrite(direct=cold) + "
            "anticipate=1MiB + written");
  EXPECT_EQ(method_of({}), to_string(default_method()));
}

TEST(ForeignHints, NeverMoveWhatIsConfigured) {
  const char* method =
      "two_phase(writers=2, cycle=1MiB) + shm + pwrite(direct=cold) + anticipate=1MiB + written";
  const HintValues all{{"cb_nodes", "7"},
                       {"cb_buffer_size", "65536"},
                       {"romio_cb_write", "disable"},
                       {"striping_factor", "5"}};
  EXPECT_EQ(method_of(all, method), method);
  EXPECT_EQ(hinted(all, method).striping_factor, 0);
}

TEST(ForeignHints, DoNotSayHowManyWhereTheTeamIsToDecide) {
  Config config;
  config.given = {{"writers", "0", "--writers", Layer::option}};
  apply_foreign_hints({{"cb_nodes", "3"}}, config);
  EXPECT_EQ(config.method.parameters.writers, 0);
}

TEST(ForeignHints, LeaveAMethodThatIsSpelledAsItIs) {
  const Method asked = hinted({{"romio_cb_write", "disable"}}, "auto + messages").method;
  EXPECT_EQ(asked.exchange, parse_method(to_string(asked))->exchange);
}

TEST(ForeignHints, BufferSizesComeInPagesWithinTheLimits) {
  const auto cycle = [](const char* value) {
    return hinted({{"cb_buffer_size", value}}).method.parameters.cycle_bytes;
  };
  EXPECT_EQ(cycle("1"), 4096);
  EXPECT_EQ(cycle("10000"), 8192);
  EXPECT_EQ(cycle("16777216"), 1 << 24);
  EXPECT_EQ(cycle("9000000000000"), plan::kMaxCycleBytes);
}

TEST(ForeignHints, CollectiveBufferingChoosesTheAlgorithm) {
  const auto chosen = [](const char* value) { return method_of({{"romio_cb_write", value}}); };
  EXPECT_EQ(chosen("enable"), "two_phase + shm + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(chosen("disable"),
            "individual + none + pwrite(direct=cold) + anticipate=1MiB + written");
  EXPECT_EQ(chosen("DISABLE"), chosen("disable"));
  EXPECT_EQ(chosen("automatic"), to_string(default_method()));
  // Without collective buffering there are no aggregators to count.
  EXPECT_EQ(method_of({{"romio_cb_write", "disable"}, {"cb_nodes", "2"}}), chosen("disable"));
}

TEST(ForeignHints, AConfiguredNumberOfWritersIsNotSwitchedOff) {
  EXPECT_TRUE(says(ignored({{"romio_cb_write", "disable"}}, "auto(writers=2)"),
                   "individual has no option writers, got 2"));
}

TEST(ForeignHints, AsManyWritersAsDevicesWhereNobodySaysHowMany) {
  const Config config = hinted({{"striping_factor", "5"}});
  EXPECT_EQ(config.method.parameters.writers, 5);
  EXPECT_EQ(config.striping_factor, 5);
  const Config both = hinted({{"striping_factor", "5"}, {"cb_nodes", "2"}});
  EXPECT_EQ(both.method.parameters.writers, 2);
  EXPECT_EQ(both.striping_factor, 0);
  EXPECT_EQ(hinted({{"striping_factor", "5"}}, "individual").striping_factor, 0);
}

TEST(ForeignHints, WhatMeansTheFileSystemsOwnAsksForNothing) {
  for (const char* own : {"0", "-1"})
    for (const char* key : {"striping_unit", "striping_factor"}) {
      const Config config = hinted({{key, own}});
      EXPECT_TRUE(config.ignored_hints.empty()) << key << " " << own;
      EXPECT_EQ(config.striping_unit_bytes, 0);
      EXPECT_EQ(to_string(config.method), to_string(default_method()));
    }
}

TEST(ForeignHints, AValueThatIsNotValidIsIgnoredAndNoted) {
  EXPECT_EQ(ignored({{"cb_nodes", "many"}}),
            "hint cb_nodes=\"many\" is ignored: it must be a number from 1 to 1048576");
  EXPECT_TRUE(says(ignored({{"cb_nodes", "0"}}), "cb_nodes=\"0\" is ignored"));
  EXPECT_TRUE(says(ignored({{"cb_nodes", "1048577"}}), "from 1 to 1048576"));
  EXPECT_TRUE(says(ignored({{"cb_buffer_size", "-5"}}), "it must be a number from 1 on"));
  EXPECT_TRUE(says(ignored({{"romio_cb_write", "perhaps"}}), "enable, disable or automatic"));
  EXPECT_TRUE(says(ignored({{"striping_unit", "2GiB"}}), "from 1 to 1073741824"));
  EXPECT_TRUE(says(ignored({{"striping_factor", "two"}}), "striping_factor=\"two\""));
  // Notes travel as lines.
  EXPECT_FALSE(says(ignored({{"cb_nodes", "a\nD1 b"}}), "\n"));
}

TEST(ForeignHints, AreAllAskedFor) {
  for (const char* key :
       {"cb_nodes", "cb_buffer_size", "romio_cb_write", "striping_unit", "striping_factor"}) {
    const auto keys = foreign_hints();
    EXPECT_NE(std::ranges::find(keys, std::string_view(key)), keys.end()) << key;
  }
}

// --- The way back ---

using layout::Geometry;
const plan::Team kTeam{8, 2, 2};

TEST(HintsInEffect, AreThoseOfTheDefault) {
  EXPECT_EQ(hints_in_effect(hinted({}), kTeam, {}), (HintValues{{"cb_nodes", "4"},
                                                                {"cb_buffer_size", "16777216"},
                                                                {"romio_cb_write", "automatic"}}));
}

TEST(HintsInEffect, AreWhatWasAskedForAsFarAsItCanBe) {
  const HintValues given{
      {"cb_nodes", "100"}, {"cb_buffer_size", "10000"}, {"romio_cb_write", "enable"}};
  EXPECT_EQ(
      hints_in_effect(hinted(given), kTeam, {}),
      (HintValues{{"cb_nodes", "8"}, {"cb_buffer_size", "8192"}, {"romio_cb_write", "enable"}}));
  EXPECT_EQ(hints_in_effect(hinted({{"striping_factor", "3"}}), kTeam, {}).at("striping_factor"),
            "3");
}

TEST(HintsInEffect, AreTheConfigurationsWhereItDecides) {
  const auto told = hints_in_effect(hinted({{"cb_nodes", "2"}}, "individual"), kTeam, {});
  EXPECT_EQ(told.at("romio_cb_write"), "disable");
  EXPECT_EQ(told.at("cb_nodes"), "8");
  const auto one = hints_in_effect(hinted({}, "designated_writer(cycle=1MiB)"), kTeam, {});
  EXPECT_EQ(one.at("cb_nodes"), "1");
  EXPECT_EQ(one.at("cb_buffer_size"), "1048576");
  const auto dealt = hints_in_effect(hinted({}, "cyclic(stripe=64KiB)"), kTeam, {});
  EXPECT_EQ(dealt.at("cb_buffer_size"), "65536");
  const auto groups =
      hints_in_effect(hinted({}, "dynamic_segmentation(writers=2, cycle=1MiB)"), kTeam, {});
  EXPECT_EQ(groups.at("cb_nodes"), "2");
  EXPECT_EQ(groups.at("cb_buffer_size"), "1048576");
}

// Pages that one node fills in place are small; messages, several nodes and what collects scattered
// bytes keep to the algorithm's own buffer.
TEST(HintsInEffect, TellTheBufferThatSuitsTheExchange) {
  const plan::Team one_node{8, 1, 2};
  const auto buffer = [](const char* method, const plan::Team& team) {
    return hints_in_effect(hinted({}, method), team, {}).at("cb_buffer_size");
  };
  for (const char* method : {"auto + shm", "two_phase + shm", "designated_writer + shm"}) {
    EXPECT_EQ(buffer(method, one_node), "1048576") << method;
    EXPECT_EQ(buffer(method, kTeam), "16777216") << method;
  }
  EXPECT_EQ(buffer("two_phase + messages", one_node), "16777216");
  EXPECT_EQ(buffer("two_phase(cycle=4MiB) + shm", one_node), "4194304");
  for (const char* method : {"dynamic_segmentation + shm", "static_segmentation + messages"})
    EXPECT_EQ(buffer(method, one_node), "16777216") << method;
}

// A writer that collects for many ranks has a buffer of 1 MiB for each of them.
TEST(HintsInEffect, TellTheBufferThatGrowsWithTheGroup) {
  const plan::Team many{96, 1, 4};
  for (const char* method : {"dynamic_segmentation", "static_segmentation"}) {
    const auto told = hints_in_effect(hinted({}, method), many, {});
    EXPECT_EQ(told.at("cb_nodes"), "4") << method;
    EXPECT_EQ(told.at("cb_buffer_size"), std::to_string(24 << 20)) << method;
  }
  const auto asked = hints_in_effect(hinted({}, "static_segmentation(cycle=2MiB)"), many, {});
  EXPECT_EQ(asked.at("cb_buffer_size"), "2097152");
}

TEST(HintsInEffect, TellTheStripesThatAreCutAt) {
  Geometry striped;
  striped.stripe_bytes = 100000;  // cut at whole pages
  EXPECT_EQ(hints_in_effect(hinted({}), kTeam, striped).at("striping_unit"), "102400");
  EXPECT_EQ(hints_in_effect(hinted({}), kTeam, {}).count("striping_unit"), 0u);
}

// Two nodes of a network file system: ranks may not write anywhere, whatever the method says.
TEST(HintsInEffect, KnowThatAMethodDoesNotHoldEverywhere) {
  Geometry shared;
  shared.sharing = layout::Sharing::unit_per_node;
  const auto told = hints_in_effect(hinted({}, "individual"), kTeam, shared);
  EXPECT_EQ(told.at("romio_cb_write"), "automatic");
  EXPECT_EQ(told.at("cb_nodes"), "4");
}

// And on NFS a unit stays with one node from call to call: stripes are dealt out.
TEST(HintsInEffect, TellTheStripeWhereUnitsKeepTheirNode) {
  Geometry nfs;
  nfs.stripe_bytes = 1 << 20;
  nfs.sharing = layout::Sharing::unit_keeps_node;
  const auto told = hints_in_effect(hinted({}, "two_phase(cycle=4MiB)"), kTeam, nfs);
  EXPECT_EQ(told.at("romio_cb_write"), "automatic");
  EXPECT_EQ(told.at("cb_buffer_size"), "1048576");
  const auto kept = hints_in_effect(hinted({}, "designated_writer"), kTeam, nfs);
  EXPECT_EQ(kept.at("romio_cb_write"), "enable");
  EXPECT_EQ(kept.at("cb_nodes"), "1");
}

}  // namespace
}  // namespace penstock::engine::foreign_hints_test
