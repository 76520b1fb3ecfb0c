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

/// Two launches, 100 us apart, and between them a wait for the device; both kernels run until its
/// clock shows so much more than the host's at the end of the wait. By the launches it is ahead by
/// at most 100 ns at the first, and by at most 300 at the second.
Job between_two(std::int64_t wait_ns) {
  Job job;
  job.call(kBegin, kBegin + 10, 1).kernel(kBegin + 100, kBegin + wait_ns, 1);
  job.wait_for_device(kBegin + 20, kBegin + wait_ns);
  job.call(kBegin + 100'000, kBegin + 100'010, 2);
  job.kernel(kBegin + 100'300, kBegin + 100'400, 2);
  return job;
}

std::optional<ClockLine> fitted(const Job& job, std::int64_t tick_ns = 0) {
  return fit_clock(job.process, launches_of(job.process, tick_ns), tick_ns);
}

TEST(FitClock, TakesTheLineInTheMiddleOfAllThatMayBe) {
  // The steepest and the flattest line go through one launch's limit and that of the wait.
  const struct {
    std::int64_t wait_ns, tick_ns, ahead_ns;
    double error_ns;
  } cases[] = {
      {50'000, 0, 0, 300},    // of 400 ns at the begin down to -300, and the same at the end
      {25'000, 0, 25, 525},   // -500 to 300 at the second launch, where the line is at 225
      {75'000, 0, -25, 725},  // -750 to 100 at the first, as no clock is off by more than 1 %
      {50'000, 10, 0, 330},
  };
  for (const auto& [wait_ns, tick_ns, ahead_ns, error_ns] : cases) {
    const auto line = fitted(between_two(wait_ns), tick_ns);
    ASSERT_TRUE(line) << wait_ns;
    EXPECT_EQ(line->from_ns, kBegin);
    EXPECT_EQ(line->ahead_ns, ahead_ns) << wait_ns;
    EXPECT_NEAR(line->drift_ppm, 2000, 1e-6) << wait_ns;
    EXPECT_NEAR(line->error_ns, error_ns, 1e-6) << wait_ns;
  }
}

TEST(FitClock, KnowsTheLineUntilTheLastWait) {
  Job job;
  job.call(kBegin, kBegin + 10, 1).kernel(kBegin + 100, kBegin + 50'000, 1);
  job.wait_for_device(kBegin + 20, kBegin + 50'000);
  const auto line = fitted(job);
  ASSERT_TRUE(line);
  // Of all slopes up to 1 %, the steepest has the most room: 100 ns at first, 0 to 600 at last.
  EXPECT_NEAR(line->drift_ppm, 10'000, 1e-3);
  EXPECT_EQ(line->ahead_ns, -200);
  EXPECT_NEAR(line->error_ns, 300, 1) << "it may also be flat, or fall";
}

TEST(FitClock, FindsNoLineWhereNoneContradictsNothing) {
  // The second launch's limit and the wait's are of one time, so that the slope does not matter.
  const auto waited_until_called = [](std::int64_t ends) {
    Job job;
    job.call(kBegin, kBegin + 10, 1).kernel(kBegin + 50'000, kBegin + ends, 1);
    job.wait_for_device(kBegin + 20, kBegin + 60'000);
    job.call(kBegin + 60'000, kBegin + 60'010, 2);
    job.kernel(kBegin + 90'000, kBegin + 95'000, 2);
    return job;
  };
  EXPECT_TRUE(fitted(waited_until_called(90'000))) << "ahead by 30 us, and by no less and no more";
  EXPECT_FALSE(fitted(waited_until_called(90'001))) << "at least 30.001 us, and at most 30";
  EXPECT_FALSE(fitted(waited_until_called(90'003), 1));
  EXPECT_TRUE(fitted(waited_until_called(90'002), 1)) << "each by a tick";
  EXPECT_FALSE(fitted(steady(10))) << "nothing waits";
  Job waits;
  waits.wait_for_device(kBegin, kBegin + 10);
  EXPECT_FALSE(fitted(waits)) << "nothing is launched";
  Job two_gpus = waited_until_called(80'000);
  EXPECT_TRUE(fitted(two_gpus));
  two_gpus.process.stream(kOtherGpu);
  EXPECT_FALSE(fitted(two_gpus));
}

TEST(FitClock, NoTwoClocksDifferByMoreThanOnePercent) {
  for (const auto& [drift_ppm, is_one] : {std::pair(9'900.0, true), std::pair(10'100.0, false)})
    EXPECT_EQ(fitted(waited_for(2000, 2'000, 133'000'000'000, drift_ppm)).has_value(), is_one)
        << drift_ppm;
  for (const double drift_ppm : {-9'900.0, -10'100.0})
    EXPECT_EQ(fitted(waited_for(2000, 2'000, 133'000'000'000, drift_ppm)).has_value(),
              drift_ppm > -10'000)
        << drift_ppm;
}

/// 900 launches, one after another and each waited for, on a device that is 1 ms ahead. Every third
/// kernel begins 1 us after its call, the others so much later; each wait ends 1 us after its
/// kernel. So the line is known to 1 us.
Job every_third_at_once(std::int64_t others_ns) {
  Job job;
  for (std::uint32_t i = 0; i < 900; ++i) {
    const std::int64_t called = kBegin + std::int64_t{1'000'000} * i;
    const std::int64_t begin = called + (i % 3 == 0 ? 1'000 : others_ns);
    job.call(called, called + 500, i + 1);
    job.kernel(begin + 1'000'000, begin + 1'020'000, i + 1);
    job.wait_for_device(called + 600, begin + 21'000);
  }
  return job;
}

TEST(AlignedProcess, KnowsTheLineWellEnoughToATenthOfAnUsualLaunch) {
  for (const auto& [others_ns, is_known] : {std::pair(11'000, true), std::pair(9'000, false)}) {
    const Job job = every_third_at_once(others_ns);
    const AlignedProcess aligned(job.process, 1);
    ASSERT_TRUE(aligned.line);
    EXPECT_NEAR(aligned.line->error_ns, 1'000, 10);
    EXPECT_NEAR(static_cast<double>(aligned.line->ahead_ns), 1'000'000, 5);
    EXPECT_EQ(aligned.corrected(), is_known) << aligned.clocks.problem;
    EXPECT_EQ(aligned.clocks.trusted(), is_known);
  }
  const Job coarse = every_third_at_once(9'000);
  EXPECT_EQ(AlignedProcess(coarse.process, 1).clocks.problem,
            "the GPU's clock is ahead of the host's, by 1.001 ms at most; a correction is known to "
            "± 1.01 µs,"
            " which is too coarse for launches of 9.00 µs");
}

TEST(AlignedProcess, LaunchesOfGraphsAndOfBusyStreamsAreNoUsualLaunches) {
  Job job = every_third_at_once(9'000);
  // Graphs, and kernels that others keep waiting, begin 400 us after their calls.
  for (std::uint32_t i = 0; i < 900; ++i) {
    const std::int64_t called = kBegin + std::int64_t{1'000'000} * i + 100'000;
    for (const std::uint32_t id : {10'000 + i, 20'000 + i}) {
      job.call(called,
               called + 500,
               id,
               id < 20'000 ? activity::Purpose::launch_graph : activity::Purpose::launch);
      job.kernel(called + 1'400'000, called + 1'450'000, id, {0, 1, id < 20'000 ? 8u : 9u});
    }
    job.kernel(called + 950'000, called + 1'350'000, 0, {0, 1, 9});
  }
  const AlignedProcess aligned(job.process, 1);
  EXPECT_FALSE(aligned.corrected());
  EXPECT_THAT(aligned.clocks.problem, HasSubstr("too coarse for launches of 9.00 µs"));
}

TEST(AlignedProcess, SaysWhyACorrectionIsNotUsed) {
  // Every kernel waits for another one of its stream.
  Job queued = every_third_at_once(11'000);
  for (std::size_t i = 0; i < 900; ++i) {
    const activity::KernelRun kernel = queued.process.trace.kernels[i];
    queued.kernel(kernel.begin_ns - 50'000, kernel.begin_ns, 0);
  }
  EXPECT_EQ(AlignedProcess(queued.process, 1).clocks.problem,
            "the GPU's clock is ahead of the host's, by 1.001 ms at most; a correction is known to "
            "± 1.01 µs,"
            " and nothing tells whether that is enough");
  // Waits for streams tell that it is ahead by still more.
  Job outlasting = every_third_at_once(11'000);
  for (std::int64_t i = 100; i < 120; ++i) {
    const std::int64_t at = kBegin + 1'000'000 * i + 700;
    outlasting.call(at, at + 10, 0, activity::Purpose::wait, "main", "cudaStreamSynchronize");
  }
  EXPECT_EQ(AlignedProcess(outlasting.process, 1).clocks.problem,
            "the GPU's clock is ahead of the host's, by 1.001 ms at most; a correction is known to "
            "± 1.01 µs,"
            " and kernels begin before their launches with it");
}

TEST(OnHostClock, TakesBackOffsetAndDriftAndKeepsDurations) {
  constexpr std::int64_t kFar = 4'000'000'000'000'000'000;
  Job job;
  const ClockLine line{kBegin, 500, 10'000, 0};
  const auto shows = [](std::int64_t since) { return kBegin + 500 + since + since / 100; };
  // What has no time, or one that cannot be, is passed over.
  job.kernel(0, 5, 1).kernel(kFar, kFar + 1'000, 2).kernel(shows(1'000'000'000), kFar, 3);
  job.kernel(shows(-1'000'000), shows(-1'000'000) + 7, 4);
  job.transfer(shows(200), shows(200) + 8, false).graph(shows(0), shows(0) + 9, 5);
  const activity::Trace moved = on_host_clock(job.process, line).trace;
  EXPECT_EQ(moved.kernels[0].end_ns, 5);
  EXPECT_EQ(moved.kernels[1].begin_ns, 0);
  EXPECT_EQ(moved.kernels[1].end_ns, 0);
  EXPECT_EQ(moved.kernels[2].begin_ns, kBegin + 1'000'000'000) << "the last time that can be";
  EXPECT_EQ(moved.kernels[3].begin_ns, kBegin - 1'000'000);
  EXPECT_EQ(moved.kernels[3].end_ns, kBegin - 1'000'000 + 7);
  EXPECT_EQ(moved.transfers[0].begin_ns, kBegin + 200);
  EXPECT_EQ(moved.transfers[0].end_ns, kBegin + 208);
  EXPECT_EQ(moved.graphs[0].begin_ns, kBegin);
  EXPECT_EQ(moved.graphs[0].end_ns, kBegin + 9);
}

}  // namespace
}  // namespace launchgap::recording
