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

/// Of a device that is far behind: 1,000 launches at once, then each takes as long as a kernel.
Job with_full_queue() {
  Job job;
  std::int64_t at = kStart;
  for (std::uint32_t i = 0; i < 1200; ++i) {
    const std::int64_t takes = i < 1100 ? 4'000 : 100'000;
    job.call(at, at + takes, i + 1);
    const std::int64_t begin = kStart + 100'000'000 + std::int64_t{100'000} * i;
    job.kernel(begin, begin + 100'000, i + 1);
    at += takes;
  }
  return job;
}

TEST(LaunchTail, AQueueThatIsFullExplainsWhereClocksAgree) {
  const Job job = with_full_queue();
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

TEST(LaunchTail, IsLongBeyondItsLimitsAndNotAtThem) {
  EXPECT_EQ(causes_in(with_long(20, 40'000)), "usual 50") << "ten times the median";
  EXPECT_EQ(causes_in(with_long(20, 40'001)), "unexplained 1, usual 49");
  EXPECT_EQ(causes_in(with_long(0, 1'000'000, 1)), "usual 1");
  EXPECT_EQ(causes_in(with_long(20, 39'000, 99)), "usual 99");
  EXPECT_EQ(causes_in(with_long(20, 39'000, 100)), "unexplained 1, usual 99");
}

TEST(LaunchTail, TellsTimesAndShares) {
  Job job = with_long(20, 39'000, 100);
  job.process.trace.kernels[20].name = job.process.trace.name_index("another");
  job.process.trace.calls[99].end_ns += 400'000;
  const auto tail = launch_tail(job.process, launches_of(job.process, 0), 0, true, true);
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->launches, 100u);
  EXPECT_EQ(tail->time_ns, 98 * 4'000 + 39'000 + 404'000);
  EXPECT_EQ(tail->covered_ns, tail->time_ns);
  EXPECT_EQ(tail->p50_ns, 4'000);
  EXPECT_NEAR(tail->p99_ns, 39'000 + 0.01 * 365'000, 1e-6);
  ASSERT_EQ(tail->parts.size(), 2u);
  EXPECT_EQ(tail->parts[0].cause, "unexplained");
  EXPECT_EQ(tail->parts[0].longest_ns, 404'000);
  EXPECT_EQ(tail->parts[0].covered_ns, 404'000);
  EXPECT_EQ(tail->parts[0].last, 100u);
  EXPECT_EQ(tail->parts[0].what, "a_kernel");
  EXPECT_EQ(tail->parts[0].what_ns, 404'000);
  EXPECT_EQ(tail->parts[1].longest_ns, 39'000) << "not beyond the 99th percentile";
  EXPECT_EQ(tail->parts[1].last, 99u);
  EXPECT_EQ(tail->parts[1].what, "");
  EXPECT_EQ(tail->parts[1].what_ns, 0);
}

TEST(LaunchTail, OfACauseTheKernelWithTheMostTimeIsNamed) {
  Job job = with_long(20, 100'000, 300);
  for (const auto& [index, ns] : {std::pair(30, 60'000), std::pair(40, 60'000)}) {
    const auto at = static_cast<std::size_t>(index);
    job.process.trace.calls[at].end_ns = job.process.trace.calls[at].begin_ns + ns;
    job.process.trace.kernels[at].name = job.process.trace.name_index("another");
  }
  job.process.trace.kernels[5].name = job.process.trace.name_index("another");
  const auto tail = launch_tail(job.process, launches_of(job.process, 0), 0, true, true);
  ASSERT_TRUE(tail);
  const TailPart* const part = tail->part(TailCause::unexplained);
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->launches, 3u);
  EXPECT_EQ(part->what, "another");
  EXPECT_EQ(part->what_ns, 120'000);
}

TEST(LaunchTail, IsOfOneGpuAndOfWhatIsUnknown) {
  Job job = Job().call(1'000, 1'100, 1);  // its kernel is lost
  job.call(2'000, 2'010, 2).kernel(2'100, 2'200, 2).call(3'000, 3'001, 3);
  job.kernel(3'100, 3'200, 3, kOtherGpu);
  const RecordedLaunches launches = launches_of(job.process, 0);
  EXPECT_EQ(launch_tail(job.process, launches, 0, true, true)->time_ns, 110);
  EXPECT_EQ(launch_tail(job.process, launches, 0, false, true)->time_ns, 10);
  EXPECT_EQ(launch_tail(job.process, launches, 1, false, true)->time_ns, 1);
  EXPECT_FALSE(launch_tail(job.process, launches, 2, false, true));
}

/// One of 50 launches takes long, while so many kernels that nobody is known to have launched have
/// yet to begin.
Job with_waiting(std::uint32_t kernels) {
  Job job = with_long(20, 1'000'000);
  job.kernel(0, 5, 0);  // without a begin
  for (std::uint32_t i = 0; i < kernels; ++i) job.kernel(kStart + 100'000'000 + i, kStart * 2, 0);
  return job;
}

TEST(LaunchTail, AQueueIsFullOfNineHundredThatHaveNotBegun) {
  EXPECT_EQ(causes_in(with_waiting(900)), "queue-full 1, usual 49");
  EXPECT_EQ(causes_in(with_waiting(899)), "unexplained 1, usual 49");
  const std::int64_t called = with_long(20, 1'000'000).process.trace.calls[20].begin_ns;
  const struct {
    const char* what;
    Job also;
    bool waits;
  } cases[] = {
      {"begins right after the call began", Job().kernel(called + 1, called + 2, 0), true},
      {"begins with the call", Job().kernel(called, called + 2, 0), false},
      {"was launched before",
       Job().call(called - 1, called + 9, 99).kernel(kStart * 2, kStart * 3, 99),
       true},
      {"a copy", Job().transfer(called + 1, called + 2, false), true},
      {"a graph", Job().graph(called + 1, called + 2, 0), true},
      {"is of another stream", Job().kernel(called + 1, called + 2, 0, kOther), false},
      {"was asked for before, by the first of two calls",
       Job()
           .call(called - 10, called - 9, 99, activity::Purpose::copy)
           .call(called + 10, called + 11, 99, activity::Purpose::copy)
           .transfer(kStart * 2, kStart * 3, false, kStream, 99),
       true},
      {"in whichever order these are",
       Job()
           .call(called + 10, called + 11, 99, activity::Purpose::copy)
           .call(called - 10, called - 9, 99, activity::Purpose::copy)
           .transfer(kStart * 2, kStart * 3, false, kStream, 99),
       true},
      {"was asked for after it",
       Job()
           .call(0, called - 9, 99, activity::Purpose::copy)
           .call(called, called + 11, 99, activity::Purpose::copy)
           .transfer(kStart * 2, kStart * 3, false, kStream, 99),
       false},
      {"has no number, as calls of other kinds",
       Job()
           .call(called + 10, called + 11, 0, activity::Purpose::other)
           .kernel(kStart * 2, kStart * 3, 0),
       true},
  };
  for (const auto& [what, also, waits] : cases) {
    Job job = with_waiting(899);
    job.process.stream(kOther);
    activity::Trace& trace = job.process.trace;
    for (activity::Call call : also.process.trace.calls) {
      if (call.purpose == activity::Purpose::launch) call.purpose = activity::Purpose::other;
      trace.calls.push_back(call);
    }
    for (activity::KernelRun kernel : also.process.trace.kernels) {
      kernel.stream = job.process.stream(also.process.streams[kernel.stream]);
      trace.kernels.push_back(kernel);
    }
    trace.transfers = also.process.trace.transfers;
    trace.graphs = also.process.trace.graphs;
    EXPECT_THAT(causes_in(job), testing::StartsWith(waits ? "queue-full 1" : "unexplained 1"))
        << what;
  }
}

TEST(LaunchTail, WaitingIsComparedWithTwentyLaunchesThatFindRoom) {
  // So many at once, whose kernels begin late; each of the next ten takes a little longer than
  // twice as long, and finds 900 that wait.
  for (const std::uint32_t with_room : {19u, 20u}) {
    Job job;
    std::int64_t at = kStart;
    for (std::uint32_t i = 0; i < with_room + 10; ++i) {
      const std::int64_t takes = i < with_room ? 4'000 : 8'001;
      job.call(at, at + takes, i + 1);
      job.kernel(kStart * 2, kStart * 3, i + 1, i < with_room ? kOther : kStream);
      at += takes;
    }
    for (int i = 0; i < 900; ++i) job.kernel(kStart * 2, kStart * 3, 0);
    EXPECT_EQ(causes_in(job), with_room == 20 ? "queue-full 10, usual 20" : "usual 29");
  }
}

TEST(LaunchTail, WhatGoesOnBesideItForHalfOfItExplainsIt) {
  using Kind = activity::OverheadKind;
  for (const auto& [kind, cause] : {std::pair(Kind::compiler, "first-launch"),
                                    std::pair(Kind::module_loading, "first-launch"),
                                    std::pair(Kind::lazy_function_loading, "first-launch"),
                                    std::pair(Kind::command_buffer_full, "queue-full"),
                                    std::pair(Kind::resource, "recorder"),
                                    std::pair(Kind::other, "recorder")}) {
    for (const std::int64_t covers : {499'999, 500'000}) {
      Job job = with_long(20, 1'000'000);
      const std::int64_t begin = job.process.trace.calls[20].begin_ns;
      job.process.trace.overheads = {{0, begin + 900'000, 0, Kind::command_buffer_full},
                                     {begin, begin + covers, 0, kind}};
      EXPECT_EQ(causes_in(job),
                (covers == 500'000 ? std::string(cause) : "unexplained") + " 1, usual 49");
    }
  }
  for (const std::int64_t covers : {499'999, 500'000}) {
    Job job = with_long(20, 1'000'000);
    const activity::Call call = job.process.trace.calls[20];
    job.process.pauses.push_back({call.begin_ns, call.begin_ns + covers, call.thread});
    EXPECT_EQ(causes_in(job),
              covers == 500'000 ? "host-pause 1, usual 49" : "unexplained 1, usual 49");
    job = with_long(20, 1'000'000);
    job.call(call.begin_ns, call.begin_ns + covers, 0, activity::Purpose::copy, "other");
    EXPECT_EQ(causes_in(job),
              covers == 500'000 ? "overlapping-call 1, usual 49" : "unexplained 1, usual 49");
  }
}

TEST(LaunchTail, WhatGoesOnBesideAQuarterOfUsualLaunchesExplainsNothing) {
  for (const std::size_t beside : {12u, 13u}) {
    Job job = with_long(20, 1'000'000, 49);  // 48 are usual
    for (std::size_t i = 0; i <= beside; ++i) {
      const activity::Call& call = job.process.trace.calls[i == 0 ? 20 : 20 + i];
      job.process.trace.overheads.push_back({call.begin_ns, call.end_ns, 0, {}});
    }
    EXPECT_EQ(causes_in(job), beside == 12 ? "recorder 1, usual 48" : "unexplained 1, usual 48");
  }
  // Launches that take no time are beside nothing.
  Job job = with_long(20, 1'000'000);
  for (std::size_t i = 30; i < 50; ++i)
    job.process.trace.calls[i].end_ns = job.process.trace.calls[i].begin_ns;
  job.process.trace.overheads = {{kStart, kStart * 2, 0, {}}};
  for (std::size_t i = 0; i < 30; ++i) {
    if (i == 20) continue;
    job.process.trace.calls[i].begin_ns -= kStart / 2;
    job.process.trace.calls[i].end_ns -= kStart / 2;
  }
  EXPECT_EQ(causes_in(job), "recorder 1, usual 49");
}

TEST(LaunchTail, OfAnotherThreadOnlyLaunchesOfItsOwnAreUsual) {
  // "other" launches too, and always while "main" allocates; that tells nothing of "main".
  Job job = with_long(20, 1'000'000, 60);
  const std::int64_t called = job.process.trace.calls[20].begin_ns;
  job.call(called, called + 900'000, 0, activity::Purpose::allocate, "third", "cudaMalloc");
  for (std::uint32_t i = 0; i < 30; ++i) {
    const std::int64_t at = called + 10'000 + std::int64_t{20'000} * i;
    job.call(at, at + 4'000, 500 + i, activity::Purpose::launch, "other");
    job.kernel(at + 5'000, at + 6'000, 500 + i, kOther);
  }
  job.call(0, kStart * 2, 0, activity::Purpose::wait, "third", "cudaStreamSynchronize");
  const auto tail = launch_tail(job.process, launches_of(job.process, 0), 0, true, true);
  ASSERT_TRUE(tail);
  const TailPart* const part = tail->part(TailCause::overlapping_call);
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->launches, 1u);
  EXPECT_EQ(part->what, "cudaMalloc") << "a call without a begin is not looked at";
  EXPECT_EQ(part->what_ns, 1'000'000);
}

TEST(LaunchTail, TheCallThatSharesTheMostTimeIsNamed) {
  Job job = with_long(20, 1'000'000);
  const activity::Call own = job.process.trace.calls[20];
  const auto beside = [&](std::int64_t from, std::int64_t to, const char* name) {
    job.call(own.begin_ns + from, own.begin_ns + to, 0, activity::Purpose::other, "other", name);
  };
  beside(-100'000, 300'000, "early");
  beside(310'000, 650'000, "within");
  beside(700'000, 1'100'000, "late");
  beside(-100'000, 240'000, "as long");
  job.call(own.begin_ns + 1, own.end_ns + 1, 0, activity::Purpose::other, "main", "its own");
  const auto tail = launch_tail(job.process, launches_of(job.process, 0), 0, true, true);
  ASSERT_TRUE(tail && tail->part(TailCause::overlapping_call));
  EXPECT_EQ(tail->part(TailCause::overlapping_call)->what, "within");
}

TEST(LaunchTail, OfManyThatAreOverlappedTheLongest32AreLookedAt) {
  Job job;
  std::int64_t at = kStart;
  for (std::uint32_t i = 0; i < 133; ++i) {
    const std::int64_t takes = i < 100 ? 1'000 : i == 101 ? 50'000 : 100'000;
    job.call(at, at + takes, i + 1).kernel(at + takes, at + takes + 5, i + 1);
    if (i >= 100) job.call(at, at + takes, 0, activity::Purpose::copy, "other", "cudaMemcpy");
    at += takes + 5'000;
  }
  const auto tail = launch_tail(job.process, launches_of(job.process, 0), 0, true, true);
  ASSERT_TRUE(tail && tail->part(TailCause::overlapping_call));
  EXPECT_EQ(tail->part(TailCause::overlapping_call)->launches, 33u);
  EXPECT_EQ(tail->part(TailCause::overlapping_call)->what_ns, 32 * 100'000);
}

/// 1,000 launches of 4 us, and those of a kernel that takes so long each time.
std::string causes_of_kernel(const std::vector<std::int64_t>& times) {
  Job job;
  std::int64_t at = kStart;
  std::uint32_t id = 0;
  const auto add = [&](std::int64_t ns, const char* name) {
    ++id;
    job.call(at, at + ns, id).kernel(at + ns, at + ns + 1'000, id, kStream, name);
    at += ns + 5'000;
  };
  for (int i = 0; i < 1000; ++i) add(4'000, "a_kernel");
  for (const std::int64_t ns : times) add(ns, "another");
  return causes_in(job);
}

TEST(LaunchTail, AKernelIsSlowFromOneAndAHalfOfTheUsualTimeOn) {
  const struct {
    std::vector<std::int64_t> times;  // the first one is left out
    std::string_view causes;
  } cases[] = {
      {{0, 6'000, 6'000, 6'000, 6'000, 6'000, 7'000, 7'000, 7'000}, "slow-kernel 8, usual 1001"},
      {{0, 5'999, 5'999, 5'999, 5'999, 5'999, 7'000}, "unexplained 6, usual 1001"},
      {{0, 6'000, 6'000, 6'000, 6'000, 6'000, 12'000}, "slow-kernel 6, usual 1001"},
      {{0, 6'000, 6'000, 6'000, 6'000, 6'000, 12'001}, "slow-kernel 5, unexplained 1, usual 1001"},
      // Of six others, the mean of the middle two.
      {{0, 5'000, 5'000, 5'500, 6'500, 6'500, 6'500, 7'000}, "slow-kernel 7, usual 1001"},
      {{0, 5'000, 5'000, 5'499, 6'500, 6'500, 6'500, 7'000},
       "slow-kernel 3, unexplained 4, usual 1001"},
      // Of each, those but itself.
      {{0, 4'000, 4'000, 5'900, 8'000, 8'000, 8'000}, "slow-kernel 1, unexplained 3, usual 1003"},
      {{5'000, 6'000, 6'000, 6'000, 6'000, 6'000}, "first-launch 1, unexplained 5, usual 1000"},
  };
  for (const auto& [times, causes] : cases)
    EXPECT_EQ(causes_of_kernel(times), causes) << testing::PrintToString(times);
}

TEST(LaunchTail, AFirstLaunchIsOneWhoseKernelIsKnown) {
  Job job = with_long(20, 1'000'000);
  job.process.trace.kernels[20].name = job.process.trace.name_index("another");
  job.process.trace.kernels.erase(job.process.trace.kernels.begin() + 5);
  EXPECT_EQ(causes_in(job), "first-launch 1, usual 49");
}

TEST(OwnLaunchTail, HasNoFirstLaunchesAsAWarmUpCameBefore) {
  const auto tail = own_launch_tail(with_long(0, 1'000'000).process.trace);
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->launches, 50u);
  ASSERT_EQ(tail->parts.size(), 2u);
  EXPECT_EQ(tail->parts[0].cause, "unexplained");
  EXPECT_EQ(own_launch_tail({}), std::nullopt);
}

TEST(OwnLaunchTail, ALongCallOfASampleInWhichTheThreadWasTakenOffItsCpuWasHeldUpByTheHost) {
  const Job job = with_long(20, 1'000'000);
  const std::int64_t begin = job.process.trace.calls[20].begin_ns;
  const auto cause = [&](std::vector<OffItsCpu> off) {
    const auto tail = own_launch_tail(job.process.trace, off);
    return tail->parts.at(0).cause;
  };
  EXPECT_EQ(cause({}), "unexplained");
  EXPECT_EQ(cause({{begin - 100, begin + 1'010'000}}), "host-pause");
  EXPECT_EQ(cause({{begin - 5'000, begin - 100}, {begin - 90, begin + 1'010'000}}), "host-pause");
  EXPECT_EQ(cause({{begin - 90'000, begin - 100}}), "unexplained") << "another sample";
  EXPECT_EQ(cause({{begin + 1'100'000, begin + 1'200'000}}), "unexplained") << "a later one";
}

TEST(OwnLaunchTail, IsOfClocksThatAgree) {
  const auto tail = own_launch_tail(with_full_queue().process.trace);
  ASSERT_TRUE(tail);
  EXPECT_NE(tail->part(TailCause::queue_full), nullptr);
}

}  // namespace
}  // namespace launchgap::recording
