#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <gmock/gmock.h>

#include "tests/gap/two_gpus.h"
#include "tests/sentences/said.h"

namespace launchgap::gap {
namespace {

using namespace testing;

constexpr const char* kBurst = "launch/null/api:driver/mode:burst";
constexpr const char* kCopy =
    "ceiling/copy/direction:device_to_device/memory:device/bytes:1073741824";

std::string product(int size, const char* type = "fp16") {
  return fmt::format("matmul/library/size:{}/type:{}", size, type);
}

/// The sentences of one part; kept for docs/sentences.md.
std::string part_of(const GapRows& rows, const std::string& part) {
  std::string text;
  for (const GapAnswerRow& row : rows.answers) {
    said("gap", row.part, row.sentence);
    if (row.part == part) text += row.sentence;
  }
  return text;
}

std::vector<std::string> evidence_of_part(const GapRows& rows, const std::string& part) {
  for (const GapAnswerRow& row : rows.answers) {
    if (row.part == part) return row.evidence;
  }
  return {};
}

/// A V100 and a H100 whose figures are 7.8 (FP16), 4.1 (FP32), 3.7 (memory) and 1.4 (launch) apart.
struct Gap : ::testing::Test {
  Gap() {
    sessions.add("Tesla V100-SXM2-16GB", "7.0");
    figures(100, 12, 800, 2.8e3);
    sessions.add("NVIDIA H100 80GB HBM3", "9.0").devices[0].multiprocessors = 132;
    figures(780, 49.2, 2960, 2e3);
  }

  void figures(double fp16, double fp32, double copy, double launch) {
    sessions.measured(product(4096), "tflops", runs(fp16));
    sessions.measured(product(256), "tflops", runs(fp16 / 50));
    sessions.measured(product(4096, "fp32"), "tflops", runs(fp32));
    sessions.measured(kCopy, "copy_gbs", runs(copy));
    sessions.measured(kBurst, "per_launch_ns", runs(launch));
  }

  static std::vector<double> runs(double value) {
    return {0.99 * value, value, value, value, 1.01 * value};
  }

