#include "harness/summary/ceiling.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "harness/core/case_name.h"
#include "harness/core/csv_table.h"
#include "harness/core/input_file.h"
#include "harness/device/shape_text.h"
#include "tests/device/a_device.h"
#include "tests/sentences/said.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

DeviceFacts a_gpu(const std::string& name,
                  const char* capability = nullptr,
                  std::optional<int> multiprocessors = {},
                  std::optional<int> clock_mhz = {}) {
  DeviceFacts facts = a_device("", name);
  if (capability) facts.compute_capability = capability;
  facts.multiprocessors = multiprocessors;
  facts.clock_mhz = clock_mhz;
  return facts;
}

DeviceFacts with_cache(DeviceFacts facts, std::uint64_t mib) {
  facts.last_level_cache_bytes = mib << 20;
  return facts;
}

const DeviceFacts kA100 = a_gpu("NVIDIA A100-SXM4-80GB", "8.0", 108, 1410);
const DeviceFacts kV100 = a_gpu("Tesla V100-SXM2-16GB", "7.0", 80, 1530);
const DeviceFacts kH100 = a_gpu("NVIDIA H100 80GB HBM3", "9.0", 132, 1980);

/// Kept for docs/sentences.md.
JudgedRate kept(JudgedRate judged) {
  said("ceiling", name_of(judged.verdict), judged.causes);
  return judged;
}

JudgedRate product(const DeviceFacts& device,
                   const std::string& type,
                   double tflops,
                   std::optional<double> clock_mhz = {},
                   const std::string& algorithm = "") {
  return kept(judge_rate(device, {false, type, algorithm, tflops, clock_mhz}));
}

JudgedRate convolution(const DeviceFacts& device, double tflops, const std::string& algorithm) {
  return kept(judge_rate(device, {true, "fp32", algorithm, tflops, {}}));
}

JudgedRate copy_of(const DeviceFacts& device, double gbs, double bytes) {
  return kept(judge_copy(device, gbs, bytes));
}

// --- The tables ---------------------------------------------------------------------------------

TEST(CeilingTables, AreUnitsTimesRateTimesClock) {
  const CsvTable generations =
      CsvTable::parse(embedded_table("generations.csv"), "data/generations.csv");
  struct Gpu {
    double multiprocessors, boost_mhz;
    std::string capability;
  };
  std::map<std::string, Gpu> gpus;
  for (std::size_t i = 0; i < generations.size(); ++i)
    gpus[generations.at(i, "gpu")] = {generations.number(i, "sm_count"),
                                      generations.number(i, "boost_mhz"),
                                      generations.at(i, "compute_capability")};
  std::set<std::string> with_ceilings;
  for (const CeilingRow& row : ceiling_rows()) {
    SCOPED_TRACE(row.gpu + " " + row.type);
    ASSERT_TRUE(gpus.contains(row.gpu));
    with_ceilings.insert(row.gpu);
    const Gpu& known = gpus.at(row.gpu);
    if (row.type == "fp32" || row.type == "fp64") {
      EXPECT_EQ(row.clock_mhz, known.boost_mhz);
    }
    const double formula = known.multiprocessors * row.flop_per_sm_clock * row.clock_mhz * 1e-6;
    EXPECT_NEAR(row.tflops / formula, 1, 0.015);
    EXPECT_FALSE(row.source.empty());
    const auto rate = std::ranges::find_if(unit_rates(), [&](const UnitRate& one) {
      return one.capability == known.capability && one.type == row.type;
    });
    ASSERT_NE(rate, unit_rates().end()) << "unit_rates.csv has no row for it";
    // Of GeForce cards tensor cores have half the rate where sums are of FP32.
    const bool half = row.flop_per_sm_clock == rate->flop_per_sm_clock / 2;
    EXPECT_TRUE(row.flop_per_sm_clock == rate->flop_per_sm_clock ||
                (half && row.gpu.starts_with("RTX")));
  }
  EXPECT_EQ(with_ceilings.size(), gpus.size()) << "a GPU without a ceiling";
}

