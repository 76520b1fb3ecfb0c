#include "harness/core/text.h"

#include <gtest/gtest.h>

namespace launchgap {
namespace {

TEST(Quantity, HasThreeDigitsAndAUnitThatFits) {
  EXPECT_EQ(quantity(0.4, "ns"), "0.40 ns");
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

}  // namespace
}  // namespace launchgap
