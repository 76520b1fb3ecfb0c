#include "harness/import/clock_fit.h"

#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>

#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kBegin = 10'000'000'000;

/// Launches that are waited for one by one. A kernel begins `least` ns after its call, and by about
/// 100 us later where the launch is held up; the wait returns about 3 us after it ended. The
/// device's clock is ahead, and drifts.
Job waited_for(int n,
               std::int64_t least,
               std::int64_t ahead,
               double drift_ppm,
               double held_up = 1e5) {
  std::mt19937_64 random(11);
  std::exponential_distribution<> more;
  Job job;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t called = kBegin + 1'000'000 * i;
    const auto late = least + static_cast<std::int64_t>(held_up * more(random));
    const std::int64_t begin = called + late, end = begin + 20'000;
    const auto device = [&](std::int64_t host) {
      return host + ahead + std::llround(drift_ppm * 1e-6 * static_cast<double>(host - kBegin));
    };
    const auto id = static_cast<std::uint32_t>(i + 1);
    job.call(called, called + 4000, id);
    job.kernel(device(begin), device(end), id);
    job.wait_for_device(called + 5000, end + 2000 + static_cast<std::int64_t>(1000 * more(random)));
  }
  return job;
}

std::vector<std::int64_t> launch_times(const AlignedProcess& aligned) {
  std::vector<std::int64_t> times;
  for (const RecordedLaunch& launch : aligned.launches.launches)
    times.push_back(launch.begin_ns - aligned.process().trace.calls[launch.call].begin_ns);
  return times;
}

struct Clock {
  std::int64_t ahead;
  double drift_ppm;
};
class ClockFit : public testing::TestWithParam<Clock> {};

TEST_P(ClockFit, TakesBackWhatIsKnownWellEnough) {
  const auto [ahead, drift] = GetParam();
  const Job job = waited_for(2000, 2'000, ahead, drift);
  const Job truth = waited_for(2000, 2'000, 0, 0);
  const AlignedProcess aligned(job.process, 1), true_times(truth.process, 1);
  ASSERT_TRUE(aligned.corrected()) << aligned.clocks.problem;
  EXPECT_TRUE(aligned.clocks.trusted());
  ASSERT_TRUE(aligned.line);
  EXPECT_NEAR(aligned.line->drift_ppm, drift, 0.5);
  EXPECT_NEAR(static_cast<double>(aligned.line->ahead_ns),
              static_cast<double>(ahead),
              aligned.line->error_ns + 2);
  const auto own = launch_times(aligned), expected = launch_times(true_times);
  ASSERT_EQ(own.size(), expected.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_NEAR(
        static_cast<double>(own[i]), static_cast<double>(expected[i]), aligned.line->error_ns + 2)
        << i;
    EXPECT_GT(own[i], 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Clocks,
                         ClockFit,
                         testing::Values(Clock{133'000'000'000, 0},
                                         Clock{415'000'000'000'000, -558},
                                         Clock{600'000, 206},
                                         Clock{-2'000'000'000, 30},
                                         Clock{1'700'000'000'000'000'000, 30}));

TEST(AlignedProcess, SurvivesTimesThatCannotBe) {
  Job job = waited_for(2000, 2'000, 133'000'000'000, 100);
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  job.transfer(kLast - 10, kLast, false).transfer(5, kLast, true);
  job.kernel(kLast - 1, kLast, 999'999);
  const AlignedProcess aligned(job.process, 1);
  EXPECT_TRUE(aligned.corrected()) << aligned.clocks.problem;
  job.call(kLast - 20, kLast - 10, 999'999).wait_for_device(kLast - 5, kLast);
  EXPECT_FALSE(AlignedProcess(job.process, 1).clocks.trusted());
}

TEST(AlignedProcess, LeavesClocksThatAgreeAsTheyAre) {
  const Job job = waited_for(500, 2'000, 0, 0);
  const AlignedProcess aligned(job.process, 1);
  EXPECT_FALSE(aligned.corrected());
  EXPECT_FALSE(aligned.line);
  EXPECT_EQ(&aligned.process(), &job.process);
  EXPECT_TRUE(aligned.clocks.trusted());
}

TEST(AlignedProcess, GivesNoTimesWhereTheCorrectionIsTooCoarse) {
  // From call to kernel 6 us, and 2 us until the wait returns: known to half of these 8 us.
  const Job job = waited_for(2000, 6'000, 133'000'000'000, 206, 1000);
  const AlignedProcess aligned(job.process, 1);
  EXPECT_FALSE(aligned.corrected());
  ASSERT_TRUE(aligned.line);
  EXPECT_NEAR(aligned.line->drift_ppm, 206, 0.5);
  EXPECT_NEAR(aligned.line->error_ns, 4000, 1000);
  EXPECT_THAT(aligned.clocks.problem, HasSubstr("a correction is known to ± 4"));
  EXPECT_THAT(aligned.clocks.problem, HasSubstr("which is too coarse for launches of "));
}

TEST(AlignedProcess, GivesNoTimesWhereNothingWaits) {
  const Job job = steady(1000, 278'000'000'000);
  const AlignedProcess aligned(job.process, 1);
  EXPECT_FALSE(aligned.corrected());
  EXPECT_FALSE(aligned.line) << "nothing tells how little it is ahead";
  EXPECT_FALSE(aligned.clocks.trusted());
}

TEST(AlignedProcess, GivesNoTimesWhereAClockJumps) {
  Job job = waited_for(2000, 2'000, 133'000'000'000, 0);
  for (std::size_t i = 1000; i < 2000; ++i) {
    job.process.trace.kernels[i].begin_ns += 40'000'000;
    job.process.trace.kernels[i].end_ns += 40'000'000;
  }
  EXPECT_FALSE(AlignedProcess(job.process, 1).corrected()) << "no straight line has both halves";
}

TEST(AlignedProcess, GivesNoTimesWhereSeveralDevicesHaveClocksOfTheirOwn) {
  Job job = waited_for(2000, 2'000, 133'000'000'000, 0);
  job.kernel(kBegin + 133'000'000'000, kBegin + 133'000'001'000, 5000, {1, 1, 7});
  EXPECT_FALSE(AlignedProcess(job.process, 1).corrected());
}

TEST(OnHostClock, ATimeBeyondAllClocksIsNotKnown) {
  constexpr std::int64_t kFar = 4'500'000'000'000'000'000;
  Job job;
  job.kernel(kFar, kFar + 5, 1).kernel(kBegin, kBegin + 5, 2);
  const Process moved = on_host_clock(job.process, {});
  EXPECT_FALSE(has_times(moved.trace.kernels[0]));
  EXPECT_TRUE(has_times(moved.trace.kernels[1]));
}

}  // namespace
}  // namespace launchgap::recording
