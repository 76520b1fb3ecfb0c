#include <gmock/gmock.h>

#include "harness/summary/selections.h"
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

TEST(Algorithms, OfManyKernelsFourAreNamedInTheirOrder) {
  SessionData session;
  session.cases[key(kTracedProduct)];
  session.traces.push_back(a_trace("launch/null", {kernel("other", {1})}));
  session.traces.push_back(a_trace(kTracedProduct,
                                   {kernel("launchgap_gate", {1}),
                                    kernel("", {1}),
                                    kernel("e", {1}),
                                    kernel("d", {2}),
                                    kernel("b", {3}),
                                    kernel("a", {4})}));
  EXPECT_THAT(algorithms_of_cases(session).at(key(kTracedProduct)),
              ElementsAre("a 4 + b 3 + d 2 + e 1"));
  session.traces.back().record.kernels->push_back(kernel("c", {5}));
  EXPECT_THAT(algorithms_of_cases(session).at(key(kTracedProduct)),
              ElementsAre("a 4 + b 3 + c 5 + d 2"));
}

TEST(Algorithms, AKernelsNameIsShortened) {
  SessionData session;
  session.cases[key(kTracedProduct)];
  const std::string name(201, 'k');
  session.traces.push_back(a_trace(kTracedProduct, {kernel(name.c_str(), {1})}));
  EXPECT_THAT(algorithms_of_cases(session).at(key(kTracedProduct)),
              ElementsAre(std::string(200, 'k') + " 1"));
}

TEST(Algorithms, OfTheTracesThatCountEachIsOne) {
  SessionData session;
  session.cases[key(kTracedProduct)];
  session.traces.push_back(a_trace(kTracedProduct, {kernel("lost", {1})}));
  session.traces.back().record.case_name.reset();
  session.traces.push_back(a_trace(kTracedProduct, {kernel("none", {1})}));
  session.traces.back().record.kernels.reset();
  session.traces.push_back(a_trace(kTracedProduct, {kernel("a", {1})}));
  session.traces.push_back(a_trace(kTracedProduct, {kernel("b", {1})}));
  EXPECT_THAT(algorithms_of_cases(session).at(key(kTracedProduct)), ElementsAre("a 1", "b 1"));
}

}  // namespace
}  // namespace launchgap
