#include "harness/core/text.h"

#include <gtest/gtest.h>

namespace launchgap {
namespace {

TEST(Quantity, NoNumberIsWiderThanATable) {
  EXPECT_EQ(quantity(1e308, "ns"), "1.00e+299 s");
  EXPECT_EQ(quantity(1e308, "MB"), "1.00e+308 MB");
  EXPECT_EQ(percent_text(1e300), "1.00e+302 %");
  EXPECT_EQ(bytes_text(1e300), "1.00e+300 B");
}

TEST(Quantity, HasThreeDigitsAndAUnitThatFits) {
  EXPECT_EQ(quantity(0.4, "ns"), "0.400 ns");
  EXPECT_EQ(quantity(95, "ns"), "95 ns");
  EXPECT_EQ(quantity(0, "ns"), "0 ns");
  EXPECT_EQ(quantity(95.5, "ns"), "95.5 ns");
  EXPECT_EQ(quantity(9996, "ns"), "10.0 µs");
  EXPECT_EQ(quantity(123, "ns"), "123 ns");
  EXPECT_EQ(quantity(999.4, "ns"), "999 ns");
  EXPECT_EQ(quantity(999.6, "ns"), "1.00 µs");
  EXPECT_EQ(quantity(2310, "ns"), "2.31 µs");
  EXPECT_EQ(quantity(66.7e6, "ns"), "66.7 ms");
  EXPECT_EQ(quantity(5e9, "ns"), "5.00 s");
  EXPECT_EQ(quantity(5e12, "ns"), "5000 s");
  EXPECT_EQ(quantity(794.5, "TFLOP/s"), "794 TFLOP/s");
  EXPECT_EQ(quantity(0.0637, "TFLOP/s"), "63.7 GFLOP/s");
  EXPECT_EQ(quantity(std::nullopt, "ns"), "–");
}

TEST(BytesText, UsesBinaryUnits) {
  EXPECT_EQ(bytes_text(256), "256 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(80.0 * (1u << 30)), "80 GiB");
}

TEST(Table, AlignsByWhatIsSeenNotByBytes) {
  EXPECT_EQ(table({{"device", "µs"}, {"a", "–"}, {"b", "1.25"}}),
            "device    µs\n"
            "a          –\n"
            "b       1.25\n");
}

TEST(PercentText, HasTwoDigitsAndNoPowers) {
  EXPECT_EQ(percent_text(0.012), "1.2 %");
  EXPECT_EQ(percent_text(0.002), "0.2 %");
  EXPECT_EQ(percent_text(0.57), "57 %");
  EXPECT_EQ(percent_text(1.43), "143 %");
  EXPECT_EQ(percent_text(12.7), "1270 %");
  EXPECT_EQ(percent_text(0), "0 %");
  EXPECT_EQ(percent_text(-0.031), "-3.1 %");
}

TEST(DidYouMean, NamesWhatIsNearAndNothingElse) {
  const std::vector<std::string> commands = {"run", "report", "replay", "list"};
  EXPECT_EQ(did_you_mean("runn", commands), ": did you mean 'run'?");
  EXPECT_EQ(did_you_mean("LIST", commands), ": did you mean 'list'?");
  EXPECT_EQ(did_you_mean("rep", commands), ": did you mean 'report' or 'replay'?");
  EXPECT_EQ(did_you_mean("reprot", commands), ": did you mean 'report'?");
  EXPECT_EQ(did_you_mean("lsit", commands), ": did you mean 'list'?") << "a swap is one mistake";
  EXPECT_EQ(did_you_mean("measure", commands), "");
  EXPECT_EQ(did_you_mean("r", commands), "") << "one letter is no word";
  EXPECT_EQ(did_you_mean("", commands), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
  EXPECT_EQ(did_you_mean("case7", {"case1", "case2", "case3", "case4"}),
            ": did you mean 'case1', 'case2' or 'case3'?");
}

TEST(DidYouMean, TakesNoTimeForWhatIsEndless) {
  const std::string endless(1'000'000, 'x');
  EXPECT_EQ(by_nearness(endless, {"run", endless}).front().name, endless);
}

TEST(UuidText, OfZerosIsOneButARecordingHasNoneThen) {
  const std::string zeros(kUuidBytes, '\0'), bytes = "\x01\x23\x45\x67\x89\xab\xcd\xef 12345\xff\n";
  EXPECT_EQ(uuid_text(std::span<const char, kUuidBytes>(zeros.data(), kUuidBytes)),
            "00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(recorded_uuid_text(zeros), "");
  EXPECT_EQ(recorded_uuid_text(bytes), "01234567-89ab-cdef-2031-32333435ff0a");
  EXPECT_EQ(recorded_uuid_text(bytes.substr(1)), "") << "of another number of bytes";
}

TEST(DurationText, HasNoDigitsThatSayNothing) {
  EXPECT_EQ(duration_text(20'000), "20 µs");
  EXPECT_EQ(duration_text(2'500'000), "2.5 ms");
  EXPECT_EQ(duration_text(40), "40 ns");
}

}  // namespace
}  // namespace launchgap
