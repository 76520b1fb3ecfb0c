#include <gmock/gmock.h>

#include "harness/import/clock_fit.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using testing::HasSubstr;

ClockCheck checked(const Job& job) {
  return check_clocks(job.process, launches_of(job.process, 1));
}

TEST(ClockCheck, TrustsWhatComesAfterItsCause) {
  const ClockCheck check = checked(steady(1000));
  EXPECT_TRUE(check.trusted()) << check.problem;
  EXPECT_EQ(check.ahead_most_ns, 6000) << "the shortest time from a call to its kernel";
  EXPECT_EQ(check.ahead_least_ns, std::nullopt) << "nothing waited for the device";
  EXPECT_EQ(check.drift_ppm, std::nullopt) << "where the clocks agree it would be the job's";
}

TEST(ClockCheck, TrustsALongQueue) {
  Job job;
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t at = 10'000'000'000 + 5'000 * i, kernel = 10'000'010'000 + 50'000'000 * i;
    job.call(at, at + 4'000, static_cast<std::uint32_t>(i + 1));
    job.kernel(kernel, kernel + 50'000'000, static_cast<std::uint32_t>(i + 1));
  }
  EXPECT_TRUE(checked(job).trusted())
      << "the last kernel begins 5 s after its call, and the first does not";
}

