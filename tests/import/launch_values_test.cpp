#include "harness/import/launch_values.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using activity::Purpose;
using namespace testing;

const RecordedCase* case_of(const std::vector<RecordedCase>& cases, std::string_view name) {
  const auto found = std::ranges::find(cases, name, &RecordedCase::name);
  return found == cases.end() ? nullptr : &*found;
}

/// Of all samples; −1 is none. Empty for a metric of which nothing is known.
std::vector<double> values(const std::vector<RecordedCase>& cases,
                           std::string_view name,
                           std::string_view metric) {
  const RecordedCase* const own = case_of(cases, name);
  if (!own) return {};
  const auto found = std::ranges::find(own->columns, metric, &Column::metric);
  if (found == own->columns.end()) return {};
  std::vector<double> result = found->values;
  EXPECT_EQ(result.size(), own->begin_ns.size()) << name << " " << metric;
  std::ranges::replace_if(
      result, [](double value) { return std::isnan(value); }, -1);
  return result;
}

std::vector<RecordedCase> steps(const Job& job, std::string_view name = "step") {
  return step_cases(job.process, 0, GpuGaps(job.process, 0, true), name);
}

std::vector<RecordedCase> launches(const Job& job, std::uint64_t gpu = 0) {
  return launch_cases(job.process, launches_of(job.process, 0), gpu, gpu == 0, true);
}

TEST(StepCases, TellTheTimeInWhichAGpuOnlyTalksToOthers) {
  Job job = Job().range(1000, 2000, "step").range(2000, 3000, "step");
  job.call(1000, 1010, 1).kernel(1100, 1300, 1);
  job.call(1020, 1030, 2).kernel(1200, 1600, 2, {0, 1, 9}, "ncclDevKernel_AllReduce_Sum_f32");
  job.call(1040, 1050, 3).transfer(1500, 1550, false, {0, 1, 7}, 3);
  job.call(2000, 2010, 4).kernel(2100, 2200, 4);
  EXPECT_THAT(values(steps(job), "recorded/step", "collectives_ns"), ElementsAre(250, 0));
  Job alone = Job().range(1000, 2000, "step").call(1000, 1010, 1).kernel(1100, 1300, 1);
  EXPECT_THAT(values(steps(alone), "recorded/step", "collectives_ns"), IsEmpty());
}

TEST(StepCases, AreRangesOfTheNameAloneOrWithANumber) {
  const struct {
    const char* name;
    bool is_step;
  } cases[] = {
      {"step", true},
      {"step#7", true},
      {"step#0012", true},
      {"step#x", false},
      {"step#7x", false},
      {"step#", false},
      {"step7", false},
      {"step #7", false},
      {"steps", false},
      {"step#-1", false},
      {"ste", false},
      {"Step", false},
      {"a step", false},
      {"", false},
      {"step##7", false},
  };
  for (const auto& [name, is_step] : cases) {
    Job job;
    job.range(1000, 2000, name);
    EXPECT_EQ(case_of(steps(job), "recorded/step") != nullptr, is_step) << name;
  }
}

TEST(StepCases, AreByBeginAndOnlyThoseThatTookTime) {
  Job job = Job()
                .range(5000, 7000, "step#3")
                .range(1000, 2000, "step#1")
                .range(3000, 3001, "step#2", "other");
  job.range(4000, 4000, "step#4").range(4500, 4400, "step#5").range(0, 9000, "step#6");
  const auto cases = steps(job);
  ASSERT_TRUE(case_of(cases, "recorded/step"));
  EXPECT_THAT(case_of(cases, "recorded/step")->begin_ns, ElementsAre(1000, 3000, 5000));
  EXPECT_EQ(case_of(cases, "recorded/step")->end_ns, 7000);
  EXPECT_THAT(values(cases, "recorded/step", "step_ns"), ElementsAre(1000, 1, 2000));
}

TEST(StepCases, CountLaunchesThatBeginInThem) {
  Job job =
      Job().range(1000, 2000, "step#1").range(2000, 3000, "step#2").range(4000, 5000, "step#3");
  job.call(999, 1500, 1).call(1000, 1010, 2).call(1999, 2500, 3, Purpose::launch, "other");
  job.call(2000, 2001, 4, Purpose::launch_graph).call(3000, 3100, 5);
  job.call(1200, 1300, 6, Purpose::copy).wait_for_device(1300, 1400);
  job.call(0, 1500, 7).call(1500, 1400, 8);  // without a time
  const auto cases = steps(job);
  EXPECT_THAT(values(cases, "recorded/step", "launches"), ElementsAre(2, 1, 0));
  EXPECT_THAT(values(cases, "recorded/step", "launch_calls_ns"), ElementsAre(10 + 501, 1, 0));
}

