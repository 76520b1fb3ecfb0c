#include "harness/trace/case_trace.h"

#include <cmath>
#include <functional>
#include <set>

#include <gmock/gmock.h>

#include "harness/core/clock.h"
#include "harness/device/backend.h"
#include "harness/trace/canary.h"
#include "harness/trace/join.h"

namespace launchgap {
namespace {

using activity::Purpose;
using ::testing::ElementsAre;

constexpr std::int64_t kOffset = 1'700'000'000'000'000'000;  // of the trace's clock

TEST(NamesOfKernels, AreReadableAndStayApart) {
  activity::Trace trace;
  const std::string endless = "_ZN" + std::string(5000, '1');
  std::string moved = "_Z4fillIfEvPT_";  // another name at the same address
  const auto first = trace.name_index(moved.c_str());
  moved = "_Z4fillIdEvPT_";
  const auto second = trace.name_index(moved.c_str());
  EXPECT_EQ(trace.name(first), "void fill<float>(float*)");
  EXPECT_EQ(trace.name(second), "void fill<double>(double*)");
  EXPECT_EQ(trace.name_index("_Z4fillIfEvPT_"), first);
  for (const std::string& name : {std::string("launchgap_null"), std::string("_Zone"), endless})
    EXPECT_EQ(trace.name(trace.name_index(name.c_str())), name);
  EXPECT_EQ(trace.name(trace.name_index(nullptr)), "(unnamed)");
  EXPECT_EQ(trace.names().size(), 6u);
}

/// Delivers what the test puts into it.
class ScriptedTracer : public Tracer {
 public:
  explicit ScriptedTracer(TraceLevel level = TraceLevel::all) : level_(level) {}
  TraceLevel level() const override { return level_; }
  void collect(activity::Trace& trace, bool forced) override {
    ++collections;
    if (forced) deliver(later, trace);
    if (forced || !only_if_forced) deliver(next, trace);
  }
  std::int64_t clock_ns() override { return now_ns() + kOffset + jump_ns; }
  std::optional<LoadedLibrary> loaded_library() const override { return std::nullopt; }

  activity::Trace next;
  activity::Trace later;  // only when forced
  bool only_if_forced = false;
  int collections = 0;
  std::int64_t jump_ns = 0;

 private:
  static void deliver(activity::Trace& from, activity::Trace& to) {
    for (const auto& call : from.calls) to.calls.push_back(call);
    for (auto kernel : from.kernels) {
      kernel.name = to.name_index(from.name(kernel.name).c_str());
      to.kernels.push_back(kernel);
    }
    for (const auto& memory : from.memory) to.memory.push_back(memory);
    to.dropped += from.dropped;
    from.clear();
  }

  TraceLevel level_;
};

/// A block of `n` samples that begin 10 us apart, and the records that belong to them.
class Scene {
 public:
  explicit Scene(std::vector<std::string_view> metrics,
                 std::size_t n,
                 TracedAs as,
                 int operations = 1)
      : block(std::move(metrics), n), trace(tracer, as, operations) {
    trace.begin();
    block.restart();
    for (std::size_t i = 0; i < n; ++i) block.keep(begin(i), 1000.0 + static_cast<double>(i));
    // Windows are told from the block's times, so its end must lie behind its last sample.
    while (now_ns() < begin(n)) {
    }
    block.close();
  }

