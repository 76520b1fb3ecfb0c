#include "harness/summary/algorithms.h"

#include <gmock/gmock.h>

#include "tests/summary/made.h"

namespace launchgap {
namespace {

using ::testing::ElementsAre;

constexpr const char* kTracedProduct = "matmul/library/size:2048/type:fp32/cache:warm";

CaseKey key(const char* name, const char* arm = "plain") {
  const CaseName parsed = CaseName::parse(name);
  return {"GPU-1", arm, ProcessConfig(parsed.family()), parsed};
}

CountedKernels kernel(const char* name, std::vector<std::uint64_t> grid) {
  return {.name = name, .grid = std::move(grid), .block = {}};
}

TEST(Algorithms, AreWhatTheLibraryTellsInEachProcess) {
  SessionData session;
  session.cases[key(kTracedProduct)].algorithms = {
      {0, "algorithm 21"}, {1, "algorithm 6"}, {2, "algorithm 21"}};
  session.traces.push_back(a_trace(kTracedProduct, {kernel("ampere_sgemm", {1, 1, 1})}));
  EXPECT_THAT(algorithms_of_cases(session).at(key(kTracedProduct)),
              ElementsAre("algorithm 21", "algorithm 6"));
}

TEST(Algorithms, AreTheKernelsWhereItDoesNotTell) {
  SessionData session;
  session.cases[key(kTracedProduct)];
  session.traces.push_back(a_trace(kTracedProduct,
                                   {kernel("splitKreduce", {8, 4, 1}),
                                    kernel("ampere_sgemm_128x64_tn", {16, 8, 1}),
                                    kernel("launchgap_gate", {1, 1, 1})}));
  EXPECT_THAT(algorithms_of_cases(session).at(key(kTracedProduct)),
              ElementsAre("ampere_sgemm_128x64_tn 16x8x1 + splitKreduce 8x4x1"));
}

TEST(Algorithms, OfOurOwnKernelsAndOfTracesThatDoNotCountThereAreNone) {
  constexpr const char* kLaunch = "launch/null/api:driver/mode:idle";
  SessionData session;
  session.cases[key(kTracedProduct)];
  session.cases[key(kLaunch)];
  session.traces.push_back(a_trace(kLaunch, {kernel("null", {1, 1, 1})}));
  session.traces.push_back(a_trace(kTracedProduct, {kernel("ampere_sgemm", {1, 1, 1})}));
  session.traces.back().record.state = "invalid";
  session.traces.push_back(a_trace(kTracedProduct, {kernel("launchgap_gate", {1, 1, 1})}));
  EXPECT_TRUE(algorithms_of_cases(session).empty());
}

TEST(Algorithms, HaveTheWavesThatCublasLtTells) {
  EXPECT_EQ(waves_of("cuBLASLt 13.1 cublasLtMatmul, FP32, candidate 1 of 8: algorithm 6, tile 5, "
                     "stages 3, split 1, 2.10 waves, workspace 32 MiB; 4 per sample"),
            2.1);
  for (const char* const other : {"",
                                  "cuBLASLt 13.1 cublasLtMatmul",
                                  "cuBLASLt  waves",
                                  "cuBLASLt 13.1, nan waves",
                                  "cuBLAS 13.1 cublasGemmEx; beside: cuBLASLt 13.1, 1.94 waves"})
    EXPECT_EQ(waves_of(other), std::nullopt) << other;
}

}  // namespace
}  // namespace launchgap
