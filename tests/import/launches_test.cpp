#include "harness/import/launches.h"

#include <gmock/gmock.h>

#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using activity::Purpose;
using testing::ElementsAre;

std::vector<std::string_view> states(const Job& job, std::int64_t clock_error_ns = 0) {
  std::vector<std::string_view> result;
  for (const RecordedLaunch& launch : launches_of(job.process, clock_error_ns).launches)
    result.push_back(name_of(launch.state));
  return result;
}

/// One launch, called from 1000 to 1100, whose kernel runs from 1500 to 1600 on kStream; and what
/// else there is.
TEST(RecordedLaunches, AreIdleIfAllBeforeThemOnTheirStreamHadEndedAtTheirCall) {
  const struct {
    const char* what;
    Job also;
    std::string_view state;
  } cases[] = {
      {"nothing", Job(), "idle"},
      {"a kernel that had ended", Job().kernel(500, 900, 9), "idle"},
      {"one that ended as the call began", Job().kernel(500, 1000, 9), "idle"},
      {"one that ended just after", Job().kernel(500, 1001, 9), "busy"},
      {"one that began after the call", Job().kernel(1200, 1300, 9), "busy"},
      {"one that runs beside it", Job().kernel(1499, 1700, 9), "busy"},
      {"one that began with it", Job().kernel(1500, 1700, 9), "idle"},
      {"one that began after it", Job().kernel(1501, 1700, 9), "idle"},
      {"a long one, and a short one that began later and had ended",
       Job().kernel(100, 1200, 8).kernel(500, 600, 9),
       "busy"},
      {"a copy", Job().transfer(500, 1200, false), "busy"},
      {"a fill", Job().transfer(500, 1200, true), "busy"},
      {"a graph as a whole", Job().graph(500, 1200, 9), "busy"},
      {"a kernel of another stream", Job().kernel(500, 1200, 9, kOther), "idle"},
      {"one of another GPU", Job().kernel(500, 1200, 9, kOtherGpu), "idle"},
      {"one without a start", Job().kernel(0, 1200, 9), "idle"},
      {"one that ends before it begins", Job().kernel(1200, 900, 9), "idle"},
  };
  for (const auto& [what, also, state] : cases) {
    Job job = also;  // records come in any order
    job.call(1000, 1100, 1).kernel(1500, 1600, 1, kStream);
    EXPECT_THAT(states(job), ElementsAre(state)) << what;
  }
}

TEST(RecordedLaunches, AreUnknownWithoutAKernelThatCanBe) {
  const struct {
    const char* what;
    Job also;
  } cases[] = {
      {"lost", Job()},
      {"without a start", Job().kernel(0, 1600, 1)},
      {"that ends before it begins", Job().kernel(1600, 1500, 1)},
      {"that begins before its call", Job().kernel(900, 1600, 1)},
      {"of which one of two is without a start", Job().kernel(1500, 1600, 1).kernel(0, 1700, 1)},
  };
  for (const auto& [what, also] : cases) {
    Job job = also;
    job.call(1000, 1100, 1);
    EXPECT_THAT(states(job), ElementsAre("unknown")) << what;
  }
}

