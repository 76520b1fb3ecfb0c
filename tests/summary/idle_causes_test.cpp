#include <gmock/gmock.h>

#include "tests/summary/made.h"
#include "tests/summary/made_process.h"

namespace launchgap {
namespace {

using namespace testing;

std::vector<std::string> idle_codes(const MadeProcess& made) {
  return made.codes_by(add_idle_causes);
}
std::vector<Finding> idle_causes(const MadeProcess& made) {
  return made.found_by(add_idle_causes);
}

StallRecord a_stall(const char* kind, std::uint64_t gaps, std::int64_t lost_ns) {
  return {kind, "cudaCall", gaps, 2 * lost_ns, lost_ns, lost_ns};
}

TEST(IdleCauses, AreNoneOfAProcessOfWhichNothingIsKnown) {
  MadeProcess made({}, 1);
  EXPECT_THAT(idle_codes(made), IsEmpty());
  made.idle_share = 1;
  EXPECT_THAT(idle_codes(made), IsEmpty());
  made.launches("idle", "api_record_ns", 100, 5);
  EXPECT_THAT(idle_codes(made), IsEmpty());
}

TEST(IdleCauses, StallsAreOfTheirKindFromATwentiethOn) {
  MadeProcess made;
  made.job.stalls = {a_stall("allocate", 2, 49),
                     a_stall("wait", 2, 20),
                     a_stall("other", 2, 900),
                     a_stall("wait", 2, 30)};
  const Finding found = only(idle_causes(made));
  EXPECT_EQ(found.code, "wait-stalls");
  EXPECT_EQ(found.share, 0.05);
  ASSERT_THAT(found.evidence, SizeIs(3));
  EXPECT_EQ(text_of(found.evidence[2]), "the GPU idles during these calls: 100 ns");
  made.job.stalls = {a_stall("wait", 2, 49), a_stall("allocate", 2, 50)};
  EXPECT_THAT(idle_codes(made), ElementsAre("allocation-stalls"));
  made.job.stalls = std::vector<StallRecord>(4, a_stall("wait", 2, 25));
  EXPECT_THAT(only(idle_causes(made)).evidence, SizeIs(4)) << "three calls, and the idle time";
}

TEST(IdleCauses, AContextIsMadeByOneLongCallOfTheAllocatorFromATwentiethOn) {
  MadeProcess made({}, 800'000'000);
  made.job.stalls = {a_stall("allocate", 1, 40'000'000), a_stall("allocate", 2, 40'000'000)};
  EXPECT_THAT(idle_codes(made), ElementsAre("context-creation", "allocation-stalls"));
  EXPECT_EQ(idle_causes(made)[0].share, 0.05);
  made.job.stalls = {a_stall("allocate", 1, 39'999'999)};
  EXPECT_THAT(idle_codes(made), IsEmpty());
  made.job.stalls = {a_stall("wait", 1, 40'000'000)};
  EXPECT_THAT(idle_codes(made), ElementsAre("wait-stalls"));
}

TEST(IdleCauses, PausesAndLongCallsAreToldFromATwentiethOn) {
  MadeProcess made;
  made.job.pauses = {1, 49, 40, ""};
  made.job.long_calls = {1, 49, 40, "cuCall"};
  EXPECT_THAT(idle_codes(made), IsEmpty());
  made.job.pauses.total_ns = made.job.long_calls.total_ns = 50;
  const std::vector<Finding> found = idle_causes(made);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].sentence,
            "The program leaves the GPU without work for 50 ns, 5 % of the recording, in 1 pause.");
  EXPECT_EQ(found[1].sentence,
            "One call of cuCall took 50 ns of 1.00 µs, and the GPU was idle meanwhile.");
  made.job.long_calls.count = 2;
  EXPECT_THAT(idle_causes(made)[1].sentence, StartsWith("2 long calls took 50 ns of 1.00 µs"));
}

TEST(IdleCauses, QueuedWorkIsAQuestionFromAFifthOn) {
  EXPECT_THAT(idle_codes(MadeProcess({{"idle_queued_ns", 199}})), IsEmpty());
  MadeProcess made({{"idle_queued_ns", 200}});
  Finding found = only(idle_causes(made));
  EXPECT_EQ(found.code, "queued-work-waits");
  ASSERT_THAT(found.evidence, SizeIs(2));
  EXPECT_EQ(text_of(found.evidence[1]), "GPU idle: 0 %") << "where no share was recorded";
  made.job.queued_graph_ns = 1;
  EXPECT_THAT(only(idle_causes(made)).evidence, SizeIs(3));
  made.job.queued_graph_ns = 99;
  EXPECT_THAT(only(idle_causes(made)).sentence, HasSubstr("it waits for another stream"));
  made.job.queued_graph_ns = 100;
  found = only(idle_causes(made));
  EXPECT_THAT(found.sentence, HasSubstr("20 % of the time although work is queued: 10 % before"));
  EXPECT_THAT(found.unknown, StartsWith("what the graph waits for"));
  EXPECT_THAT(found.remedy, HasSubstr("--cuda-graph-trace=node"));
}

