#include "tests/random.h"

#include <gtest/gtest.h>

namespace launchgap {
namespace {

TEST(Random, NumbersAreThoseOfTheStandardLibrary) {
  std::mt19937_64 own(7), of_std(7);
  Normal all;
  std::normal_distribution<double> all_of_std;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(normal(own), std::normal_distribution<double>()(of_std));
    EXPECT_EQ(all(own), all_of_std(of_std));
    EXPECT_EQ(uniform(own), std::uniform_real_distribution<double>()(of_std));
  }
}

}  // namespace
}  // namespace launchgap
