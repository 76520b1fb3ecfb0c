#include "harness/import/job_figures.h"

#include <cmath>

#include <gmock/gmock.h>

#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using activity::Purpose;
using testing::ElementsAre;

JobFigures figures_of(const Job& job, bool clocks_agree = true, std::uint64_t gpu = 0) {
  return job_figures(job.process, launches_of(job.process, 0), gpu, true, 1, "step", clocks_agree);
}

/// A kernel that took so long each time.
Job kernels_of(const std::vector<std::int64_t>& times) {
  Job job;
  std::int64_t at = 1'000;
  for (const std::int64_t ns : times) {
    job.kernel(at, at + ns, 0);
    at += ns + 10;
  }
  return job;
}

TEST(CountedKernels, TellHowLongTheyTook) {
  const JobFigures figures = figures_of(kernels_of({10, 60, 20}));
  ASSERT_EQ(figures.kernels.size(), 1u);
  const CountedKernels& own = figures.kernels.front();
  EXPECT_EQ(own.name, "a_kernel");
  EXPECT_EQ(own.count, 3u);
  EXPECT_EQ(own.total_ns, 90u);
  EXPECT_EQ(own.shortest_ns, 10u);
  EXPECT_EQ(own.longest_ns, 60u);
  EXPECT_EQ(own.p50_ns, 20);
  EXPECT_EQ(own.p99_ns, std::nullopt);
  EXPECT_NEAR(own.cv.value_or(0), std::sqrt(1'400 / 2.0) / 30, 1e-12);
  EXPECT_EQ(own.first_call_ns, std::nullopt);
  EXPECT_EQ(own.repeats, std::nullopt);
}

TEST(CountedKernels, VaryFromTwoOnThatTakeTime) {
  EXPECT_EQ(figures_of(kernels_of({10})).kernels[0].cv, std::nullopt);
  EXPECT_EQ(figures_of(kernels_of({10, 10})).kernels[0].cv, 0);
  EXPECT_EQ(figures_of(kernels_of({0, 0})).kernels[0].cv, std::nullopt);
}

TEST(CountedKernels, OfAHundredOneIsTheSlowest) {
  std::vector<std::int64_t> times(99, 10);
  EXPECT_EQ(figures_of(kernels_of(times)).kernels[0].p99_ns, std::nullopt);
  times.push_back(110);
  EXPECT_NEAR(figures_of(kernels_of(times)).kernels[0].p99_ns.value_or(0), 11, 1e-9);
}

TEST(CountedKernels, TellHowLargeTheyAre) {
  Job job = kernels_of({10});
  activity::KernelRun& kernel = job.process.trace.kernels[0];
  kernel.grid[0] = 7;
  kernel.grid[1] = 0;
  kernel.grid[2] = -5;  // which cannot be
  kernel.block[0] = 128;
  const JobFigures figures = figures_of(job);
  EXPECT_THAT(figures.kernels[0].grid, ElementsAre(7, 0, 0));
  EXPECT_THAT(figures.kernels[0].block, ElementsAre(128, 1, 1));
}

TEST(CountedKernels, TellWhatTheirCallsTook) {
  Job job;
  job.call(1'000, 1'100, 1, Purpose::launch_graph).kernel(1'200, 1'300, 1);  // no call of its own
  job.call(2'000, 2'100, 9);                                                 // its kernel is lost
  job.call(3'000, 3'050, 2).kernel(3'200, 3'300, 2);
  EXPECT_EQ(figures_of(job).kernels[0].first_call_ns, 50);
  EXPECT_EQ(figures_of(job).kernels[0].later_call_ns, std::nullopt);
  job.call(4'000, 4'010, 3).kernel(4'200, 4'300, 3);
  EXPECT_EQ(figures_of(job).kernels[0].later_call_ns, 10);
  job.call(5'000, 5'001, 4).kernel(5'200, 5'300, 4).call(6'000, 6'000, 5).kernel(6'200, 6'300, 5);
  job.call(7'000, 7'030, 6).kernel(7'200, 7'300, 6);
  EXPECT_EQ(figures_of(job).kernels[0].first_call_ns, 50);
  EXPECT_EQ(figures_of(job).kernels[0].later_call_ns, 10) << "of 10, 1 and 30";
}

TEST(CountedKernels, TellWhatChangesWhereTheyRepeat) {
  // Eleven times nobody says whether it changes.
  for (const int repeats : {11, 12}) {
    std::vector<std::int64_t> times;
    for (int i = 0; i <= repeats; ++i) times.push_back(100 + i);
    const JobFigures figures = figures_of(kernels_of(times));
    EXPECT_EQ(figures.record.repeats, static_cast<std::uint64_t>(repeats));
    const CountedKernels& own = figures.kernels[0];
    EXPECT_EQ(own.repeats, static_cast<std::uint64_t>(repeats));
    EXPECT_EQ(own.early_ns, repeats == 12 ? std::optional(102.5) : std::nullopt);
    EXPECT_EQ(own.late_ns, repeats == 12 ? std::optional(108.5) : std::nullopt);
    EXPECT_EQ(own.change_chance, repeats == 12 ? std::optional(2.0 / 924) : std::nullopt);
    EXPECT_EQ(own.ramp, repeats == 12 ? std::optional(true) : std::nullopt);
    EXPECT_EQ(own.slow_mode_share, std::nullopt);
  }
  std::vector<std::int64_t> times;
  for (int i = 0; i <= 60; ++i) times.push_back((i % 2 == 0 ? 2'000 : 1'000) + i / 2);
  const JobFigures figures = figures_of(kernels_of(times));
  EXPECT_EQ(figures.kernels[0].slow_mode_share, 0.5);
  EXPECT_EQ(figures.kernels[0].fast_mode_ns, 1'014.5);
  EXPECT_EQ(figures.kernels[0].modes_apart_ns, 1'000);
}

TEST(JobFigures, LastFromTheFirstCallOrWorkToTheLast) {
  const struct {
    const char* what;
    Job job;
    std::optional<std::int64_t> agree, disagree;
  } cases[] = {
      {"nothing", Job(), std::nullopt, std::nullopt},
      {"a call of no time", Job().call(1'000, 1'000, 1), std::nullopt, std::nullopt},
      {"a call of 1 ns", Job().call(1'000, 1'001, 1), 1, 1},
      {"without a begin", Job().call(0, 900, 1).call(1'000, 1'001, 2), 1, 1},
      {"work alone", Job().kernel(1'000, 1'500, 1), 500, 500},
      {"both", Job().call(1'000, 2'000, 1).kernel(1'500, 5'000, 1), 4'000, 3'500},
      {"and a longer call", Job().call(1'000, 6'000, 1).kernel(1'500, 5'000, 1), 5'000, 5'000},
      {"a copy", Job().call(1'000, 2'000, 1).transfer(5'000, 5'600, false), 4'600, 1'000},
      {"a graph", Job().call(1'000, 2'000, 1).graph(5'000, 5'600, 1), 4'600, 1'000},
      {"of another GPU and without a begin",
       Job().kernel(9, 99'000, 2, kOtherGpu).kernel(0, 99'000, 3).kernel(1'500, 5'000, 1),
       3'500,
       3'500},
  };
  for (const auto& [what, job, agree, disagree] : cases) {
    EXPECT_EQ(figures_of(job, true).record.extent_ns, agree) << what;
    EXPECT_EQ(figures_of(job, false).record.extent_ns, disagree) << what;
  }
}

TEST(JobFigures, CountLaunchesAndStepsOfTheProcess) {
  Job job = Job().call(1'000, 1'100, 1).kernel(1'200, 1'300, 1).call(2'000, 2'100, 2);
  job.call(3'000, 3'100, 3).range(900, 5'000, "step#4").range(6'000, 7'000, "step#5");
  job.process.python_calls = 8;
  const JobRecord record = figures_of(job).record;
  EXPECT_EQ(record.all_launches, 3u);
  EXPECT_EQ(record.unknown_launches, 2u);
  EXPECT_EQ(record.python_calls, 8u);
  EXPECT_THAT(record.steps, ElementsAre(4, 5));
  ASSERT_TRUE(record.tail);
  EXPECT_EQ(record.tail->launches, 3u);
}

TEST(JobFigures, TellWhatTheGpuWaitedFor) {
  Job job = Job().call(1'000, 1'100, 1).kernel(1'200, 2'000, 1);
  job.call(1'500, 10'000, 0, Purpose::wait, "main", "cudaStreamSynchronize_v3020");
  job.call(11'000, 16'000, 0, Purpose::allocate, "main", "cudaMalloc_v3020");
  job.call(3'000'000, 3'000'100, 2).kernel(3'001'000, 3'002'000, 2);
  const GpuGaps gaps(job.process, 0, true);
  JobRecord record;
  add_gaps(record, job.process, gaps);
  ASSERT_EQ(record.stalls.size(), 2u);
  EXPECT_EQ(record.stalls[0].kind, "wait");
  EXPECT_EQ(record.stalls[0].call, "cudaStreamSynchronize");
  EXPECT_EQ(record.stalls[0].gaps, 1u);
  EXPECT_EQ(record.stalls[0].idle_ns, 8'000);
  EXPECT_EQ(record.stalls[0].lost_ns, 8'500);
  EXPECT_EQ(record.stalls[0].longest_ns, 8'500);
  EXPECT_EQ(record.stalls[1].kind, "allocate");
  EXPECT_EQ(record.stalls[1].lost_ns, 5'000);
  EXPECT_EQ(record.pauses.count, 1u);
  EXPECT_EQ(record.pauses.total_ns, 2'985'000);
  EXPECT_EQ(record.pauses.call, "");
  EXPECT_EQ(record.unknown_ns, 0);
}

}  // namespace
}  // namespace launchgap::recording
