#include <gmock/gmock.h>

#include "harness/import/launches.h"
#include "harness/import/repairs.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using namespace testing;

constexpr std::int64_t kDayNs = std::int64_t{86'400} * 1'000'000'000;

/// How many of these records have no time.
std::int64_t without_time(const auto& records) {
  return std::ranges::count_if(records, [](const auto& one) { return !has_times(one); });
}

Recording read(Job job) {
  Recording recording;
  recording.processes.push_back(std::move(job.process));
  forget_stray_times(recording);
  return recording;
}

TEST(StrayTimes, AKernelThatIsYearsLateHasNoTimeAndItsLaunchIsUnknown) {
  Job job = steady(200);
  job.process.trace.kernels[100].begin_ns += std::int64_t{36'500} * kDayNs;
  job.process.trace.kernels[100].end_ns += std::int64_t{36'500} * kDayNs;
  const Recording recording = read(std::move(job));
  EXPECT_EQ(without_time(recording.processes[0].trace.kernels), 1);
  EXPECT_EQ(launches_of(recording.processes[0], 0).launches[100].state, StreamState::unknown);
  EXPECT_THAT(
      recording.left_out,
      ElementsAre(Field(&LeftOut::what, "times of work that are a day or more from all others")));
}

TEST(StrayTimes, AKernelThatEndsInTheFutureOrACallInThePastIsNoneEither) {
  Job job = steady(200);
  for (activity::Call& call : job.process.trace.calls) {
    call.begin_ns += 2 * kDayNs;
    call.end_ns += 2 * kDayNs;
  }
  job.process.trace.calls[0].begin_ns -= kDayNs;
  job.process.trace.kernels[7].end_ns += 2 * kDayNs;
  const Recording recording = read(std::move(job));
  EXPECT_EQ(without_time(recording.processes[0].trace.calls), 1);
  EXPECT_EQ(without_time(recording.processes[0].trace.kernels), 1);
}

TEST(StrayTimes, AClockThatIsDaysAheadAndAJobThatPausesForADayStayAsTheyAre) {
  Job pause = steady(200);
  for (std::size_t i = 100; i < 200; ++i) {
    pause.process.trace.kernels[i].begin_ns += kDayNs;
    pause.process.trace.kernels[i].end_ns += kDayNs;
  }
  for (Job job : {steady(200, 5 * kDayNs), pause, steady(3)}) {
    const activity::Trace before = job.process.trace;
    const Recording recording = read(std::move(job));
    EXPECT_EQ(recording.processes[0].trace.kernels, before.kernels);
    EXPECT_EQ(recording.processes[0].trace.calls, before.calls);
    EXPECT_TRUE(recording.left_out.empty());
  }
}

TEST(StrayTimes, AreADayAwayAndOfTenRecordsAtLeastAndOneOfAHundred) {
  const struct {
    int records;
    std::size_t away;
    std::int64_t by_ns;
    std::int64_t without;
  } cases[] = {
      {9, 1, 2 * kDayNs, 0},
      {10, 1, 2 * kDayNs, 1},
      {10, 1, -2 * kDayNs, 1},
      {199, 2, 2 * kDayNs, 0},
      {199, 2, -2 * kDayNs, 0},
      {200, 2, 2 * kDayNs, 2},
      {200, 2, -2 * kDayNs, 2},
      {200, 3, 2 * kDayNs, 0},
      {20, 1, kDayNs, 1},
      {20, 1, kDayNs - 1, 0},
      {20, 1, -kDayNs, 1},
      {20, 1, 1 - kDayNs, 0},
  };
  for (const auto& [records, away, by_ns, without] : cases) {
    Job job;
    for (int i = 0; i < records; ++i) job.kernel(3 * kDayNs, 3 * kDayNs, 0);
    for (std::size_t i = 0; i < away; ++i) {
      job.process.trace.kernels[i].begin_ns += by_ns;
      job.process.trace.kernels[i].end_ns += by_ns;
    }
    const Recording recording = read(std::move(job));
    EXPECT_EQ(without_time(recording.processes[0].trace.kernels), without)
        << away << " of " << records << " by " << by_ns;
  }
}

}  // namespace
}  // namespace launchgap::recording
