#include "harness/core/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

Workload workload(std::string device,
                  ProcessConfig process_config,
                  int replicates,
                  std::vector<PlannedCase> cases) {
  const bool alone = process_config == "launch";
  return {std::move(device),
          std::move(process_config),
          Arm::plain,
          replicates,
          alone,
          std::move(cases)};
}

std::vector<Workload> two_devices(int replicates) {
  return {
      workload(
          "a", "launch", replicates, {{"launch/null/mode:idle", 1}, {"launch/null/mode:burst", 1}}),
      workload("a", "matmul", replicates, {{"matmul/library/size:256", 2}}),
      workload("b", "launch", replicates, {{"launch/null/mode:idle", 1}}),
      workload("b", "matmul", replicates, {{"matmul/library/size:256", 2}})};
}

TEST(Plan, RunsEveryWorkloadAsOftenAsAsked) {
  std::map<std::pair<std::string, ProcessConfig>, std::set<int>> replicates;
  const Plan plan = make_plan(two_devices(3), 1);
  for (const Batch& batch : plan.batches) {
    for (const PlannedRun& run : batch) {
      EXPECT_TRUE(
          replicates[std::pair(run.device, run.process_config)].insert(run.replicate).second);
    }
  }
  EXPECT_EQ(plan.run_count(), 12u);
  for (const auto& [key, seen] : replicates) EXPECT_EQ(seen, (std::set<int>{0, 1, 2}));
}

TEST(Plan, WhatMustBeAloneIsAloneAndTheRestSharesABatchPerReplicate) {
  for (const Batch& batch : make_plan(two_devices(3), 1).batches) {
    if (batch.front().process_config == "launch") {
      EXPECT_EQ(batch.size(), 1u);
    } else {
      ASSERT_EQ(batch.size(), 2u);
      EXPECT_NE(batch[0].device, batch[1].device);
      EXPECT_EQ(batch[0].replicate, batch[1].replicate);
    }
  }
}

TEST(Plan, TheSeedDecidesTheOrder) {
  const auto order = [](std::uint64_t seed) {
    std::string text;
    for (const Batch& batch : make_plan(two_devices(5), seed).batches) {
      text += batch.front().device + batch.front().process_config.text() +
              std::to_string(batch.front().replicate) + " ";
    }
    return text;
  };
  EXPECT_EQ(order(7), order(7));
  EXPECT_NE(order(7), order(8));
}

TEST(Plan, TheOrderOfCasesRotatesByReplicate) {
  for (const Batch& batch : make_plan(two_devices(2), 1).batches) {
    const PlannedRun& run = batch.front();
    if (run.device != "a" || run.process_config != "launch") continue;
    EXPECT_EQ(run.cases.front().name,
              run.replicate == 0 ? "launch/null/mode:idle" : "launch/null/mode:burst");
  }
}

TEST(Plan, HasARandomOrderWhereEachWorkloadHas) {
  std::vector<Workload> workloads = two_devices(2);
  EXPECT_FALSE(make_plan(workloads, 1).random_order);
  workloads[0].random_order = true;
  EXPECT_FALSE(make_plan(workloads, 1).random_order);
  for (Workload& workload : workloads) workload.random_order = true;
  EXPECT_TRUE(make_plan(workloads, 1).random_order);
  EXPECT_FALSE(make_plan({}, 1).random_order);
}

TEST(Plan, SizesThatAreComparedRunInARandomOrder) {
  Workload sizes = workload("a", "matmul", 8, {});
  for (int size = 0; size < 20; ++size) sizes.cases.push_back({std::to_string(size), 1});
  sizes.random_order = true;
  std::set<std::vector<std::string>> orders;
  const Plan plan = make_plan({sizes}, 1);
  EXPECT_TRUE(plan.random_order);
  for (const Batch& batch : plan.batches) {
    std::vector<std::string> names;
    for (const PlannedCase& planned : batch.front().cases) names.push_back(planned.name);
    const auto neighbours = [&](std::size_t i) {
      return std::abs(std::stoi(names[i]) - std::stoi(names[i - 1])) == 1;
    };
    int beside = 0;
    for (std::size_t i = 1; i < names.size(); ++i) beside += neighbours(i);
    EXPECT_LT(beside, 10) << "not rotated";
    orders.insert(names);
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
    EXPECT_EQ(names.size(), 20u);
  }
  EXPECT_EQ(orders.size(), 8u) << "each process has one of its own";
}