TEST(CeilingTables, HaveEachRowOnceAndASource) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const CeilingRow& row : ceiling_rows())
    EXPECT_TRUE(seen.insert({row.gpu, row.type}).second) << row.gpu << " " << row.type;
  for (const UnitRate& rate : unit_rates()) {
    EXPECT_TRUE(seen.insert({"cc " + rate.capability, rate.type}).second)
        << rate.capability << " " << rate.type;
    EXPECT_FALSE(rate.source.empty()) << rate.capability << " " << rate.type;
  }
}

// --- Which ceiling ------------------------------------------------------------------------------

struct TypeCase {
  const DeviceFacts& device;
  const char* type;
  double tflops;  // 0: the hardware has no such type
};

TEST(CeilingOf, IsThatOfTheType) {
  const DeviceFacts k40 = a_gpu("Tesla K40m", "3.5", 15),
                    p100 = a_gpu("Tesla P100-SXM2-16GB", "6.0", 56),
                    t4 = a_gpu("Tesla T4", "7.5", 40),
                    rtx3090 = a_gpu("NVIDIA GeForce RTX 3090", "8.6", 82),
                    h100_pcie = a_gpu("NVIDIA H100 PCIe", "9.0", 114);
  for (const auto& [device, type, tflops] :
       std::vector<TypeCase>{{k40, "fp64", 1.68},        {k40, "fp32", 5.04},
                             {k40, "fp16", 0},           {k40, "int8", 0},
                             {p100, "fp16", 10.6},       {p100, "fp16_acc16", 21.2},
                             {p100, "tf32", 0},          {kV100, "fp32", 15.7},
                             {kV100, "fp16", 125},       {kV100, "bf16", 0},
                             {t4, "int8", 130},          {kA100, "fp64", 19.5},
                             {kA100, "fp32", 19.5},      {kA100, "fp32_pedantic", 19.5},
                             {kA100, "tf32", 156},       {kA100, "fp16", 312},
                             {kA100, "fp16_acc16", 312}, {kA100, "bf16", 312},
                             {kA100, "int8", 624},       {kA100, "fp8_e4m3", 0},
                             {rtx3090, "fp16", 71},      {rtx3090, "fp16_acc16", 142},
                             {kH100, "fp64", 66.9},      {kH100, "bf16", 989.4},
                             {h100_pcie, "bf16", 756.4}, {kH100, "fp8_e4m3", 1979},
                             {kH100, "fp8_e5m2", 1979}}) {
    const auto ceiling = ceiling_of(device, type);
    ASSERT_EQ(ceiling.has_value(), tflops > 0) << device.name << " " << type;
    EXPECT_DOUBLE_EQ(ceiling ? ceiling->published.value() : 0, tflops)
        << device.name << " " << type;
  }
  EXPECT_EQ(ceiling_of(kA100, "fp64")->type, "fp64_tensor");
  EXPECT_EQ(ceiling_of(kV100, "fp64")->type, "fp64");
}

TEST(CeilingOf, GoesWithTheClock) {
  EXPECT_NEAR(ceiling_of(kA100, "fp32")->at(1410).value(), 19.5, 0.02);
  EXPECT_NEAR(ceiling_of(kA100, "fp32")->at(705).value(), 9.75, 0.01);
  // 989 TFLOP/s are published at 1830 MHz, and the GPU goes up to 1980.
  EXPECT_NEAR(ceiling_of(kH100, "bf16")->at(1980).value(), 1070.5, 0.5);
  EXPECT_FALSE(ceiling_of(kA100, "fp32")->at(std::nullopt));
}

