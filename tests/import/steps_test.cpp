#include "harness/import/steps.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using testing::ElementsAre;

std::vector<std::uint64_t> numbers(const Job& job, const char* name) {
  std::vector<std::uint64_t> found;
  for (const Step& step : steps_of(job.process, name)) found.push_back(step.number);
  return found;
}

TEST(Steps, HaveTheNumbersOfTheirNames) {
  Job job = Job()
                .range(3000, 4000, "ProfilerStep#8")
                .range(1000, 2000, "ProfilerStep#7")
                .range(1, 9, "other");
  EXPECT_THAT(numbers(job, "ProfilerStep"), ElementsAre(7, 8));
}

TEST(Steps, AreCountedWhereTheirNamesHaveNone) {
  Job job = Job().range(3000, 4000, "step").range(1000, 2000, "step").range(5000, 6000, "step#99");
  EXPECT_THAT(numbers(job, "step"), ElementsAre(0, 1, 2))
      << "one without a number, and none counts";
  Job large = Job().range(1000, 2000, "step#99999999999999999999999");
  EXPECT_THAT(numbers(large, "step"), ElementsAre(0));
}

TEST(Steps, MayBeOperatorsWithPyTorchsNumber) {
  Job job = Job()
                .range(1000, 2000, "aten::linear, op_id = 12")
                .range(3000, 4000, "aten::linear, op_id = 19");
  job.range(5000, 6000, "aten::linear_backward, op_id = 20").range(7000, 8000, "aten::linear, x");
  EXPECT_THAT(numbers(job, "aten::linear"), ElementsAre(0, 1));
}

/// 20 steps of 50 launches, whose calls vary by 10 % within a step, and by so much between steps.
Job uneven(double between, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<> normal;
  Job job;
  std::int64_t at = 10'000'000'000;
  std::uint32_t id = 0;
  for (int step = 0; step < 20; ++step) {
    const double level = std::exp(between * normal(random));
    const std::int64_t begin = at;
    for (int i = 0; i < 50; ++i) {
      const auto ns = static_cast<std::int64_t>(5000 * level * std::exp(0.1 * normal(random)));
      job.call(at, at + ns, ++id);
      job.kernel(at + ns + 500, at + ns + 700, id);
      at += ns + 5000;
    }
    job.range(begin, at, "ProfilerStep");
  }
  return job;
}

StepVariation calls_of(const Job& job) {
  const auto steps = steps_of(job.process, "ProfilerStep");
  const auto found = step_variation(job.process, launches_of(job.process, 1), 0, steps, true);
  for (const StepVariation& own : found) {
    if (own.metric == "api_record_ns") return own;
  }
  ADD_FAILURE() << "none";
  return {};
}

TEST(StepVariation, TellsWithinAStepFromBetweenSteps) {
  const StepVariation found = calls_of(uneven(0.3, 5));
  EXPECT_EQ(found.case_name, "recorded/launch/stream:idle");
  EXPECT_EQ(found.steps, 20u);
  EXPECT_NEAR(found.within.value, 0.1, 0.01);
  EXPECT_NEAR(found.between.value, 0.3, 0.12);
  EXPECT_LT(found.between.low, 0.3);
  EXPECT_GT(found.between.high, 0.3);
}

TEST(StepVariation, LeavesOutWhatTookNoTime) {
  Job job = uneven(0.3, 5);
  for (std::size_t i = 0; i < 1000; i += 50)
    job.process.trace.calls[i].end_ns = job.process.trace.calls[i].begin_ns;
  EXPECT_NEAR(calls_of(job).within.value, 0.1, 0.01) << "a logarithm has no 0";
}

TEST(StepVariation, FindsNoneBetweenStepsThatAreAlike) {
  int excluded = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    excluded += calls_of(uneven(0, seed)).between.low > 0.005 ? 1 : 0;
  EXPECT_LE(excluded, 8) << "the interval excludes 0 in 1 of 40 of such";
}

TEST(StepVariation, IsOfLaunchesThatBeginInAStepOnThisGpu) {
  Job job;
  std::uint32_t id = 0;
  const auto launch = [&](std::int64_t at, std::int64_t ns, const Stream& stream) {
    ++id;
    job.call(at, at + ns, id).kernel(at + ns + 10, at + ns + 20, id, stream);
  };
  for (std::int64_t step = 1; step <= 4; ++step) {
    const std::int64_t begin = 1'000'000 * step;
    job.range(begin, begin + 500'000, "step");
    for (const std::int64_t after : {0, 100'000, 200'000, 499'999})
      launch(begin + after, 1'000 + after % 7 + 10 * step, kStream);
    launch(begin + 500'000, 90'000, kStream);          // after it
    launch(begin + 300'000, 9'000, kOtherGpu);         // elsewhere
    job.call(begin + 330'000, begin + 340'000, ++id);  // lost
    job.call(begin + 350'000, begin + 390'000, ++id, activity::Purpose::launch_graph);
    job.kernel(begin + 391'000, begin + 392'000, id, kStream);
  }
  launch(900'000, 80'000, kStream);  // before all
  const auto steps = steps_of(job.process, "step");
  const auto launches = launches_of(job.process, 0);
  const auto found = step_variation(job.process, launches, 0, steps, true);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].metric, "api_record_ns");
  EXPECT_EQ(found[1].metric, "launch_ns");
  for (const StepVariation& own : found) {
    EXPECT_EQ(own.case_name, "recorded/launch/stream:idle");
    EXPECT_EQ(own.steps, 4u);
    EXPECT_LT(own.within.value, 0.01);
    EXPECT_GT(own.within.value, 0);
  }
  const auto disagree = step_variation(job.process, launches, 0, steps, false);
  ASSERT_EQ(disagree.size(), 1u);
  EXPECT_EQ(disagree[0].case_name, "recorded/launch/stream:unknown");
}

TEST(Steps, HaveNumbersAndTimesThatCanBe) {
  Job job = Job().range(0, 900, "step#1").range(500, 500, "step#2").range(500, 501, "step#3");
  job.range(400, 900, "step#4").range(1, 2, "step#").range(10, 20, "step#18446744073709551615");
  EXPECT_THAT(numbers(job, "step"), ElementsAre(18446744073709551615u, 4, 3));
}

}  // namespace
}  // namespace launchgap::recording
