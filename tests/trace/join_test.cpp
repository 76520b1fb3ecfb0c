#include "harness/trace/join.h"

#include <algorithm>
#include <random>

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

}  // namespace
}  // namespace launchgap