TEST(RecordedLaunches, MayBeBeforeTheirCallByTheErrorOfTheClocks) {
  Job job = Job().call(1'000'000, 1'004'000, 1).kernel(999'000, 1'010'000, 1);
  EXPECT_THAT(states(job, 1000), ElementsAre("idle"));
  EXPECT_THAT(states(job, 999), ElementsAre("unknown"));
}

TEST(RecordedLaunches, HaveTheTimesOfAllTheirKernels) {
  Job job = Job().call(1000, 1100, 1);
  job.kernel(1800, 1900, 1, kOtherGpu).kernel(1500, 2600, 1, kStream).kernel(1700, 1710, 1, kOther);
  const RecordedLaunches launches = launches_of(job.process, 0);
  ASSERT_EQ(launches.launches.size(), 1u);
  const RecordedLaunch& launch = launches.launches.front();
  EXPECT_EQ(launch.kernels, 3u);
  EXPECT_EQ(launch.begin_ns, 1500);
  EXPECT_EQ(launch.end_ns, 2600) << "of the last, and not of the one that began last";
  EXPECT_EQ(launch.kernel_ns, 100 + 1100 + 10);
  ASSERT_TRUE(launch.stream);
  EXPECT_EQ(job.process.streams[*launch.stream], kStream) << "of the first";
  EXPECT_EQ(launches.counts.joined, 3u);
}

TEST(RecordedLaunches, OfGraphsHaveKernelsOrOneRecordOfTheWhole) {
  Job job =
      Job().call(1000, 1100, 1, Purpose::launch_graph).kernel(1500, 1600, 1).kernel(1700, 1900, 1);
  job.call(3000, 3100, 2, Purpose::launch_graph).graph(3500, 3900, 2);
  job.call(5000, 5100, 3, Purpose::launch_graph);
  const RecordedLaunches launches = launches_of(job.process, 0);
  ASSERT_EQ(launches.launches.size(), 3u);
  for (const RecordedLaunch& launch : launches.launches) EXPECT_TRUE(launch.is_graph);
  EXPECT_EQ(launches.launches[0].kernels, 2u);
  EXPECT_EQ(launches.launches[0].end_ns, 1900);
  EXPECT_EQ(launches.launches[1].kernels, 0u);
  EXPECT_EQ(launches.launches[1].begin_ns, 3500);
  EXPECT_EQ(launches.launches[1].end_ns, 3900);
  EXPECT_THAT(states(job), ElementsAre("idle", "idle", "unknown"));
  EXPECT_EQ(launches.counts.launches_without_kernel, 1u);
}

TEST(RecordedLaunches, WhoseCallHasNoTimeAreCountedAndToldNothingOf) {
  Job job = Job().call(1000, 1100, 1).kernel(1500, 1600, 1);
  job.call(0, 2100, 2).kernel(2500, 2600, 2);
  job.call(3100, 3000, 3).kernel(3500, 3600, 3);
  job.call(4000, 4100, 4).kernel(4500, 4600, 4);
  const RecordedLaunches launches = launches_of(job.process, 0);
  ASSERT_EQ(launches.launches.size(), 2u);
  EXPECT_EQ(launches.counts.launches, 4u);
  EXPECT_EQ(launches.counts.zero, 1u);
  EXPECT_EQ(launches.counts.inverted, 1u);
  EXPECT_EQ(launches.counts.joined, 4u);
}

TEST(RecordedLaunches, OfKernelsAloneAreNone) {
  Job job = Job().kernel(1500, 1600, 1).kernel(1700, 1800, 2);
  const RecordedLaunches launches = launches_of(job.process, 0);
  EXPECT_TRUE(launches.launches.empty());
  EXPECT_EQ(launches.counts.kernels_without_launch, 2u);
}

TEST(RecordedLaunches, OfNothingAreNone) {
  EXPECT_TRUE(launches_of(Process(), 0).launches.empty());
}

TEST(Tick, IsTheLargestStepOfAllTimes) {
  for (const std::int64_t tick : {1, 32, 100, 1000}) {
    Job job;
    for (std::int64_t i = 0; i < 20; ++i) {
      const std::int64_t at = 1'712'195'495'505'543'201 + tick * (17 * i * i + i);
      job.call(at, at + tick * (3 + i % 2), static_cast<std::uint32_t>(i));
      job.kernel(at + tick * 5, at + tick * 7, static_cast<std::uint32_t>(i));
    }
    EXPECT_EQ(tick_ns(job.process), tick);
    job.kernel(0, 0, 99);
    EXPECT_EQ(tick_ns(job.process), tick) << "a time that is not known is none";
  }
}

TEST(Tick, OfTooFewTimesIsOne) {
  Job job;
  EXPECT_EQ(tick_ns(job.process), 1);
  job.call(1000, 2000, 1).kernel(3000, 4000, 1);
  EXPECT_EQ(tick_ns(job.process), 1);
  Job same;
  for (int i = 0; i < 20; ++i) same.call(1000, 1000, 1);
  EXPECT_EQ(tick_ns(same.process), 1);
}

TEST(Tick, IsOfTenTimesThatAreKnown) {
  Job job;
  for (std::int64_t i = 1; i <= 4; ++i) job.call(1'000 * i, 1'000 * i + 1'000, 1);
  job.kernel(0, 70'000, 1);
  EXPECT_EQ(tick_ns(job.process), 1) << "nine";
  job.process.trace.kernels[0].begin_ns = 69'000;
  EXPECT_EQ(tick_ns(job.process), 1'000);
}

}  // namespace
}  // namespace launchgap::recording
