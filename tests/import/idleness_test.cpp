#include "harness/import/idleness.h"

#include <random>

#include <gmock/gmock.h>

#include "harness/import/cover.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using activity::Purpose;
using testing::ElementsAre;

constexpr std::int64_t kEver = std::int64_t{1} << 62;

struct Expected {
  std::int64_t queued = 0, launch = 0, waiting = 0, allocating = 0, calling = 0, program = 0,
               unknown = 0;
};

void expect_idle(const Idleness& found, const Expected& expected, const std::string& what) {
  EXPECT_THAT(found.idle_ns,
              ElementsAre(expected.queued,
                          expected.launch,
                          expected.waiting,
                          expected.allocating,
                          expected.calling,
                          expected.program,
                          expected.unknown))
      << what << ": queued, launch, waiting, allocating, calling, program, unknown";
}

/// A kernel ends at 1000, and the next one, of call 2, begins at 2000.
Job gap() {
  Job job;
  return job.call(100, 200, 1).kernel(500, 1000, 1).kernel(2000, 2100, 2);
}

struct Case {
  const char* what;
  Job job;
  Expected idle;
};

const Case kCases[] = {
    {"its call had returned before", gap().call(900, 950, 2), {.queued = 1000}},
    {"its call returned as the gap began", gap().call(900, 1000, 2), {.queued = 1000}},
    {"its call returned just after", gap().call(900, 1001, 2), {.launch = 1000}},
    {"it was queued, whatever its thread did since",
     gap().call(900, 950, 2).wait_for_device(960, 2200),
     {.queued = 1000}},
    {"its call began with the gap", gap().call(1000, 1100, 2), {.launch = 1000}},
    {"its call began before and goes on", gap().call(900, 2300, 2), {.launch = 1000}},
    {"its thread was in no call", gap().call(1600, 1700, 2), {.launch = 400, .program = 600}},
    {"its thread waited, from before the gap on",
     gap().wait_for_device(300, 1200).call(1600, 1700, 2),
     {.launch = 400, .waiting = 200, .program = 400}},
    {"its thread took memory",
     gap().call(1200, 1500, 0, Purpose::allocate).call(1600, 1700, 2),
     {.launch = 400, .allocating = 300, .program = 300}},
    {"its thread gave memory back",
     gap().call(1200, 1500, 0, Purpose::release).call(1600, 1700, 2),
     {.launch = 400, .allocating = 300, .program = 300}},
    {"its thread was in a copy, and right after it in the launch",
     gap().call(1100, 1600, 0, Purpose::copy).call(1600, 1700, 2),
     {.launch = 400, .calling = 500, .program = 100}},
    {"its thread launched something else",
     gap().call(1100, 1200, 9).call(1600, 1700, 2),
     {.launch = 400, .calling = 100, .program = 500}},
    {"one after another",
     gap()
         .call(1600, 1700, 2)
         .call(1300, 1500, 0, Purpose::fill)
         .call(1250, 1300, 0, Purpose::release)
         .call(1150, 1250, 0, Purpose::allocate)
         .wait_for_device(900, 1100),
     {.launch = 400, .waiting = 100, .allocating = 150, .calling = 200, .program = 150}},
    {"a call within a wait is the wait's",
     gap().call(1000, 1300, 0, Purpose::copy).wait_for_device(900, 1400).call(1600, 1700, 2),
     {.launch = 400, .waiting = 400, .program = 200}},
    {"calls of the same begin: the longer one is outside",
     gap().call(1100, 1200, 0, Purpose::copy).wait_for_device(1100, 1400).call(1600, 1700, 2),
     {.launch = 400, .waiting = 300, .program = 300}},
    {"calls that overlap, which no thread can do, count once",
     gap().wait_for_device(900, 1300).call(1200, 1500, 0, Purpose::copy).call(1600, 1700, 2),
     {.launch = 400, .waiting = 300, .calling = 200, .program = 100}},
    {"the launch is within another call",
     gap().call(1100, 1900, 0, Purpose::other).call(1200, 1300, 2),
     {.launch = 800, .calling = 100, .program = 100}},
    {"another thread waited",
     gap().call(900, 1500, 0, Purpose::wait, "other").call(1600, 1700, 2),
     {.launch = 400, .program = 600}},
    {"another thread launched it, and main waited",
     gap()
         .wait_for_device(900, 1900)
         .call(1600, 1700, 2, Purpose::launch, "other")
         .call(1100, 1200, 0, Purpose::allocate, "other"),
     {.launch = 400, .allocating = 100, .program = 500}},
    {"its call has no record", gap(), {.unknown = 1000}},
    {"its call has no begin", gap().call(0, 1700, 2), {.unknown = 1000}},
    {"its call ends before it begins", gap().call(1700, 1600, 2), {.unknown = 1000}},
    {"its call began after it, within the error of the clocks",
     gap().call(2050, 2060, 2),
     {.program = 1000}},
    {"a call without a number is nobody's",
     gap().call(900, 950, 0).kernel(1400, 2000, 0),
     {.unknown = 400}},
    {"another stream works all the time",
     gap().kernel(900, 2000, 9, kOther).call(1600, 1700, 2),
     {}},
    {"another stream works longer",
     gap().kernel(400, 1300, 9, kOther).call(1600, 1700, 2),
     {.launch = 400, .program = 300}},
    {"another stream makes two gaps of it",
     gap().kernel(1400, 1500, 3, kOther).call(1200, 1250, 3).call(1600, 1650, 2),
     {.launch = 200 + 400, .calling = 0, .program = 200 + 100}},
    {"another GPU works",
     gap().kernel(900, 2000, 9, kOtherGpu).call(1600, 1700, 2),
     {.launch = 400, .program = 600}},
    {"a copy ends a gap",
     gap()
         .transfer(1400, 1500, false, kStream, 3)
         .call(1200, 1500, 3, Purpose::copy)
         .call(1600, 1650, 2),
     {.launch = 200 + 400, .program = 200 + 100}},
    {"a fill ends one",
     gap()
         .transfer(1400, 1500, true, kStream, 3)
         .call(1200, 1250, 3, Purpose::fill)
         .call(1600, 1650, 2),
     {.launch = 200 + 400, .program = 200 + 100}},
    {"a graph as a whole ends one",
     gap().graph(1400, 1500, 3).call(1200, 1250, 3, Purpose::launch_graph).call(1600, 1650, 2),
     {.launch = 200 + 400, .program = 200 + 100}},
    {"a copy that nobody is known to have called for",
     gap().transfer(1400, 1500, false).call(1600, 1650, 2),
     {.launch = 400, .program = 100, .unknown = 400}},
    {"work without a time is none",
     gap().kernel(0, 2000, 8).kernel(1800, 1200, 9).call(1600, 1650, 2),
     {.launch = 400, .program = 600}},
    {"work that takes no time ends a gap",
     gap().kernel(1500, 1500, 9).call(1600, 1650, 2),
     {.launch = 400, .program = 100, .unknown = 500}},
};