TEST(ClockCheck, SeesADeviceThatIsAheadBySeconds) {
  const ClockCheck check = checked(steady(1000, 278'000'000'000));
  EXPECT_THAT(check.problem, HasSubstr("the GPU's clock is ahead of the host's, by 278 s at most"));
  EXPECT_EQ(check.ahead_most_ns, 278'000'006'000);
}

TEST(ClockCheck, ALaunchThatTakesSecondsTellsNothingOfTheClocks) {
  Job job = Job().call(1'000'000'000, 4'000'000'000, 1).kernel(4'000'006'000, 4'000'008'000, 1);
  EXPECT_TRUE(check_clocks(job.process, launches_of(job.process, 0)).trusted());
}

TEST(ClockCheck, SeesADeviceThatIsAheadByKernelsThatOutlastTheirWait) {
  Job job;
  for (std::int64_t i = 0; i < 20; ++i) {
    const std::int64_t at = 10'000'000'000 + 1'000'000 * i;
    job.call(at, at + 4'000, static_cast<std::uint32_t>(i + 1));
    job.wait_for_device(at + 5'000, at + 20'000);
    // It ran from 6 us to 18 us after its call, and its device is 500 us ahead.
    job.kernel(at + 506'000, at + 518'000, static_cast<std::uint32_t>(i + 1));
  }
  const ClockCheck check = checked(job);
  EXPECT_FALSE(check.trusted());
  EXPECT_EQ(check.ahead_least_ns, 498'000);
  EXPECT_EQ(check.ahead_most_ns, 506'000);
}

TEST(ClockCheck, AsksEveryLaunchThatAWaitCameAfter) {
  Job job;
  // This one returned after the wait, though it was called first.
  job.call(10'000'000'000, 10'000'900'000, 1, activity::Purpose::launch, "other");
  job.kernel(10'000'506'000, 10'000'518'000, 1);
  job.call(10'000'001'000, 10'000'005'000, 2).kernel(10'000'507'000, 10'000'519'000, 2);
  job.wait_for_device(10'000'006'000, 10'000'020'000);
  EXPECT_EQ(checked(job).ahead_least_ns, 499'000);
}

/// Launches, each waited for by its stream, on a device that is ahead.
Job waiting_for_streams(std::int64_t ahead, const Stream& busy = {0, 1, 7}, int launches = 20) {
  Job job;
  for (std::int64_t i = 0; i < launches; ++i) {
    const std::int64_t at = 10'000'000'000 + 1'000'000 * i;
    const auto id = static_cast<std::uint32_t>(2 * i + 1);
    job.call(at, at + 4'000, id).kernel(at + 6'000 + ahead, at + 18'000 + ahead, id);
    if (busy != Stream{0, 1, 7}) {
      job.call(at + 4'000, at + 5'000, id + 1);
      job.kernel(at + 8'000 + ahead, at + 900'000 + ahead, id + 1, busy);
    }
    job.call(at + 5'000, at + 20'000, 0, activity::Purpose::wait, "main", "cudaStreamSynchronize");
  }
  return job;
}

TEST(ClockCheck, SeesADeviceThatIsAheadByStreamsThatOutlastEveryWait) {
  const ClockCheck check = checked(waiting_for_streams(500'000));
  EXPECT_FALSE(check.trusted());
  EXPECT_EQ(check.ahead_least_ns, 498'000);
  EXPECT_TRUE(checked(waiting_for_streams(0)).trusted());
  for (const int waits : {9, 10})
    EXPECT_EQ(checked(waiting_for_streams(500'000, {0, 1, 7}, waits)).ahead_least_ns.has_value(),
              waits == 10);
}

TEST(ClockCheck, ACallWithoutTimesIsPassedOver) {
  Job job = waiting_for_streams(500'000);
  activity::Trace& trace = job.process.trace;
  trace.calls.insert(trace.calls.begin(), trace.calls.front());
  trace.calls.front().begin_ns = trace.calls.front().end_ns = 0;
  trace.calls.front().correlation = 999'999;
  EXPECT_EQ(checked(job).ahead_least_ns, 498'000);
}

TEST(ClockCheck, AWaitForAStreamIsForNoOther) {
  EXPECT_TRUE(checked(waiting_for_streams(0, {0, 1, 8})).trusted())
      << "what another stream does may go on";
}

TEST(ClockCheck, SaysNothingOfAWaitWhereADeviceIsOneOfSeveral) {
  Job job = steady(100);
  job.kernel(10'000'001'000, 10'009'000'000, 7777, {1, 1, 7})
      .call(10'000'000'100, 10'000'000'200, 7777);
  job.wait_for_device(10'001'985'000, 10'001'999'000);
  EXPECT_TRUE(checked(job).trusted()) << "the other one is still at work";
}

TEST(ClockCheck, ForgivesAnErrorOfConversion) {
  Job job = steady(100);
  job.wait_for_device(10'001'985'000, 10'001'986'000);  // and the last kernel ends 2 us later
  const ClockCheck check = checked(job);
  EXPECT_EQ(check.ahead_least_ns, 2000);
  EXPECT_TRUE(check.trusted()) << check.problem;
  Job worse = steady(100);
  worse.wait_for_device(10'001'970'000, 10'001'971'000);  // 17 us before it ends
  EXPECT_TRUE(checked(worse).trusted()) << "the last launch came after this wait";
  worse.process.trace.calls[99].begin_ns -= 20'000;
  worse.process.trace.calls[99].end_ns -= 20'000;
  EXPECT_FALSE(checked(worse).trusted()) << "which is more than a launch takes";
}

TEST(ClockCheck, SeesADeviceThatIsBehind) {
  const ClockCheck check = checked(steady(1000, -1'000'000'000));
  EXPECT_EQ(check.problem,
            "1000 of 1000 kernels begin before their launch: the GPU's clock is behind the host's");
}

TEST(ClockCheck, ForgivesAFewKernelsThatBeginEarly) {
  Job job = steady(1000);
  for (std::size_t i = 0; i < 10; ++i) job.process.trace.kernels[i * 7].begin_ns -= 7'000;
  EXPECT_TRUE(checked(job).trusted());
  job.process.trace.kernels[500].begin_ns -= 7'000;
  EXPECT_FALSE(checked(job).trusted()) << "more than one in a hundred";
}

TEST(ClockCheck, MeasuresHowFastTheyDriftApart) {
  const ClockCheck check = checked(steady(20'000, 5'000'000'000, 200));
  ASSERT_TRUE(check.drift_ppm);
  EXPECT_NEAR(*check.drift_ppm, 200, 1);
  EXPECT_EQ(checked(steady(50, 5'000'000'000, 200)).drift_ppm, std::nullopt) << "of 1 ms";
  EXPECT_TRUE(checked(steady(100, 5'000'000'000, 200, 2'000'000)).drift_ppm);
  EXPECT_EQ(checked(steady(99, 5'000'000'000, 200, 2'000'000)).drift_ppm, std::nullopt) << "of 99";
}

TEST(ClockCheck, SaysNothingOfCallsAlone) {
  Job job = Job().call(1000, 1100, 1);
  EXPECT_TRUE(checked(job).trusted());
  EXPECT_EQ(checked(job).ahead_most_ns, std::nullopt);
}

TEST(ClockCheck, AQueueOfASecondIsPossible) {
  for (const std::int64_t longer : {0, 1}) {
    const std::int64_t begin = 10'000'004'000 + 1'000'000'000 + longer;
    Job job = Job().call(10'000'000'000, 10'000'004'000, 1).kernel(begin, begin + 10, 1);
    EXPECT_EQ(checked(job).trusted(), longer == 0) << longer;
  }
}

TEST(ClockCheck, AnErrorOfConversionIsTenMicrosecondsAtMost) {
  for (const std::int64_t longer : {0, 1}) {
    Job device = Job().call(1'000'000, 1'004'000, 1);
    device.kernel(1'020'000, 1'040'000 + longer, 1).wait_for_device(1'004'000, 1'030'000);
    EXPECT_EQ(checked(device).ahead_least_ns, 10'000 + longer)
        << "of a launch that returned as the wait began";
    EXPECT_EQ(checked(device).trusted(), longer == 0);
    const ClockCheck streams = checked(waiting_for_streams(12'000 + longer));
    EXPECT_EQ(streams.trusted(), longer == 0);
    EXPECT_EQ(streams.ahead_least_ns, longer == 0 ? std::nullopt : std::optional(10'001));
  }
}

TEST(ClockCheck, AWaitForTheDeviceHasThreeNames) {
  const struct {
    const char* name;
    activity::Purpose purpose;
    std::int64_t begin_ns;
    bool counts;
  } cases[] = {
      {"cudaDeviceSynchronize_v3020", activity::Purpose::wait, 1'005'000, true},
      {"cuCtxSynchronize", activity::Purpose::wait, 1'005'000, true},
      {"cudaThreadSynchronize", activity::Purpose::wait, 1'005'000, true},
      {"cudaEventSynchronize", activity::Purpose::wait, 1'005'000, false},
      {"cudaDeviceSynchronize", activity::Purpose::other, 1'005'000, false},
      {"cudaDeviceSynchronize", activity::Purpose::wait, 1'004'000, true},
      {"cudaDeviceSynchronize", activity::Purpose::wait, 1'003'999, false},  // before it returned
      {"cudaDeviceSynchronize", activity::Purpose::wait, 1'030'001, false},  // ends before
      {"cudaDeviceSynchronize", activity::Purpose::wait, 0, false},          // no begin
  };
  for (const auto& [name, purpose, begin_ns, counts] : cases) {
    Job job = Job().call(1'000'000, 1'004'000, 1).kernel(1'020'000, 1'040'000, 1);
    job.call(begin_ns, 1'030'000, 0, purpose, "main", name);
    EXPECT_EQ(checked(job).ahead_least_ns, counts ? std::optional(10'000) : std::nullopt)
        << name << " from " << begin_ns;
  }
}

TEST(ClockCheck, AWaitIsForTheLastOfAllThatWasLaunched) {
  Job job = Job().call(1'000'000, 1'001'000, 1).kernel(1'020'000, 1'045'000, 1);
  job.call(1'002'000, 1'003'000, 2).kernel(1'021'000, 1'022'000, 2, kOther);
  job.wait_for_device(900'000, 990'000);  // for nothing
  job.wait_for_device(1'004'000, 1'030'000).wait_for_device(1'031'000, 1'042'000);
  EXPECT_EQ(checked(job).ahead_least_ns, 15'000);
}

TEST(ClockCheck, AWaitForAStreamIsForCopiesAndFillsToo) {
  for (const auto purpose : {activity::Purpose::copy, activity::Purpose::fill}) {
    for (const char* const name : {"cudaStreamSynchronize_v3020", "cuStreamSynchronize"}) {
      Job job;
      for (std::uint32_t i = 0; i < 10; ++i) {
        const std::int64_t at = 10'000'000'000 + std::int64_t{1'000'000} * i;
        job.call(at, at + 4'000, i + 1, purpose, "main", "cudaMemcpyAsync");
        job.transfer(at + 506'000, at + 518'000, false, {0, 1, 7}, i + 1);
        job.call(at + 4'000, at + 20'000, 0, activity::Purpose::wait, "main", name);
      }
      job.transfer(0, 5, false, {0, 1, 9}, 1);               // without a time
      job.transfer(1'000, 2'000, false, {0, 1, 9}, 99'999);  // that nobody called for
      // Something was launched, so that there are clocks to compare, and ended late on a stream.
      job.call(1'000'000, 1'001'000, 500).kernel(1'002'000, 19'000'000'000, 500, {0, 1, 8});
      EXPECT_EQ(checked(job).ahead_least_ns, 498'000) << name;
      job.process.trace.calls[5].begin_ns = 0;
      EXPECT_EQ(checked(job).ahead_least_ns, std::nullopt) << "nine waits";
    }
  }
}

TEST(ClockCheck, TenWaitsForAStreamMustComeAfterWork) {
  for (const int launches : {9, 10}) {
    Job job = waiting_for_streams(500'000, {0, 1, 7}, launches);
    job.call(5'000, 6'000, 0, activity::Purpose::wait, "main", "cudaStreamSynchronize");
    EXPECT_EQ(checked(job).ahead_least_ns.has_value(), launches == 10) << launches;
  }
}

TEST(ClockCheck, OfAllWaitsForStreamsTheShortestTells) {
  Job job = waiting_for_streams(500'000);
  job.process.trace.kernels[7].begin_ns -= 100'000;
  job.process.trace.kernels[7].end_ns -= 100'000;
  EXPECT_EQ(checked(job).ahead_least_ns, 398'000);
  // The one before, 1 ms earlier, ends later.
  job.process.trace.kernels[6].end_ns += 950'000;
  EXPECT_EQ(checked(job).ahead_least_ns, 448'000);
  EXPECT_EQ(checked(waiting_for_streams(500'000, {0, 1, 8})).ahead_least_ns, 498'000)
      << "of two streams the first that ended";
}

TEST(ClockCheck, SaysByHowMuchItIsAheadAtMostAndNeverLessThanNothing) {
  Job job = Job().call(1'000'000, 1'004'000, 1).kernel(999'995, 1'050'000, 1);
  job.wait_for_device(1'005'000, 1'030'000);
  EXPECT_EQ(checked(job).problem, "the GPU's clock is ahead of the host's, by 0 ns at most");
  EXPECT_EQ(checked(job).ahead_most_ns, -5);
}

TEST(ClockCheck, MeasuresADriftInATenthOfASecondAndThreeWindows) {
  EXPECT_TRUE(checked(steady(101, 5'000'000'000, 200, 1'000'000)).drift_ppm);
  EXPECT_FALSE(checked(steady(101, 5'000'000'000, 200, 999'999)).drift_ppm) << "99,999,900 ns";
  EXPECT_NEAR(checked(steady(20'000, -5'000'000'000, 200)).drift_ppm.value_or(0), 200, 1)
      << "also where the clock is behind";
  // Of ten seconds, these tenths have launches.
  const auto in_windows = [](const std::vector<std::int64_t>& windows) {
    Job job;
    std::uint32_t id = 0;
    for (const std::int64_t window : windows) {
      for (std::int64_t i = 0; i < 50; ++i) {
        const std::int64_t at = 10'000'000'000 + 100'000'000 * window + 1'000 * i;
        job.call(at, at + 500, ++id);
        const std::int64_t kernel = at + 5'000'000'000 + window * 10'000 + (i == 7 ? 0 : 900 + i);
        job.kernel(kernel, kernel + 100, id);
      }
    }
    return checked(job).drift_ppm;
  };
  EXPECT_EQ(in_windows({0, 100}), std::nullopt);
  EXPECT_NEAR(in_windows({0, 45, 100}).value_or(0), 100, 1e-6) << "by the shortest of each";
  EXPECT_NEAR(in_windows({0, 25, 45, 100}).value_or(0), 100, 1e-6);
}

}  // namespace
}  // namespace launchgap::recording
