#include "harness/doctor/version.h"

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap::doctor {
namespace {

Version version(const char* text) {
  return *Version::parse(text);
}

TEST(Version, IsComparedNumberByNumber) {
  EXPECT_LT(version("9.2"), version("10.0"));
  EXPECT_LT(version("450.51.06"), version("450.80.02"));
  EXPECT_LT(version("2.9"), version("2.10"));
  EXPECT_EQ(version("12.0"), version("12"));
  EXPECT_EQ(version("470.42.01"), version("470.42.1"));
}

TEST(Version, KeepsItsText) {
  EXPECT_EQ(version("450.80.02").text(), "450.80.02");
  EXPECT_EQ(version("13.0.1").prefix(2), "13.0");
  EXPECT_EQ(version("13").prefix(2), "13.0");
}

TEST(Version, KnowsItsSeries) {
  EXPECT_TRUE(version("11.2.1").in_series(version("11.2")));
  EXPECT_TRUE(version("11.2").in_series(version("11.2")));
  EXPECT_FALSE(version("11.20").in_series(version("11.2")));
  EXPECT_FALSE(version("1.13").in_series(version("1.1")));
}

TEST(Version, RefusesWhatIsNoVersion) {
  for (const char* text :
       {"", ".", "1.", ".1", "1..2", "1.2a", "-1", "1 2", "1.1234567890", "v1"}) {
    EXPECT_FALSE(Version::parse(text)) << text;
    EXPECT_THROW(Version::require(text, "--cuda"), UsageError) << text;
  }
}

}  // namespace
}  // namespace launchgap::doctor