TEST(GpuGaps, AreForTheReasonThatTheThreadHadThatEndedThem) {
  for (const auto& [what, job, idle] : kCases) {
    const GpuGaps gaps(job.process, 0, true);
    EXPECT_EQ(gaps.end_ns(), 2100) << what;
    expect_idle(gaps.within(0, kEver), idle, what);
  }
}

TEST(GpuGaps, TellWhatWaitsCostEvenWhereTheyBeganWhileTheGpuWorked) {
  Job job = Job().call(1000, 1100, 1).kernel(1200, 9000, 1);
  job.call(1150, 9500, 0, activity::Purpose::wait, "main", "cudaStreamSynchronize");
  job.call(9800, 9900, 2).kernel(10'000, 11'000, 2);
  const GpuGaps gaps(job.process, 0, true);
  ASSERT_EQ(gaps.stalls().size(), 1u);
  const Stall& stall = gaps.stalls().front();
  EXPECT_EQ(stall.cause, IdleCause::waiting);
  EXPECT_EQ(job.process.trace.name(stall.call), "cudaStreamSynchronize");
  EXPECT_EQ(stall.gaps, 1u);
  EXPECT_EQ(stall.idle_ns, 500) << "from the end of the kernel until it returned";
  EXPECT_EQ(stall.lost_ns, 1000) << "the whole gap: without the wait, the call had come in time";
}

TEST(GpuGaps, DoNotBlameAWaitForMoreThanItTook) {
  Job job = Job().call(1000, 1100, 1).kernel(1200, 9000, 1);
  job.call(8900, 9100, 0, activity::Purpose::wait, "main", "cudaStreamSynchronize");
  job.call(9200, 9250, 0, activity::Purpose::allocate, "main", "cudaMalloc");
  job.call(20'000, 20'100, 2).kernel(20'200, 21'000, 2);
  const GpuGaps gaps(job.process, 0, true);
  ASSERT_EQ(gaps.stalls().size(), 2u);
  EXPECT_EQ(gaps.stalls()[0].lost_ns, 200);
  EXPECT_EQ(gaps.stalls()[1].cause, IdleCause::allocating);
  EXPECT_EQ(gaps.stalls()[1].lost_ns, 50);
  EXPECT_EQ(gaps.stalls()[1].idle_ns, 50);
}

