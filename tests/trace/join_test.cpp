#include "harness/trace/join.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace launchgap {
namespace {

using activity::Call;
using activity::Domain;
using activity::KernelRun;
using activity::Purpose;
using activity::Trace;

Call call(std::int64_t begin,
          std::int64_t end,
          std::uint32_t correlation,
          std::uint32_t thread = 1,
          Domain domain = Domain::driver) {
  return {begin, end, correlation, thread, 652, domain, Purpose::launch};
}

KernelRun kernel(std::int64_t begin, std::int64_t end, std::uint32_t correlation) {
  KernelRun run;
  run.begin_ns = begin;
  run.end_ns = end;
  run.correlation = correlation;
  return run;
}

/// n launches, 10 us apart: the call takes 2 us, the kernel begins 5 us after it and takes 1 us.
Trace healthy(int n, std::uint32_t first_correlation = 1) {
  Trace trace;
  for (int i = 0; i < n; ++i) {
    const std::int64_t at = 1'000'000 + 10'000 * i;
    const std::uint32_t number = first_correlation + static_cast<std::uint32_t>(i);
    trace.calls.push_back(call(at, at + 2000, number));
    trace.kernels.push_back(kernel(at + 5000, at + 6000, number));
  }
  return trace;
}

/// The begins of the kernels of each launch, launches in order.
std::vector<std::vector<std::int64_t>> kernel_begins(const Trace& trace, const Joined& joined) {
  std::vector<std::vector<std::int64_t>> all;
  for (const Launch& launch : joined.launches) {
    auto& own = all.emplace_back();
    for (const std::uint32_t i : joined.kernels_of(launch))
      own.push_back(trace.kernels[i].begin_ns);
  }
  return all;
}

TEST(Join, OfKernelsWithoutAnyCallHasNoLaunches) {
  Trace trace = healthy(100);
  trace.calls.clear();
  const Joined joined = join(trace);
  EXPECT_TRUE(joined.launches.empty());
  EXPECT_EQ(joined.counts.kernels, 100u);
  EXPECT_EQ(joined.counts.kernels_without_launch, 100u);
  EXPECT_EQ(joined.counts.impossible(), 0u);
}

TEST(Join, FindsTheKernelOfEachLaunch) {
  const Trace trace = healthy(100);
  const Joined joined = join(trace);
  EXPECT_EQ(joined.counts.launches, 100u);
  EXPECT_EQ(joined.counts.joined, 100u);
  EXPECT_EQ(joined.counts.impossible(), 0u);
  EXPECT_EQ(joined.counts.describe_impossible(), "");
  for (std::size_t i = 0; i < joined.launches.size(); ++i) {
    const Launch& launch = joined.launches[i];
    EXPECT_EQ(launch.call, i);
    ASSERT_EQ(launch.kernel_count, 1u);
    EXPECT_EQ(joined.kernels_of(launch)[0], i);
  }
}

TEST(Join, DoesNotDependOnTheOrderOfRecords) {
  const Trace ordered = healthy(500);
  Trace shuffled = ordered;
  std::mt19937 random(7);
  std::ranges::shuffle(shuffled.calls, random);
  std::ranges::shuffle(shuffled.kernels, random);
  EXPECT_EQ(kernel_begins(shuffled, join(shuffled)), kernel_begins(ordered, join(ordered)));
}

TEST(Join, CountsNumbersThatWrapAround) {
  const Trace trace = healthy(200, 0xFFFFFFFFu - 100);  // goes through 0, which means "none"
  const Joined joined = join(trace);
  EXPECT_EQ(joined.counts.joined, 199u);
  EXPECT_EQ(joined.counts.launches_without_kernel, 1u);
  EXPECT_EQ(joined.counts.kernels_without_launch, 1u);
  EXPECT_EQ(joined.counts.duplicates, 0u);
}

TEST(Join, GivesALaunchAllKernelsOfItsGraphByTheirBegin) {
  Trace trace;
  trace.calls = {call(1000, 3000, 5)};
  trace.kernels = {kernel(9000, 9500, 5), kernel(5000, 5500, 5), kernel(7000, 7500, 5)};
  EXPECT_EQ(kernel_begins(trace, join(trace)),
            (std::vector<std::vector<std::int64_t>>{{5000, 7000, 9000}}));
}

TEST(Join, AGraphThatIsTracedAsAWholeHasNoKernelsAndIsNotMissed) {
  Trace trace;
  trace.calls = {call(1000, 3000, 5)};
  trace.graphs = {{5000, 9000, 5, 1}};
  const Joined joined = join(trace);
  EXPECT_TRUE(joined.launches[0].is_graph);
  EXPECT_EQ(joined.counts.launches_without_kernel, 0u);
}

TEST(Join, OfCallsThatCannotBeThoseWithANumberAreLaunches) {
  Trace trace;
  trace.calls = {call(3000, 1000, 0), call(3000, 1000, 5), call(3000, 1000, 6)};
  trace.kernels = {kernel(5000, 6000, 6)};
  const Joined joined = join(trace);
  ASSERT_EQ(joined.launches.size(), 2u);
  EXPECT_EQ(joined.launches[0].call, 1u);
  EXPECT_EQ(joined.launches[1].kernel_count, 1u);
  EXPECT_EQ(joined.counts.inverted, 3u);
}

TEST(Join, TheOutermostOfNestedCallsOwnsTheKernel) {
  for (const std::uint32_t inner_number : {7u, 8u}) {  // the same number, or one of its own
    Trace trace;
    trace.calls = {call(1500, 2500, inner_number, 1, Domain::driver),
                   call(1000, 3000, 7, 1, Domain::runtime)};
    trace.kernels = {kernel(5000, 6000, inner_number)};
    const Joined joined = join(trace);
    ASSERT_EQ(joined.launches.size(), 1u);
    EXPECT_EQ(trace.calls[joined.launches[0].call].domain, Domain::runtime);
    EXPECT_EQ(joined.launches[0].kernel_count, 1u);
    EXPECT_EQ(joined.counts.nested, 1u);
    EXPECT_EQ(joined.counts.impossible(), 0u);
  }
}

TEST(Join, CallsOfOtherThreadsAtTheSameTimeAreNotNested) {
  Trace trace;
  trace.calls = {call(1000, 4000, 1, 1), call(1500, 2500, 2, 2), call(5000, 6000, 3, 1)};
  trace.kernels = {kernel(5000, 5500, 1), kernel(5500, 5600, 2), kernel(9000, 9100, 3)};
  const Joined joined = join(trace);
  EXPECT_EQ(joined.counts.nested, 0u);
  EXPECT_EQ(kernel_begins(trace, joined),
            (std::vector<std::vector<std::int64_t>>{{5000}, {5500}, {9000}}));
}

TEST(Join, CallsThatLaunchNothingTakeNoPart) {
  Trace trace = healthy(1);
  Call allocation = call(100, 200, 99);
  allocation.purpose = Purpose::allocate;
  trace.calls.push_back(allocation);
  EXPECT_EQ(join(trace).counts.launches, 1u);
}

struct Pathology {
  const char* name;
  std::uint64_t JoinCounts::*count;
  void (*spoil)(Trace&);
};

const Pathology kImpossible[] = {
    {"a kernel without any time",
     &JoinCounts::zero,
     [](Trace& trace) { trace.kernels[3].begin_ns = trace.kernels[3].end_ns = 0; }},
    {"a kernel that has not ended",
     &JoinCounts::zero,
     [](Trace& trace) { trace.kernels[3].end_ns = 0; }},
    {"a call without a time", &JoinCounts::zero, [](Trace& trace) { trace.calls[3].begin_ns = 0; }},
    {"a kernel that ends before it begins",
     &JoinCounts::inverted,
     [](Trace& trace) { trace.kernels[3].end_ns = trace.kernels[3].begin_ns - 1; }},
    {"a kernel that begins before it was launched",
     &JoinCounts::early,
     [](Trace& trace) { trace.kernels[3].begin_ns = trace.calls[3].begin_ns - 1; }},
    {"two launches with one number",
     &JoinCounts::duplicates,
     [](Trace& trace) { trace.calls[3].correlation = trace.calls[4].correlation; }},
    {"a record that was dropped", &JoinCounts::dropped, [](Trace& trace) { trace.dropped = 1; }},
    {"a record of an unknown kind", &JoinCounts::unknown, [](Trace& trace) { trace.unknown = 1; }},
};
const Pathology kPossible[] = {
    {"a kernel that is missing",
     &JoinCounts::launches_without_kernel,
     [](Trace& trace) { trace.kernels.erase(trace.kernels.begin() + 3); }},
    {"a call that is missing",
     &JoinCounts::kernels_without_launch,
     [](Trace& trace) { trace.calls.erase(trace.calls.begin() + 3); }},
    {"a kernel that begins before the call returns",
     &JoinCounts::overlap,
     [](Trace& trace) { trace.kernels[3].begin_ns = trace.calls[3].end_ns - 1; }},
};

void expect_counted(const Pathology& pathology, bool impossible) {
  SCOPED_TRACE(pathology.name);
  Trace trace = healthy(100);
  pathology.spoil(trace);
  const JoinCounts counts = join(trace).counts;
  EXPECT_EQ(counts.*pathology.count, 1u);
  EXPECT_EQ(counts.impossible() > 0, impossible);
  EXPECT_EQ(counts.describe_impossible().empty(), !impossible);
  EXPECT_GE(counts.joined, 99u);
}

TEST(Join, CountsEveryPathologyAndKeepsTheRest) {
  for (const Pathology& pathology : kImpossible) expect_counted(pathology, true);
  for (const Pathology& pathology : kPossible) expect_counted(pathology, false);
}

TEST(Join, NothingGivesNothing) {
  EXPECT_EQ(join({}).counts.launches, 0u);
}

TEST(Join, MeasuresWhatOfALaunchOverheadsCover) {
  Trace trace = healthy(3);  // calls of 2 us at 1000, 1010, 1020 us; kernels 5 us after each began
  const auto at = [](double us) { return static_cast<std::int64_t>(us * 1000); };
  using enum activity::OverheadKind;
  trace.overheads = {
      {at(1010.5), at(1014), 2, command_buffer_full},  // its own: until its kernel begins
      {at(1011), at(1012), 0, resource},               // at the same time: not counted twice
      {at(1013), at(1021), 0, buffer_request},         // nobody's: during the third call, 1 us
      {at(1007), at(1008), 0, resource},               // no call is going on
      {at(1000), at(1001), 77, resource},  // of a number that launched nothing: as nobody's
  };
  const Joined joined = join(trace);
  EXPECT_EQ(joined.launches[0].overhead_ns, 1000);
  EXPECT_EQ(joined.launches[1].overhead_ns, 3500);
  EXPECT_EQ(joined.launches[2].overhead_ns, 1000);
}

TEST(Join, AnOverheadDuringOneLaunchOfABurstIsNotThoseOfTheQueuedOnes) {
  Trace trace;
  for (int i = 0; i < 100; ++i) {  // calls 2 us apart; kernels of 10 us queue up behind them
    trace.calls.push_back(call(2000 * i + 1, 2000 * i + 1500, static_cast<std::uint32_t>(i + 1)));
    trace.kernels.push_back(
        kernel(10'000 * i + 2000, 10'000 * i + 12'000, static_cast<std::uint32_t>(i + 1)));
  }
  trace.overheads = {{2000 * 50 + 100, 2000 * 50 + 900, 0, activity::OverheadKind::buffer_request}};
  std::int64_t total = 0;
  for (const Launch& launch : join(trace).launches) total += launch.overhead_ns;
  EXPECT_EQ(total, 800);
}

TEST(JoinCounts, AreDescribedInWords) {
  JoinCounts counts;
  counts.dropped = 3;
  counts.early = 1;
  EXPECT_EQ(counts.describe_impossible(),
            "3 records dropped, 1 record of kernels that begin before their launch");
}

TEST(Join, AKernelIsEarlyBeyondTheErrorOfTheClocksAndOverlapsUntilTheCallReturns) {
  const struct {
    std::int64_t begin_ns;
    std::uint64_t early, overlap;
  } cases[] = {{900, 1, 0}, {989, 1, 0}, {990, 0, 1}, {1000, 0, 1}, {1099, 0, 1}, {1100, 0, 0}};
  for (const auto& [begin_ns, early, overlap] : cases) {
    Trace trace;
    trace.calls = {call(1000, 1100, 1)};
    trace.kernels = {kernel(begin_ns, 2000, 1)};
    const Joined joined = join(trace, 10);
    EXPECT_EQ(joined.counts.early, early) << begin_ns;
    EXPECT_EQ(joined.counts.overlap, overlap) << begin_ns;
    EXPECT_EQ(joined.launches[0].impossible, early == 1) << begin_ns;
  }
}

TEST(Join, CallsNestUntilTheirEndAndInTheirOwnThread) {
  Trace trace;
  trace.calls = {call(1000, 2000, 1, 1),
                 call(1000, 1500, 2, 1),   // begins with it
                 call(1600, 2000, 3, 1),   // ends with it
                 call(1200, 1300, 4, 2),   // of another thread
                 call(1250, 1300, 5, 2),   // within that one
                 call(1900, 2001, 6, 1),   // ends after it
                 call(1950, 2000, 7, 1),   // within this one
                 call(1400, 1500, 8, 2)};  // after the other one of its thread
  const Joined joined = join(trace);
  std::vector<std::uint32_t> outer;
  for (const Launch& launch : joined.launches) outer.push_back(launch.call);
  EXPECT_EQ(outer, (std::vector<std::uint32_t>{0, 3, 7, 5}));
  EXPECT_EQ(joined.counts.nested, 4u);
}

TEST(Join, ACallWithoutATimeHasTheKernelsThatNoOtherHas) {
  Trace trace;
  trace.calls = {
      call(0, 500, 1), call(900, 800, 2), call(0, 700, 3), call(1000, 1100, 3), call(0, 600, 0)};
  trace.kernels = {kernel(5000, 5100, 1), kernel(6000, 6100, 2), kernel(7000, 7100, 3)};
  const Joined joined = join(trace);
  ASSERT_EQ(joined.launches.size(), 3u);
  EXPECT_EQ(joined.launches[0].call, 3u);
  EXPECT_FALSE(joined.launches[0].impossible);
  EXPECT_EQ(joined.launches[1].begin_ns, 5000) << "of its kernel";
  EXPECT_EQ(joined.launches[2].begin_ns, 900);
  EXPECT_TRUE(joined.launches[1].impossible && joined.launches[2].impossible);
  EXPECT_EQ(joined.counts.joined, 3u);
  EXPECT_EQ(joined.counts.early, 0u);
  EXPECT_EQ(joined.counts.zero, 3u);
  EXPECT_EQ(joined.counts.inverted, 1u);
}

TEST(Join, AnOverheadIsCutToTheCallAndCountsForAllThatGoOn) {
  Trace trace;
  trace.calls = {call(1000, 2000, 1, 1), call(1500, 2500, 2, 2), call(3000, 3100, 3, 1)};
  trace.overheads = {{500, 1200, 0, {}},
                     {1600, 1700, 0, {}},
                     {1650, 1800, 0, {}},
                     {1900, 3000, 0, {}},
                     {2900, 4000, 3, {}}};
  const Joined joined = join(trace);
  EXPECT_EQ(joined.launches[0].overhead_ns, 200 + 200 + 100);
  EXPECT_EQ(joined.launches[1].overhead_ns, 200 + 600);
  EXPECT_EQ(joined.launches[2].overhead_ns, 100) << "without a kernel until the call returns";
}

TEST(JoinCounts, AreAddedUp) {
  using Numbers = std::array<std::uint64_t, sizeof(JoinCounts) / sizeof(std::uint64_t)>;
  Numbers numbers;
  std::iota(numbers.begin(), numbers.end(), 1);
  JoinCounts counts = std::bit_cast<JoinCounts>(numbers);
  counts += counts;
  for (std::uint64_t& number : numbers) number *= 2;
  EXPECT_EQ(std::bit_cast<Numbers>(counts), numbers) << "each of them";
  EXPECT_EQ(counts.launches, 2u);
  EXPECT_EQ(counts.duplicates, 22u);
  EXPECT_EQ(counts.nested, 26u);
  EXPECT_EQ(counts.describe_impossible(),
            "12 records dropped, 14 records of an unknown kind, 16 records without a time, 18 "
            "records that end before they begin, 20 records of kernels that begin before their "
            "launch, 22 records with another launch's correlation number");
}

TEST(LaunchTimes, AreOfLaunchesWithAKernelThatBelong) {
  Trace trace = healthy(4);
  trace.kernels.erase(trace.kernels.begin());
  trace.kernels[1].begin_ns += 7;
  EXPECT_EQ(launch_times(trace, join(trace), [](std::int64_t begin) { return begin != 1'010'000; }),
            (std::vector<double>{5007, 5000}));
}

TEST(ScatterOfLaunches, IsFiveDeviationsOfTwentyOrMoreAndFiveMicrosecondsAtMost) {
  const auto scatter = [](int n, double away) {
    std::vector<double> times;
    for (int i = 0; i < n; ++i) times.push_back(100 + (i % 2 == 0 ? away : -away));
    times.push_back(std::nan(""));
    return scatter_of_launches(times);
  };
  EXPECT_EQ(scatter(19, 10), 0);
  EXPECT_EQ(scatter(20, 10), 75) << "5 x 1.4826 x 10, rounded up";
  EXPECT_EQ(scatter(20, 0), 0);
  EXPECT_EQ(scatter(20, 674), 4997);
  EXPECT_EQ(scatter(20, 675), 5000);
}

}  // namespace
}  // namespace launchgap