TEST(StepCases, ShareTheIdleTimeOfTheGpuByItsCauses) {
  Job job = Job().call(1000, 1100, 1).kernel(1500, 2000, 1);
  job.wait_for_device(1600, 2100).call(2500, 2600, 2).kernel(3000, 3500, 2);
  job.range(500, 1200, "step#0").range(1000, 2300, "step#1").range(2300, 4000, "step#2");
  const auto cases = steps(job);
  const auto of = [&](std::string_view metric) { return values(cases, "recorded/step", metric); };
  EXPECT_THAT(of("gpu_idle_share"), ElementsAre(-1, 300.0 / 800, 700.0 / 1200))
      << "between the first work and the last";
  EXPECT_THAT(of("idle_waiting_ns"), ElementsAre(-1, 100, 0));
  EXPECT_THAT(of("idle_program_ns"), ElementsAre(-1, 200, 200));
  EXPECT_THAT(of("idle_launch_ns"), ElementsAre(-1, 0, 500));
  for (const char* metric :
       {"idle_queued_ns", "idle_allocating_ns", "idle_calling_ns", "idle_unknown_ns"})
    EXPECT_THAT(of(metric), ElementsAre(-1, 0, 0)) << metric;
  const auto of_job = [&](std::string_view metric) {
    return values(cases, "recorded/job", metric);
  };
  EXPECT_THAT(of_job("step_ns"), ElementsAre(2000));
  EXPECT_THAT(of_job("launches"), ElementsAre(1)) << "the other one is before the first work";
  EXPECT_THAT(of_job("gpu_idle_share"), ElementsAre(0.5));
  EXPECT_THAT(of_job("idle_launch_ns"), ElementsAre(500));
}

TEST(StepCases, OfAJobWithoutWorkAreItsLaunches) {
  Job job =
      Job().call(1000, 1100, 1).call(2000, 2900, 2).call(2500, 2600, 3, Purpose::launch, "other");
  const auto cases = steps(job);
  EXPECT_THAT(values(cases, "recorded/job", "step_ns"), ElementsAre(1900));
  EXPECT_THAT(values(cases, "recorded/job", "launches"), ElementsAre(3)) << "with the last";
  EXPECT_THAT(values(cases, "recorded/job", "launch_calls_ns"), ElementsAre(1100));
  EXPECT_THAT(values(cases, "recorded/job", "gpu_idle_share"), IsEmpty());
}

TEST(StepCases, OfNothingAreNone) {
  EXPECT_THAT(steps(Job()), IsEmpty());
}

constexpr std::string_view kUnknown = "recorded/launch/stream:unknown";

TEST(LaunchCases, AreApartFromTheOneBeforeOfTheirThread) {
  Job job =
      Job().call(1000, 1100, 1, Purpose::launch, "a").call(1050, 1200, 2, Purpose::launch, "b");
  job.call(1500, 1600, 3, Purpose::launch, "b").call(1900, 2000, 4, Purpose::launch, "a");
  job.call(1700, 1800, 0, Purpose::copy, "a");  // no launch
  EXPECT_THAT(values(launches(job), kUnknown, "since_last_ns"), ElementsAre(-1, -1, 300, 800));
}

TEST(LaunchCases, AreApartFromTheOneBeforeOfTheirThreadOnWhicheverGpuAndOfWhicheverKind) {
  Job job = Job().call(1000, 1100, 1).kernel(1500, 1600, 1, kStream);
  job.call(2000, 2100, 2).kernel(2500, 2600, 2, kOtherGpu);
  job.call(3000, 3100, 3, Purpose::launch_graph).kernel(3500, 3600, 3, kStream);
  job.call(4050, 4100, 4).kernel(4500, 4600, 4, kStream);
  job.call(5060, 5100, 5);
  const auto first = launches(job);
  EXPECT_THAT(values(first, "recorded/launch/stream:idle", "since_last_ns"), ElementsAre(-1, 950));
  EXPECT_THAT(values(first, "recorded/graph/stream:idle", "since_last_ns"), ElementsAre(900));
  EXPECT_THAT(values(first, kUnknown, "since_last_ns"), ElementsAre(960));
  EXPECT_THAT(values(launches(job, 1), "recorded/launch/stream:idle", "since_last_ns"),
              ElementsAre(900));
}

