#include "harness/import/decimal.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace launchgap::recording {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMostNatural = std::numeric_limits<std::uint64_t>::max();

TEST(Decimal, MicrosecondsAreNanosecondsToTheLastDigit) {
  const struct {
    const char* text;
    std::int64_t nanoseconds;
  } cases[] = {
      {"0", 0},
      {"0.0", 0},
      {"7", 7000},
      {"1.5", 1500},
      {".5", 500},
      {"5.", 5000},
      {"007", 7000},
      {"+7", 7000},
      {"-7.25", -7250},
      {"0.001", 1},
      // Beyond 2^53 ns, where a double has steps of 256 ns and of 0.25 us.
      {"1712195495505543.201", 1'712'195'495'505'543'201},
      {"1712195495505543.202", 1'712'195'495'505'543'202},
      {"9007199254740.993", 9'007'199'254'740'993},
      {"9223372036854775.807", kMost},
      {"-9223372036854775.807", -kMost},
      // Powers of ten.
      {"1e3", 1'000'000},
      {"1E+3", 1'000'000},
      {"1.712195495505543201e15", 1'712'195'495'505'543'201},
      {"1500e-3", 1500},
      {"1e-3", 1},
      {"0e1000", 0},
      // More digits than are kept.
      {"1.00000000000000000000000000000000000000000000000000000001", 1000},
      {"0.00000000000000000000000000000000000000000000000000000001", 0},
  };
  for (const auto& [text, nanoseconds] : cases)
    EXPECT_EQ(nanoseconds_of_us(text), nanoseconds) << text;
}

TEST(Decimal, HalfANanosecondCountsAsOneAwayFromZero) {
  const struct {
    const char* text;
    std::int64_t nanoseconds;
  } cases[] = {
      {"0.0004", 0},
      {"0.00049999999999999999999999999999999999999999999999", 0},
      {"0.0005", 1},
      {"-0.0005", -1},
      {"0.00149999", 1},
      {"0.0015", 2},
      {"0.0025", 3},
      {"0.9996", 1000},
      {"9.9999", 10000},
      {"0.00005", 0},
      {"5e-4", 1},
      {"4e-4", 0},
      {"5e-5", 0},
  };
  for (const auto& [text, nanoseconds] : cases)
    EXPECT_EQ(nanoseconds_of_us(text), nanoseconds) << text;
}

TEST(Decimal, WholeNumbersMayBeWrittenWithAFraction) {
  EXPECT_EQ(integer_of("7"), 7);
  EXPECT_EQ(integer_of("7.0"), 7);
  EXPECT_EQ(integer_of("7e0"), 7);
  EXPECT_EQ(integer_of("700e-2"), 7);
  EXPECT_EQ(integer_of("-7.000"), -7);
  EXPECT_EQ(integer_of("9007199254740993"), 9'007'199'254'740'993) << "2^53 + 1";
  EXPECT_EQ(integer_of("7.5"), std::nullopt);
  EXPECT_EQ(integer_of("7.000000000000000000000000000000000000000000000000000000001"),
            std::nullopt);
  EXPECT_EQ(integer_of("0.00000000000000000000000000000000000000000001"), std::nullopt);
}

TEST(Decimal, DigitsThatAreNotKeptCountUnlessTheyAreZero) {
  const std::string zeros(39, '0');  // behind a digit as many as are kept
  EXPECT_EQ(integer_of("7." + zeros), 7);
  EXPECT_EQ(integer_of("7." + zeros + "00"), 7);
  EXPECT_EQ(integer_of("7." + zeros + "1"), std::nullopt);
  EXPECT_EQ(integer_of("7." + zeros + "10"), std::nullopt);
  EXPECT_EQ(integer_of("7." + zeros + "01"), std::nullopt);
}

TEST(Decimal, PowersOfTenReachTo1000) {
  for (const char* const zero : {"0e1000", "0e-1000", "0E+1000"}) EXPECT_EQ(integer_of(zero), 0);
  for (const char* const none : {"0e1001", "0e-1001", "0e99999999999999999999", "1e1000"})
    EXPECT_EQ(integer_of(none), std::nullopt) << none;
  EXPECT_EQ(natural_of("100000000000000000000e-1"), 10'000'000'000'000'000'000u) << "21 digits";
  EXPECT_EQ(natural_of("100000000000000000000"), std::nullopt);
}

TEST(Decimal, NaturalNumbersReachTo2To64) {
  EXPECT_EQ(natural_of("0"), 0u);
  EXPECT_EQ(natural_of("-0"), 0u);
  EXPECT_EQ(natural_of("9223372036854775808"), std::uint64_t{1} << 63);
  EXPECT_EQ(natural_of("18446744073709551615"), kMostNatural);
  EXPECT_EQ(natural_of("1.8446744073709551615e19"), kMostNatural);
  EXPECT_EQ(natural_of("-1"), std::nullopt);
}

TEST(Decimal, WhatDoesNotFitIsNothing) {
  for (const char* const text : {"9223372036854775.8075",
                                 "9223372036854775.808",
                                 "18446744073709551.6155",
                                 "-9223372036854775.808",
                                 "1e17",
                                 "1e999",
                                 "1e1001",
                                 "1e99999999999999999999",
                                 "99999999999999999999999999999999999999999999999999"}) {
    EXPECT_EQ(nanoseconds_of_us(text), std::nullopt) << text;
  }
  EXPECT_EQ(integer_of("9223372036854775807"), kMost);
  EXPECT_EQ(integer_of("9223372036854775808"), std::nullopt);
  EXPECT_EQ(natural_of("18446744073709551616"), std::nullopt);
}

TEST(Decimal, WhatIsNoNumberIsNothing) {
  for (const char* const text :
       {"",     " ",     "-",     "+",        ".",    "-.",   "e",    "e5", "1e",  "1e+",
        "1e-",  "1e+-5", "1e5.5", "1.2.3",    "1,5",  "1 2",  " 1",   "1 ", "--1", "+-1",
        "0x10", "1_0",   "NaN",   "Infinity", "-inf", "true", "null", "١"}) {
    EXPECT_EQ(nanoseconds_of_us(text), std::nullopt) << text;
    EXPECT_EQ(integer_of(text), std::nullopt) << text;
    EXPECT_EQ(natural_of(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace launchgap::recording
