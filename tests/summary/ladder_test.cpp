#include "harness/summary/ladder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "kernels/convolution/convolution_rungs.h"
#include "kernels/matmul/matmul_rungs.h"
#include "tests/device/a_device.h"
#include "tests/sentences/said.h"

namespace launchgap {
namespace {

using namespace testing;

SessionData session_of(const std::string& device, bool host = false) {
  SessionData session;
  session.devices.push_back(a_device(device, "NVIDIA H100"));
  if (host) session.devices.back().backend = "host";
  return session;
}

/// A case of so many TFLOP/s; none: it is not measured.
std::vector<SummaryRow> rows_of_case(const std::string& name,
                                     std::optional<double> tflops,
                                     double operations) {
  std::vector<SummaryRow> rows;
  for (const char* metric : {"device_ns", "tflops"}) {
    SummaryRow& row = rows.emplace_back();
    row.key.device = "GPU-1";
    row.key.arm = "plain";
    row.key.name = CaseName::parse(name);
    row.metric = tflops ? metric : "";
    row.runs = 3;
    if (!tflops) {
      row.status = Status::unsupported;
      row.reason = "it needs compute capability 8.0";
      return rows;
    }
    row.p50 = row.metric == "tflops" ? *tflops : operations / *tflops * 1e-3;
  }
  return rows;
}

std::vector<SummaryRow> rows_of(const std::string& rung,
                                const std::string& type,
                                std::optional<double> tflops,
                                int size = 4096) {
  return rows_of_case(fmt::format("matmul/ladder/rung:{}/size:{}/type:{}", rung, size, type),
                      tflops,
                      2.0 * size * size * size);
}

std::vector<SummaryRow> convolution_rows(const std::string& rung,
                                         const std::string& type,
                                         std::optional<double> tflops,
                                         int images = 32) {
  return rows_of_case(
      fmt::format(
          "convolution/ladder/rung:{}/shape:{}x64x56x56-64x3x3-p1/type:{}", rung, images, type),
      tflops,
      2.0 * images * 64 * 56 * 56 * 64 * 9);
}

std::vector<SummaryRow> together(std::initializer_list<std::vector<SummaryRow>> parts) {
  std::vector<SummaryRow> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const std::vector<SummaryRow> kWhole = together({rows_of("naive", "fp32", 2),
                                                 rows_of("tiles", "fp32", 12),
                                                 rows_of("library", "fp32", 48),
                                                 rows_of("wmma", "fp16", 240),
                                                 rows_of("mma", "bf16", 480),
                                                 rows_of("library", "bf16", 600)});

TEST(Ladder, SaysWhatLackingEachUnitCosts) {
  const std::vector<Finding> found = said(ladder_findings(session_of("GPU-1"), kWhole));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(
      found[0].sentence,
      "The product 4096x4096x4096 takes launchgap's own kernels 6.0 times as long "
      "without tiles in shared memory. It takes them 20 times as long without tensor cores "
      "(FP32 for FP16). It takes them 2.0 times as long by WMMA in place of mma.sync and "
      "copies that run ahead (FP16 for BF16). The fastest of them reaches 80 % of the library "
      "in BF16.");
  EXPECT_THAT(found[0].unknown, IsEmpty());
}

/// The runs of a case lie around its level by so much, up and down.
std::vector<SummaryRow> with_runs(std::vector<SummaryRow> rows, double spread) {
  for (SummaryRow& row : rows) {
    for (const double side : {1 / spread, 1.0, spread}) row.run_medians.push_back(*row.p50 * side);
  }
  return rows;
}

TEST(Ladder, SaysNoMoreThanTheRunsTell) {
  const auto sentence = [](double spread) {
    const std::vector<Finding> found =
        said(ladder_findings(session_of("GPU-1"),
                             together({with_runs(rows_of("naive", "fp32", 2), spread),
                                       with_runs(rows_of("tiles", "fp32", 12), spread),
                                       with_runs(rows_of("library", "fp32", 48), spread)})));
    return found.at(0).sentence;
  };
  EXPECT_EQ(sentence(1.01),
            "The product 4096x4096x4096 takes launchgap's own kernels 6.0 times as long without "
            "tiles in shared memory. The fastest of them reaches 25 % of the library in FP32.");
  EXPECT_EQ(sentence(1.5),
            "The product 4096x4096x4096 takes launchgap's own kernels at least 2.4 times as long "
            "without tiles in shared memory. The fastest of them reaches 10 % to 63 % of the "
            "library in FP32: these runs tell no more.");
  EXPECT_EQ(sentence(3),
            "The product 4096x4096x4096 takes launchgap's own kernels 0.50 to 72 times as long "
            "without tiles in shared memory: these runs tell no more. The fastest of them reaches "
            "2.1 % to 302 % of the library in FP32: these runs tell no more.");
}

TEST(Ladder, ItsRowsAreInTheOrderOfTime) {
  const std::vector<LadderRow> rows = ladder_rows(kWhole);
  std::vector<std::string> rungs;
  for (const LadderRow& row : rows) rungs.push_back(row.rung);
  EXPECT_THAT(rungs, ElementsAre("naive", "tiles", "wmma", "mma", "library", "library"));
  EXPECT_DOUBLE_EQ(rows[1].of_library.value(), 0.25);
  EXPECT_DOUBLE_EQ(rows[1].of_best.value(), 0.02);
  EXPECT_FALSE(rows[2].of_library) << "no library was measured in FP16";
  EXPECT_DOUBLE_EQ(rows[3].of_library.value(), 0.8);
  EXPECT_DOUBLE_EQ(rows.back().of_best.value(), rows.back().type == "bf16" ? 1 : 0.08);
}

TEST(Ladder, OfAGpuWithoutTensorCoresSaysThatTheirGainIsNotKnown) {
  const std::vector<Finding> found = said(ladder_findings(session_of("GPU-1"),
                                                          together({rows_of("naive", "fp32", 1),
                                                                    rows_of("tiles", "fp32", 1.03),
                                                                    rows_of("wmma", "fp16", {})})));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].sentence,
            "The product 4096x4096x4096 takes launchgap's own kernels as long without tiles "
            "in shared memory.");
  EXPECT_EQ(found[0].unknown, "rung wmma: it needs compute capability 8.0");
}

TEST(Ladder, OnTheHostSpeaksOfCaches) {
  const std::vector<Finding> found = said(ladder_findings(
      session_of("GPU-1", true),
      together({rows_of("naive", "fp32", 0.002), rows_of("tiles", "fp32", 0.018)})));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].sentence, HasSubstr("9.0 times as long without blocks that caches hold."));
}

