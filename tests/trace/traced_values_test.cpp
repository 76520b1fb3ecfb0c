#include "harness/trace/traced_values.h"

#include <cmath>

#include <gmock/gmock.h>

namespace launchgap {
namespace {

using activity::Domain;
using activity::Purpose;
using testing::ElementsAre;
using testing::SizeIs;

/// Samples of 1 us each, from 1 us on, and what was recorded of them.
class Recorded {
 public:
  Recorded& call(std::int64_t begin,
                 std::int64_t end,
                 std::uint32_t correlation,
                 Purpose purpose = Purpose::launch) {
    trace_.calls.push_back({begin, end, correlation, 1, 652, Domain::driver, purpose});
    return *this;
  }
  Recorded& kernel(std::int64_t begin, std::int64_t end, std::uint32_t correlation) {
    activity::KernelRun run;
    run.begin_ns = begin;
    run.end_ns = end;
    run.correlation = correlation;
    trace_.kernels.push_back(run);
    return *this;
  }
  Recorded& memory(std::uint32_t correlation, bool release) {
    activity::Memory record;
    record.correlation = correlation;
    record.release = release;
    trace_.memory.push_back(record);
    return *this;
  }
  /// −1 is a value that is missing.
  TracedValues values(std::size_t samples,
                      TracedAs as,
                      double operations = 1,
                      TraceLevel level = TraceLevel::all) const {
    Block block({}, samples);
    block.restart(1'000);
    for (std::size_t i = 0; i < samples; ++i)
      block.keep(1'000 * (static_cast<std::int64_t>(i) + 1));
    block.close(1'000 * (static_cast<std::int64_t>(samples) + 1));
    const Joined joined = join(trace_);
    const SampleWindows windows(block, TraceClock({}));
    TracedValues found = traced_values({trace_, joined, windows, as, operations, 0}, level);
    for (Column& column : found.columns) {
      for (double& value : column.values) value = std::isnan(value) ? -1 : value;
    }
    return found;
  }

 private:
  activity::Trace trace_;
};

TEST(TracedValues, OfALaunchAreThoseOfTheOnlyOneOfItsSample) {
  Recorded recorded;
  recorded.call(500, 900, 9).kernel(950, 960, 9);  // before the first
  recorded.call(1'000, 1'100, 1).kernel(1'150, 1'210, 1);
  recorded.call(2'000, 2'100, 2).kernel(2'100, 2'130, 2);  // at once
  recorded.call(3'000, 3'100, 3).kernel(3'099, 3'110, 3);  // while it is called
  recorded.call(4'000, 4'100, 4).kernel(4'150, 4'200, 4);  // with another one
  recorded.call(4'500, 4'600, 5).kernel(4'650, 4'700, 5);
  recorded.call(5'000, 5'100, 6);                          // lost
  recorded.call(6'000, 6'100, 7).kernel(5'999, 6'200, 7);  // that cannot be
  recorded.call(7'100, 7'200, 8).kernel(7'300, 7'400, 8);
  TracedValues values = recorded.values(7, TracedAs::launch);
  EXPECT_THAT(values.of("api_record_ns"), ElementsAre(100, 100, 100, -1, -1, -1, 100));
  EXPECT_THAT(values.of("launch_ns"), ElementsAre(150, 100, 99, -1, -1, -1, 200));
  EXPECT_THAT(values.of("queue_ns"), ElementsAre(50, 0, -1, -1, -1, -1, 100));
  EXPECT_THAT(values.of("kernel_ns"), ElementsAre(60, 30, 11, -1, -1, -1, 100));
  EXPECT_EQ(values.samples_without_records, 2u);
  EXPECT_EQ(values.missing_records, 2u);
  EXPECT_EQ(values.expected_records, 7);
}

TEST(TracedValues, OfABurstAreMeansOfItsLaunches) {
  Recorded recorded;
  recorded.call(1'000, 1'010, 1).kernel(1'500, 1'520, 1).call(1'100, 1'120, 2);
  recorded.kernel(1'550, 1'560, 2).call(1'200, 1'230, 3).kernel(1'555, 1'585, 3);
  recorded.call(2'000, 2'010, 4).kernel(2'500, 2'520, 4);  // two are lost
  recorded.call(2'100, 2'110, 5).call(2'200, 2'210, 6);
  TracedValues values = recorded.values(2, TracedAs::burst, 3);
  EXPECT_THAT(values.of("api_record_ns"), ElementsAre(20, -1));
  EXPECT_THAT(values.of("kernel_ns"), ElementsAre(20, -1));
  EXPECT_THAT(values.of("inter_kernel_gap_ns"), ElementsAre(15, -1)) << "30 between two pairs";
  EXPECT_EQ(values.missing_records, 2u);
  TracedValues one =
      Recorded().call(1'000, 1'010, 1).kernel(1'500, 1'520, 1).values(1, TracedAs::burst);
  EXPECT_THAT(one.of("kernel_ns"), ElementsAre(20));
  EXPECT_THAT(one.of("inter_kernel_gap_ns"), ElementsAre(-1)) << "of one there is none";
}

TEST(TracedValues, OfWorkAreOfAsManyKernelsAsMostSamplesHave) {
  Recorded recorded;
  for (const std::uint32_t sample : {1u, 2u, 3u}) {
    const std::int64_t at = 1'000 * std::int64_t{sample};
    recorded.call(at, at + 10, sample);
    for (const std::int64_t kernel : {0, 1, 2, 3}) {
      if (sample != 2 || kernel < 2)
        recorded.kernel(at + 100 + 50 * kernel, at + 120 + 50 * kernel, sample);
    }
  }
  TracedValues values = recorded.values(3, TracedAs::work, 2);
  EXPECT_THAT(values.of("kernel_ns"), ElementsAre(40, -1, 40));
  EXPECT_THAT(values.of("device_idle_ns"), ElementsAre(45, -1, 45));
  EXPECT_THAT(values.of("kernels"), ElementsAre(2, -1, 2));
  EXPECT_EQ(values.kernels_per_sample, 4u);
  EXPECT_EQ(values.missing_records, 2u);
}

TEST(TracedValues, OfAChainTellWhichKernelsFoundTheQueueEmpty) {
  Recorded recorded;
  recorded.call(1'000, 1'010, 1).kernel(1'100, 1'200, 1);
  recorded.call(1'200, 1'210, 2).kernel(1'300, 1'400, 2);  // as the one before had ended
  recorded.call(1'399, 1'410, 3).kernel(1'500, 1'600, 3);  // before it had
  recorded.call(1'700, 1'710, 4).kernel(1'800, 1'840, 4);
  TracedValues values = recorded.values(1, TracedAs::chain, 4);
  EXPECT_THAT(values.of("kernel_ns"), ElementsAre(85));
  EXPECT_THAT(values.of("device_idle_ns"), ElementsAre(100));
  EXPECT_THAT(values.of("starved_share"), ElementsAre(0.5));
}

TEST(TracedValues, OfAllocationsAreOfOneCallOfEachKind) {
  const auto pair = [](Recorded& recorded, std::int64_t at, std::uint32_t id) {
    recorded.call(at, at + 10, id, Purpose::allocate);
    recorded.call(at + 500, at + 530, id + 1, Purpose::release);
  };
  Recorded recorded;
  pair(recorded, 1'000, 10);
  recorded.memory(10, false).memory(11, true);
  pair(recorded, 2'000, 20);
  recorded.memory(20, false).memory(21, false);  // of the other kind
  recorded.call(3'000, 3'010, 30, Purpose::allocate).memory(30, false);
  recorded.call(3'100, 3'120, 31, Purpose::launch);
  pair(recorded, 4'000, 40);
  recorded.memory(40, false).memory(41, true).call(4'900, 4'800, 42, Purpose::release);
  TracedValues values = recorded.values(4, TracedAs::allocation);
  EXPECT_THAT(values.of("api_record_ns"), ElementsAre(10, -1, -1, -1));
  EXPECT_THAT(values.of("free_record_ns"), ElementsAre(30, -1, -1, -1));
  EXPECT_EQ(values.allocations_joined, 6u);
  EXPECT_EQ(values.impossible_calls, 1u);
  EXPECT_EQ(values.samples_without_records, 3u);
  EXPECT_EQ(values.missing_records, 4u);
  EXPECT_EQ(values.expected_records, 8);
}

TEST(TracedValues, OfCallsAloneAreOnlyCounted) {
  Recorded recorded;
  recorded.call(1'000, 1'010, 1).call(1'500, 1'510, 2).call(2'000, 2'010, 3);
  const TracedValues values = recorded.values(2, TracedAs::burst, 2, TraceLevel::launches);
  EXPECT_THAT(values.columns, SizeIs(0));
  EXPECT_EQ(values.samples_without_records, 1u);
  EXPECT_EQ(values.spoilt_samples(), 1u);
  EXPECT_EQ(values.missing_records, 1u);
  EXPECT_EQ(recorded.values(2, TracedAs::chain, 2, TraceLevel::launches).expected_records, 0);
}

}  // namespace
}  // namespace launchgap
