#include "harness/summary/case_rates.h"

#include <gmock/gmock.h>

#include "harness/device/convolution.h"
#include "harness/summary/fallback.h"
#include "harness/summary/headlines.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"
#include "tests/device/a_device.h"
#include "tests/sentences/said.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

constexpr const char* kProduct = "matmul/library/size:2048/type:fp32/cache:warm";
constexpr const char* kConvolution = "convolution/library/layer:conv2_3x3/n:8/type:fp32/cache:warm";

/// A session with an A100 and the CPU, and rates of both.
struct CaseRates : ::testing::Test {
  CaseRates() {
    DeviceFacts gpu = a_device("GPU-1", "NVIDIA A100-SXM4-80GB");
    gpu.compute_capability = "8.0";
    gpu.multiprocessors = 108;
    gpu.clock_mhz = 1410;
    session_.devices = {gpu, a_device("host-1", "AMD EPYC", "host")};
    session_.state = "complete";
  }

  CaseData& took(
      const std::string& device,
      const char* name,
      double tflops,
      const std::string& method = "cuBLAS 13.1 cublasSgemm, workspace 32 MiB; 4 per sample") {
    const CaseName parsed = CaseName::parse(name);
    CaseData& data = session_.cases[{device, "plain", ProcessConfig(parsed.family()), parsed}];
    data.method = method;
    data.metric_order = {"device_ns", "tflops"};
    data.outcomes[0].status = Status::ok;
    data.samples["tflops"][0] = {0.99 * tflops, tflops, 1.01 * tflops};
    data.samples["device_ns"][0] = {1e6 / tflops, 1e6 / tflops, 1e6 / tflops};
    return data;
  }

  void read_clock(const char* name, int block, double mhz) {
    TelemetryInfo reading;
    reading.device = "GPU-1";
    reading.arm = "plain";
    reading.process_config = ProcessConfig(CaseName::parse(name).family());
    reading.case_name = name;
    reading.block = block;
    reading.values["sm_clock_mhz"] = mhz;
    session_.telemetry.push_back(reading);
  }

  CaseRate only_rate() {
    const std::vector<CaseRate> rates = case_rates(session_);
    EXPECT_THAT(rates, SizeIs(1));
    return rates.at(0);
  }

  SessionData session_;
};

TEST(AlgorithmOf, IsThePartOfTheMethodThatNamesOne) {
  const auto of_cudnn = [](const std::string& name) {
    return algorithm_of("cuDNN 9.19 cudnnConvolutionForward, " + name +
                        ", NCHW, FMA, workspace 8 MiB; 2 per sample");
  };
  for (const char* const name : {"implicit GEMM",
                                 "implicit precomputed GEMM",
                                 "GEMM",
                                 "direct",
                                 "FFT",
                                 "tiled FFT",
                                 "Winograd",
                                 "non-fused Winograd"})
    EXPECT_EQ(of_cudnn(name), name);
  EXPECT_EQ(algorithm_of("oneDNN 3.5.3 direct convolution, brgconv:avx2, 2 threads"), "direct");
  EXPECT_EQ(algorithm_of("cuBLAS 13.1 cublasGemmEx, COMPUTE_32F, workspace 32 MiB"), "");
  EXPECT_EQ(algorithm_of("cuBLAS 13.1 cublasCgemm3mStridedBatched"), "3m");
  EXPECT_EQ(algorithm_of("cuDNN 7.6 cudnnConvolutionBackwardData, algorithm 1, NCHW"),
            "algorithm 1");
  EXPECT_EQ(algorithm_of("cuBLASLt, algorithm 13, tile 20"), "");
  EXPECT_EQ(algorithm_of(""), "");
}

TEST(AlgorithmOf, APublishedMethodIsWhatTheTableSaysAndNothingOfItsSource) {
  EXPECT_EQ(published_method("tiled FFT", "a sheet", "cuDNN 7.6"),
            "tiled FFT, published by a sheet: cuDNN 7.6");
  for (const std::string_view name : algorithm_names())
    EXPECT_EQ(algorithm_of(published_method(name, "Winograd, a sheet", "FFT 3")), name);
  EXPECT_EQ(algorithm_of(published_method("", "Winograd, a sheet", "FFT 3")), "");
}

TEST_F(CaseRates, AreMediansBesideTheCeilingAtTheHighestClockThatWasRead) {
  took("GPU-1", kProduct, 9.75);
  read_clock(kProduct, -1, 210);  // idle
  read_clock(kProduct, 0, 1410);
  read_clock(kProduct, 1, 1200);
  const CaseRate rate = only_rate();
  EXPECT_DOUBLE_EQ(rate.rate.tflops, 9.75);
  EXPECT_EQ(rate.rate.clock_mhz, 1410);
  EXPECT_NEAR(rate.judged.share.value(), 0.5, 0.001);
  EXPECT_EQ(rate.judged.verdict, RateVerdict::possible);
}