  Sessions sessions;
};

TEST_F(Gap, IsSaidInFactorsOfSingleCases) {
  const GapRows rows = sessions.gap();
  EXPECT_EQ(part_of(rows, "gain"),
            "Between V100-SXM2-16GB and H100 80GB HBM3 FP16 (summed in FP32) products became 7.8 "
            "times as fast, FP32 4.1 times, memory 3.7 times and a launch 1.40 times: on the H100 "
            "80GB HBM3 a kernel has to do 5.6 times the work before launching it is worth it.");
  EXPECT_EQ(part_of(rows, "unknown"), "");
  EXPECT_THAT(evidence_of_part(rows, "gain"),
              AllOf(Contains(HasSubstr("780 TFLOP/s, before 100 TFLOP/s, in matmul/library/"
                                       "size:4096/type:fp16")),
                    Contains(HasSubstr("7.8 times as fast (95 % 7.")),
                    Contains(HasSubstr("work per launch 5.6 (95 % "))))
      << "of the large product, and no mean of it and of the small one";
}

TEST_F(Gap, SaysWhereTheNewerOneGainsLeast) {
  sessions.measured("launch/null/api:driver/mode:idle", "roundtrip_ns", runs(10e3));
  EXPECT_EQ(part_of(sessions.gap(), "worst"),
            "Against the V100-SXM2-16GB the H100 80GB HBM3 does worst in a launch: 1.40 times as "
            "fast; of products in the large FP32 product size 4096, 4.1 times.")
      << "what only one of them measured is nothing to compare";
}

TEST_F(Gap, IsWorstWhereItIsCertainAndNotWhereItIsNoisy) {
  sessions.measured("matmul/library/size:2048/type:fp16", "tflops", {40, 400, 90, 200, 100});
  Sessions others;
  others.add("Tesla V100-SXM2-16GB", "7.0");
  others.measured(product(2048), "tflops", runs(100));
  others.measured(product(1024), "tflops", runs(100));
  others.add("NVIDIA H100 80GB HBM3", "9.0");
  others.measured(product(2048), "tflops", {40, 400, 60, 50, 300});  // its median is 60
  others.measured(product(1024), "tflops", runs(90));
  EXPECT_THAT(part_of(others.gap(), "worst"), HasSubstr("size 1024: 0.9"));
}

TEST_F(Gap, CountsWhatIsSlowerAndWhatFallsShortOfTheCeilings) {
  const std::string nothing = part_of(sessions.gap(), "disappoints");
  EXPECT_THAT(nothing, HasSubstr("Nothing that both ran is slower on the H100 80GB HBM3"));
  EXPECT_THAT(nothing, Not(HasSubstr("less than half")));

  Sessions slower;
  slower.add("Tesla V100-SXM2-16GB", "7.0");
  for (const int size : {1024, 2048, 4096}) slower.measured(product(size), "tflops", runs(100));
  slower.add("NVIDIA H100 80GB HBM3", "9.0");
  slower.measured(product(1024), "tflops", runs(80));
  slower.measured(product(2048), "tflops", runs(300));  // the ceilings promise 7.9
  slower.measured(product(4096), "tflops", runs(700));
  const GapRows rows = slower.gap();
  EXPECT_EQ(part_of(rows, "disappoints"),
            "Slower on the H100 80GB HBM3 than on the V100-SXM2-16GB: 1 of 3 products; less than "
            "half of the gain that the ceilings promise: 2 of 3 products.");
  ASSERT_FALSE(rows.classes.empty());
  const GapClassRow& all = rows.classes.front();
  EXPECT_EQ(all.work, "");
  EXPECT_EQ(all.cases, 3);
  EXPECT_EQ(all.slower, 1);
  EXPECT_EQ(all.below_promise, 2);
}

TEST_F(Gap, NamesLibrariesThatDiffer) {
  Sessions compared;
  const auto with = [&](const char* name, const char* version, double rate) {
    SessionData& session = compared.add(name);
    compared.measured(product(4096), "tflops", runs(rate));
    RunInfo& run = session.runs.emplace_back();
    run.device = session.devices[0].uuid;
    LoadedLibrary library;
    library.name = "cuBLAS", library.version = version;
    run.libraries.push_back(library);
  };
  with("Tesla P100-SXM2-16GB", "8.0.88", 10);
  with("Tesla V100-SXM2-16GB", "10.1.243", 9);
  EXPECT_THAT(part_of(compared.gap(), "disappoints"),
              HasSubstr("More than the GPU differs: cuBLAS 10.1.243 against 8.0.88."));
}

TEST_F(Gap, NamesWhatDiffersWhereNothingIsSlowerToo) {
  for (SessionData* session : {&sessions.session(0), &sessions.session(1)}) {
    RunInfo& run = session->runs.emplace_back();
    run.device = session->devices[0].uuid;
    run.fingerprint = {{"cuda", session == &sessions.session(0) ? "9.0" : "12.0"}};
  }
  EXPECT_THAT(part_of(sessions.gap(), "disappoints"),
              AllOf(HasSubstr("Nothing that both ran is slower"),
                    HasSubstr("More than the GPU differs: CUDA 12.0 against 9.0.")));
}

TEST_F(Gap, OfAGpuOfNoTableIsSaidWithoutAnOrder) {
  Sessions unknown;
  unknown.add("NVIDIA A100-SXM4-80GB", "8.0");
  unknown.measured(product(4096), "tflops", runs(200));
  unknown.add("Mystery");
  unknown.measured(product(4096), "tflops", runs(100));
  const GapRows rows = unknown.gap();
  EXPECT_EQ(part_of(rows, "gain"),
            "Between A100-SXM4-80GB and Mystery FP16 (summed in FP32) products are 0.50 times as "
            "fast.");
  EXPECT_THAT(evidence_of_part(rows, "gain"),
              Contains("which is newer is not known: nothing tells when the Mystery was released"));
}

TEST_F(Gap, SaysWhichGpusStandInTheTablesAlone) {
  EXPECT_EQ(part_of(sessions.gap(), "not-compared"), "");
  Sessions twice;
  for (const char* name : {"V100", "A100", "A100"}) {
    twice.add(name);
    twice.measured(kBurst, "per_launch_ns", runs(9e3));
  }
  EXPECT_EQ(part_of(twice.gap(), "not-compared"),
            "Only in the tables, and not compared, since another of the same name stands for it: "
            "the A100 (folder3).");
  Sessions sheets;
  for (int sheet = 0; sheet < 2; ++sheet) {
    for (const char* name : {"V100", "A100"}) {
      sheets.add(name);
      sheets.measured(sheet == 0 ? kBurst : kCopy,
                      sheet == 0 ? "per_launch_ns" : "copy_gbs",
                      {700},
                      "published");
    }
  }
  EXPECT_EQ(part_of(sheets.gap(), "not-compared"),
            "Only in the tables, and not compared, since another of the same name stands for them: "
            "the V100 (folder3) and the A100 (folder4). Sheets that are imported together are "
            "compared together.");
}

TEST_F(Gap, OfPublishedSetsOfAnotherDriverHasEach) {
  Sessions sheet;
  for (const auto& [name, driver, rate] : {std::tuple("V100", "450", 14.0),
                                           std::tuple("V100", "510", 10.0),
                                           std::tuple("A100", "450", 13.0)}) {
    SessionData& session = sheet.add(name);
    sheet.measured(product(4096, "fp32"), "tflops", {rate}, "published");
    RunInfo& run = session.runs.emplace_back();
    run.device = session.devices[0].uuid;
    run.fingerprint = {{"cuda", "11.0"}, {"driver_version", driver}};
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const GapCaseRow& row : cases_of(sheet.gap())) pairs.emplace_back(row.older, row.newer);
  EXPECT_THAT(pairs,
              ElementsAre(std::pair("V100 (driver 450)", "V100 (driver 510)"),
                          std::pair("V100 (driver 450)", "A100"),
                          std::pair("V100 (driver 510)", "A100")));
}

TEST_F(Gap, OfCasesOfSeveralKindsIsBestWhereMostIsGained) {
  Sessions mixed;
  for (const bool newer : {false, true}) {
    mixed.add(newer ? "NVIDIA A100-SXM4-80GB" : "Tesla V100-SXM2-16GB");
    mixed.measured("others/a/n:1", "tflops", runs(newer ? 10 : 5));
    mixed.measured("others/a/n:2", "copy_gbs", runs(newer ? 250 : 500));
    mixed.measured("others/a/n:3", "per_launch_ns", runs(newer ? 6 : 3));
    mixed.measured(product(4096), "tflops", runs(newer ? 101 : 100));
    mixed.measured(product(2048), "tflops", runs(newer ? 50 : 10));
  }
  const GapRows rows = mixed.gap();
  std::map<std::string, std::string> best;
  for (const GapClassRow& row : rows.classes) {
    if (row.best) best[row.work] = row.best->case_name;
  }
  EXPECT_EQ(best["other"], "others/a/n:1");
  EXPECT_EQ(best["product"], product(4096)) << "the fastest";
}

TEST_F(Gap, NamesTheDirectionOfAConvolution) {
  Sessions trained;
  for (const double rate : {10.0, 9.0}) {
    trained.add(rate > 9 ? "V100" : "A100");
    trained.measured("convolution/shapes/shape:32x64x56x56-64x3x3-p1/direction:filter/type:fp32",
                     "tflops",
                     runs(rate));
  }
  EXPECT_THAT(part_of(trained.gap(), "worst"),
              HasSubstr("the FP32 backward-filter convolution 32x64x56x56-64x3x3-p1"));
}

TEST_F(Gap, IsNotOfARealAndASimulatedGpu) {
  Sessions mixed;
  mixed.add("Tesla V100-SXM2-16GB", "7.0");
  mixed.measured(kBurst, "per_launch_ns", runs(2e3));
  mixed.add("NVIDIA H100 80GB HBM3", "9.0", true);
  mixed.measured(kBurst, "per_launch_ns", runs(1e3));
  const GapRows rows = mixed.gap();
  EXPECT_THAT(cases_of(rows), IsEmpty());
  EXPECT_EQ(part_of(rows, "unknown"),
            "No two of these GPUs have a launch, a product or a convolution in common that can be "
            "compared.");
}

TEST_F(Gap, IsNotOfCasesThatWereTimedInAnotherWay) {
  Sessions other;
  other.add("Tesla V100-SXM2-16GB", "7.0");
  other.measured(product(4096), "tflops", runs(100), "plain", "cuBLAS 13.1.0, without a gate");
  other.measured(kBurst, "per_launch_ns", runs(2e3), "plain", "native kernel through the driver");
  other.add("NVIDIA H100 80GB HBM3", "9.0");
  other.measured(product(4096), "tflops", runs(500), "plain", "cuBLAS 13.1.0");
  other.measured(kBurst, "per_launch_ns", runs(1e3), "plain", "portable kernel through the driver");
  const GapRows rows = other.gap();
  EXPECT_THAT(cases_of(rows), ElementsAre(Field(&GapCaseRow::metric, "per_launch_ns")));
  EXPECT_THAT(part_of(rows, "disappoints"),
              HasSubstr("1 case was timed in another way on each, and not compared."));
  EXPECT_THAT(part_of(rows, "unknown"), HasSubstr("Of products or memory bandwidth nothing"));
}

TEST_F(Gap, OfOneRunEachHasNoInterval) {
  Sessions single;
  single.add("V100");
  single.measured("launch/superbench/mode:wall", "wall_per_launch_ns", {7710}, "published");
  single.add("A100");
  single.measured("launch/superbench/mode:wall", "wall_per_launch_ns", {10455}, "published");
  const GapRows rows = single.gap();
  const std::vector<GapCaseRow> cases = cases_of(rows);
  ASSERT_EQ(cases.size(), 1);
  EXPECT_FALSE(cases[0].times_lower);
  EXPECT_EQ(cases[0].verdict, "slower");
  EXPECT_EQ(
      part_of(rows, "gain"),
      "Between V100 (published) and A100 (published) launch and wait became 0.74 times as fast.");
  EXPECT_THAT(evidence_of_part(rows, "gain"), Contains(HasSubstr("(one value each)")));
}

TEST(GapOfVeryMany, PublishedValuesSayWhatTheirCasesWould) {
  struct Value {
    std::string name, metric;
    double v100, a100;
  };
  const std::vector<Value> values = {
      {product(4096), "tflops", 100, 220},
      {product(256), "tflops", 5, 4},
      {product(2048), "tflops", 90, 900},  // nor this
      {product(512), "device_ns", 2e4, 1.5e4},
      {product(4096, "fp32"), "tflops", 12, 30},  // which an A100 cannot
      {"matmul/shapes/shape:64x8x4096/type:fp32", "tflops", 2, 3},
      {"convolution/shapes/shape:32x64x56x56-64x3x3-p1/type:fp32", "device_ns", 4e5, 3e5},
      {"superbench/other/type:fp32", "device_ns", 4e5, 5e5},
      {"launch/superbench/mode:wall", "wall_per_launch_ns", 7710, 10455},
      {kCopy, "copy_gbs", 750, 1250},
      {"ceiling/copy/direction:device_to_device/memory:device/bytes:2147483648",
       "copy_gbs",
       9,
       9e3}};
  Sessions as_cases, as_values;
  for (const bool newer : {false, true}) {
    for (Sessions* sessions : {&as_cases, &as_values})
      sessions->add(newer ? "NVIDIA A100-SXM4-80GB" : "Tesla V100-SXM2-16GB")
          .devices[0]
          .last_level_cache_bytes = 40 << 20;
    for (const Value& value : values) {
      const double own = newer ? value.a100 : value.v100;
      as_cases.measured(value.name, value.metric, {own}, "published");
      as_values.published(value.name, value.metric, own);
    }
  }
  const GapRows one = as_cases.gap(), other = as_values.gap();
  ASSERT_EQ(one.answers.size(), other.answers.size());
  for (std::size_t i = 0; i < one.answers.size(); ++i) {
    EXPECT_EQ(one.answers[i].sentence, other.answers[i].sentence);
    EXPECT_EQ(one.answers[i].evidence, other.answers[i].evidence);
  }
  EXPECT_THAT(other.answers.back().sentence,
              AllOf(HasSubstr("1 FP32 case on the A100-SXM4-80GB faster"),
                    HasSubstr(" Left out, being faster than the GPU can be: 1 FP16 case on the "
                              "A100-SXM4-80GB and 1 case of ceiling/copy on the A100-SXM4-80GB.")));
  const auto of = [](const GapRows& rows) {
    std::vector<std::tuple<std::string, std::string, double, std::string>> all;
    for (const GapCaseRow& row : cases_of(rows))
      all.emplace_back(row.case_name, row.metric, row.times, row.verdict);
    return all;
  };
  EXPECT_EQ(of(one), of(other));
  EXPECT_EQ(of(other).size(), values.size() - 3) << "but for what cannot be";
  ASSERT_EQ(one.values.size(), other.values.size());
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    EXPECT_EQ(one.values[i].value, other.values[i].value) << one.values[i].quantity;
    EXPECT_EQ(one.values[i].words, other.values[i].words) << one.values[i].quantity;
  }
}

/// Two GPUs whose cases differ by chance alone, but for one.
GapRows by_chance(unsigned seed, std::size_t cases, std::size_t runs, double cv, double slow_by) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, cv);
  Sessions sessions;
  for (const char* name : {"Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB"}) {
    sessions.add(name);
    for (std::size_t i = 0; i < cases; ++i) {
      std::vector<double> medians;
      for (std::size_t run = 0; run < runs; ++run)
        medians.push_back(10 * std::exp(noise(random)) *
                          (i == 0 && name[0] == 'N' ? 1 - slow_by : 1));
      sessions.measured(product(1024 + 8 * static_cast<int>(i)), "tflops", medians);
    }
  }
  return sessions.gap();
}