TEST(CeilingOf, AGpuOfNoTableIsByItsCapabilityAndMultiprocessors) {
  const auto a30 = ceiling_of(a_gpu("NVIDIA A30", "8.0", 56), "fp16");
  ASSERT_TRUE(a30);
  EXPECT_FALSE(a30->published);
  EXPECT_EQ(a30->provenance, Provenance::formula);
  EXPECT_NEAR(a30->at(1440).value(), 165.1, 0.1);
  const auto gtx1080 = ceiling_of(a_gpu("NVIDIA GeForce GTX 1080", "6.1", 20), "int8");
  ASSERT_TRUE(gtx1080);
  EXPECT_NEAR(gtx1080->at(1733).value(), 35.5, 0.1) << "dp4a";
  EXPECT_FALSE(ceiling_of(a_gpu("NVIDIA A30", "8.0"), "fp16")) << "of how many multiprocessors?";
  EXPECT_FALSE(ceiling_of(a_gpu("NVIDIA X", "99.0", 56), "fp16"));
  EXPECT_FALSE(ceiling_of(a_gpu("NVIDIA A30", "8.0", 56), "fp8_e4m3"));
}

TEST(CeilingOf, APartOfAGpuHasAPartOfTheCeiling) {
  const auto part = ceiling_of(a_gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0", 14), "fp32");
  ASSERT_TRUE(part);
  EXPECT_NEAR(part->at(1410).value(), 19.5 * 14 / 108, 0.01);
}

TEST(CeilingOf, TheCpuHasNone) {
  DeviceFacts host = a_device("", "AMD EPYC", "host");
  host.multiprocessors = 64;
  EXPECT_FALSE(ceiling_of(host, "fp32"));
  EXPECT_EQ(product(host, "fp32", 1e6).verdict, RateVerdict::no_ceiling);
}

// --- Verdicts -----------------------------------------------------------------------------------

TEST(JudgedRates, AreImpossibleFromTwoPercentAboveTheCeilingAtTheClock) {
  EXPECT_EQ(product(kA100, "fp32", 19.5, 1410).verdict, RateVerdict::possible);
  EXPECT_EQ(product(kA100, "fp32", 19.8, 1410).verdict, RateVerdict::possible);
  EXPECT_EQ(product(kA100, "fp32", 20.0, 1410).verdict, RateVerdict::impossible);
  EXPECT_EQ(product(kA100, "fp32", 10.2, 705).verdict, RateVerdict::impossible);
  const JudgedRate half = product(kA100, "fp32", 9.75, 1410);
  EXPECT_NEAR(half.share.value(), 0.5, 0.001);
  EXPECT_DOUBLE_EQ(half.published_share.value(), 0.5);
  EXPECT_THAT(half.causes, IsEmpty());
}

TEST(JudgedRates, WithoutAClockAreHeldAgainstTheHighest) {
  const DeviceFacts sheet = a_gpu("NVIDIA H100 80GB HBM3", "9.0", 132);
  EXPECT_EQ(product(sheet, "bf16", 1050).verdict, RateVerdict::impossible) << "989 published";
  EXPECT_EQ(product(kH100, "bf16", 1050).verdict, RateVerdict::possible) << "1070 at 1980 MHz";
  EXPECT_FALSE(product(kH100, "bf16", 1050).share);
  EXPECT_EQ(product(kH100, "bf16", 1100).verdict, RateVerdict::impossible);
}

TEST(JudgedRates, ProductsOfFp64AreHeldAgainstTensorCores) {
  EXPECT_EQ(product(kA100, "fp64", 18.9, 1410).verdict, RateVerdict::possible);
  EXPECT_EQ(product(kV100, "fp64", 18.9, 1530).verdict, RateVerdict::impossible);
}

TEST(JudgedRates, AreExemptWhereFewerOperationsAreDone) {
  for (const char* const algorithm :
       {"Winograd", "non-fused Winograd", "FFT", "tiled FFT", "WINOGRAD_NONFUSED", "FFT_TILING"}) {
    EXPECT_EQ(convolution(kV100, 36.9, algorithm).verdict, RateVerdict::possible) << algorithm;
    EXPECT_THAT(convolution(kV100, 36.9, algorithm).causes, HasSubstr(algorithm));
  }
  EXPECT_EQ(product(kA100, "fp32", 20.1, {}, "3m").verdict, RateVerdict::possible);
  for (const char* const algorithm : {"implicit GEMM", "GEMM", "direct", "algorithm 1"})
    EXPECT_EQ(convolution(kV100, 36.9, algorithm).verdict, RateVerdict::impossible) << algorithm;
}

TEST(JudgedRates, OfAConvolutionNeedItsAlgorithm) {
  EXPECT_EQ(convolution(kV100, 36.9, "").verdict, RateVerdict::algorithm_unknown);
  EXPECT_EQ(convolution(kV100, 12.0, "").verdict, RateVerdict::possible);
  EXPECT_EQ(product(kV100, "fp32", 36.9).verdict, RateVerdict::impossible)
      << "of a product each algorithm does all operations";
}

TEST(JudgedRates, ARecalledCeilingMarksNothing) {
  const DeviceFacts rtx4090 = a_gpu("NVIDIA GeForce RTX 4090", "8.9", 128);
  const auto ceiling = ceiling_of(rtx4090, "tf32");
  ASSERT_TRUE(ceiling);
  ASSERT_EQ(ceiling->provenance, Provenance::recalled);
  const JudgedRate judged = product(rtx4090, "tf32", 10 * *ceiling->published, 2520);
  EXPECT_EQ(judged.verdict, RateVerdict::no_ceiling);
  EXPECT_NEAR(judged.published_share.value(), 10, 1e-9) << "it is shown all the same";
}

TEST(JudgedRates, SayWhatElseTheyFit) {
  EXPECT_THAT(
      product(kA100, "fp32", 95.6).causes,
      AllOf(HasSubstr("It would be possible in TF32 (156 TFLOP/s), FP16 (312 TFLOP/s) or INT8"),
            Not(HasSubstr("MHz"))));
  EXPECT_THAT(product(kA100, "fp32", 14.0, 705).causes,
              HasSubstr("It would be possible at 1013 MHz; 705 MHz was read."));
  EXPECT_THAT(product(kA100, "int8", 2000, 1410).causes, HasSubstr("It is possible in no type"));
}

// --- Sheets that others have published ----------------------------------------------------------

struct Sheet {
  std::string where;
  bool complex;
  RateVerdict verdict;
};

/// Each case of a table that has a rate, or a time and a shape, on one GPU.
std::vector<Sheet> judged_sheets(const std::string& file, const std::string& gpu) {
  const std::string path = "data/published_" + file + ".csv";
  const std::string text = InputFile(LAUNCHGAP_SOURCE_FOLDER "/" + path).text(std::size_t{4} << 20);
  const CsvTable table = CsvTable::parse(text, path);
  std::vector<Sheet> rows;
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_FALSE(table.at(i, "licence").empty()) << table.where(i);
    if (table.at(i, "gpu") != gpu) continue;
    const CaseName name = CaseName::parse(table.at(i, "benchmark") + "/" + table.at(i, "case"));
    const std::string& metric = table.at(i, "metric");
    const std::optional<double> operations = operations_of(name);
    const double value = table.number(i, "value");
    double tflops = 0;
    if (metric == "tflops") {
      tflops = value;
    } else if (metric == "device_ns" && operations) {
      tflops = *operations / value * 1e-3;
    } else {
      continue;
    }
    const Rate rate{
        name.family() == "convolution", name.at("type"), table.at(i, "algorithm"), tflops, {}};
    rows.push_back(
        {name.text(), name.find("call") != nullptr, judge_rate(a_gpu(gpu), rate).verdict});
  }
  return rows;
}