TEST(IdleCauses, KernelsAreLateFromAMillisecondOnInTwentyLaunches) {
  const auto found_of = [](std::size_t launches, double delay_ns, double call_ns, double idle_ns) {
    MadeProcess made({{"idle_launch_ns", idle_ns}});
    made.launches("idle", "launch_ns", launches, delay_ns);
    made.launches("idle", "api_record_ns", launches, call_ns);
    return idle_causes(made);
  };
  EXPECT_THAT(found_of(19, 1'000'000, 0, 50), IsEmpty());
  EXPECT_THAT(found_of(20, 999'999, 0, 50), IsEmpty());
  EXPECT_THAT(found_of(20, 1'000'000, 0, 49), IsEmpty());
  const Finding late = only(found_of(20, 1'000'000, 499'999, 50));
  EXPECT_THAT(late.sentence, StartsWith("A kernel begins 1.00 ms after its launch call"));
  EXPECT_EQ(late.share, 0.05);
  const Finding in_call = only(found_of(20, 1'000'000, 500'000, 50));
  EXPECT_THAT(in_call.sentence, StartsWith("A launch call takes 500 µs (p50)"));
  EXPECT_EQ(in_call.unknown, "what the driver does in the call");
}

/// A GPU that idles half of the time, whose host takes 9 ns from one launch call of 8 ns to the
/// next.
MadeProcess with_slow_host(double program_ns, double calling_ns, std::size_t launches = 100) {
  MadeProcess made({{"idle_program_ns", program_ns}, {"idle_calling_ns", calling_ns}});
  made.idle_share = 0.5;
  made.launches("idle", "api_record_ns", launches, 8);
  made.launches("idle", "since_last_ns", launches, 9);
  return made;
}

TEST(IdleCauses, AHostIsSlowFromHalfOfTheIdleTimeOn) {
  EXPECT_THAT(idle_codes(with_slow_host(249, 0)), IsEmpty());
  EXPECT_THAT(idle_codes(with_slow_host(125, 124)), IsEmpty());
  const Finding found = only(idle_causes(with_slow_host(125, 125)));
  EXPECT_EQ(found.code, "slow-host");
  EXPECT_EQ(found.share, 0.25);
  EXPECT_THAT(found.sentence, HasSubstr("it spends 9 ns from one launch call to the next (p50)"));
  EXPECT_EQ(text_of(found.evidence.at(0)), "GPU idle: 50 %");
  EXPECT_EQ(text_of(found.evidence.at(1)), "launch call, p50: 8 ns");
  EXPECT_THAT(found.evidence, SizeIs(2)) << "no kernel is known";
}

TEST(IdleCauses, AHostIsNotSlowInItsPausesAndLongCalls) {
  for (PausesRecord JobRecord::*of :
       {&JobRecord::pauses, &JobRecord::long_calls, &JobRecord::long_launches}) {
    MadeProcess made = with_slow_host(290, 0);
    (made.job.*of).total_ns = 40;
    EXPECT_THAT(idle_codes(made), ElementsAre("slow-host"));
    (made.job.*of).total_ns = 41;
    EXPECT_THAT(idle_codes(made), IsEmpty());
  }
}

TEST(IdleCauses, AHostIsNotSlowWhereLaunchCallsTakeAllOfTheTime) {
  MadeProcess made = with_slow_host(250, 0);
  made.launches("idle", "since_last_ns", 100, 8);
  EXPECT_THAT(idle_codes(made), IsEmpty());
  made.launches("idle", "since_last_ns", 100, 8.5);
  EXPECT_THAT(idle_codes(made), ElementsAre("slow-host"));
}

TEST(IdleCauses, BetweenLaunchesAreLookedForWhereAGpuIdlesMoreThanAFifth) {
  MadeProcess made = with_slow_host(125, 0);
  made.idle_share = 0.2;
  EXPECT_THAT(idle_codes(made), IsEmpty());
  made.idle_share = 0.21;
  EXPECT_THAT(idle_codes(made), ElementsAre("slow-host"));
  EXPECT_THAT(idle_codes(with_slow_host(250, 0, 99)), IsEmpty());
}

TEST(IdleCauses, PythonThatCallsOftenerThanItLaunchesExcusesAHost) {
  MadeProcess made = with_slow_host(250, 0);
  made.job.python_calls = 99;
  EXPECT_EQ(only(idle_causes(made)).severity, Severity::act);
  made.job.python_calls = 100;
  EXPECT_EQ(only(idle_causes(made)).severity, Severity::note);
}

/// Between a launch call and its work a GPU idles for so long; of 100 kernels some are shorter than
/// their call of 8 ns.
MadeProcess with_short_kernels(double starting_ns, std::size_t shorter, std::size_t kernels = 100) {
  MadeProcess made({{"idle_launch_ns", starting_ns}});
  made.idle_share = 0.5;
  made.launches("busy", "api_record_ns", 100, 8);
  std::vector<double> kernel_ns(kernels, 8);
  std::fill_n(kernel_ns.begin(), shorter, 7);
  made.add("recorded/launch/stream:busy", "kernel_ns", kernel_ns);
  return made;
}

TEST(IdleCauses, KernelsAreShortWhereHalfOfThemAre) {
  EXPECT_THAT(idle_codes(with_short_kernels(50, 49)), IsEmpty());
  EXPECT_THAT(idle_codes(with_short_kernels(49, 50)), IsEmpty());
  EXPECT_THAT(idle_codes(with_short_kernels(50, 50, 99)), IsEmpty());
  const Finding found = only(idle_causes(with_short_kernels(50, 50)));
  EXPECT_EQ(found.code, "short-kernels");
  EXPECT_EQ(found.share, 0.05);
  ASSERT_THAT(found.evidence, SizeIs(4));
  EXPECT_EQ(text_of(found.evidence[2]), "kernel, p50: 7.50 ns");
  EXPECT_EQ(text_of(found.evidence[3]), "kernels shorter than a launch call: 50 %");
}

TEST(IdleCauses, LaunchGapsAreToldFromAFifthOnWhereKernelsAreNotShort) {
  EXPECT_THAT(idle_codes(with_short_kernels(199, 0)), IsEmpty());
  EXPECT_THAT(idle_codes(with_short_kernels(200, 0)), ElementsAre("launch-gaps"));
  EXPECT_THAT(idle_codes(with_short_kernels(200, 100)), ElementsAre("short-kernels"));
  MadeProcess made = with_short_kernels(220, 0);
  made.job.late_starts.total_ns = 20;
  EXPECT_EQ(only(idle_causes(made)).share, 0.2);
  made.job.late_starts.total_ns = 21;
  EXPECT_THAT(idle_codes(made), IsEmpty());
  made.job.late_starts.total_ns = 500;
  EXPECT_THAT(idle_codes(made), IsEmpty());
}

/// 101 launches on an idle stream, whose kernels take 0 to 1000 ns and whose calls end `rest_ns`
/// times their number later.
MadeProcess with_blocking(double rest_ns, double kernel_ns = 10, std::size_t launches = 101) {
  MadeProcess made({{"idle_launch_ns", 30}, {"idle_program_ns", 20}});
  made.idle_share = 0.5;
  std::vector<double> calls, kernels;
  for (std::size_t i = 0; i < launches; ++i) {
    kernels.push_back(kernel_ns * static_cast<double>(i));
    calls.push_back(4 + kernels.back() + rest_ns * static_cast<double>(i));
  }
  made.launches("idle", "launch_ns", launches, 4);
  made.add("recorded/launch/stream:idle", "kernel_ns", kernels);
  made.add("recorded/launch/stream:idle", "api_record_ns", calls);
  return made;
}

TEST(IdleCauses, LaunchesBlockWhereTheirCallsGoWithTheirKernels) {
  const Finding found = only(idle_causes(with_blocking(2)));
  EXPECT_EQ(found.code, "blocking-launches");
  EXPECT_EQ(found.share, 0.05);
  EXPECT_THAT(found.sentence, EndsWith("and the GPU is idle 50 % of the time."));
  EXPECT_THAT(idle_codes(with_blocking(2.125)), Not(Contains("blocking-launches")));
  EXPECT_THAT(idle_codes(with_blocking(0)), Contains("blocking-launches"));
  EXPECT_THAT(idle_codes(with_blocking(0, 0)), Not(Contains("blocking-launches")))
      << "kernels that are all alike tell nothing";
  EXPECT_THAT(idle_codes(with_blocking(2, 10, 100)), Contains("blocking-launches"));
}

TEST(IdleCauses, LaunchesBlockWhereThatCostsATwentieth) {
  MadeProcess made = with_blocking(2);
  made.add("recorded/job", "idle_program_ns", {19});
  EXPECT_THAT(idle_codes(made), Not(Contains("blocking-launches")));
}

TEST(IdleCauses, LaunchesBlockWhereAHundredHaveEachOfTheirTimes) {
  MadeProcess few = with_blocking(2, 10, 99);
  few.launches("busy", "api_record_ns", 1, 5000);
  EXPECT_THAT(idle_codes(few), Not(Contains("blocking-launches")));
  for (const char* const metric : {"kernel_ns", "api_record_ns"}) {
    MadeProcess made = with_blocking(2);
    made.add("recorded/launch/stream:idle", metric, std::vector<double>(102, 5000));
    EXPECT_THAT(idle_codes(made), Not(Contains("blocking-launches"))) << metric;
  }
}

TEST(IdleCauses, AreNoneWhereKernelsAreLost) {
  MadeProcess made = with_short_kernels(200, 0);
  made.job.all_launches = 100;
  made.job.unknown_launches = 1;
  EXPECT_THAT(idle_codes(made), IsEmpty());
}

}  // namespace
}  // namespace launchgap