TEST(LaunchCases, WaitInAQueueFromTheEndOfTheirCall) {
  Job job = Job().call(1000, 1100, 1).kernel(1100, 1200, 1, kStream);  // at once
  job.call(2000, 2100, 2).kernel(2099, 2200, 2, kStream);              // while it is called
  job.call(3000, 3100, 3).kernel(3101, 3200, 3, kStream);
  const auto all = launches(job);
  EXPECT_THAT(values(all, "recorded/launch/stream:idle", "launch_ns"), ElementsAre(100, 99, 101));
  EXPECT_THAT(values(all, "recorded/launch/stream:idle", "queue_ns"), ElementsAre(0, -1, 1));
  EXPECT_THAT(values(all, "recorded/launch/stream:idle", "kernel_ns"), ElementsAre(100, 101, 99));
}

TEST(LaunchCases, OfGraphsHaveTheKernelsThatAreKnown) {
  Job job = Job().call(1000, 1100, 1, Purpose::launch_graph).graph(1500, 1900, 1, kStream);
  job.call(3000, 3100, 2, Purpose::launch_graph).kernel(3500, 3600, 2, kStream);
  job.kernel(3600, 3700, 2, kStream);
  const auto all = launches(job);
  EXPECT_THAT(values(all, "recorded/graph/stream:idle", "graph_ns"), ElementsAre(400, 200));
  EXPECT_THAT(values(all, "recorded/graph/stream:idle", "kernels"), ElementsAre(-1, 2))
      << "of a graph that was recorded as a whole nobody knows";
}

TEST(LaunchCases, TellWhatWentOnBesideThem) {
  Job job = Job().call(1000, 1100, 1).kernel(1500, 1600, 1, kStream);
  job.call(1050, 1300, 0, Purpose::wait, "other").call(1400, 1450, 0, Purpose::release, "other");
  job.call(1150, 1200, 0, Purpose::allocate).wait_for_device(1210, 1220);
  job.transfer(1200, 1700, false, kOther).transfer(900, 1700, false, kOtherGpu);
  job.process.trace.overheads.push_back({1010, 1030, 0, {}});
  job.call(2000, 2100, 2, Purpose::launch_graph).kernel(2500, 2600, 2, kStream);
  const auto all = launches(job);
  const std::string_view name = "recorded/launch/stream:idle";
  EXPECT_THAT(values(all, name, "api_record_ns"), ElementsAre(100));
  EXPECT_THAT(values(all, name, "beside_calls_ns"), ElementsAre(50));
  EXPECT_THAT(values(all, name, "beside_waits_ns"), ElementsAre(250)) << "of other threads";
  EXPECT_THAT(values(all, name, "beside_allocations_ns"), ElementsAre(100)) << "of any";
  EXPECT_THAT(values(all, name, "overlap_transfers_ns"), ElementsAre(300));
  EXPECT_THAT(values(all, name, "overhead_ns"), ElementsAre(20));
  for (const char* metric : {"beside_calls_ns", "beside_waits_ns", "overhead_ns", "kernel_ns"})
    EXPECT_THAT(values(all, "recorded/graph/stream:idle", metric), IsEmpty()) << metric;
}

TEST(LaunchCases, TellNothingOfWhatTheProcessHasNot) {
  const auto all = launches(Job().call(1000, 1100, 1).kernel(1500, 1600, 1, kStream));
  for (const char* metric : {"beside_calls_ns",
                             "beside_waits_ns",
                             "beside_allocations_ns",
                             "overlap_transfers_ns",
                             "overhead_ns",
                             "since_last_ns"})
    EXPECT_THAT(values(all, "recorded/launch/stream:idle", metric), IsEmpty()) << metric;
}

TEST(LaunchCases, AreOfUnknownStreamsWhereClocksDisagree) {
  Job job = Job().call(1000, 1100, 1).kernel(1500, 1600, 1).call(2000, 2100, 2);
  const auto all = launch_cases(job.process, launches_of(job.process, 0), 0, true, false);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(values(all, kUnknown, "kernel_ns"), ElementsAre(100, -1));
  EXPECT_THAT(values(all, kUnknown, "api_record_ns"), ElementsAre(100, 100));
  EXPECT_THAT(values(all, kUnknown, "launch_ns"), IsEmpty());
  EXPECT_EQ(all[0].end_ns, 2100);
}

}  // namespace
}  // namespace launchgap::recording
