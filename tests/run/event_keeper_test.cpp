#include "harness/run/event_keeper.h"

#include <gmock/gmock.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "tests/device/a_device.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr std::int64_t kMs = 1'000'000;

/// Keeps events of a case whose samples are 1 ms apart, each with a call and a kernel.
struct Keeper : testing::Test {
  Keeper() { clock_.bracket(); }
  /// A block whose samples take these times.
  void add(EventKeeper& keeper, int block, std::uint64_t first, std::vector<double> times) {
    const std::int64_t begin = origin_ + 100 * kMs * block;
    Block samples({"api_ns", "roundtrip_ns"}, times.size());
    activity::Trace trace;
    samples.restart(begin);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const std::int64_t at = begin + kMs * static_cast<std::int64_t>(10 * i);
      samples.keep(at, times[i] / 2, times[i]);
      const auto correlation = static_cast<std::uint32_t>(i + 1);
      trace.calls.push_back({at + 1, at + 50, correlation, 42, 307, activity::Domain::driver});
      trace.kernels.push_back({at + 100, at + 200, correlation, 7, trace.name_index("noop")});
    }
    samples.close(begin + kMs * static_cast<std::int64_t>(10 * times.size()));
    keeper.add(block, first, samples, {}, trace, clock_);
  }

  struct Section {
    recording::EventsHead head;
    std::size_t calls = 0, kernels = 0, samples = 0;
  };
  std::vector<Section> sections() const {
    std::vector<Section> found;
    recording::read_events(file_,
                           {[&](const recording::EventsHead& head) { found.push_back({head}); },
                            [&](const recording::Process& process) {
                              found.back().calls += process.trace.calls.size();
                              found.back().kernels += process.trace.kernels.size();
                              found.back().samples += process.ranges.size();
                            }});
    return found;
  }

  const TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "events" / "x.jsonl.gz";
  const DeviceFacts device_ = a_device("GPU-1", "a GPU");
  TraceClock clock_{[] { return now_ns(); }};
  std::int64_t origin_ = now_ns();
};

const CaseName kCase = CaseName::parse("launch/null/api:driver/mode:idle");

TEST(MetricOfSlowness, IsFromCallToKernelOrThereAndBackOrTheFirstTime) {
  const std::vector<Column> traced = {{"api_record_ns", {}}, {"launch_ns", {}}};
  EXPECT_EQ(metric_of_slowness({"api_ns", "roundtrip_ns"}, traced), "launch_ns");
  EXPECT_EQ(metric_of_slowness({"api_ns", "roundtrip_ns"}, {}), "roundtrip_ns");
  EXPECT_EQ(metric_of_slowness({"tflops", "device_ns"}, {}), "device_ns");
  EXPECT_EQ(metric_of_slowness({"tflops"}, {}), std::nullopt);
  EXPECT_EQ(metric_of_slowness({}, {}), std::nullopt);
}

TEST_F(Keeper, KeepsWhatHappenedAroundTheTenSlowest) {
  EventKeeper keeper(file_, device_, KeptEvents::around_slowest);
  keeper.begin(kCase);
  add(keeper, 0, 0, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  add(keeper, 1, 10, {11, 12, 13, 14, 1, 1, 1});
  const std::vector<SlowSampleRecord> slow = keeper.finish();
  std::vector<double> values;
  std::vector<std::uint64_t> samples;
  for (const SlowSampleRecord& record : slow) {
    values.push_back(record.value());
    samples.push_back(record.sample);
    EXPECT_EQ(record.case_name, kCase.text());
    EXPECT_EQ(record.metric, "roundtrip_ns");
    EXPECT_EQ(record.values.at("api_ns"), record.value() / 2);
    EXPECT_EQ(record.end_ns - record.begin_ns, 10 * kMs) << "until the next one begins";
  }
  EXPECT_THAT(values, ElementsAre(14, 13, 12, 11, 10, 9, 8, 7, 6, 5));
  EXPECT_THAT(samples, ElementsAre(13, 12, 11, 10, 9, 8, 7, 6, 5, 4));

  const std::vector<Section> kept = sections();
  ASSERT_EQ(kept.size(), 2u) << "one of each block";
  EXPECT_EQ(kept[0].head.case_name, kCase.text());
  EXPECT_EQ(kept[0].head.block, 0);
  EXPECT_EQ(kept[0].head.gpus.front().uuid, "GPU-1");
  // Around samples 4 to 9; what the first block kept at first beside samples 0 to 3 is gone.
  EXPECT_EQ(kept[0].calls, 6u);
  EXPECT_EQ(kept[0].kernels, 6u);
  EXPECT_EQ(kept[1].head.block, 1);
  EXPECT_EQ(kept[1].calls, 5u) << "samples 10 to 13, and the start of the next";
}

TEST_F(Keeper, ForgetsABlockWithoutAnySlowSample) {
  EventKeeper keeper(file_, device_, KeptEvents::around_slowest);
  keeper.begin(kCase);
  add(keeper, 0, 0, {1, 1});
  add(keeper, 1, 2, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
  EXPECT_EQ(keeper.finish().size(), SlowSampleRecord::kPerCase);
  ASSERT_EQ(sections().size(), 1u);
  EXPECT_EQ(sections().front().head.block, 1);
}

TEST_F(Keeper, KeepsEverythingIfAsked) {
  EventKeeper keeper(file_, device_, KeptEvents::all);
  keeper.begin(kCase);
  add(keeper, 0, 0, std::vector<double>(50, 1));
  EXPECT_EQ(sections().size(), 1u) << "when the block ends, and not later";
  add(keeper, 1, 50, std::vector<double>(50, 1));
  keeper.finish();
  const std::vector<Section> kept = sections();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1].calls, 50u);
  EXPECT_EQ(kept[1].samples, 50u);
}

TEST_F(Keeper, StartsAnewWithEachCase) {
  EventKeeper keeper(file_, device_, KeptEvents::around_slowest);
  keeper.begin(kCase);
  add(keeper, 0, 0, {100, 200});
  keeper.begin(CaseName::parse("launch/null/api:driver/mode:burst"));  // the first one failed
  add(keeper, 0, 0, {1});
  const std::vector<SlowSampleRecord> slow = keeper.finish();
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow.front().case_name, "launch/null/api:driver/mode:burst");
  EXPECT_EQ(sections().size(), 1u);
  EXPECT_TRUE(keeper.finish().empty());
}

TEST_F(Keeper, MakesNoFileForNothing) {
  EventKeeper keeper(file_, device_, KeptEvents::around_slowest);
  keeper.begin(kCase);
  EXPECT_TRUE(keeper.finish().empty());
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(Keeper, SaysWhenItCannotWrite) {
  fs::create_directories(file_.parent_path());
  std::fclose(std::fopen(file_.c_str(), "w"));
  EventKeeper keeper(file_, device_, KeptEvents::all);
  keeper.begin(kCase);
  EXPECT_THROW(add(keeper, 0, 0, {1}), WriteError) << "another process's file is there";
}

}  // namespace
}  // namespace launchgap
