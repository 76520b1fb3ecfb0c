#include "harness/device/inserted_delay.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

struct InsertedDelayTest : testing::Test {
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
  // A neighbour of this CPU may begin or end between two of nine: then nine others are asked.
  constexpr int kTries = 3;
  std::vector<std::uint64_t> steps;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    steps.clear();
    for (int process = 0; process < 9; ++process) {
      const auto delay = prepare_inserted_delay();
      ASSERT_TRUE(delay);
      steps.push_back(inserted_delay::steps);
    }
    std::ranges::sort(steps);
    if (10 * steps[7] < 11 * steps[1]) return;
  }
  FAIL() << testing::PrintToString(steps);
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