  std::int64_t begin(std::size_t sample) const {
    return block.begin_ns() + 1000 + 10'000 * static_cast<std::int64_t>(sample);
  }
  void launch(std::size_t sample,
              std::int64_t call_from,
              std::int64_t call_to,
              std::int64_t kernel_from,
              std::int64_t kernel_to,
              const char* name = "k") {
    const std::int64_t at = begin(sample) + kOffset;
    ++correlation_;
    tracer.next.calls.push_back({at + call_from,
                                 at + call_to,
                                 correlation_,
                                 1,
                                 652,
                                 activity::Domain::driver,
                                 Purpose::launch});
    if (kernel_to != 0) another_kernel(sample, kernel_from, kernel_to, name);
  }
  /// Of the call before.
  void another_kernel(std::size_t sample,
                      std::int64_t from,
                      std::int64_t to,
                      const char* name = "k") {
    const std::int64_t at = begin(sample) + kOffset;
    activity::KernelRun kernel;
    kernel.begin_ns = at + from;
    kernel.end_ns = at + to;
    kernel.correlation = correlation_;
    kernel.name = tracer.next.name_index(name);
    tracer.next.kernels.push_back(kernel);
  }
  void allocation(std::size_t sample, Purpose purpose, std::int64_t from, std::int64_t to) {
    const std::int64_t at = begin(sample) + kOffset;
    ++correlation_;
    tracer.next.calls.push_back(
        {at + from, at + to, correlation_, 1, 598, activity::Domain::driver, purpose});
    tracer.next.memory.push_back(
        {at + to, 0x1000, 4096, 0x77, correlation_, 3, purpose == Purpose::release});
  }
  std::map<std::string, std::vector<double>> finish() {
    std::map<std::string, std::vector<double>> columns;
    for (const Column& column : trace.finish(block))
      columns[std::string(column.metric)] = column.values;
    return columns;
  }

  ScriptedTracer tracer;
  Block block;

 private:
  std::uint32_t correlation_ = 0;