TEST_F(CaseRates, WithoutAReadingUnderLoadHaveNoClock) {
  took("GPU-1", kProduct, 9.75);
  read_clock(kProduct, -1, 210);
  EXPECT_FALSE(only_rate().rate.clock_mhz);
  EXPECT_FALSE(only_rate().judged.share);
  EXPECT_DOUBLE_EQ(only_rate().judged.published_share.value(), 0.5);
}

TEST_F(CaseRates, OfConvolutionsHaveTheAlgorithmOfTheMethod) {
  took("GPU-1", kConvolution, 40, "cuDNN 9.19 cudnnConvolutionForward, Winograd, NCHW, FMA");
  EXPECT_EQ(only_rate().rate.algorithm, "Winograd");
  EXPECT_EQ(only_rate().judged.verdict, RateVerdict::possible);
  took("GPU-1", kConvolution, 40, "cuDNN 9.19 cudnnConvolutionForward, implicit GEMM, NCHW, FMA");
  EXPECT_EQ(only_rate().judged.verdict, RateVerdict::impossible);
  took("GPU-1", kConvolution, 40, "some library");
  EXPECT_EQ(only_rate().judged.verdict, RateVerdict::algorithm_unknown);
}

TEST_F(CaseRates, OfTheCpuHaveNoCeiling) {
  took("host-1", kProduct, 1e5);
  EXPECT_EQ(only_rate().judged.verdict, RateVerdict::no_ceiling);
}

TEST_F(CaseRates, AreOfProductsAndConvolutionsAlone) {
  took("GPU-1", "launch/null/api:driver/mode:idle", 1);
  took("GPU-1", "matmul/other/size:2", 1);
  EXPECT_THAT(case_rates(session_), IsEmpty());
}

TEST_F(CaseRates, ThatCannotBeCountNowhereAndStayInTheSummary) {
  took("GPU-1", kProduct, 95.6);
  took("GPU-1", "matmul/library/size:1024/type:fp32/cache:warm", 15);
  took("host-1", kProduct, 0.5);
  read_clock(kProduct, 0, 1410);
  std::vector<SummaryRow> rows = summarise(session_);
  const std::vector<SummaryRow> impossible = take_impossible(rows);
  ASSERT_THAT(impossible, SizeIs(2)) << "device_ns and tflops";
  EXPECT_THAT(impossible, Each(Field(&SummaryRow::impossible, true)));
  EXPECT_THAT(rows, AllOf(SizeIs(4), Each(Field(&SummaryRow::impossible, false))));

  const RowsByDevice by_device(rows);
  for (const NamedHeadline& named : all_headlines()) {
    if (named.headline->metric == "tflops" && named.headline->params == "type:fp32" &&
        named.benchmark->name == "matmul/library") {
      EXPECT_EQ(headline_value(by_device.of("GPU-1"), named).value, 15) << "and not 95.6";
    }
  }
  EXPECT_THAT(fallback_costs(session_, rows), IsEmpty()) << "the host has the other case alone";

  // The table of the summary has what counts and what does not.
  std::vector<std::string> marks;
  for (const auto& line : lines_of(summary_table(), session_, rows, &impossible))
    marks.push_back(line.at(line.size() - 2));  // before run_medians
  EXPECT_THAT(marks, ElementsAre("false", "false", "false", "false", "true", "true"));
}