std::vector<std::string> that_are(const std::vector<Sheet>& rows, RateVerdict verdict) {
  std::vector<std::string> found;
  for (const Sheet& row : rows) {
    if (row.verdict == verdict) found.push_back(row.where);
  }
  std::ranges::sort(found);
  return found;
}

const std::vector<std::string> kSwapped = {
    "matmul/shapes/shape:224x1000x4000/library:cublas/type:fp32",
    "matmul/shapes/shape:224x4000x1000/library:cublas/type:fp32"};

TEST(PublishedSheets, OfSuperBenchOnV100HaveTwoImpossibleProducts) {
  const auto rows = judged_sheets("superbench", "NVIDIA V100");
  EXPECT_EQ(rows.size(), 37);
  EXPECT_EQ(that_are(rows, RateVerdict::impossible), kSwapped);
  EXPECT_EQ(that_are(rows, RateVerdict::possible).size(), 35);
  EXPECT_EQ(std::ranges::count(rows, true, &Sheet::complex), 10);
}

TEST(PublishedSheets, OfSuperBenchOnA100HaveTwoProductsAndSixConvolutions) {
  const auto rows = judged_sheets("superbench", "NVIDIA A100");
  EXPECT_EQ(rows.size(), 37 + 9) << "with the rates of whole products";
  std::vector<std::string> impossible = kSwapped;
  for (const std::string direction : {"forward", "data", "filter"}) {
    for (const std::string shape : {"32x256x14x14-1024x1x1", "32x512x14x14-512x3x3-p1"})
      impossible.push_back("convolution/shapes/shape:" + shape + "/direction:" + direction +
                           "/layout:nchw/type:fp32");
  }
  std::ranges::sort(impossible);
  EXPECT_EQ(that_are(rows, RateVerdict::impossible), impossible);
  EXPECT_THAT(that_are(rows, RateVerdict::possible),
              IsSupersetOf({"superbench/gemm_flops/type:fp64/unit:tensor_cores",
                            "superbench/gemm_flops/type:int8/unit:tensor_cores",
                            "superbench/complex_product/call:cgemm3m_strided_batched/"
                            "shape:32x128x128-tn-b544/type:fp32"}));
  EXPECT_THAT(that_are(rows, RateVerdict::no_ceiling),
              ElementsAre("superbench/gemm_flops/type:int4/unit:tensor_cores"));
}

