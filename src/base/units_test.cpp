#include "base/units.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cfenv>

namespace penstock::units_test {
namespace {

int64_t parsed(std::string_view text) { return parse_size(text, "cycle").value_or(-1); }

TEST(Units, BinaryAndDecimalSuffixesDiffer) {
  EXPECT_EQ(parsed("4MiB"), 4 << 20);
  EXPECT_EQ(parsed("4MB"), 4'000'000);
  EXPECT_EQ(parsed("4kB"), 4'000);
  EXPECT_EQ(parsed("1GiB"), 1 << 30);
  EXPECT_EQ(parsed("2TiB"), int64_t{2} << 40);
}

TEST(Units, ABareNumberIsBytes) {
  EXPECT_EQ(parsed("4096"), 4096);
  EXPECT_EQ(parsed("4096B"), 4096);
  EXPECT_EQ(parsed("0"), 0);
  EXPECT_EQ(parsed("16 MiB"), 16 << 20);
}

TEST(Units, WhatIsNotASizeIsRefusedByName) {
  for (const char* text :
       {"", "MiB", "-1", "1.5MiB", "4mib", "4MiBs", "0x10", "4 M iB", "+4", " 4"}) {
    const auto r = parse_size(text, "cycle");
    ASSERT_FALSE(r) << text;
    EXPECT_EQ(r.error().error_class, ErrorClass::argument);
    EXPECT_NE(r.error().message().find("cycle must be a size"), std::string::npos);
  }
}

TEST(Units, OverflowIsRefusedNotWrapped) {
  EXPECT_EQ(parsed("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parsed("9223372036854775808"), -1);
  EXPECT_EQ(parsed("8388608TiB"), -1);
  EXPECT_EQ(parsed("8388607TiB"), int64_t{8388607} << 40);
}

TEST(Units, MessagesQuoteLittleOfLongInput) {
  const auto r = parse_size(std::string(1 << 20, 'x'), "cycle");
  ASSERT_FALSE(r);
  EXPECT_LT(r.error().message().size(), 200u);
}

RC_GTEST_PROP(Units, ParseReadsBackWhatFormatWrites, ()) {
  const auto unit = *rc::gen::element<int64_t>(1, 1000, kKiB, kMiB, kGiB);
  const auto bytes = unit * *rc::gen::inRange<int64_t>(0, 1 << 20);
  RC_ASSERT(parsed(format_size(bytes)) == bytes);
}

TEST(Units, FormatUsesASuffixOnlyWhenExact) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(65536), "64KiB");
  EXPECT_EQ(format_size(65537), "65537");
  EXPECT_EQ(format_size(kGiB), "1GiB");
}

TEST(Units, PeopleReadOneDecimal) {
  EXPECT_EQ(human_size(0), "0 B");
  EXPECT_EQ(human_size(1023), "1023 B");
  EXPECT_EQ(human_size(1024), "1.0 KiB");
  EXPECT_EQ(human_size(13325829734), "12.4 GiB");
  EXPECT_EQ(human_size((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human_size(INT64_MAX), "8.0 EiB");
}

TEST(Units, SizesAreTheSameWhateverTheRoundingMode) {
  std::fesetround(FE_UPWARD);
  const std::string text = human_size(8000);  // 7.8125 KiB
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(text, "7.8 KiB");
}

// What a message says may be shown where only UTF-8 is.
TEST(Quote, CutsNoCharacter) {
  std::string text = "x";
  for (int i = 0; i < 22; ++i) text += "\u00e9";
  EXPECT_EQ(quote(text), "\"" + text.substr(0, 39) + "...\"");
  EXPECT_EQ(quote("a\nb"), "\"a?b\"");
  EXPECT_EQ(quote(std::string(40, 'x')), "\"" + std::string(40, 'x') + "\"");
  EXPECT_EQ(quote(std::string(41, '\x80')), "\"...\"") << "no character at all";
}

}  // namespace
}  // namespace penstock::units_test
