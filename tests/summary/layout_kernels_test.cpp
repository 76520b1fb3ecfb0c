#include "harness/summary/layout_kernels.h"

#include <gmock/gmock.h>

#include "tests/device/a_device.h"
#include "tests/sentences/said.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

constexpr const char* kNchw = "convolution/shapes/shape:a/direction:forward/layout:nchw/type:fp16";
constexpr const char* kNhwc = "convolution/shapes/shape:a/direction:forward/layout:nhwc/type:fp16";
constexpr const char* kTransform =
    "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, true, true, "
    "(cudnnKernelDataType_t)0>";
constexpr const char* kConvolve = "sm80_xmma_fprop_implicit_gemm_f16f16_nhwckrsc_nhwc_tn_n";

TraceInfo traced(const char* name,
                 const std::vector<std::tuple<const char*, std::uint64_t, std::uint64_t>>& ran) {
  std::vector<CountedKernels> kernels;
  for (const auto& [kernel, count, ns] : ran)
    kernels.push_back({.name = kernel, .grid = {}, .block = {}, .count = count, .total_ns = ns});
  return a_trace(name, std::move(kernels));
}

SessionData session_of(std::vector<TraceInfo> traces) {
  SessionData session;
  session.devices = {a_device("GPU-1", "NVIDIA A100")};
  session.traces = std::move(traces);
  return session;
}

TEST(LayoutKernels, AreToldByTheirNames) {
  for (const char* const name :
       {kTransform,
        "_ZN5cudnn3ops16nhwcToNchwKernelI6__halfS2_fLb1ELb0EEEvv",
        "void nchwToFoldedNhwcKernel<float>(int)",
        "void nhwcAddPaddingKernel<__half, float>(int)",
        "void tensorTransformGeneric<__half, __half, float>(int)",
        "void cudnn::engines_precompiled::genericTranspose_kernel<2>(int)"})
    EXPECT_TRUE(only_changes_layout(name)) << name;
}

TEST(LayoutKernels, AreNoneThatCompute) {
  for (const char* const name :
       {kConvolve,
        "cudnn_infer_volta_scudnn_128x32_sliced1x4_ldg4_relu_exp_medium_nhwc_tn_v1",
        "void cudnn::batchnorm_fwtr_nhwc_semiPersist<__half, float>(int)",
        "void convolve_common_engine_float_NHWC<float>(cudnn::ops::nchw2nhwc_params_t<float>)",
        "void fused<cudnn::ops::nchwToNhwcKernel>(int)",
        "void cudnn::winograd_nonfused::winogradForwardData4x4<float>(int)",
        "ampere_sgemm_128x64_tn",
        ""})
    EXPECT_FALSE(only_changes_layout(name)) << name;
}

TEST(LayoutKernels, AreCountedApartInAllTracedRuns) {
  const SessionData session = session_of(
      {traced(kNchw, {{kTransform, 100, 1000}, {kConvolve, 100, 8000}, {"launchgap_gate", 9, 9e9}}),
       traced(kNchw, {{kTransform, 100, 3000}, {kConvolve, 100, 8000}}),
       traced(kNhwc, {{kConvolve, 100, 8000}})});
  const auto all = layout_kernels(session);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].case_name, kNchw);
  EXPECT_EQ(all[0].count, 200u);
  EXPECT_EQ(all[0].all_count, 400u);
  EXPECT_EQ(all[0].ns, 4000);
  EXPECT_EQ(all[0].all_ns, 20000);
}