TEST(PublishedSheets, OfDeepBenchTellNoAlgorithmOfBackwardConvolutions) {
  for (const std::string gpu : {"Tesla M40", "Tesla P100", "NVIDIA V100"}) {
    const auto rows = judged_sheets("deepbench", gpu);
    const std::size_t sheets = gpu == "Tesla M40" ? 1 : 2;
    // Four shapes are there twice. Of the P100 also the first layers have the direction `data`.
    EXPECT_EQ(rows.size(), sheets * (160 + 90 + 90 + (gpu == "Tesla P100" ? 90 : 80))) << gpu;
    for (const std::string& where : that_are(rows, RateVerdict::algorithm_unknown))
      EXPECT_THAT(where, AnyOf(HasSubstr("direction:data"), HasSubstr("direction:filter")));
  }
  EXPECT_EQ(
      that_are(judged_sheets("deepbench", "NVIDIA V100"), RateVerdict::algorithm_unknown).size(),
      39);
}

TEST(PublishedSheets, OfDeepBenchHaveImpossibleConvolutionsOnTheP100InFp16Alone) {
  for (const std::string gpu : {"Tesla M40", "NVIDIA V100"}) {
    EXPECT_THAT(that_are(judged_sheets("deepbench", gpu), RateVerdict::impossible), IsEmpty())
        << gpu << ": forward ones above the ceiling are all by Winograd or FFT";
  }
  const auto impossible =
      that_are(judged_sheets("deepbench", "Tesla P100"), RateVerdict::impossible);
  EXPECT_EQ(impossible.size(), 10) << "its sheet says 32 bit multiplication, and has 15.9 TFLOP/s";
  EXPECT_THAT(impossible, Each(HasSubstr("/direction:forward/layout:nchw/type:fp16")));
}