TEST(GpuGaps, HaveNoStallsWhereTheNextWorkWasQueuedOrTheClocksDisagree) {
  Job job = Job().call(1000, 1100, 1).kernel(1200, 9000, 1);
  job.call(1110, 1120, 2).kernel(10'000, 11'000, 2);
  job.call(1150, 9500, 0, activity::Purpose::wait);
  EXPECT_TRUE(GpuGaps(job.process, 0, true).stalls().empty());
  EXPECT_TRUE(GpuGaps(job.process, 0, false).stalls().empty());
}

TEST(GpuGaps, CountPausesOfTheProgram) {
  Job job;
  std::int64_t at = 10'000;
  for (const std::int64_t pause : {900'000, 1'000'000, 3'000'000}) {
    const auto id = static_cast<std::uint32_t>(at);
    job.call(at, at + 100, id).kernel(at + 200, at + 300, id);
    at += 300 + pause;
  }
  job.call(at, at + 100, 1).kernel(at + 200, at + 300, 1);
  const Pauses pauses = GpuGaps(job.process, 0, true).pauses();
  EXPECT_EQ(pauses.count, 2u);
  EXPECT_EQ(pauses.total_ns, 4'000'000);
  EXPECT_EQ(pauses.longest_ns, 3'000'000);
}

TEST(GpuGaps, AreForNoKnownReasonIfTheClocksDisagree) {
  for (const auto& [what, job, idle] : kCases) {
    const std::int64_t all = GpuGaps(job.process, 0, true).within(0, kEver).idle();
    expect_idle(GpuGaps(job.process, 0, false).within(0, kEver), {.unknown = all}, what);
  }
}

TEST(GpuGaps, AreOfOneGpu) {
  Job job = gap();
  job.call(1600, 1700, 2);
  job.kernel(700, 800, 8, kOtherGpu).kernel(1100, 1150, 9, kOtherGpu).call(750, 760, 9);
  const GpuGaps gaps(job.process, 1, true);
  EXPECT_EQ(gaps.begin_ns(), 700);
  EXPECT_EQ(gaps.end_ns(), 1150);
  expect_idle(gaps.within(0, kEver), {.queued = 300}, "the other GPU");
}

TEST(GpuGaps, AreCutWhereOneLooks) {
  Job job = gap();
  job.wait_for_device(900, 1200).call(1600, 1700, 2);  // waiting, program 400, launch 400
  const GpuGaps gaps(job.process, 0, true);
  const struct {
    std::int64_t from, to, span;
    Expected idle;
  } cases[] = {
      {0, kEver, 1600, {.launch = 400, .waiting = 200, .program = 400}},
      {0, 500, 0, {}},
      {0, 501, 1, {}},
      {0, 1000, 500, {}},
      {0, 1100, 600, {.waiting = 100}},
      {1100, 1200, 100, {.waiting = 100}},
      {1100, 1700, 600, {.launch = 100, .waiting = 100, .program = 400}},
      {1200, 1600, 400, {.program = 400}},
      {1999, 2001, 2, {.launch = 1}},
      {2000, kEver, 100, {}},
      {2100, kEver, 0, {}},
      {1500, 1500, 0, {}},
      {1700, 1100, 0, {}},
  };
  for (const auto& [from, to, span, idle] : cases) {
    const std::string what = std::to_string(from) + " to " + std::to_string(to);
    EXPECT_EQ(gaps.within(from, to).span_ns, span) << what;
    expect_idle(gaps.within(from, to), idle, what);
  }
}

TEST(GpuGaps, OfNothingAreNone) {
  EXPECT_TRUE(GpuGaps(Process(), 0, true).empty());
  Job job = Job().call(100, 200, 1).kernel(0, 300, 1);
  const GpuGaps gaps(job.process, 0, true);
  EXPECT_TRUE(gaps.empty());
  EXPECT_EQ(gaps.within(0, kEver).span_ns, 0);
}

/// Whatever the records are.
TEST(GpuGaps, AreAllTimeInWhichNothingRan) {
  std::mt19937 random(20261122);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    Job job;
    Cover busy;
    const std::int64_t n = 1 + below(30);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t call = 1 + below(2000), kernel = 1 + below(2000), length = below(60);
      const auto id = static_cast<std::uint32_t>(below(20));
      job.call(call,
               call + below(200),
               id,
               static_cast<Purpose>(below(8)),
               below(2) == 0 ? "main" : "other");
      job.kernel(kernel, kernel + length, id, below(2) == 0 ? kStream : kOther);
      busy.add(kernel, kernel + length);
    }
    busy.build();
    const GpuGaps gaps(job.process, 0, true);
    const std::int64_t cut = below(2100);
    const Idleness all = gaps.within(0, kEver), before = gaps.within(0, cut),
                   after = gaps.within(cut, kEver);
    EXPECT_EQ(all.idle(), all.span_ns - busy.within(0, kEver)) << round;
    EXPECT_EQ(before.idle(), before.span_ns - busy.within(0, cut)) << round;
    for (std::size_t i = 0; i < kIdleCauses; ++i)
      EXPECT_EQ(before.idle_ns[i] + after.idle_ns[i], all.idle_ns[i]) << round << ", cause " << i;
  }
}