TEST_F(CaseRates, ThatCannotBeAreFound) {
  took("GPU-1", kProduct, 95.6);
  read_clock(kProduct, 0, 1410);
  took("GPU-1", kConvolution, 14, "cuDNN 9.19 cudnnConvolutionForward, implicit GEMM, NCHW, FMA");
  read_clock(kConvolution, 0, 705);
  const Finding found = only(said(session_findings(session_, {})));
  EXPECT_EQ(found.code, "impossible-rate");
  EXPECT_EQ(found.severity, Severity::distorts);
  EXPECT_EQ(found.subject, "2 cases on NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(found.device, "GPU-1");
  EXPECT_THAT(
      found.evidence,
      Contains(Field(&Evidence::name,
                     AllOf(HasSubstr(kProduct),
                           HasSubstr("95.6 TFLOP/s is 4.9 times the ceiling of fp32, "
                                     "19.5 TFLOP/s at 1410 MHz. It would be possible in TF32"),
                           Not(HasSubstr("traced"))))));
  EXPECT_THAT(found.evidence,
              Contains(Field(&Evidence::name,
                             HasSubstr("It would be possible at 1013 MHz; 705 MHz was read."))));
}

TEST_F(CaseRates, OfCopiesWithinTheDeviceAreBesideThePublishedBandwidth) {
  session_.devices[0].last_level_cache_bytes = 40 << 20;
  const auto copied = [&](const char* name, double gbs) {
    CaseData& data = took("GPU-1", name, 1);
    data.samples.erase("tflops");
    data.metric_order = {"device_ns", "copy_gbs"};
    data.samples["copy_gbs"][0] = {0.99 * gbs, gbs, 1.01 * gbs};
  };
  const std::string large = "ceiling/copy/direction:device_to_device/memory:device/bytes:268435456";
  copied(large.c_str(), 1800);
  copied("ceiling/copy/direction:host_to_device/memory:pinned/bytes:268435456", 25);
  EXPECT_DOUBLE_EQ(only_rate().copy_gbs.value(), 1800) << "what crosses a link is beside no memory";
  EXPECT_EQ(only_rate().judged.verdict, RateVerdict::possible);
  EXPECT_THAT(impossible_cases(session_), IsEmpty());

  copied(large.c_str(), 2200);
  EXPECT_THAT(impossible_cases(session_), SizeIs(1));
  const Finding found = only(said(session_findings(session_, {})));
  EXPECT_EQ(found.code, "impossible-rate");
  EXPECT_THAT(found.evidence,
              Contains(Field(&Evidence::name,
                             large + ": 2.20 TB/s is 1.08 times the published bandwidth of the "
                                     "memory, 2.04 TB/s. Less was copied than is counted, or the "
                                     "time is too short.")));

  const std::vector<std::string> cells = lines_of(ceilings_table(), session_).back();
  const std::vector<std::string> last(cells.end() - 5, cells.end());
  EXPECT_THAT(last[0], HasSubstr("1.0789")) << "the share";
  EXPECT_EQ(last[1], "impossible");
  EXPECT_EQ(last[3], "2200");
  EXPECT_EQ(last[4], "2039");
}

TEST_F(CaseRates, OfTwoReadingsTheHigherIsTheClockAndNoneOfAnotherCaseOrOfZero) {
  took("GPU-1", kProduct, 9.75);
  read_clock(kConvolution, 0, 1500);
  read_clock(kProduct, 0, 0);
  EXPECT_FALSE(only_rate().rate.clock_mhz);
  read_clock(kProduct, 0, 0.5);
  EXPECT_EQ(only_rate().rate.clock_mhz, 0.5);
  session_.telemetry.back().values.clear();
  read_clock(kProduct, 2, 1200);
  read_clock(kProduct, 3, 1300);
  EXPECT_EQ(only_rate().rate.clock_mhz, 1300);
}

TEST_F(CaseRates, NeedARateAboveZeroAndADeviceThatIsKnown) {
  took("GPU-0", kProduct, 1);
  took("GPU-1", kProduct, 0);
  EXPECT_THAT(case_rates(session_), IsEmpty());
  took("GPU-1", kProduct, 0.5);
  EXPECT_EQ(only_rate().key.device, "GPU-1");
  session_.cases.begin()->second.samples.clear();
  took("GPU-1", "matmul/library/size:16", 5);
  took("GPU-1", "launch/null/type:fp32", 5);
  EXPECT_EQ(only_rate().rate.tflops, 0.5) << "a product without a type, and a launch";
}

/// A copy of so much on the A100.
std::optional<CaseRate> copy_rate(const char* name, std::optional<double> gbs) {
  DeviceFacts gpu = a_device("GPU-1", "NVIDIA A100-SXM4-80GB");
  gpu.compute_capability = "8.0";
  gpu.multiprocessors = 108;
  return case_rate({"GPU-1", "plain", "ceiling", CaseName::parse(name)}, gpu, {{}, gbs, {}, {}});
}

TEST(CopyRates, AreOfCopiesWithinADeviceThatHaveASize) {
  const char* const far = "ceiling/copy/bytes:83886080/direction:device_to_device";
  ASSERT_TRUE(copy_rate(far, 9000));
  EXPECT_EQ(copy_rate(far, 9000)->judged.verdict, RateVerdict::impossible)
      << "twice 80 MiB are four times the cache";
  EXPECT_EQ(
      copy_rate("ceiling/copy/bytes:83886079/direction:device_to_device", 9000)->judged.verdict,
      RateVerdict::no_ceiling);
  EXPECT_TRUE(copy_rate(far, 0.5));
  EXPECT_FALSE(copy_rate(far, 0));
  EXPECT_FALSE(copy_rate(far, {}));
  for (const char* const name : {"ceiling/copies/bytes:83886080/direction:device_to_device",
                                 "ceiling/copy/bytes:83886080/direction:host_to_device",
                                 "ceiling/copy/bytes:83886080",
                                 "ceiling/copy/bytes:8x/direction:device_to_device",
                                 "ceiling/copy/direction:device_to_device"})
    EXPECT_FALSE(copy_rate(name, 9000)) << name;
}

TEST(RateTexts, SayHowManyTimesTheLimitARateIs) {
  const CaseRate copy =
      copy_rate("ceiling/copy/bytes:83886080/direction:device_to_device", 2 * 2039).value();
  EXPECT_EQ(above_ceiling_text(copy),
            "4.08 TB/s is 2.0 times the published bandwidth of the memory, 2.04 TB/s.");
}

}  // namespace
}  // namespace launchgap
