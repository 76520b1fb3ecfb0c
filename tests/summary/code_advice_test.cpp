// What benchmarks/library_code.cpp says of the code that libraries have for older CPUs.

#include <gmock/gmock.h>

#include "harness/summary/adviser.h"
#include "tests/device/a_device.h"
#include "tests/sentences/said.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

/// Products by a code, in TFLOP/s by process.
struct ByCode {
  const char* code;
  std::vector<double> rates;
};

struct CodeAdvice : ::testing::Test {
  CodeAdvice() { session_.devices = {a_device("host-1", "Some CPU", "host")}; }

  void took(const char* code) {
    RunInfo run;
    run.device = "host-1";
    run.process_config = ProcessConfig("matmul+code=own");
    run.libraries = {{.name = "OpenBLAS",
                      .soname = "",
                      .path = "",
                      .version = "0.3.21",
                      .code = code,
                      .newer_code = ""}};
    session_.runs = {run};
  }

  /// Of products, or of convolutions.
  std::vector<Finding> advice_on(const std::vector<ByCode>& measured,
                                 const std::string& family = "matmul",
                                 const std::string& others = "/size:1024") {
    std::vector<SummaryRow> rows;
    for (const auto& [code, rates] : measured) {
      rows.push_back(a_row("host-1",
                           family + "/code/code:" + code + others,
                           "tflops",
                           rates,
                           "plain",
                           family + "+code=" + code));
      rows.back().p50 = rates.at(rates.size() / 2);
      rows.back().session = &session_;
    }
    return said(advice(session_, rows));
  }

  SessionData session_;
};

std::vector<double> rates_near(double rate) {
  return {rate * 0.99, rate, rate * 1.01};
}

auto says_of_code(Severity severity, const std::string& text) {
  return AllOf(Field(&Finding::code, "matmul-code"),
               Field(&Finding::severity, severity),
               Field(&Finding::sentence, HasSubstr(text)));
}

TEST_F(CodeAdvice, SaysWhatEachCodeGetsThoughANewerOneMayBeSlower) {
  const auto findings = advice_on({{"haswell", rates_near(0.160)},
                                   {"prescott", rates_near(0.0652)},
                                   {"nehalem", rates_near(0.0494)},
                                   {"skylakex", rates_near(0.301)}});
  EXPECT_THAT(
      findings,
      ElementsAre(says_of_code(Severity::note,
                               "Code for a CPU of 2004 (Prescott) gets 65.2 GFLOP/s of FP32 "
                               "products out of this one, of 2008 (Nehalem) 49.4 GFLOP/s, of 2013 "
                               "(Haswell) 160 GFLOP/s, of 2017 (SkylakeX) 301 GFLOP/s: the newest "
                               "is 4.6 times as fast as the oldest.")));
  EXPECT_EQ(findings.at(0).evidence.size(), 3U);
}

TEST_F(CodeAdvice, SaysWhereTheNewestIsNotTheFastest) {
  EXPECT_THAT(
      advice_on({{"prescott", rates_near(0.05)},
                 {"haswell", rates_near(0.2)},
                 {"skylakex", rates_near(0.1)}}),
      ElementsAre(says_of_code(Severity::note,
                               "the newest is 2.0 times as fast as the oldest, and the one for "
                               "Haswell (2013) 2.0 times as fast as the newest.")));
  EXPECT_THAT(
      advice_on({{"prescott", rates_near(0.2)}, {"skylakex", rates_near(0.1)}}),
      ElementsAre(says_of_code(Severity::note, "the newest is 2.0 times slower than the oldest.")));
}

TEST_F(CodeAdvice, SaysWhichIsTheFastestWhereTheNewestGainsNothing) {
  EXPECT_THAT(advice_on({{"prescott", rates_near(0.1)},
                         {"haswell", rates_near(0.2)},
                         {"skylakex", rates_near(0.1)}}),
              ElementsAre(says_of_code(
                  Severity::note,
                  "the newest is not measurably faster than the oldest, and the one for Haswell "
                  "(2013) 2.0 times as fast as the newest.")));
}

TEST_F(CodeAdvice, ClaimsNoDifferenceThatTheRunsDoNotShow) {
  const auto same = advice_on({{"prescott", rates_near(0.1)}, {"haswell", rates_near(0.101)}});
  EXPECT_THAT(same,
              ElementsAre(says_of_code(Severity::note, "not measurably faster than the oldest.")));
  const auto noisy = advice_on({{"prescott", {0.05, 0.1, 0.2}}, {"haswell", {0.06, 0.12, 0.2}}});
  EXPECT_THAT(noisy, ElementsAre(says_of_code(Severity::open, "these runs are too noisy to tell")));
  const auto few = advice_on({{"prescott", {0.1, 0.1}}, {"haswell", {0.2, 0.2}}});
  EXPECT_THAT(few, ElementsAre(says_of_code(Severity::open, "takes at least 3 runs of each")));
  const auto zero = advice_on({{"prescott", {0, 0, 0}}, {"haswell", rates_near(0.2)}});
  EXPECT_THAT(zero, ElementsAre(says_of_code(Severity::open, "a median is zero")));
  for (const auto& findings : {same, noisy, few, zero})
    EXPECT_THAT(findings[0].sentence, Not(HasSubstr("times as fast as the oldest, and")));
}

TEST_F(CodeAdvice, SetsTheVariableWhereTheLibraryChoosesWorse) {
  took("Prescott");
  const auto findings = advice_on({{"own", rates_near(0.065)}, {"haswell", rates_near(0.16)}});
  EXPECT_THAT(
      findings,
      ElementsAre(says_of_code(Severity::act,
                               "Set OPENBLAS_CORETYPE=Haswell: FP32 products are then 2.5 times as "
                               "fast as with the code that OpenBLAS runs here without that "
                               "(Prescott).")));
  EXPECT_NEAR(findings.at(0).share.value_or(0), 1 - 0.065 / 0.16, 0.01);
}

TEST_F(CodeAdvice, IsSilentAboutTheVariableWhereTheLibraryChoosesWell) {
  took("SkylakeX");
  EXPECT_THAT(advice_on({{"own", rates_near(0.3)}, {"haswell", rates_near(0.16)}}),
              ElementsAre(says_of_code(
                  Severity::fine,
                  "No other code is measurably faster than what OpenBLAS runs here without "
                  "being told (SkylakeX).")));
  EXPECT_THAT(
      advice_on({{"own", {0.05, 0.1, 0.2}}, {"haswell", {0.06, 0.12, 0.2}}}),
      ElementsAre(says_of_code(Severity::open, "These runs do not tell whether other code")));
}

TEST_F(CodeAdvice, SaysTheSameOfConvolutions) {
  EXPECT_THAT(advice_on({{"sse41", rates_near(0.066)}, {"avx512_core", rates_near(0.342)}},
                        "convolution",
                        "/layer:conv4_3x3/n:1"),
              ElementsAre(AllOf(
                  Field(&Finding::code, "convolution-code"),
                  Field(&Finding::sentence,
                        "Code for a CPU of 2008 (SSE41) gets 66.0 GFLOP/s of FP32 convolutions out "
                        "of this one, of 2017 (AVX512_CORE) 342 GFLOP/s: the newest is 5.2 times "
                        "as fast as the oldest."))));
}

TEST_F(CodeAdvice, OfOneCodeAloneThereIsNothingToCompare) {
  EXPECT_THAT(advice_on({{"haswell", rates_near(0.16)}}),
              ElementsAre(says_of_code(Severity::open, "Nothing to compare")));
}

}  // namespace
}  // namespace launchgap