TEST(Ladder, SaysItOfTheLargestSizeThatTwoRungsHave) {
  const std::vector<Finding> found = ladder_findings(
      session_of("GPU-1"),
      together({kWhole, rows_of("naive", "fp32", 2, 8192), rows_of("tiles", "fp32", {}, 8192)}));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].sentence, HasSubstr("4096x4096x4096"));
}

TEST(Ladder, WhatOneThatIsMissingGivesIsNotSaidOfAnother) {
  const std::vector<Finding> found = said(ladder_findings(session_of("GPU-1"),
                                                          together({rows_of("tiles", "fp32", 12),
                                                                    rows_of("wmma", "fp16", {}),
                                                                    rows_of("mma", "bf16", 480)})));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].sentence,
            "The product 4096x4096x4096 takes launchgap's own kernels 40 times as long by rung "
            "tiles in place of mma (FP32 for BF16).");
}

TEST(Ladder, OfASizeWithFewerBlocksThanMultiprocessorsSaysNothing) {
  const auto small =
      together({rows_of("mma", "bf16", 200, 1024), rows_of("wgmma", "bf16", 150, 1024)});
  EXPECT_THAT(ladder_findings(session_of("GPU-1"), small), IsEmpty());
  EXPECT_THAT(ladder_findings(session_of("GPU-1", true), small), SizeIs(1))
      << "a CPU has all of it";
}

TEST(Ladder, OfConvolutionsIsAnotherLadder) {
  const std::vector<Finding> found =
      said(ladder_findings(session_of("GPU-1"),
                           together({kWhole,
                                     convolution_rows("naive", "fp32", 1),
                                     convolution_rows("tiles", "fp32", 10),
                                     convolution_rows("mma", "bf16", 200),
                                     convolution_rows("library", "bf16", 400)})));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found[0].sentence, StartsWith("The product 4096x4096x4096 takes"));
  EXPECT_EQ(found[1].sentence,
            "The convolution 32x64x56x56-64x3x3-p1 takes launchgap's own kernels 10 times as long "
            "without tiles in shared memory. It takes them 20 times as long without tensor cores "
            "and copies that run ahead (FP32 for BF16). The fastest of them reaches 50 % of the "
            "library in BF16.");
  EXPECT_THAT(found[1].cases, "convolution/ladder, 32x64x56x56-64x3x3-p1");
}

TEST(Ladder, OfAConvolutionWithFewerBlocksThanMultiprocessorsSaysNothing) {
  const auto small =
      together({convolution_rows("tiles", "fp32", 1, 8), convolution_rows("mma", "bf16", 20, 8)});
  EXPECT_THAT(ladder_findings(session_of("GPU-1"), small), IsEmpty());
  EXPECT_THAT(ladder_findings(session_of("GPU-1", true), small), SizeIs(1));
}

TEST(Ladder, OfOneRungOrNoneSaysNothing) {
  EXPECT_THAT(ladder_findings(session_of("GPU-1"), rows_of("naive", "fp32", 2)), IsEmpty());
  EXPECT_THAT(ladder_findings(session_of("GPU-1"), {}), IsEmpty());
}

TEST(Ladder, ItsOrderIsThatOfTheRungsThemselves) {
  std::vector<SummaryRow> rows;
  std::vector<std::string> expected, found;
  for (const kernels::Rung& rung : kernels::rungs()) {
    expected.emplace_back(rung.name);
    const auto own = rows_of(expected.back(), std::string(rung.type_name), 1);
    rows.insert(rows.begin(), own.begin(), own.end());
  }
  for (const kernels::ConvolutionRung& rung : kernels::convolution_rungs()) {
    expected.emplace_back(rung.name);
    const auto own = convolution_rows(expected.back(), std::string(rung.type_name), 1);
    rows.insert(rows.begin(), own.begin(), own.end());
  }
  for (const LadderRow& row : ladder_rows(rows)) found.push_back(row.rung);
  EXPECT_EQ(found, expected);
}

// What is neither a rung that is known here, nor counts, changes nothing.
TEST(Ladder, LeavesOutWhatDoesNotCount) {
  std::vector<SummaryRow> rows = kWhole;
  for (SummaryRow row : rows_of("naive", "fp32", 1000)) {
    row.key.arm = "traced";
    rows.push_back(row);
  }
  for (SummaryRow row : rows_of("tiles", "fp32", 1000, 1024)) {
    row.impossible = true;
    rows.push_back(row);
  }
  const auto later = rows_of("of_a_later_release", "bf16", 5000);
  rows.insert(rows.end(), later.begin(), later.end());
  const std::vector<Finding> found = ladder_findings(session_of("GPU-1"), rows);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].sentence, HasSubstr("6.0 times as long without tiles"));
  EXPECT_THAT(found[0].sentence, HasSubstr("The fastest of them reaches 80 % of the library"));
}

}  // namespace
}  // namespace launchgap
