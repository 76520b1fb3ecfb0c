#include "harness/device/inserted_delay.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

class InsertedDelayTest : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv("LAUNCHGAP_DELAY_NS");
    inserted_delay::steps = 0;
  }
};

TEST_F(InsertedDelayTest, MakesAsManyStepsAsItIsAsked) {
  for (std::uint64_t count = 0; count < 300; ++count)
    ASSERT_EQ(inserted_delay::run(count, 5), count + 5);
  EXPECT_EQ(inserted_delay::run(1'000'003, 0), 1'000'003u);
}

TEST_F(InsertedDelayTest, ProcessesInsertTheSame) {
  setenv("LAUNCHGAP_DELAY_NS", "40", 1);
  std::vector<std::uint64_t> steps;
  for (int process = 0; process < 9; ++process) {
    const auto delay = prepare_inserted_delay();
    ASSERT_TRUE(delay);
    steps.push_back(inserted_delay::steps);
  }
  std::ranges::sort(steps);
  // Two of nine may have met a CPU whose clock changed.
  EXPECT_LT(static_cast<double>(steps[7]), 1.1 * static_cast<double>(steps[1]));
}

TEST_F(InsertedDelayTest, NothingIsInsertedUnlessItIsAskedFor) {
  EXPECT_FALSE(prepare_inserted_delay());
  setenv("LAUNCHGAP_DELAY_NS", "0", 1);
  EXPECT_FALSE(prepare_inserted_delay());
  EXPECT_EQ(inserted_delay::steps, 0u);
  EXPECT_EQ(measured_delay_ns(), 0);
}

TEST_F(InsertedDelayTest, WhatIsNoDelayIsRefused) {
  for (const char* const text : {"-1", "soon", "1e10", "nan", "5ns"}) {
    setenv("LAUNCHGAP_DELAY_NS", text, 1);
    EXPECT_THROW(prepare_inserted_delay(), UsageError) << text;
  }
}

}  // namespace
}  // namespace launchgap