TEST(GpuGaps, TellTheTimeBeforeQueuedWorkOfGraphs) {
  const Job kernels = gap().call(900, 950, 2);
  EXPECT_EQ(GpuGaps(kernels.process, 0, true).queued_graph_ns(), 0);
  const Job graphs = gap().call(900, 950, 2, Purpose::launch_graph);
  EXPECT_EQ(GpuGaps(graphs.process, 0, true).queued_graph_ns(), 1000);
  const Job late = gap().call(1100, 1150, 2, Purpose::launch_graph);
  EXPECT_EQ(GpuGaps(late.process, 0, true).queued_graph_ns(), 0) << "nothing was queued";
}

TEST(UnknownTime, LastsFromALostLaunchToTheNextWorkOfItsThread) {
  Job job = gap();
  job.call(1200, 1250, 9).call(1900, 1950, 2);
  const auto launches = launches_of(job.process, 0);
  const std::vector<UnknownTime> unknown = unknown_times(job.process, launches);
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].begin_ns, 1200);
  EXPECT_EQ(unknown[0].end_ns, 2000);
  const GpuGaps gaps(job.process, 0, true, unknown);
  expect_idle(
      gaps.within(0, kEver), {.calling = 0, .program = 200, .unknown = 800}, "a lost kernel");
  EXPECT_EQ(gaps.unknown_ns(), 800);
}

TEST(UnknownTime, AnotherThreadsWorkDoesNotEndIt) {
  Job job = gap();
  job.call(1200, 1250, 9, Purpose::launch, "other").call(1900, 1950, 2);
  const std::vector<UnknownTime> unknown = unknown_times(job.process, launches_of(job.process, 0));
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_GT(unknown[0].end_ns, 1'000'000);
}

TEST(UnknownTime, IsNoneWhereAllKernelsAreThere) {
  EXPECT_TRUE(unknown_times(steady(20).process, launches_of(steady(20).process, 0)).empty());
}

