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

}  // namespace
}  // namespace launchgap::recording