TEST(LayoutKernels, OfATenthOfTheTimeAreAFinding) {
  const SessionData session =
      session_of({traced(kNchw, {{kTransform, 100, 4000}, {kConvolve, 100, 16000}}),
                  traced(kNhwc, {{kConvolve, 100, 16000}})});
  const Finding found = only(said(layout_findings(session)));
  EXPECT_EQ(found.sentence,
            "1 case spends up to 20 % of the GPU's time on kernels that only bring tensors into "
            "another layout.");
  EXPECT_EQ(found.cases, kNchw);
  EXPECT_DOUBLE_EQ(*found.share, 0.2);
  const auto found_of = [](std::uint64_t transform_ns) {
    return layout_findings(session_of(
        {traced(kNchw, {{kTransform, 1, transform_ns}, {kConvolve, 1, 10'000 - transform_ns}})}));
  };
  EXPECT_THAT(found_of(999), IsEmpty());
  EXPECT_THAT(found_of(1000), SizeIs(1));
}

TEST(LayoutKernels, OfATraceThatDoesNotCountAreNone) {
  TraceInfo invalid = traced(kNchw, {{kTransform, 100, 4000}});
  invalid.record.state = "invalid";
  EXPECT_THAT(layout_kernels(session_of({invalid})), IsEmpty());
}

CountedKernels of_time(const char* name, std::uint64_t total_ns) {
  return {.name = name, .grid = {}, .block = {}, .count = 2, .total_ns = total_ns};
}

SessionData with_traces(std::vector<TraceInfo> traces) {
  SessionData session;
  session.traces = std::move(traces);
  return session;
}

TEST(LayoutFindings, AreOfATenthOfTheTimeOrMore) {
  const auto found = [](std::uint64_t ns, std::uint64_t other_ns) {
    return layout_findings(with_traces(
        {a_trace("convolution/a", {of_time("nchwToNhwc", ns), of_time("conv", other_ns)})}));
  };
  EXPECT_THAT(found(9, 91), ::testing::IsEmpty());
  ASSERT_THAT(found(10, 90), ::testing::SizeIs(1));
  EXPECT_EQ(found(10, 90)[0].share, 0.1);
  EXPECT_THAT(found(0, 0), ::testing::IsEmpty());
  EXPECT_THAT(found(1, 0), ::testing::SizeIs(1));
}

TEST(LayoutFindings, NameTheLongestOfACasesKernelsAndCountOnlyTracesThatCount) {
  TraceInfo of_run = a_trace("convolution/a", {of_time("nchwToNhwc", 1000)}), bad = of_run,
            unusual = of_run, without = of_run;
  of_run.record.case_name.reset();
  bad.record.state = "invalid:dropped";
  unusual.process_config = ProcessConfig("convolution+trace_level=kernels");
  without.record.kernels.reset();
  const std::vector<LayoutKernels> found =
      layout_kernels(with_traces({of_run,
                                  bad,
                                  unusual,
                                  without,
                                  a_trace("convolution/none", {of_time("conv", 5)}),
                                  a_trace("convolution/a",
                                          {of_time("launchgap_gate", 1000),
                                           of_time("conv", 60),
                                           of_time("nchwToNhwcA", 5),
                                           of_time("nchwToNhwcB", 10),
                                           of_time("nchwToNhwcC", 10)})}));
  ASSERT_THAT(found, ::testing::SizeIs(1));
  EXPECT_EQ(found[0].case_name, "convolution/a");
  EXPECT_EQ(found[0].kernel, "nchwToNhwcB");
  EXPECT_EQ(found[0].ns, 25);
  EXPECT_EQ(found[0].all_ns, 85);
  EXPECT_EQ(found[0].count, 6u);
  EXPECT_EQ(found[0].all_count, 8u);
}

TEST(LayoutFindings, OfSeveralCasesSayTheLargestShare) {
  const auto found = layout_findings(
      with_traces({a_trace("convolution/a", {of_time("nchwToNhwc", 200), of_time("conv", 200)}),
                   a_trace("convolution/b",
                           {of_time((std::string(101, 'k') + "nhwcTo<int>").c_str(), 3),
                            of_time("conv", 1)})}));
  ASSERT_THAT(found, ::testing::SizeIs(1));
  EXPECT_EQ(found[0].share, 0.75);
  EXPECT_EQ(found[0].sentence,
            "2 cases spend up to 75 % of the GPU's time on kernels that only bring tensors into "
            "another layout.");
  EXPECT_EQ(found[0].cases, "convolution/a convolution/b");
  EXPECT_EQ(found[0].evidence.at(1).name,
            "convolution/b: 2 of 4 kernels, " + std::string(100, 'k'));
}

}  // namespace
}  // namespace launchgap