// --- Copies -------------------------------------------------------------------------------------

TEST(PublishedBandwidth, IsThatOfTheRowOfTheGpu) {
  EXPECT_EQ(published_bandwidth(kA100), 2039);
  EXPECT_EQ(published_bandwidth(a_gpu("NVIDIA A100-SXM4-40GB", "8.0", 108)), 1555);
  EXPECT_EQ(published_bandwidth(a_gpu("Tesla V100-SXM2-16GB")), 900);
  EXPECT_EQ(published_bandwidth(a_gpu("NVIDIA A100-SXM4-80GB", "8.0", 42)), std::nullopt)
      << "a part of one has a part of the bandwidth";
  EXPECT_EQ(published_bandwidth(a_gpu("NVIDIA Z900")), std::nullopt);
  EXPECT_EQ(published_bandwidth(a_device("", "Tesla V100-SXM2-16GB", "host")), std::nullopt);
}

TEST(JudgedCopies, AreHeldAgainstThePublishedBandwidthOnceTheyAreFarPastTheCache) {
  constexpr double kFar = 512 << 20;
  const DeviceFacts a100 = with_cache(kA100, 40);
  const JudgedRate usual = copy_of(a100, 1800, kFar);
  EXPECT_EQ(usual.verdict, RateVerdict::possible);
  EXPECT_DOUBLE_EQ(usual.published_share.value(), 1800.0 / 2039);
  EXPECT_FALSE(usual.share) << "there is no clock of the memory to hold it against";
  EXPECT_THAT(usual.causes, IsEmpty());
  EXPECT_EQ(copy_of(a100, 1.02 * 2039, kFar).verdict, RateVerdict::possible);
  EXPECT_EQ(copy_of(a100, 1.021 * 2039, kFar).verdict, RateVerdict::impossible);
  EXPECT_EQ(copy_of(a100, 9000, 4 * (40 << 20)).verdict, RateVerdict::impossible);
  EXPECT_EQ(copy_of(a100, 9000, 4 * (40 << 20) - 1).verdict, RateVerdict::no_ceiling);
  EXPECT_EQ(copy_of(kA100, 9000, 4 * (40 << 20)).verdict, RateVerdict::impossible)
      << "a published value: the table has the cache";
  EXPECT_EQ(copy_of(kA100, 9000, 4 * (40 << 20) - 1).verdict, RateVerdict::no_ceiling);
  EXPECT_EQ(copy_of(a_gpu("Tesla K40m"), 9000, kFar).verdict, RateVerdict::no_ceiling)
      << "the table has the cache from memory alone";
  const JudgedRate unknown = copy_of(with_cache(a_gpu("NVIDIA Z900"), 40), 9000, kFar);
  EXPECT_EQ(unknown.verdict, RateVerdict::no_ceiling);
  EXPECT_FALSE(unknown.published);
}

// --- What a name may mean -----------------------------------------------------------------------

TEST(CeilingOf, TheVectorUnitsIsThatOfTheirType) {
  EXPECT_EQ(ceiling_of(kA100, "fp64_vector")->type, "fp64");
  EXPECT_EQ(ceiling_of(kA100, "fp64_vector")->published, 9.7);
  EXPECT_FALSE(ceiling_of(kA100, "fp63_vector"));
}

TEST(CeilingOf, AGpuThatMayBeSeveralIsTheHighest) {
  EXPECT_EQ(ceiling_of(a_gpu("Tesla P100"), "fp32")->published, 10.6);
  EXPECT_EQ(ceiling_of(a_gpu("NVIDIA H100"), "bf16")->published, 989.4);
  EXPECT_EQ(ceiling_of(a_gpu("NVIDIA H100", nullptr, 114), "bf16")->published, 756.4);
  EXPECT_FALSE(ceiling_of(a_gpu("NVIDIA H100", "8.0"), "bf16")) << "of another capability";
}