TEST(GapByChance, NothingIsSlowerOfWhatIsEqual) {
  for (const std::size_t runs : {2, 3, 10}) {
    int any = 0;
    for (unsigned seed = 0; seed < 60; ++seed)
      any += by_chance(seed, 100, runs, 0.05, 0).classes.front().slower > 0;
    EXPECT_LE(any, 6) << runs << " runs: 5 % of 60 are 3";
  }
}

TEST(GapByChance, WhatLooksSlowerAndIsNotCertainIsNoComfort) {
  const GapRows rows = by_chance(1, 20, 2, 0.1, 0);
  EXPECT_THAT(part_of(rows, "disappoints"),
              HasSubstr("Nothing that both ran is slower on the A100-SXM4-80GB, as far as the "
                        "noise of "));
}

TEST(GapByChance, WhatIsSlowerIsFoundAmongMany) {
  int found = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const GapRows rows = by_chance(seed, 100, 10, 0.03, 0.15);
    const auto worst = std::ranges::find(rows.answers, "worst", &GapAnswerRow::part);
    found += rows.classes.front().slower == 1 && worst != rows.answers.end() &&
             worst->sentence.find("size 1024:") != std::string::npos;
  }
  EXPECT_GE(found, 55);
}

TEST_F(Gap, IsDividedByWhatTheNewerGpuHasMore) {
  const GapRows rows = sessions.gap();
  for (const GapCaseRow& row : cases_of(rows)) {
    if (row.case_name != product(4096)) continue;
    EXPECT_NEAR(*row.per_ceiling, 7.8 / (989.4 / 125), 0.01);
    EXPECT_NEAR(*row.per_bandwidth, 7.8 / (3350.0 / 900), 0.05);
    return;
  }
  FAIL() << "no such case";
}