TEST(LongWaits, AreToldByWhatTheGpuWaitedFor) {
  Job job = Job().call(1'000, 2'000, 1).kernel(3'000, 4'000, 1);
  job.call(5'000, 3'005'000, 0, Purpose::other, "main", "cuModuleLoadData");
  job.call(6'005'000, 6'006'000, 2).kernel(8'006'000, 8'007'000, 2);
  const GpuGaps gaps(job.process, 0, true);
  EXPECT_EQ(gaps.long_calls().count, 1u);
  EXPECT_EQ(gaps.long_calls().total_ns, 3'000'000);
  ASSERT_TRUE(gaps.long_calls().call);
  EXPECT_EQ(job.process.trace.name(*gaps.long_calls().call), "cuModuleLoadData");
  EXPECT_EQ(gaps.pauses().total_ns, 3'001'000);
  EXPECT_EQ(gaps.late_starts().total_ns, 2'001'000);
}

TEST(Stalls, OfAKernelThatBeginsLateTheWaitIsNotToBlame) {
  // Each kernel begins 4.4 ms after its call, and each is waited for.
  Job job;
  std::int64_t at = 1'000'000;
  for (std::uint32_t i = 1; i <= 30; ++i) {
    job.call(at, at + 4'000, i).kernel(at + 4'400'000, at + 4'410'000, i);
    job.wait_for_device(at + 5'000, at + 4'411'000);
    at += 4'420'000;
  }
  const GpuGaps gaps(job.process, 0, true);
  ASSERT_EQ(gaps.stalls().size(), 1u);
  EXPECT_LT(gaps.stalls()[0].lost_ns, 30 * 120'000);
  EXPECT_EQ(gaps.late_starts().count, 29u);
}

TEST(UnknownTime, IsTakenOutOfWhateverItIsIn) {
  Job job = gap();
  job.wait_for_device(900, 1200).call(1600, 1700, 2);  // waiting, program 400, launch 400
  const struct {
    std::vector<UnknownTime> unknown;
    Expected idle;
  } cases[] = {
      {{}, {.launch = 400, .waiting = 200, .program = 400}},
      {{{100, 1000}, {2000, 3000}}, {.launch = 400, .waiting = 200, .program = 400}},
      {{{900, 1001}, {1999, 3000}}, {.launch = 399, .waiting = 199, .program = 400, .unknown = 2}},
      {{{1100, 1150}, {1300, 1400}, {1450, 1500}, {1900, 5000}},
       {.launch = 300, .waiting = 150, .program = 250, .unknown = 300}},
      {{{1200, 1600}}, {.launch = 400, .waiting = 200, .unknown = 400}},
      {{{1150, 1650}}, {.launch = 350, .waiting = 150, .unknown = 500}},
      {{{500, 3000}}, {.unknown = 1000}},
  };
  for (const auto& [unknown, idle] : cases) {
    const GpuGaps gaps(job.process, 0, true, unknown);
    expect_idle(gaps.within(0, kEver), idle, std::to_string(unknown.size()));
    EXPECT_EQ(gaps.unknown_ns(), idle.unknown);
  }
}

TEST(UnknownTime, IsUnitedWhereItOverlapsOrTouches) {
  Job job = gap().call(50, 60, 8).call(1200, 1250, 9).call(1300, 1310, 10).call(1900, 1950, 2);
  job.call(2000, 2010, 11, Purpose::launch, "other").call(2200, 2250, 12, Purpose::launch, "third");
  job.kernel(2100, 2150, 13).call(2050, 2060, 13, Purpose::launch, "other");
  const auto unknown = unknown_times(job.process, launches_of(job.process, 0));
  ASSERT_EQ(unknown.size(), 3u);
  EXPECT_EQ(unknown[0].begin_ns, 50);
  EXPECT_EQ(unknown[0].end_ns, 500);
  EXPECT_EQ(unknown[1].begin_ns, 1200);
  EXPECT_EQ(unknown[1].end_ns, 2100) << "of two of main until 2000, and from then on of another";
  EXPECT_EQ(unknown[2].begin_ns, 2200);
}

TEST(Stalls, CountTheFirstTenthOfAMillisecondOfALaunch) {
  for (const auto& [starts_ns, lost_ns] :
       {std::pair(50'000, 50'800), std::pair(100'000, 100'800), std::pair(150'000, 100'800)}) {
    Job job = Job().call(1'000, 1'100, 1).kernel(1'200, 300'000, 1);
    job.wait_for_device(1'150, 300'500).call(300'800, 300'900, 2);
    job.kernel(300'800 + starts_ns, 900'000, 2);
    const GpuGaps gaps(job.process, 0, true);
    ASSERT_EQ(gaps.stalls().size(), 1u);
    EXPECT_EQ(gaps.stalls()[0].lost_ns, lost_ns);
    EXPECT_EQ(gaps.stalls()[0].longest_ns, lost_ns);
    EXPECT_EQ(gaps.stalls()[0].idle_ns, 500);
  }
}

TEST(Stalls, AreSummedOverGapsByTheNameOfTheCall) {
  Job job = Job().call(1'000, 1'100, 1).kernel(1'200, 2'000, 1);
  job.wait_for_device(2'000, 2'300).wait_for_device(2'400, 2'500).call(3'000, 3'100, 2);
  job.kernel(3'200, 4'000, 2).wait_for_device(4'000, 4'050).call(4'300, 4'400, 3);
  job.kernel(4'500, 5'000, 3);
  const GpuGaps gaps(job.process, 0, true);
  ASSERT_EQ(gaps.stalls().size(), 1u);
  EXPECT_EQ(gaps.stalls()[0].gaps, 2u);
  EXPECT_EQ(gaps.stalls()[0].idle_ns, 450);
  EXPECT_EQ(gaps.stalls()[0].lost_ns, 450);
  EXPECT_EQ(gaps.stalls()[0].longest_ns, 400);
}

}  // namespace
}  // namespace launchgap::recording
