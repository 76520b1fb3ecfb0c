#include "harness/import/launch_tail.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

/// How many launches each cause has: "unexplained 1, usual 49".
std::string causes_in(const Job& job, bool clocks_agree = true) {
  const std::optional<LaunchTail> tail =
      launch_tail(job.process, launches_of(job.process, 0), 0, true, clocks_agree);
  if (!tail) return "";
  std::map<std::string, std::uint64_t> found;
  std::int64_t time = 0;
  double shares = 0;
  for (const TailPart& part : tail->parts) {
    found[part.cause] = part.launches;
    time += part.time_ns;
    shares += tail->share(part);
  }
  EXPECT_EQ(time, tail->time_ns);
  EXPECT_NEAR(shares, 1, 1e-12);
  std::string text;
  for (const auto& [cause, launches] : found)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cause, launches);
  return text;
}

constexpr std::int64_t kStart = 10'000'000'000;

/// As steady(), and launch number `index` takes so long.
Job with_long(int index, std::int64_t ns, int n = 50) {
  Job job;
  std::int64_t at = kStart;
  for (int i = 0; i < n; ++i) {
    const std::int64_t takes = i == index ? ns : 4'000;
    const auto id = static_cast<std::uint32_t>(i + 1);
    job.call(at, at + takes, id);
    job.kernel(at + takes, at + takes + 2'000, id);
    at += takes + 16'000;
  }
  return job;
}

TEST(LaunchTail, ThereIsNoneWithoutLaunches) {
  EXPECT_EQ(causes_in(Job()), "");
}

TEST(LaunchTail, OfLaunchesThatTakeEquallyLongAllAreUsual) {
  EXPECT_EQ(causes_in(steady(200)), "usual 200");
}

TEST(LaunchTail, AGiantIsLongAlsoOfAFew) {
  EXPECT_EQ(causes_in(with_long(0, 1'000'000)), "first-launch 1, usual 49");
  EXPECT_EQ(causes_in(with_long(20, 1'000'000)), "unexplained 1, usual 49");
  EXPECT_EQ(causes_in(with_long(20, 39'000)), "usual 50") << "less than ten times the median";
  EXPECT_EQ(causes_in(with_long(20, 39'000, 150)), "unexplained 1, usual 149")
      << "of 150 there are slowest 1 %";
}

TEST(LaunchTail, TheFirstLaunchOfAnotherKernelIsOneToo) {
  Job job = with_long(20, 1'000'000);
  job.process.trace.kernels[20].name = job.process.trace.name_index("another");
  EXPECT_EQ(causes_in(job), "first-launch 1, usual 49");
}

TEST(LaunchTail, CodeThatIsLoadedMakesAFirstLaunchAndTheRecorderNone) {
  for (const auto& [kind, cause] :
       {std::pair(activity::OverheadKind::lazy_function_loading, "first-launch"),
        std::pair(activity::OverheadKind::command_buffer_full, "queue-full"),
        std::pair(activity::OverheadKind::buffer_flush, "recorder")}) {
    Job job = with_long(20, 1'000'000);
    const activity::Call& call = job.process.trace.calls[20];
    job.process.trace.overheads.push_back({call.begin_ns, call.begin_ns + 600'000, 0, kind});
    EXPECT_EQ(causes_in(job), std::string(cause) + " 1, usual 49");
    job.process.trace.overheads.back().end_ns = call.begin_ns + 400'000;
    EXPECT_EQ(causes_in(job), "unexplained 1, usual 49") << "less than half";
  }
}

TEST(LaunchTail, AnotherThreadsCallExplainsUnlessItGoesOnAlways) {
  Job job = with_long(20, 1'000'000);
  const activity::Call long_one = job.process.trace.calls[20];
  job.call(long_one.begin_ns - 10'000,
           long_one.end_ns,
           0,
           activity::Purpose::allocate,
           "other",
           "cudaMalloc_v3020");
  const auto tail = launch_tail(job.process, launches_of(job.process, 0), 0, true, true);
  ASSERT_TRUE(tail);
  const TailPart* const part = tail->part(TailCause::overlapping_call);
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->launches, 1);
  EXPECT_EQ(part->what, "cudaMalloc");
  EXPECT_EQ(part->last, 21);
  Job waiting = with_long(20, 1'000'000);
  waiting.call(kStart, kStart + 100'000'000, 0, activity::Purpose::wait, "other", "cudaStreamWait");
  EXPECT_EQ(causes_in(waiting), "unexplained 1, usual 49");
}

TEST(LaunchTail, AQueueThatIsFullExplainsWhereClocksAgree) {
  // A device that is far behind: 1,000 launches at once, then each takes as long as a kernel.
  Job job;
  std::int64_t at = kStart;
  for (std::uint32_t i = 0; i < 1200; ++i) {
    const std::int64_t takes = i < 1100 ? 4'000 : 100'000;
    job.call(at, at + takes, i + 1);
    const std::int64_t begin = kStart + 100'000'000 + std::int64_t{100'000} * i;
    job.kernel(begin, begin + 100'000, i + 1);
    at += takes;
  }
  EXPECT_EQ(causes_in(job), "queue-full 100, usual 1100");
  EXPECT_EQ(causes_in(job, false), "unexplained 100, usual 1100");
}

TEST(LaunchTail, WhereMostLaunchesWaitForRoomWaitingIsNotUsual) {
  // As many kernels as a queue takes, and from then on each launch waits for one to begin.
  const auto waiting = [](std::int64_t ns) {
    Job job;
    std::int64_t at = kStart;
    for (std::uint32_t i = 0; i < 4000; ++i) {
      const std::int64_t takes = i < 1000 ? 5'000 : ns;
      const std::int64_t begins = kStart + 10'000 + std::int64_t{i} * 51'000;
      job.call(at, at + takes, i + 1).kernel(begins, begins + 50'000, i + 1);
      at += takes + 2'000;
    }
    return job;
  };
  EXPECT_THAT(causes_in(waiting(45'000)),
              testing::MatchesRegex("queue-full [23][0-9]{3}, usual [0-9]+"))
      << "though none takes ten times the median";
  EXPECT_EQ(causes_in(waiting(45'000), false), "usual 4000");
  EXPECT_EQ(causes_in(waiting(10'000)), "usual 4000") << "twice as long";
  EXPECT_THAT(causes_in(waiting(10'001)), testing::StartsWith("queue-full ")) << "and longer";
}

TEST(LaunchTail, OfTwoLaunchesTheGiantIsTold) {
  EXPECT_EQ(causes_in(with_long(0, 1'000'000, 2)), "first-launch 1, usual 1");
  EXPECT_EQ(causes_in(with_long(1, 1'000'000, 2)), "unexplained 1, usual 1");
  EXPECT_EQ(causes_in(with_long(0, 30'000, 2)), "usual 2");
}

TEST(LaunchTail, AnOnlyLaunchIsLongFromAMillisecondOn) {
  EXPECT_EQ(causes_in(with_long(0, 1'000'001, 1)), "first-launch 1");
  EXPECT_EQ(causes_in(with_long(0, 900'000, 1)), "usual 1");
}

TEST(LaunchTail, CallsThatTakeNoTimeAreUsual) {
  Job job;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::int64_t at = kStart + std::int64_t{20'000} * i;
    job.call(at, at, i + 1).kernel(at + 6'000, at + 8'000, i + 1);
  }
  EXPECT_EQ(causes_in(job), "usual 20") << "and the shares add up";
}

TEST(LaunchTail, CallsOfSeveralThreadsGoOnForLessThanTheirSum) {
  Job job;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::int64_t at = kStart + std::int64_t{10'000} * i;
    job.call(at, at + 4'000, 2 * i + 1);
    job.call(at + 2'000, at + 6'000, 2 * i + 2, activity::Purpose::launch, "other");
    job.kernel(at + 6'000, at + 7'000, 2 * i + 1).kernel(at + 7'000, at + 8'000, 2 * i + 2);
  }
  const auto tail = launch_tail(job.process, launches_of(job.process, 0), 0, true, true);
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->time_ns, 800'000);
  EXPECT_EQ(tail->covered_ns, 600'000);
  EXPECT_EQ(tail->part(TailCause::usual)->covered_ns, 600'000);
}

TEST(LaunchTail, AThreadThatWasOffItsCpuIsPaused) {
  Job job = with_long(20, 1'000'000);
  const activity::Call& call = job.process.trace.calls[20];
  job.process.pauses.push_back({call.begin_ns, call.end_ns, call.thread});
  EXPECT_EQ(causes_in(job), "host-pause 1, usual 49");
  job.process.pauses.back().thread = call.thread + 1;
  EXPECT_EQ(causes_in(job), "unexplained 1, usual 49");
}

/// Every twelfth launches another kernel, so many times; of those but the first, so many from the
/// second on take long.
Job with_another_kernel(std::uint32_t times, std::uint32_t take_long) {
  Job job;
  for (std::uint32_t i = 0; i < 12 * times; ++i) {
    const bool another = i % 12 == 6;
    const bool takes_long = another && i / 12 <= take_long;
    const std::int64_t at = kStart + std::int64_t{200'000} * i;
    job.call(at, at + (takes_long ? 60'000 : 4'000), i + 1);
    job.kernel(at + 70'000, at + 80'000, i + 1, {0, 1, 7}, another ? "slow_kernel" : "a_kernel");
  }
  return job;
}

TEST(LaunchTail, AKernelWhoseLaunchesAlwaysTakeLongExplainsThem) {
  EXPECT_EQ(causes_in(with_another_kernel(7, 6)), "first-launch 1, slow-kernel 6, usual 77");
  EXPECT_EQ(causes_in(with_another_kernel(6, 5)), "first-launch 1, unexplained 5, usual 66")
      << "each has four others, which is no always";
}

TEST(LaunchTail, WhatTakesLongNowAndThenDoesNotAlways) {
  EXPECT_EQ(causes_in(with_another_kernel(7, 4)), "first-launch 1, slow-kernel 4, usual 79")
      << "of five others three do";
  EXPECT_EQ(causes_in(with_another_kernel(7, 3)), "first-launch 1, unexplained 3, usual 80")
      << "of five others two do";
}

TEST(LaunchTail, LostKernelsHaveLaunchesAllTheSame) {
  Job job = with_long(20, 1'000'000);
  job.process.trace.kernels.erase(job.process.trace.kernels.begin() + 20);
  EXPECT_EQ(causes_in(job), "unexplained 1, usual 49");
}

}  // namespace
}  // namespace launchgap::recording