 public:
  CaseTrace trace;
};

std::string state(const CaseTrace& trace) {
  const auto problem = trace.invalid();
  return problem ? problem->state() : "ok";
}

TEST(CaseTrace, TakesALaunchApart) {
  Scene scene({"api_ns"}, 2, TracedAs::launch);
  scene.launch(0, 100, 2100, 5100, 6100);
  scene.launch(1, 200, 2200, 2100, 4100);  // the kernel began before the call returned
  const auto columns = scene.finish();
  EXPECT_THAT(columns.at("api_record_ns"), ElementsAre(2000, 2000));
  EXPECT_THAT(columns.at("launch_ns"), ElementsAre(5000, 1900));
  EXPECT_THAT(columns.at("queue_ns"), ElementsAre(3000, ::testing::IsNan()));
  EXPECT_THAT(columns.at("kernel_ns"), ElementsAre(1000, 2000));
  EXPECT_THAT(columns.at("overhead_ns"), ElementsAre(0, 0));
  EXPECT_EQ(state(scene.trace), "ok");
  EXPECT_EQ(scene.trace.counts().overlap, 1u);
}

TEST(CaseTrace, LeavesWarmUpOut) {
  Scene scene({"api_ns"}, 1, TracedAs::launch);
  scene.launch(0, -900, -800, -700, -600);  // in the block, and before its first sample
  scene.launch(0, 100, 2100, 5100, 6100);
  EXPECT_THAT(scene.finish().at("launch_ns"), ElementsAre(5000));
  EXPECT_EQ(state(scene.trace), "ok");
}

TEST(CaseTrace, ASampleWithoutItsLaunchOrWithTwoMakesTheCaseInvalid) {
  for (const int launches : {0, 2}) {
    Scene scene({"api_ns"}, 2, TracedAs::launch);
    scene.launch(0, 100, 2100, 5100, 6100);
    for (int i = 0; i < launches; ++i) {
      const std::int64_t later = std::int64_t{3000} * i;
      scene.launch(1, 100 + later, 1100 + later, 2100 + later, 2200 + later);
    }
    scene.finish();
    EXPECT_EQ(scene.trace.samples_without_records(), 1u);
    EXPECT_EQ(state(scene.trace), "invalid:unjoined");
  }
}

TEST(CaseTrace, ComparesTheFlagWithTheKernelOfTheSameLaunch) {
  Scene scene({"flag_ns"}, 2, TracedAs::launch);  // the host saw them after 1000 and 1001 ns
  scene.launch(0, 100, 300, 700, 900);
  scene.launch(1, 100, 300, 701, 901);
  EXPECT_THAT(scene.finish().at("flag_excess_ns"), ElementsAre(400, 400));
  EXPECT_EQ(state(scene.trace), "ok");
}

TEST(CaseTrace, AFlagBeforeItsKernelIsImpossible) {
  Scene scene({"flag_ns"}, 1, TracedAs::launch);
  scene.launch(0, 100, 300, 5100, 5200);
  scene.finish();
  EXPECT_EQ(scene.trace.flags_before_kernel(), 1u);
  EXPECT_EQ(state(scene.trace), "invalid:bad_timestamps");
}

TEST(CaseTrace, AveragesABurst) {
  Scene scene({"per_launch_ns"}, 1, TracedAs::burst, 3);
  scene.launch(0, 0, 100, 1000, 1500);
  scene.launch(0, 200, 400, 1600, 2100);
  scene.launch(0, 500, 800, 2400, 2900);
  const auto columns = scene.finish();
  EXPECT_THAT(columns.at("api_record_ns"), ElementsAre(200));
  EXPECT_THAT(columns.at("kernel_ns"), ElementsAre(500));
  EXPECT_THAT(columns.at("inter_kernel_gap_ns"), ElementsAre((100 + 300) / 2));
  EXPECT_EQ(state(scene.trace), "ok");
}

TEST(CaseTrace, ABurstThatLacksALaunchIsNoBurst) {
  Scene scene({"per_launch_ns"}, 1, TracedAs::burst, 3);
  scene.launch(0, 0, 100, 1000, 1500);
  EXPECT_TRUE(std::isnan(scene.finish().at("kernel_ns")[0]));
  EXPECT_EQ(state(scene.trace), "invalid:unjoined");
}

TEST(CaseTrace, MeasuresWhatOfTheWorkNoKernelCovers) {
  Scene scene({"device_ns"}, 1, TracedAs::gated_work, 2);
  scene.launch(0, 0, 10, 500, 5000, "launchgap_gate");
  scene.launch(0, 20, 30, 5000, 6000, "transform");
  scene.launch(0, 40, 50, 6200, 7200, "gemm");
  scene.launch(0, 60, 70, 7000, 8200, "gemm");  // beside the one before
  scene.launch(0, 80, 90, 9000, 9400, "gemm");
  const auto columns = scene.finish();
  EXPECT_THAT(columns.at("kernel_ns"), ElementsAre((1000 + 1000 + 1200 + 400) / 2));
  EXPECT_THAT(columns.at("device_idle_ns"), ElementsAre((200 + 800) / 2));
  EXPECT_THAT(columns.at("kernels"), ElementsAre(2));
  const auto& gemm = scene.trace.kernels().at({"gemm", {1, 1, 1}, {1, 1, 1}});
  EXPECT_EQ(gemm.count, 3u);
  EXPECT_EQ(gemm.shortest_ns, 400);
  EXPECT_EQ(gemm.longest_ns, 1200);
  EXPECT_EQ(state(scene.trace), "ok");
}

// CUPTI before 13.4 Update 1 may tell the name of a kernel whose module is gone.
TEST(CaseTrace, KnowsTheGateByItsLaunchWhateverItsName) {
  for (const char* const name : {"launchgap_gate", "launchgap_fill", "gemm"}) {
    Scene scene({"device_ns"}, 1, TracedAs::gated_work);
    scene.launch(0, 0, 10, 500, 5000, name);
    scene.launch(0, 20, 30, 5100, 6100, "gemm");
    const auto columns = scene.finish();
    EXPECT_THAT(columns.at("kernels"), ElementsAre(1)) << name;
    EXPECT_THAT(columns.at("kernel_ns"), ElementsAre(1000)) << name;
    EXPECT_THAT(columns.at("device_idle_ns"), ElementsAre(0)) << name;
    EXPECT_EQ(state(scene.trace), "ok") << name;
  }
}

TEST(CaseTrace, WorkWithoutAGateHasAllOfItsKernels) {
  Scene scene({"roundtrip_ns"}, 1, TracedAs::work);
  scene.launch(0, 0, 10, 500, 1000);
  scene.launch(0, 20, 30, 1000, 1600);
  EXPECT_THAT(scene.finish().at("kernel_ns"), ElementsAre(1100));
}

// A kernel that begins before its launch may seem to run in the sample before.
TEST(CaseTrace, AnImpossibleKernelSpoilsItsOwnSampleAndNoOther) {
  Scene scene({"device_ns"}, 3, TracedAs::gated_work);
  for (const std::size_t i : {0u, 1u, 2u}) {
    scene.launch(i, 0, 10, 500, 5000, "launchgap_gate");
    scene.launch(i, 20, 30, i == 1 ? -8000 : 5100, 6100, "gemm");
  }
  EXPECT_THAT(scene.finish().at("kernels"), ElementsAre(1, ::testing::IsNan(), 1));
  EXPECT_EQ(scene.trace.samples_without_records(), 0u);
  EXPECT_EQ(scene.trace.faults().impossible, 1u);
}

TEST(CaseTrace, WorkThatLacksAKernelIsInvalidAndNotFast) {
  Scene scene({"device_ns"}, 2, TracedAs::work, 2);
  for (const std::size_t i : {0u, 1u}) {
    scene.launch(i, 0, 10, 1000, 2000);
    scene.launch(i, 20, 30, 2000, i == 1 ? 0 : 3000);  // the last kernel is missing
  }
  EXPECT_THAT(scene.finish().at("kernel_ns"), ElementsAre(1000, ::testing::IsNan()));
  EXPECT_EQ(state(scene.trace), "invalid:unjoined");
}

// The first has nothing to wait behind, the second was launched while the first ran, the third when
// the device had ended.
TEST(CaseTrace, CountsTheOperationsOfAChainThatFoundTheQueueEmpty) {
  Scene scene({"per_op_ns"}, 1, TracedAs::chain, 3);
  scene.launch(0, 0, 10, 500, 2500);
  scene.launch(0, 20, 30, 2600, 3000);
  scene.launch(0, 3500, 3510, 4000, 4300);
  const auto columns = scene.finish();
  EXPECT_THAT(columns.at("starved_share"), ElementsAre(1.0 / 3));
  EXPECT_THAT(columns.at("kernel_ns"), ElementsAre((2000 + 400 + 300) / 3.0));
  EXPECT_THAT(columns.at("device_idle_ns"), ElementsAre((100 + 1000) / 3.0));
  EXPECT_EQ(state(scene.trace), "ok");
}

TEST(CaseTrace, OfAGraphsKernelsNoneFindsTheQueueEmpty) {
  Scene scene({"per_op_ns"}, 1, TracedAs::chain, 3);
  scene.launch(0, 0, 10, 500, 1000);
  scene.another_kernel(0, 1200, 1500);
  scene.another_kernel(0, 1700, 2000);
  EXPECT_THAT(scene.finish().at("starved_share"), ElementsAre(0));
  EXPECT_EQ(state(scene.trace), "ok");
}

TEST(CaseTrace, AChainThatLacksAnOperationIsInvalid) {
  Scene scene({"per_op_ns"}, 1, TracedAs::chain, 3);
  scene.launch(0, 0, 10, 500, 1000);
  scene.launch(0, 20, 30, 1000, 1500);
  EXPECT_THAT(scene.finish().at("kernel_ns"), ElementsAre(::testing::IsNan()));
  EXPECT_EQ(state(scene.trace), "invalid:unjoined");
}

TEST(CaseTrace, TwoCallsOfOneKindAreNotOneOfEach) {
  for (const bool released : {false, true}) {
    Scene scene({"call_ns"}, 1, TracedAs::allocation);
    scene.allocation(0, Purpose::allocate, 100, 1100);
    scene.allocation(0, Purpose::allocate, 2000, 2500);
    if (released) scene.allocation(0, Purpose::release, 3000, 3500);
    EXPECT_TRUE(std::isnan(scene.finish().at("api_record_ns")[0]));
    EXPECT_EQ(state(scene.trace), "invalid:unjoined");
  }
}

TEST(CaseTrace, JoinsAllocationsToTheirMemory) {
  Scene scene({"call_ns"}, 2, TracedAs::allocation);
  for (const std::size_t i : {0u, 1u}) {
    scene.allocation(i, Purpose::allocate, 100, 1100);
    scene.allocation(i, Purpose::release, 3000, 3500);
  }
  const auto columns = scene.finish();
  EXPECT_THAT(columns.at("api_record_ns"), ElementsAre(1000, 1000));
  EXPECT_THAT(columns.at("free_record_ns"), ElementsAre(500, 500));
  EXPECT_EQ(scene.trace.allocations_joined(), 4u);
  EXPECT_EQ(scene.trace.memory().at({false, 3, 0x77, 4096}), 2u);
  EXPECT_EQ(state(scene.trace), "ok");
}

// A captured launch is a call without a kernel: nothing will come of waiting for it.
TEST(CaseTrace, CapturedLaunchesAreNotWaitedFor) {
  for (const TracedAs as : {TracedAs::chain, TracedAs::unseen}) {
    Scene scene({"per_op_ns"}, 1, as, 2);
    scene.launch(0, 0, 10, 0, 0);
    scene.launch(0, 20, 30, 0, 0);
    scene.launch(0, 40, 50, 500, 1000);
    scene.another_kernel(0, 1200, 1500);
    scene.finish();
    EXPECT_EQ(scene.trace.counts().launches_without_kernel, 2u);
    EXPECT_EQ(scene.trace.late_blocks(), 0u);
    EXPECT_EQ(state(scene.trace), "ok");
  }
}

// What ends before it begins is counted, and not believed.
TEST(CaseTrace, ASampleWithAnImpossibleRecordLacksTracedMetricsAndNoOtherDoes) {
  constexpr std::size_t kSamples = 200;
  for (const TracedAs as : {TracedAs::launch, TracedAs::allocation}) {
    const bool launches = as == TracedAs::launch;
    Scene scene({launches ? "api_ns" : "call_ns"}, kSamples, as);
    for (std::size_t i = 0; i < kSamples; ++i) {
      if (launches) {
        scene.launch(i, 100, 2100, 5100, i == 7 ? 5000 : 6100);
      } else {
        scene.allocation(i, Purpose::allocate, 100, i == 7 ? 50 : 1100);
        scene.allocation(i, Purpose::release, 3000, 3500);
      }
    }
    for (const auto& [metric, values] : scene.finish()) {
      for (std::size_t i = 0; i < kSamples; ++i)
        EXPECT_EQ(std::isnan(values[i]), i == 7) << metric << " " << i;
    }
    EXPECT_EQ(scene.trace.counts().inverted, launches ? 1u : 0u);
    EXPECT_EQ(scene.trace.faults().impossible, 1u);
    EXPECT_TRUE(scene.trace.faults().doubtful() || !launches);
    EXPECT_EQ(scene.trace.late_blocks(), 0u);
    EXPECT_EQ(state(scene.trace), "ok");
  }
}

/// A kernel's record, or that of the call, which a graph's launch shares between many kernels.
TEST(CaseTrace, OneImpossibleRecordIsCountedOnce) {
  using Spoil = void (*)(activity::Trace&);
  const std::pair<const char*, Spoil> ways[] = {
      {"a call without a start", [](auto& trace) { trace.calls[7].begin_ns = 0; }},
      {"a call without times",
       [](auto& trace) { trace.calls[7].begin_ns = trace.calls[7].end_ns = 0; }},
      {"a call that ends before it begins",
       [](auto& trace) { std::swap(trace.calls[7].begin_ns, trace.calls[7].end_ns); }},
      {"a kernel without times",
       [](auto& trace) { trace.kernels[56].begin_ns = trace.kernels[56].end_ns = 0; }},
      {"a kernel that ends before it begins",
       [](auto& trace) { std::swap(trace.kernels[56].begin_ns, trace.kernels[56].end_ns); }},
      {"a kernel before its launch",
       [](auto& trace) { trace.kernels[56].begin_ns = trace.calls[7].begin_ns - 1'000'000; }},
  };
  constexpr std::size_t kSamples = 100;
  constexpr int kKernels = 8;
  for (const auto& [name, spoil] : ways) {
    Scene scene({"calls_ns"}, kSamples, TracedAs::chain, kKernels);
    for (std::size_t i = 0; i < kSamples; ++i) {
      scene.launch(i, 100, 2100, 2200, 2300);
      for (int k = 1; k < kKernels; ++k) scene.another_kernel(i, 2200 + 200 * k, 2300 + 200 * k);
    }
    spoil(scene.tracer.next);
    const auto columns = scene.finish();
    EXPECT_EQ(scene.trace.faults().impossible, 1u) << name << ": " << scene.trace.describe_faults();
    EXPECT_EQ(scene.trace.samples_without_records(), 0u) << name;
    for (std::size_t i = 0; i < kSamples; ++i)
      EXPECT_EQ(std::isnan(columns.at("kernel_ns")[i]), i == 7) << name << " " << i;
  }
}

// The rule of docs/definitions.md: valid up to 1 in 1000, invalid from 1 in 100, doubtful between.
TEST(CaseTrace, TheShareOfImpossibleRecordsDecides) {
  struct Share {
    std::size_t impossible, launches;
    const char* state;
    bool doubtful;
  };
  for (const auto& [impossible, launches, expected, doubtful] :
       {Share{0, 1000, "ok", false},
        Share{1, 2000, "ok", false},
        Share{1, 1000, "ok", false},
        Share{2, 1000, "ok", true},
        Share{9, 1000, "ok", true},
        Share{10, 1000, "invalid:bad_timestamps", false},
        Share{400, 1000, "invalid:bad_timestamps", false}}) {
    Scene scene({"api_ns"}, launches, TracedAs::launch);
    for (std::size_t i = 0; i < launches; ++i) {
      const bool bad = i < impossible;
      scene.launch(i, 100, 2100, 5100, bad ? 5000 : 6100);
    }
    scene.finish();
    EXPECT_EQ(state(scene.trace), expected) << impossible << " of " << launches;
    EXPECT_EQ(scene.trace.faults().doubtful(), doubtful) << impossible << " of " << launches;
    EXPECT_EQ(scene.trace.describe_faults().empty(), impossible == 0);
  }
}

// Few records may spoil most samples: one of each burst's thousand. Half are not most.
TEST(CaseTrace, ACaseWithoutMostOfItsSamplesIsInvalid) {
  constexpr int kLaunches = 1000;
  for (const std::size_t bursts : {3u, 4u}) {
    Scene scene({"per_launch_ns"}, bursts, TracedAs::burst, kLaunches);
    for (std::size_t i = 0; i < bursts; ++i) {
      for (int launch = 0; launch < kLaunches; ++launch) {
        const bool bad = i < 2 && launch == 5;
        scene.launch(i, launch, launch + 1, launch + 2, bad ? 1 : launch + 3);
      }
    }
    scene.finish();
    EXPECT_EQ(state(scene.trace), bursts == 3 ? "invalid:bad_timestamps" : "ok");
  }
}

// Launches scatter by some 300 ns: the device's clock cannot be converted worse than that.
TEST(CaseTrace, AKernelMayBeginEarlierByNoMoreThanTheClocksMayBeWrong) {
  for (const std::int64_t early_ns : {200, 10'000}) {
    constexpr std::size_t kSamples = 2000;
    Scene scene({"api_ns"}, kSamples, TracedAs::launch);
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::int64_t launch_ns = 1000 + 300 * static_cast<std::int64_t>(i % 3);
      const std::int64_t begin = i == 9 ? -early_ns : launch_ns;
      scene.launch(i, 0, 900, begin, launch_ns + 1000);
    }
    const auto columns = scene.finish();
    EXPECT_EQ(scene.trace.counts().early, early_ns == 200 ? 0u : 1u);
    EXPECT_EQ(std::isnan(columns.at("launch_ns")[9]), early_ns == 10'000);
    EXPECT_LT(scene.trace.conversion_error_ns(), 10'000);
  }
}

TEST(Scatter, IsRobustAndBounded) {
  std::vector<double> few;
  for (int i = 0; i < 19; ++i) few.push_back(i % 2 * 10);
  EXPECT_EQ(scatter_of_launches(few), 0) << "too few to say";
  few.push_back(10);
  EXPECT_EQ(scatter_of_launches(few), 38) << "5 of 1.4826 times 5";
  std::vector<double> launches;
  for (int i = 0; i < 1000; ++i) launches.push_back(5000 + i % 101 - 50);
  EXPECT_NEAR(static_cast<double>(scatter_of_launches(launches)), 5 * 1.4826 * 25, 10);
  for (int i = 0; i < 50; ++i) launches.push_back(1e9);
  EXPECT_LT(scatter_of_launches(launches), 5 * 1.4826 * 30);
  for (double& launch : launches) launch *= 1000;
  EXPECT_EQ(scatter_of_launches(launches), 5000);
}

TEST(CaseTrace, WaitsForRecordsThatComeLate) {
  Scene scene({"api_ns"}, 1, TracedAs::launch);
  scene.launch(0, 100, 2100, 5100, 6100);
  scene.tracer.only_if_forced = true;
  EXPECT_THAT(scene.finish().at("launch_ns"), ElementsAre(5000));
  EXPECT_EQ(scene.trace.late_blocks(), 1u);
  EXPECT_EQ(state(scene.trace), "ok");
}

/// The first delivery looks whole by itself: its launch has its kernel. The sample says otherwise.
TEST(CaseTrace, AsksAgainWhileAnySampleLacksItsRecords) {
  Scene scene({"api_ns"}, 2, TracedAs::launch);
  scene.launch(0, 100, 2100, 5100, 6100);
  std::swap(scene.tracer.next, scene.tracer.later);
  scene.launch(1, 100, 2100, 5100, 6100);
  EXPECT_THAT(scene.finish().at("launch_ns"), ElementsAre(5000, 5000));
  EXPECT_EQ(scene.trace.late_blocks(), 1u);
  EXPECT_EQ(state(scene.trace), "ok");
}

TEST(CaseTrace, NoRecordsAtAllAreAnErrorAndDoNotTakeLong) {
  Scene scene({"api_ns"}, 1, TracedAs::unseen);
  scene.finish();
  EXPECT_LE(scene.tracer.collections, 6);
  EXPECT_EQ(state(scene.trace), "invalid:no_records");
}

TEST(CaseTrace, DroppedRecordsMakeTheCaseInvalid) {
  Scene scene({"api_ns"}, 1, TracedAs::launch);
  scene.launch(0, 100, 2100, 5100, 6100);
  scene.tracer.next.dropped = 5;
  scene.finish();
  EXPECT_EQ(state(scene.trace), "invalid:dropped");
  EXPECT_THAT(scene.trace.invalid()->what(), ::testing::HasSubstr("5 records dropped"));
}

TEST(CaseTrace, AClockThatJumpsMakesTheCaseInvalid) {
  Scene scene({"api_ns"}, 1, TracedAs::launch);
  scene.launch(0, 100, 2100, 5100, 6100);
  scene.tracer.jump_ns = 50'000;
  scene.finish();
  EXPECT_EQ(state(scene.trace), "invalid:clock_step");
}

TEST(CaseTrace, LesserLevelsOnlyCheckThatEverySampleHasItsCalls) {
  for (const int calls : {1, 0, 2}) {
    ScriptedTracer tracer(TraceLevel::launches);
    CaseTrace trace(tracer, TracedAs::launch, 1);
    trace.begin();
    Block block({"api_ns"}, 2);
    block.restart();
    for (const int launches : {1, calls}) {
      block.keep(now_ns(), 1.0);
      for (int i = 0; i < launches; ++i) {
        const std::int64_t now = now_ns() + 1000 + kOffset;
        tracer.next.calls.push_back(
            {now, now + 10, 0, 1, 652, activity::Domain::driver, Purpose::launch});
      }
      for (const std::int64_t until = now_ns() + 20'000; now_ns() < until;) {
      }
    }
    block.close();
    EXPECT_TRUE(trace.finish(block).empty());
    EXPECT_EQ(state(trace), calls == 1 ? "ok" : "invalid:unjoined") << calls;
    EXPECT_EQ(trace.counts().launches_without_kernel, 0u) << "nobody asked for kernels";
  }
}

/// The canary on the host's queue, with a tracer that spoils what the host recorded.
class Spoiler : public Tracer {
 public:
  explicit Spoiler(std::function<void(activity::Trace&)> spoil) : spoil_(std::move(spoil)) {}
  TraceLevel level() const override { return TraceLevel::all; }
  void collect(activity::Trace& trace, bool) override {
    host().collect(trace, false);
    if (trace.kernels.size() >= 100) spoil_(trace);
  }
  std::int64_t clock_ns() override { return now_ns() + jump_ns; }
  std::optional<LoadedLibrary> loaded_library() const override { return std::nullopt; }

  static Tracer& host() {
    static Tracer& tracer = start_tracer("host", TraceLevel::all);
    return tracer;
  }
  std::int64_t jump_ns = 0;

 private:
  std::function<void(activity::Trace&)> spoil_;
};

TEST(Canary, FindsEveryWayInWhichTracingMayBeBroken) {
  const struct {
    const char* state;
    std::function<void(activity::Trace&)> spoil;
  } cases[] = {
      {"invalid:no_records", [](activity::Trace& trace) { trace.clear(); }},
      {"invalid:dropped", [](activity::Trace& trace) { trace.dropped = 1; }},
      {"invalid:bad_timestamps", [](activity::Trace& trace) { trace.kernels[5].end_ns = 0; }},
      {"invalid:bad_timestamps", [](activity::Trace& trace) { trace.kernels[5].begin_ns = 1; }},
      {"invalid:unjoined", [](activity::Trace& trace) { trace.kernels.pop_back(); }},
      {"invalid:unjoined", [](activity::Trace& trace) { trace.calls.pop_back(); }},
  };
  Spoiler::host();  // before the device, as ever
  const std::unique_ptr<Device> device = open_device("host", "");
  for (const auto& [expected, spoil] : cases) {
    Spoiler tracer(spoil);
    Canary canary;
    try {
      check_with_canary(tracer, *device, canary);
      ADD_FAILURE() << expected << " was not noticed";
    } catch (const TraceUnavailable& problem) {
      EXPECT_EQ(problem.state(), expected) << problem.what();
      EXPECT_TRUE(problem.invalid());
    }
    EXPECT_EQ(canary.tries, 3) << expected;
  }
  Spoiler healthy([](activity::Trace&) {});
  Canary canary;
  check_with_canary(healthy, *device, canary);
  EXPECT_EQ(canary.counts.joined, 100u);
  EXPECT_EQ(canary.tries, 1);
  EXPECT_EQ(canary.burst, "");
}

// pytorch/pytorch issue 192021: records at the beginning of tracing are corrupt or missing.
TEST(Canary, OutlivesABurstAtTheBeginning) {
  Spoiler::host();
  const std::unique_ptr<Device> device = open_device("host", "");
  for (const int spoilt : {1, 2}) {
    std::set<std::int64_t> tries;  // by their first kernel's begin
    Spoiler tracer([&](activity::Trace& trace) {
      if (trace.kernels.size() > 100) return;  // what keeps the device busy
      tries.insert(trace.kernels[0].begin_ns);
      if (static_cast<int>(tries.size()) <= spoilt) trace.kernels[5].end_ns = 0;
    });
    Canary canary;
    check_with_canary(tracer, *device, canary);
    EXPECT_EQ(canary.tries, spoilt + 1);
    EXPECT_EQ(canary.counts.joined, 100u);
    EXPECT_THAT(canary.burst, ::testing::HasSubstr("without a time"));
  }
}

}  // namespace
}  // namespace launchgap