TEST(CeilingOf, AGpuOfNoTableNeedsAMultiprocessor) {
  EXPECT_FALSE(ceiling_of(a_gpu("NVIDIA A30", "8.0", 0), "fp16"));
  EXPECT_FALSE(ceiling_of(a_gpu("NVIDIA A30", nullptr, 56), "fp16"));
  EXPECT_NEAR(ceiling_of(a_gpu("NVIDIA A30", "8.0", 1), "fp16")->at(1000).value(), 2.048, 1e-9);
}

TEST(CeilingOf, ATypeThatIsOnlyRecalledStaysSo) {
  const auto ceiling = ceiling_of(a_gpu("NVIDIA X", "7.0", 80), "int8");
  ASSERT_TRUE(ceiling);
  EXPECT_EQ(ceiling->provenance, Provenance::recalled);
}

TEST(Multiprocessors, AreThoseReadOrThoseOfTheName) {
  EXPECT_EQ(multiprocessors_of(a_gpu("NVIDIA H100", nullptr, 7)), 7);
  EXPECT_EQ(multiprocessors_of(a_gpu("NVIDIA H100")), std::nullopt) << "132 or 114";
  EXPECT_EQ(multiprocessors_of(a_gpu("NVIDIA A100")), 108);
  EXPECT_EQ(multiprocessors_of(a_gpu("NVIDIA H100 PCIe", nullptr, 0)), 114);
  EXPECT_EQ(multiprocessors_of(a_gpu("NVIDIA Z900")), std::nullopt);
}

TEST(SpelledTypes, AreAsPeopleWriteThem) {
  for (const auto& [type, spelled] : {std::pair("fp16", "FP16"),
                                      {"int8", "INT8"},
                                      {"fp64_tensor", "FP64 in tensor cores"},
                                      {"fp16_acc16", "FP16 with FP16 sums"},
                                      {"fp32_pedantic", "pedantic FP32"},
                                      {"fp8", "FP8"},
                                      {"fp8_e4m3", "FP8 E4M3"},
                                      {"fp8_e5m2", "FP8 E5M2"},
                                      {"fp8_e4m3_fast", "FP8 E4M3 with fast sums"}})
    EXPECT_EQ(spelled_type(type), spelled);
}

std::optional<std::pair<double, double>> ends_of(const std::optional<SheetRange>& range) {
  return range ? std::optional(std::pair(range->low, range->high)) : std::nullopt;
}

TEST(SheetRates, AreFromTheLeastToTheMostThatANameMayMean) {
  using Ends = std::pair<double, double>;
  EXPECT_EQ(ends_of(sheet_rates(a_gpu("Tesla P100"), "fp32")), Ends(9.3, 10.6));
  EXPECT_TRUE(sheet_rates(kA100, "fp32")->one());
  EXPECT_EQ(ends_of(sheet_rates(kA100, "fp64")), Ends(19.5, 19.5)) << "of tensor cores";
  EXPECT_EQ(ends_of(sheet_rates(a_gpu("Tesla V100-SXM2-16GB"), "fp64")), Ends(7.8, 7.8));
  EXPECT_EQ(sheet_rates(kA100, "fp8_e4m3"), std::nullopt);
  EXPECT_EQ(sheet_rates(a_gpu("Tesla V100-SXM2-16GB"), "int8"), std::nullopt) << "only recalled";
  EXPECT_EQ(sheet_rates(a_device("", "NVIDIA A100-SXM4-80GB", "host"), "fp32"), std::nullopt);
}

