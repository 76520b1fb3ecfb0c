#include <gmock/gmock.h>

#include "harness/import/launch_values.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using namespace testing;

std::vector<SlowSampleRecord> slow_of(const Job& job, std::string_view name) {
  const RecordedLaunches launches = launches_of(job.process, 0);
  for (const RecordedCase& own : launch_cases(job.process, launches, 0, true, true)) {
    if (own.name != name) continue;
    std::vector<SlowSampleRecord> slow = slow_launches(own);
    count_waiting(slow, job.process, launches, 0);
    return slow;
  }
  return {};
}

TEST(SlowLaunches, OfAnIdleStreamAreThoseWhoseKernelsCameLate) {
  Job job = steady(12);
  job.process.trace.kernels[7].begin_ns += 9'000;  // 15 us after its call
  job.process.trace.kernels[7].end_ns += 9'000;
  job.process.trace.calls[3].end_ns += 1'500;  // a call of 5.5 us, whose kernel comes as usual
  const std::vector<SlowSampleRecord> slow = slow_of(job, "recorded/launch/stream:idle");
  ASSERT_EQ(slow.size(), SlowSampleRecord::kPerCase);
  const SlowSampleRecord& slowest = slow.front();
  EXPECT_EQ(slowest.sample, 7u);
  EXPECT_EQ(slowest.metric, "launch_ns");
  EXPECT_EQ(slowest.value(), 15'000);
  EXPECT_EQ(slowest.values.at("api_record_ns"), 4'000);
  EXPECT_EQ(slowest.begin_ns, job.process.trace.calls[7].begin_ns);
  EXPECT_EQ(slowest.end_ns - slowest.begin_ns, 15'000) << "until the kernel begins";
  EXPECT_EQ(slow[1].sample, 0u) << "equals come by begin";
}

TEST(SlowLaunches, OfABusyStreamAreThoseWhoseCallsTookLong) {
  Job job = Job().kernel(1'000, 900'000, 0);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    job.call(std::int64_t{10'000} * i, std::int64_t{11'000} * i, i);
    job.kernel(900'000 + 10'000 * i, 905'000 + 10'000 * i, i);
  }
  const std::vector<SlowSampleRecord> slow = slow_of(job, "recorded/launch/stream:busy");
  std::vector<double> values;
  std::vector<std::uint64_t> waiting;
  for (const SlowSampleRecord& own : slow) {
    EXPECT_EQ(own.metric, "api_record_ns");
    EXPECT_EQ(own.end_ns - own.begin_ns, own.value());
    values.push_back(own.value());
    waiting.push_back(own.waiting.value());
  }
  EXPECT_THAT(values, ElementsAre(3'000, 2'000, 1'000));
  EXPECT_THAT(waiting, ElementsAre(2, 1, 0)) << "what the calls before it asked for";
}

TEST(SlowLaunches, CopiesWaitToo) {
  Job job = Job().kernel(1'000, 900'000, 0);
  job.call(10'000, 11'000, 1, activity::Purpose::copy, "main", "cudaMemcpyAsync");
  job.transfer(905'000, 906'000, false, {0, 1, 7}, 1);
  job.call(20'000, 21'000, 2, activity::Purpose::copy, "main", "cudaMemcpyAsync");
  job.transfer(22'000, 23'000, false, {1, 2, 9}, 2);  // another GPU's
  job.call(30'000, 31'000, 3);
  job.kernel(910'000, 911'000, 3);
  const std::vector<SlowSampleRecord> slow = slow_of(job, "recorded/launch/stream:busy");
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow.front().waiting, 1u);
}

TEST(SlowLaunches, MayBeNone) {
  EXPECT_THAT(slow_of(Job(), "recorded/launch/stream:idle"), IsEmpty());
  EXPECT_THAT(slow_launches(RecordedCase()), IsEmpty());
}

TEST(SlowLaunches, AreTheSlowestOfAllBlocksByWhatIsKnown) {
  RecordedCase own;
  own.name = "recorded/launch/stream:busy";
  for (std::int64_t i = 0; i < 8193; ++i) own.begin_ns.push_back(1'000 * i);
  std::vector<double> calls(8193, 1), to_kernel(8193, 5);
  calls[8192] = 9;
  calls[8191] = 8;
  calls[3] = to_kernel[8192] = Block::kMissing;
  own.columns = {{"api_record_ns", calls}, {"launch_ns", to_kernel}};
  const std::vector<SlowSampleRecord> slow = slow_launches(own);
  ASSERT_EQ(slow.size(), SlowSampleRecord::kPerCase);
  EXPECT_EQ(slow[0].sample, 8192u);
  EXPECT_EQ(slow[0].block, 1);
  EXPECT_THAT(slow[0].values, ElementsAre(Pair("api_record_ns", 9)));
  EXPECT_EQ(slow[0].end_ns, 8'192'009);
  EXPECT_EQ(slow[1].sample, 8191u);
  EXPECT_EQ(slow[1].block, 0);
  EXPECT_EQ(slow[1].end_ns, 8'191'008) << "on a busy stream until the call ends";
  EXPECT_EQ(slow[2].sample, 0u);
  EXPECT_EQ(slow[4].sample, 2u);
  EXPECT_EQ(slow_launches(own).size(), SlowSampleRecord::kPerCase);
}

TEST(SlowLaunches, OfAnIdleStreamLastUntilTheKernelBeginsAndTheCallEnds) {
  RecordedCase own;
  own.name = "recorded/launch/stream:idle";
  own.begin_ns = {100, 200};
  own.columns = {{"api_record_ns", {70, 30}}, {"launch_ns", {50, 40}}};
  const std::vector<SlowSampleRecord> slow = slow_launches(own);
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(slow[0].end_ns, 170) << "its call went on";
  EXPECT_EQ(slow[1].end_ns, 240);
  own.columns.pop_back();
  EXPECT_EQ(slow_launches(own)[0].metric, "api_record_ns") << "where no kernel is known";
}

TEST(SlowLaunches, WaitForWhatWasAskedForBeforeThemAndHasNotBegun) {
  const struct {
    const char* what;
    Job also;
    std::uint64_t waiting;
  } cases[] = {
      {"nothing", Job(), 0},
      {"called before", Job().call(49'999, 49'999, 5).kernel(90'000, 91'000, 5), 1},
      {"called at once", Job().call(50'000, 50'000, 5).kernel(90'000, 91'000, 5), 0},
      {"begun right after", Job().call(40'000, 40'000, 5).kernel(50'001, 91'000, 5), 1},
      {"begun at once", Job().call(40'000, 40'000, 5).kernel(50'000, 91'000, 5), 0},
      {"three kernels of a graph",
       Job()
           .call(40'000, 40'000, 5, activity::Purpose::launch_graph)
           .kernel(60'000, 61'000, 5)
           .kernel(62'000, 63'000, 5)
           .kernel(64'000, 65'000, 5),
       3},
      {"a graph as a whole",
       Job().call(40'000, 40'000, 5, activity::Purpose::launch_graph).graph(60'000, 61'000, 5),
       1},
      {"a copy whose call is in two rows",
       Job()
           .call(40'000, 40'001, 5, activity::Purpose::copy)
           .call(40'000, 40'001, 5, activity::Purpose::copy)
           .transfer(60'000, 61'000, false, kStream, 5),
       1},
      {"a copy whose call or work has no time",
       Job()
           .call(0, 40'001, 5, activity::Purpose::copy)
           .call(40'000, 41'000, 6, activity::Purpose::copy)
           .transfer(60'000, 61'000, false, kStream, 5)
           .transfer(0, 61'000, false, kStream, 6)
           .call(41'000, 41'001, 7, activity::Purpose::copy)
           .transfer(60'000, 61'000, false, kStream, 7),
       1},
  };
  for (const auto& [what, also, waiting] : cases) {
    Job job = also;
    job.process.stream(kStream);
    const RecordedLaunches launches = launches_of(job.process, 0);
    std::vector<SlowSampleRecord> slow(1);
    slow[0].begin_ns = 50'000;
    count_waiting(slow, job.process, launches, 0);
    EXPECT_EQ(slow[0].waiting, waiting) << what;
    count_waiting(slow, job.process, launches, 1);
    EXPECT_EQ(slow[0].waiting, 0u) << what << ", of another GPU";
  }
}

}  // namespace
}  // namespace launchgap::recording
