#include "harness/run/planner.h"

#include <map>

#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "tests/device/a_device.h"

namespace launchgap {
namespace {

DeviceFacts host() {
  DeviceFacts facts = a_device("host-1", "", "host");
  facts.multiprocessors = 2;
  return facts;
}

DeviceFacts gpu(const char* uuid) {
  DeviceFacts facts = a_device(uuid, "");
  facts.compute_capability = "8.0";
  facts.multiprocessors = 108;
  return facts;
}

/// Runs by device, arm and process configuration.
std::map<std::tuple<std::string, Arm, std::string>, int> runs_of(const Plan& plan) {
  std::map<std::tuple<std::string, Arm, std::string>, int> runs;
  for (const Batch& batch : plan.batches) {
    for (const PlannedRun& run : batch) ++runs[{run.device, run.arm, run.process_config.text()}];
  }
  return runs;
}

TEST(Planner, MeasuresWhatShowsTheObserverEffectAtEachLevelAsOftenAsPlainly) {
  const Plan plan = plan_cases({gpu("GPU-1")}, {.filter = "^launch/null", .runs = 6});
  const auto runs = runs_of(plan);
  EXPECT_EQ(runs.at({"GPU-1", Arm::plain, "launch"}), 6);
  EXPECT_EQ(runs.at({"GPU-1", Arm::traced, "launch"}), 6);
  EXPECT_EQ(runs.at({"GPU-1", Arm::plain, "launch+trace_level=none"}), 6);
  for (const char* process_config :
       {"launch+trace_level=launches", "launch+trace_level=kernels", "launch+trace_level=all"})
    EXPECT_EQ(runs.at({"GPU-1", Arm::traced, process_config}), 6);
  EXPECT_EQ(runs.size(), 6u);
}

TEST(Planner, TracesOtherFamiliesAThirdAsOftenAndOnceAtLeast) {
  for (const auto& [replicates, traced] : {std::pair(1, 1), std::pair(3, 1), std::pair(9, 3)}) {
    const auto runs =
        runs_of(plan_cases({gpu("GPU-1")}, {.filter = "^matmul", .runs = replicates}));
    EXPECT_EQ(runs.at({"GPU-1", Arm::plain, "matmul"}), replicates);
    EXPECT_EQ(runs.at({"GPU-1", Arm::traced, "matmul"}), traced);
  }
}

TEST(Planner, LeavesTheObserverEffectOut) {
  const auto runs = runs_of(
      plan_cases({gpu("GPU-1")}, {.filter = "^launch/null", .runs = 4, .observer_effect = false}));
  EXPECT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs.at({"GPU-1", Arm::plain, "launch"}), 4);
  EXPECT_EQ(runs.at({"GPU-1", Arm::traced, "launch"}), 4);
}

TEST(Planner, TracesHostAndGpusAsAsked) {
  const PlanRequest request = {.filter = "^matmul", .runs = 1, .trace_gpus = false};
  const auto runs = runs_of(plan_cases({host(), gpu("GPU-1")}, request));
  EXPECT_TRUE(runs.contains({"host-1", Arm::traced, "matmul"}));
  EXPECT_FALSE(runs.contains({"GPU-1", Arm::traced, "matmul"}));
}

TEST(Planner, LetsGpusComputeSideBySideAndTheHostAlone) {
  const Plan plan =
      plan_cases({host(), gpu("GPU-1"), gpu("GPU-2")},
                 {.filter = "^matmul", .runs = 2, .trace_host = false, .trace_gpus = false});
  for (const Batch& batch : plan.batches) {
    const bool of_host = batch.front().device == "host-1";
    EXPECT_EQ(batch.size(), of_host ? 1u : 2u);
  }
}

TEST(Planner, GivesProcessSettingsProcessesOfTheirOwn) {
  const auto runs = runs_of(plan_cases({gpu("GPU-1")}, {.filter = "^launch/wait", .runs = 1}));
  for (const char* process_config : {"launch+wait=spin", "launch+wait=yield", "launch+wait=block"})
    EXPECT_TRUE(runs.contains({"GPU-1", Arm::plain, process_config})) << process_config;
}

TEST(Planner, TakesASecondGpuOnlyWhereTheSessionHasOne) {
  const PlanRequest request = {
      .profile = Profile::nightly, .filter = "^allocation/blocking", .runs = 1};
  const auto alone = runs_of(plan_cases({host(), gpu("GPU-1")}, request));
  EXPECT_TRUE(alone.contains({"GPU-1", Arm::plain, "allocation"}));
  EXPECT_FALSE(alone.contains({"GPU-1", Arm::plain, "allocation+gpus=2"}));
  const auto both = runs_of(plan_cases({gpu("GPU-1"), gpu("GPU-2")}, request));
  for (const char* uuid : {"GPU-1", "GPU-2"})
    EXPECT_EQ(both.at({uuid, Arm::plain, "allocation+gpus=2"}), 1);
  DeviceFacts broken = gpu("GPU-2");
  broken.usable = false;
  const auto one_left = runs_of(plan_cases({gpu("GPU-1"), broken}, request));
  EXPECT_FALSE(one_left.contains({"GPU-1", Arm::plain, "allocation+gpus=2"}));
}

TEST(Planner, RefusesAFilterThatNothingPasses) {
  EXPECT_THROW(plan_cases({host()}, {.filter = "^nothing$"}), UsageError);
  EXPECT_THROW(plan_cases({host()}, {.filter = "("}), UsageError);
}

TEST(Planner, OrdersTheSameSeedAlike) {
  const auto order = [](std::uint64_t seed) {
    std::string text;
    for (const Batch& batch : plan_cases({gpu("GPU-1")}, {.runs = 3, .seed = seed}).batches)
      text += batch.front().process_config.text() + " ";
    return text;
  };
  EXPECT_EQ(order(7), order(7));
  EXPECT_NE(order(7), order(8));
}

TEST(Planner, EstimatesMoreRecordsWhereMoreIsMeasured) {
  const Plan few = plan_cases({gpu("GPU-1")}, {.filter = "^launch/null", .runs = 1});
  const Plan many = plan_cases({gpu("GPU-1")}, {.filter = "^launch/null", .runs = 10});
  EXPECT_GT(record_bytes(few, Profile::quick), 0);
  EXPECT_NEAR(record_bytes(many, Profile::quick), 10 * record_bytes(few, Profile::quick), 1);
}

}  // namespace
}  // namespace launchgap