TEST(SheetRates, OfAGpuOfNoTableAreThoseOfItsCapabilityAndClock) {
  const auto range = sheet_rates(a_gpu("NVIDIA A30", "8.0", 1, 1000), "fp16");
  ASSERT_TRUE(range);
  EXPECT_NEAR(range->low, 2.048, 1e-9);
  EXPECT_TRUE(range->one());
  EXPECT_EQ(sheet_rates(a_gpu("NVIDIA A30", "8.0", 1), "fp16"), std::nullopt) << "at which clock?";
  EXPECT_EQ(sheet_rates(a_gpu("NVIDIA A30", "8.0", 1, 1000), "fp8"), std::nullopt);
  EXPECT_EQ(sheet_rates(a_gpu("NVIDIA X", "7.0", 80, 1000), "int8"), std::nullopt);
}

TEST(SheetBandwidths, AreFromTheLeastToTheMostThatANameMayMean) {
  using Ends = std::pair<double, double>;
  EXPECT_EQ(ends_of(sheet_bandwidths(a_gpu("NVIDIA A100"))), Ends(1555, 2039));
  EXPECT_EQ(ends_of(sheet_bandwidths(a_gpu("NVIDIA H100"))), Ends(2039, 3350));
  EXPECT_EQ(published_bandwidth(a_gpu("NVIDIA H100")), 3350);
  EXPECT_EQ(sheet_bandwidths(a_gpu("NVIDIA Z900")), std::nullopt);
}

// --- What else a rate may be --------------------------------------------------------------------

JudgedRate rate_of(const DeviceFacts& device,
                   const std::string& type,
                   double tflops,
                   std::optional<double> clock_mhz = {}) {
  return judge_rate(device, {false, type, "", tflops, clock_mhz});
}

TEST(JudgedRates, FitTheSlowestThreeTypesFirst) {
  EXPECT_EQ(rate_of(kA100, "fp32", 20, 1410).causes,
            "It would be possible in TF32 (156 TFLOP/s), FP16 (312 TFLOP/s) or INT8 (624 "
            "TFLOP/s).");
  EXPECT_EQ(rate_of(kH100, "fp32", 70, 1980).causes,
            "It would be possible in TF32 (535 TFLOP/s), FP16 (1.07 PFLOP/s) or INT8 (2.14 "
            "PFLOP/s).");
  EXPECT_EQ(rate_of(kH100, "tf32", 700, 1980).causes,
            "It would be possible in FP16 (1.07 PFLOP/s) or INT8 (2.14 PFLOP/s).");
}

TEST(JudgedRates, FitAClockUpToTwoPercentAboveTheHighest) {
  const DeviceFacts sheet = a_gpu("NVIDIA A100-SXM4-80GB", "8.0", 108);
  const auto at_clock = HasSubstr("It would be possible at");
  // 705 MHz was read, and 1410 is published: 19.5 TFLOP/s there.
  EXPECT_THAT(rate_of(sheet, "fp32", 19.85, 705).causes, at_clock);
  EXPECT_THAT(rate_of(sheet, "fp32", 19.95, 705).causes, Not(at_clock));
  const DeviceFacts faster = a_gpu("NVIDIA A100-SXM4-80GB", "8.0", 108, 2820);
  EXPECT_THAT(rate_of(faster, "fp32", 39.7, 705).causes, at_clock);
  EXPECT_THAT(rate_of(faster, "fp32", 40.0, 705).causes, Not(at_clock));
}

TEST(JudgedRates, HaveAVerdictByTheirLimit) {
  const JudgedRate judged = rate_of(kA100, "fp32", 9.75, 705);
  EXPECT_NEAR(*judged.limit, 9.75, 0.01);
  EXPECT_EQ(judged.ceiling, judged.limit);
  EXPECT_EQ(judged.published, 19.5);
  const JudgedRate unread = rate_of(a_gpu("NVIDIA A30", "8.0", 56), "fp16", 1e6);
  EXPECT_EQ(unread.verdict, RateVerdict::no_ceiling) << "neither a clock nor a sheet";
  EXPECT_EQ(unread.causes, "");
}

}  // namespace
}  // namespace launchgap
