#include "harness/summary/published.h"

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "tests/device/a_device.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

TEST(LaunchAnchors, AreEmbeddedPositiveAndHaveASource) {
  EXPECT_THAT(launch_anchors(), Not(IsEmpty()));
  for (const LaunchAnchor& anchor : launch_anchors()) {
    EXPECT_GT(anchor.ns, 0) << anchor.gpu << " " << anchor.quantity;
    EXPECT_FALSE(anchor.source.empty()) << anchor.gpu << " " << anchor.quantity;
  }
}

TEST(LaunchAnchors, ThatMakeNoSenseAreRefused) {
  const std::string header = "gpu,quantity,value_us,method,host,source\n";
  EXPECT_THAT(parse_launch_anchors(header + "A100,launch_call,3.0,m,h,s\n"), SizeIs(1));
  for (const char* value : {"", "fast", "0", "-1", "nan", "3.0x"})
    EXPECT_THROW(parse_launch_anchors(header + "A100,launch_call," + value + ",m,h,s\n"), Error)
        << value;
}

struct ModelCase {
  const char *device, *model;
  bool same;
};

TEST(Model, IsMatchedByName) {
  for (const auto& [device, model, same] :
       std::vector<ModelCase>{{"NVIDIA H200", "H200", true},
                              {"NVIDIA GH200 480GB", "H200", false},
                              {"NVIDIA H100 80GB HBM3", "H200", false},
                              {"NVIDIA A100-SXM4-80GB", "A100", true},
                              {"NVIDIA A100-SXM4-80GB", "A100-80", true},
                              {"NVIDIA A100 80GB PCIe", "A100-80", true},
                              {"NVIDIA A100-SXM4-40GB", "A100-80", false},
                              {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100", false},
                              {"Tesla P100-PCIE-16GB", "P100 PCIe", true},
                              {"Tesla P100-SXM2-16GB", "P100 PCIe", false},
                              {"Tesla V100-SXM2-16GB", "V100", true},
                              {"Tesla V100-SXM2-16GB", "V100 SXM", true},
                              {"NVIDIA GeForce RTX 3080", "RTX 3080", true},
                              {"NVIDIA GeForce RTX 3080 Ti", "RTX 3080", false},
                              {"NVIDIA L40S", "L40", false},
                              {"NVIDIA GB200", "B200", false},
                              {"", "H200", false}}) {
    EXPECT_EQ(is_model(device, model), same) << device << " / " << model;
  }
}

/// A session with one device, and rows made by hand.
struct PublishedValues : ::testing::Test {
  PublishedValues() { session.devices = {a_device("GPU-1", "NVIDIA H200")}; }

  void measured(const std::string& name,
                const std::string& metric,
                std::vector<double> medians,
                const char* arm = "plain") {
    rows.push_back(a_row("GPU-1", name, metric, std::move(medians), arm));
  }

  SessionData session;
  std::vector<SummaryRow> rows;
};

TEST_F(PublishedValues, StandBesideTheCaseThatRepeatsTheirMethodAndNoOther) {
  const struct {
    const char *name, *metric, *theirs;
  } pairings[] = {
      {"launch/cscs/wait:end", "wall_per_launch_ns", "launch_throughput of eth-cscs"},
      {"launch/cscs/wait:each", "wall_per_launch_ns", "launch_sync_roundtrip of eth-cscs"},
      {"launch/superbench/mode:wall", "wall_per_launch_ns", "launch_sync_roundtrip of microsoft"},
      {"launch/superbench/mode:event", "event_per_launch_ns", "superbench_event_time of microsoft"},
      {"launch/small_kernels/method:graph/kib:64", "per_kernel_ns", "small_kernel_graph of te42"},
      {"launch/null/api:driver/mode:idle", "api_ns", "launch_call of meta-pytorch"}};
  for (const auto& [name, metric, theirs] : pairings) {
    rows.clear();
    measured(name, metric, {2000});
    const auto found = published(session, rows);
    EXPECT_THAT(found, Not(IsEmpty())) << name;
    for (const Published& pair : found)
      EXPECT_THAT(pair.theirs->quantity + " of " + pair.theirs->source, StartsWith(theirs));
  }
  for (const auto& [name, metric] : std::vector<std::pair<const char*, const char*>>{
           {"launch/small_kernels/method:graph/kib:128", "per_kernel_ns"},
           {"launch/null/api:driver/mode:idle", "roundtrip_ns"},
           {"launch/null/api:driver/mode:burst", "per_launch_ns"},
           {"launch/cscs/wait:end", "roundtrip_ns"}}) {
    rows.clear();
    measured(name, metric, {2000});
    EXPECT_THAT(published(session, rows), IsEmpty()) << name << " " << metric;
  }
}

TEST_F(PublishedValues, HaveARatioAndSayWhetherTheModelIsTheSame) {
  measured("launch/small_kernels/method:stream/kib:64", "per_kernel_ns", {2673});
  std::size_t same = 0;
  for (const Published& pair : published(session, rows)) {
    EXPECT_EQ(pair.same_model, pair.theirs->gpu == "H200");
    if (!pair.same_model) continue;
    ++same;
    EXPECT_NEAR(pair.ratio(), 1.1, 1e-9);
  }
  EXPECT_EQ(same, 1u);
}

TEST_F(PublishedValues, AreOfGpusAndOfThePlainArm) {
  measured("launch/cscs/wait:end", "wall_per_launch_ns", {2000}, "traced");
  EXPECT_THAT(published(session, rows), IsEmpty());
  rows.clear();
  measured("launch/cscs/wait:end", "wall_per_launch_ns", {0});
  EXPECT_THAT(published(session, rows), IsEmpty()) << "zero is no time";
  rows.clear();
  session.devices[0].backend = "host";
  measured("launch/cscs/wait:end", "wall_per_launch_ns", {2000});
  EXPECT_THAT(published(session, rows), IsEmpty());
}

TEST_F(PublishedValues, FitOverheadAndBandwidthOfSmallKernels) {
  // 1 µs and 1000 bytes per ns; the second run has 100 ns more.
  for (const int kib : {64, 128, 256, 512, 1024}) {
    const double time = 1000 + kib * 1024 / 1000.0;
    measured("launch/small_kernels/method:stream/kib:" + std::to_string(kib),
             "per_kernel_ns",
             {time, time + 100});
  }
  measured("launch/small_kernels/method:graph/kib:64", "per_kernel_ns", {900});
  measured("launch/small_kernels/method:graph/kib:128", "per_kernel_ns", {950});
  const auto fits = small_kernel_fits(rows);
  ASSERT_THAT(fits, SizeIs(1)) << "two sizes are no fit";
  EXPECT_EQ(fits[0].method, "stream");
  EXPECT_EQ(fits[0].sizes, 5u);
  EXPECT_EQ(fits[0].runs, 2u);
  EXPECT_NEAR(fits[0].overhead_ns, 1000, 1e-6);
  EXPECT_NEAR(*fits[0].overhead_min, 1000, 1e-6);
  EXPECT_NEAR(*fits[0].overhead_max, 1100, 1e-6);
  EXPECT_NEAR(*fits[0].bytes_per_ns, 1000, 1e-6);
}

TEST_F(PublishedValues, HaveNoBandwidthWhereTimeDoesNotGrow) {
  for (const int kib : {64, 128, 256})
    measured(
        "launch/small_kernels/method:stream/kib:" + std::to_string(kib), "per_kernel_ns", {900});
  const auto fits = small_kernel_fits(rows);
  ASSERT_THAT(fits, SizeIs(1));
  EXPECT_FALSE(fits[0].bytes_per_ns);
}

}  // namespace
}  // namespace launchgap