TEST(Plan, ItsTimeIsThatOfTheLongestRunOfEachBatch) {
  const Plan plan = make_plan(
      {workload("a", "matmul", 1, {{"x", 2}}), workload("b", "matmul", 1, {{"x", 5}})}, 1);
  EXPECT_DOUBLE_EQ(plan.seconds(2), 5 + kSecondsPerRun);
  EXPECT_DOUBLE_EQ(plan.seconds(8), 5 + kSecondsPerRun);
  EXPECT_DOUBLE_EQ(plan.seconds(1), 2 + 5 + 2 * kSecondsPerRun);
  EXPECT_DOUBLE_EQ(Plan{}.seconds(2), 0);
  EXPECT_DOUBLE_EQ(plan.start_seconds_per_run(), kSecondsPerRun);
}

TEST(Plan, WhereThereAreFewerCpusThanDevicesItsTimeHasTheirTurns) {
  std::vector<Workload> workloads;
  for (const char* device : {"a", "b", "c", "d", "e"})
    workloads.push_back(workload(device, "matmul", 1, {{"x", 10 - kSecondsPerRun}}));
  const Plan plan = make_plan(workloads, 1);
  EXPECT_EQ(plan.largest_batch(), 5u);
  EXPECT_NEAR(plan.seconds(5), 10, 1e-9);
  EXPECT_NEAR(plan.seconds(2), 30, 1e-9);
}

TEST(Plan, ItsTimeHasWhatEachProcessTakesBeside) {
  Workload quick = workload("a", "matmul", 1, {{"x", 2}}),
           slow = workload("b", "launch", 1, {{"y", 3}});
  quick.start_seconds = 0.1, slow.start_seconds = 0.5;
  quick.alone = slow.alone = true;
  const Plan plan = make_plan({quick, slow}, 1);
  EXPECT_DOUBLE_EQ(plan.seconds(8), 2 + 0.1 + 3 + 0.5);
  EXPECT_DOUBLE_EQ(plan.start_seconds_per_run(), 0.3);
  EXPECT_EQ(Plan{}.start_seconds_per_run(), 0);
}

TEST(Plan, ADeviceWithoutCasesHasNoRuns) {
  EXPECT_EQ(make_plan({workload("a", "launch", 3, {})}, 1).run_count(), 0u);
}

TEST(Plan, ReplicatesOfAllArmsAndSetupsAdvanceTogether) {
  std::vector<Workload> workloads = two_devices(4);
  for (Workload traced : two_devices(2)) {
    traced.arm = Arm::traced;
    workloads.push_back(traced);
  }
  int replicate = 0;
  std::map<Arm, int> runs;
  for (const Batch& batch : make_plan(workloads, 3).batches) {
    EXPECT_GE(batch.front().replicate, replicate);
    replicate = batch.front().replicate;
    for (const PlannedRun& run : batch) {
      EXPECT_EQ(run.arm, batch.front().arm);
      ++runs[run.arm];
    }
  }
  EXPECT_EQ(runs, (std::map<Arm, int>{{Arm::plain, 16}, {Arm::traced, 8}}));
}

TEST(DerivedSeeds, DependOnEveryPart) {
  const std::set<std::uint64_t> seeds = {derive_seed(1, "a"),
                                         derive_seed(2, "a"),
                                         derive_seed(1, "b"),
                                         derive_seed(1, "a", 1),
                                         derive_seed(1, "")};
  EXPECT_EQ(seeds.size(), 5u);
}

TEST(Profiles, AreKnownByName) {
  EXPECT_EQ(parse_profile("nightly"), Profile::nightly);
  EXPECT_THROW(parse_profile("fast"), UsageError);
}

}  // namespace
}  // namespace launchgap