TEST_F(Gap, IsDividedByNothingWhereANameLeavesADoubt) {
  Sessions doubtful;
  doubtful.add("V100");  // of 14 or 15.7 TFLOP/s
  doubtful.measured(product(4096, "fp32"), "tflops", runs(10));
  doubtful.add("A100");  // of 1555 or 2039 GB/s, and of 19.5 TFLOP/s
  doubtful.measured(product(4096, "fp32"), "tflops", runs(11.5));
  const GapRows rows = doubtful.gap();
  const std::vector<GapCaseRow> cases = cases_of(rows);
  ASSERT_EQ(cases.size(), 1);
  EXPECT_FALSE(cases[0].per_ceiling);
  EXPECT_FALSE(cases[0].per_bandwidth);
  EXPECT_EQ(rows.classes[0].with_ceiling, 1);
  EXPECT_EQ(rows.classes[0].below_promise, 0) << "of at least 1.24 half of the gain is 1.12";
}

TEST_F(Gap, NamesTheLastSoftwareThatServesAGpu) {
  Sessions old;
  old.add("Tesla K40m", "3.5");
  old.measured(kBurst, "per_launch_ns", runs(5e3));
  const auto limit_of = [](const GapRows& rows, const std::string& what) -> std::string {
    for (const GapLimitRow& row : rows.limits) {
      if (row.what == what) return row.limit;
    }
    return "";
  };
  const GapRows rows = old.gap();
  EXPECT_EQ(limit_of(rows, "CUDA toolkit"), "last: 11.8");
  EXPECT_EQ(limit_of(rows, "driver"), "last: R470");
  EXPECT_EQ(limit_of(rows, "cuDNN"), "last: 8.5");
  EXPECT_EQ(limit_of(rows, "PyTorch"), "last: 1.12 with CUDA 10.2 (conda)");
  EXPECT_EQ(limit_of(sessions.gap(), "CUDA toolkit"), "last: 12.9") << "of the V100";
  EXPECT_THAT(rows.answers, IsEmpty()) << "one GPU has no gap";
}

}  // namespace
}  // namespace launchgap::gap
