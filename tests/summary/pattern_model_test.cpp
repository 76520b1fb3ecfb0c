#include <gmock/gmock.h>

#include "harness/summary/replayed_steps.h"

namespace launchgap {
namespace {

using namespace testing;

Pattern of(const std::string& rows) {
  Pattern pattern;
  pattern.operations =
      parse_pattern("action,stream,gap_ns,call_ns,device_ns,bytes,number,blocks\n" + rows, "p.csv");
  return pattern;
}

LaunchCosts costs(double call, double start = 0, double wake = 0) {
  LaunchCosts result;
  result.call_ns = call;
  result.start_ns = start;
  result.wake_ns = wake;
  return result;
}

TEST(PatternModel, AStreamDoesItsWorkInOrder) {
  const Pattern two = of("kernel,,,,100,,,\nkernel,,,,100,,,\n");
  EXPECT_EQ(modelled_ns(two, work_alone()), 200);
  EXPECT_EQ(modelled_ns(two, costs(10)), 210) << "the second is called while the first runs";
  EXPECT_EQ(modelled_ns(two, costs(150)), 400) << "calls that take longer than kernels";
  EXPECT_EQ(modelled_ns(two, costs(10, 5, 3)), 218);
}

TEST(PatternModel, StreamsGoSideBySide) {
  EXPECT_EQ(modelled_ns(of("kernel,0,,,100,,,\nkernel,1,,,300,,,\n"), work_alone()), 300);
}

TEST(PatternModel, GapsCountWhereTheDeviceWaitsForThem) {
  const Pattern pattern = of("kernel,,50,,100,,,\nkernel,,20,,100,,,\nkernel,,500,,100,,,\n");
  EXPECT_EQ(modelled_ns(pattern, work_alone()), 300);
  EXPECT_EQ(modelled_ns(pattern, free_launches()), 670);
}

TEST(PatternModel, WaitsHoldTheHost) {
  EXPECT_EQ(modelled_ns(of("kernel,,,,100,,,\nwait,,,,,,,\nkernel,,10,,100,,,\n"), free_launches()),
            210);
  EXPECT_EQ(
      modelled_ns(of("kernel,0,,,100,,,\nkernel,1,,,50,,,\nwait,1,,,,,,\nkernel,1,10,,50,,,\n"),
                  free_launches()),
      110)
      << "for one stream";
  EXPECT_EQ(
      modelled_ns(of("kernel,0,,,100,,,\nkernel,1,,,50,,,\nwait_all,,,,,,,\nkernel,1,10,,50,,,\n"),
                  free_launches()),
      160);
  EXPECT_EQ(modelled_ns(of("copy_to_host,,,,100,8,,1\nkernel,,10,,50,,,\n"), free_launches()), 160);
}

TEST(PatternModel, EventsOrderStreams) {
  const std::string first = "kernel,0,,,100,,,\nrecord_event,0,,,,,1,\nkernel,0,,,500,,,\n";
  EXPECT_EQ(modelled_ns(of(first + "wait_event,1,,,,,1,\nkernel,1,,,450,,,\n"), work_alone()), 600);
  EXPECT_EQ(modelled_ns(of(first + "wait,0,,,,,1,\nkernel,1,10,,600,,,\n"), free_launches()), 710)
      << "the host waits for the event and no more";
}

TEST(PatternModel, WorkFromBeforeComesFirst) {
  EXPECT_EQ(modelled_ns(of("ahead,,,,70,,,\nkernel,,,,100,,,\n"), work_alone()), 170);
}

TEST(PatternModel, AGraphIsCalledOnce) {
  EXPECT_EQ(modelled_ns(of("kernel,,,,1,,1,\nkernel,,,,1,,1,\nkernel,,,,1,,2,\n"), costs(100)),
            201);
}

TEST(PatternModel, AGraphIsOverWhenAllOfItIs) {
  const std::string graphs =
      "kernel,0,,,1,,1,\nkernel,1,,,100,,1,\nkernel,0,,,1,,2,\nkernel,2,,,100,,2,\n";
  EXPECT_EQ(modelled_ns(of(graphs + "kernel,0,,,100,,,\n"), work_alone()), 300);
  EXPECT_EQ(
      modelled_ns(of("kernel,0,,,70,,,\nkernel,0,,,1,,1,\nkernel,1,,,100,,1,\n"), work_alone()),
      170)
      << "its branches begin behind the stream of its first work";
}

TEST(PatternModel, AGraphTakesOnePlaceOfTheQueue) {
  std::string rows;
  for (int i = 0; i < 2000; ++i) rows += "kernel,,,,1000,,1,\n";
  rows += "kernel,,,,1,,,\n";
  EXPECT_EQ(modelled_ns(of(rows + "kernel,1,500,,1,,,\n"), free_launches()), 2'000'001)
      << "nothing waits for room";
}

TEST(PatternModel, CallsTakeWhatTheyTookWhereNothingIsSaid) {
  const Pattern pattern = of("kernel,,,30,1,,,\nallocate,,,500,,8,1,\nkernel,,,30,1,,,\n");
  EXPECT_EQ(modelled_ns(pattern, {}), 561);
  EXPECT_EQ(modelled_ns(pattern, costs(10)), 521) << "of allocations nothing is assumed";
}

TEST(PatternModel, KernelsAndCopiesLastAsLongAsAsked) {
  LaunchCosts slow = work_alone();
  slow.kernel_factor = 2;
  slow.kernel_excess_ns = 3;
  slow.copy_factor = 10;
  EXPECT_EQ(modelled_ns(of("kernel,,,,100,,,\nfill,,,,7,8,,\n"), slow), 273);
}

TEST(PatternModel, AFullQueueHoldsTheCalls) {
  std::string rows = "kernel,,,,1000000,,,\n";
  for (std::size_t i = 0; i < kLaunchQueue; ++i) rows += "kernel,,,,1,,,\n";
  rows += "kernel,1,,,2000000,,,\n";
  EXPECT_NEAR(modelled_ns(of(rows), costs(1)), 3'000'000, 10)
      << "the last call comes once the first kernel is over";
}

}  // namespace
}  // namespace launchgap
