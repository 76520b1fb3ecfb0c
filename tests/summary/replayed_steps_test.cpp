#include "harness/summary/replayed_steps.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "harness/core/output_file.h"
#include "harness/summary/summary.h"
#include "tests/sentences/said.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

/// 100 kernels of 1 ms, with 0.5 ms of the program before each: the work alone takes 100 ms, and
/// the program adds the first gap.
std::string busy_rows() {
  std::string rows = "action,stream,gap_ns,call_ns,device_ns,bytes,number,blocks\n";
  for (int i = 0; i < 100; ++i) rows += "kernel,,500000,5000,1000000,,,\n";
  return rows;
}

/// 100 kernels of 1 us, with 10 us of the program before each: it takes 1 ms, and the last kernel.
std::string idle_rows() {
  std::string rows = "action,stream,gap_ns,call_ns,device_ns,bytes,number,blocks\n";
  for (int i = 0; i < 100; ++i) rows += "kernel,,10000,5000,1000,,,\n";
  return rows;
}

class Patterns : public WrittenSession {
 protected:
  void pattern(const std::string& rows, Json origin = Json::object()) {
    std::filesystem::create_directories(path / "patterns");
    write_file(path / "patterns" / "p.csv", rows);
    origin["name"] = "p";
    meta["patterns"] = Json::array({origin});
  }
  /// Three processes, whose medians are these.
  void mode(const std::string& mode, const std::vector<double>& medians_ns) {
    const std::string name = "launch/pattern/pattern:p/mode:" + mode;
    for (const double ns : medians_ns) {
      const std::vector<double> times(5, ns);
      run_of_case(begin(replicate_++),
                  name,
                  {{"pattern_ns", times},
                   {"pattern_calls_ns", std::vector<double>(5, 200e3)},
                   {"kernel_excess_ns", std::vector<double>(5, 0)}});
    }
    replicate_ = 0;
    ++attempt_;
  }
  RecordWriter begin(int replicate) { return WrittenSession::begin(replicate, attempt_); }

  std::vector<PatternRow> rows() {
    session_ = read();
    EXPECT_THAT(session_.problems, IsEmpty());
    return pattern_rows(session_, summarise(session_));
  }
  std::vector<Finding> findings() {
    const std::vector<PatternRow> found = rows();
    return said(pattern_findings(session_, found));
  }
  Finding finding(std::string_view code) {
    for (const Finding& one : findings()) {
      if (one.code == code) return one;
    }
    ADD_FAILURE() << "no " << code;
    return {};
  }

  SessionData session_;
  int replicate_ = 0, attempt_ = 0;
};

TEST_F(Patterns, SavingsAreOfWhatIsNotHidden) {
  pattern(busy_rows());
  mode("eager", {101e6, 101e6, 101e6});
  const auto found = rows();
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_TRUE(found[0].savings);
  EXPECT_DOUBLE_EQ(found[0].savings->work_alone_ns, 100e6);
  EXPECT_DOUBLE_EQ(found[0].savings->work_ns, 50.5e6) << "100 times 0.5 ms are left";
  EXPECT_DOUBLE_EQ(found[0].savings->program_ns, 0.5e6);
  EXPECT_DOUBLE_EQ(found[0].savings->launches_ns, 0.5e6);
  EXPECT_EQ(found[0].bound_by, BoundBy::work);
  EXPECT_EQ(found[0].calls_ns, 200e3);
  EXPECT_FALSE(found[0].agreement) << "there is nothing to compare with";
  EXPECT_EQ(finding("pattern-bound").severity, Severity::fine);
}

TEST_F(Patterns, ProgramAndWorkMayHideEachOther) {
  std::string rows_text = "action,stream,gap_ns,call_ns,device_ns,bytes,number,blocks\n";
  for (int i = 0; i < 100; ++i) rows_text += "kernel,,1000000,,1000000,,,\n";
  pattern(rows_text);
  mode("eager", {102e6, 102e6, 102e6});
  EXPECT_EQ(rows().at(0).bound_by, BoundBy::several);
  EXPECT_THAT(finding("pattern-bound").sentence, StartsWith("Nothing alone binds"));
}

TEST_F(Patterns, LaunchesBindWhereMostOfTheTimeGoesToThem) {
  pattern(idle_rows());
  mode("eager", {4e6, 4.1e6, 4.2e6});
  const Finding found = finding("pattern-bound");
  EXPECT_EQ(found.severity, Severity::act);
  EXPECT_THAT(found.sentence, StartsWith("Launches bind the step p here"));
  EXPECT_THAT(found.share, Optional(DoubleNear(3.1 / 4.1, 0.01)));
}

TEST_F(Patterns, TheProgramBindsWhereItsOwnTimeIsMost) {
  pattern(idle_rows());
  mode("eager", {1.1e6, 1.1e6, 1.1e6});
  const Finding found = finding("pattern-bound");
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_THAT(found.sentence, StartsWith("The program itself binds the step p"));
}

TEST_F(Patterns, CallsThatAreNotDoneAgainAreNoProgram) {
  pattern(idle_rows(), {{"other_calls_ns", 900'000}});
  mode("eager", {1.1e6, 1.1e6, 1.1e6});
  EXPECT_THAT(finding("pattern-bound").sentence,
              StartsWith("Calls of CUDA that are not done again"));
}

TEST_F(Patterns, AllocationsAreNoLaunches) {
  std::string rows_text = "action,stream,gap_ns,call_ns,device_ns,bytes,number,blocks\n";
  for (int i = 1; i <= 20; ++i) {
    rows_text += "allocate,,,,,4096," + std::to_string(i) +
                 ",\nkernel,,10000,,1000,,,\nrelease,,,,,," + std::to_string(i) + ",\n";
  }
  pattern(rows_text);
  const std::string name = "launch/pattern/pattern:p/mode:eager";
  for (int i = 0; i < 3; ++i) {
    run_of_case(begin(i),
                name,
                {{"pattern_ns", std::vector<double>(5, 5e6)},
                 {"pattern_allocations_ns", std::vector<double>(5, 4.6e6)}});
  }
  const Finding found = finding("pattern-bound");
  EXPECT_THAT(found.sentence, StartsWith("Allocations bind the step p here"));
  EXPECT_EQ(rows().at(0).bound_by, BoundBy::allocations);
  EXPECT_NEAR(rows().at(0).savings->launches_ns, 0.2e6, 0.01e6);
}

TEST_F(Patterns, WhatTheRecordedCallsAndWorkDoNotExplainTellsNothing) {
  pattern(busy_rows(), {{"recorded_ns", 204'000'000}, {"gpu", "Tesla V100"}});
  mode("eager", {101e6, 102e6, 103e6});
  mode("graph", {50e6, 50e6, 50e6});
  EXPECT_EQ(
      finding("pattern-bound").sentence,
      "What binds the step p cannot be told: it took 204 ms when it was recorded, and what is "
      "known of it takes 101 ms.");
  EXPECT_THAT(finding("pattern-agreement").sentence,
              HasSubstr("something of the step is not in the pattern"));
  for (const Finding& one : findings()) EXPECT_NE(one.code, "pattern-graph");
  EXPECT_THAT(predicted_patterns(session_), IsEmpty());
}

TEST_F(Patterns, LaunchingThatDoesNotShowCostsNothing) {
  pattern(busy_rows());
  mode("eager", {100.4e6, 100.4e6, 100.4e6});
  EXPECT_THAT(finding("pattern-bound").sentence, HasSubstr("launching costs 0 ns"));
}

TEST_F(Patterns, RunsThatDisagreeOrAreTooFewTellNothing) {
  pattern(idle_rows());
  mode("eager", {1.1e6, 4e6, 1.1e6});
  EXPECT_EQ(finding("pattern-bound").severity, Severity::open);
  EXPECT_THAT(finding("pattern-bound").sentence, HasSubstr("they disagree"));
}

TEST_F(Patterns, OneRunTellsNothing) {
  pattern(idle_rows());
  mode("eager", {4e6});
  EXPECT_THAT(finding("pattern-bound").sentence, HasSubstr("it takes 3 of them"));
}

TEST_F(Patterns, AReplayThatIsShorterThanItsWorkTellsNothing) {
  pattern(busy_rows());
  mode("eager", {80e6, 80e6, 80e6});
  EXPECT_EQ(rows().at(0).bound_by, BoundBy::unknown);
  EXPECT_EQ(finding("pattern-bound").severity, Severity::open);
}

TEST_F(Patterns, StreamsThatCannotGoSideBySideTellNothing) {
  std::string many = idle_rows();
  for (int i = 1; i < 100; ++i) many += "kernel," + std::to_string(i) + ",,,1000,,,\n";
  pattern(many);
  meta["devices"][0]["multiprocessors"] = 40;
  mode("eager", {4e6, 4e6, 4e6});
  EXPECT_FALSE(rows().at(0).savings);
  EXPECT_THAT(finding("pattern-bound").sentence, HasSubstr("its 100 streams need"));
  meta["devices"][0]["multiprocessors"] = 100;
  EXPECT_TRUE(rows().at(0).savings);
}

TEST_F(Patterns, WhatIsNotCompleteTellsNothing) {
  pattern(idle_rows(),
          {{"incomplete", "its streams waited for each other"}, {"gpu", "Tesla V100"}});
  mode("eager", {4e6, 4e6, 4e6});
  EXPECT_EQ(rows().at(0).bound_by, BoundBy::unknown);
  EXPECT_EQ(finding("pattern-bound").sentence,
            "What binds the step p cannot be told: its streams waited for each other.");
  EXPECT_THAT(predicted_patterns(session_), IsEmpty());
}

TEST_F(Patterns, TheReplayIsHeldAgainstTheRecording) {
  pattern(busy_rows(), {{"recorded_ns", 100'000'000}});
  mode("eager", {101e6, 102e6, 103e6});
  const auto found = rows();
  ASSERT_TRUE(found[0].agreement);
  EXPECT_NEAR(found[0].agreement->value, 1.02, 1e-3);
  ASSERT_TRUE(found[0].agreement->interval);
  EXPECT_LT(found[0].agreement->interval->low, 1.02);
  const Finding said_of_it = finding("pattern-agreement");
  EXPECT_EQ(said_of_it.severity, Severity::note);
  EXPECT_THAT(said_of_it.evidence, Contains(Field(&Evidence::value, Optional(500e3))))
      << "what its calls took when they were recorded";
}

TEST_F(Patterns, AReplayThatIsFarFromItsRecordingIsNoBasis) {
  pattern(busy_rows(), {{"recorded_ns", 100'000'000}});
  mode("eager", {121e6, 122e6, 123e6});
  EXPECT_EQ(finding("pattern-agreement").severity, Severity::open);
  EXPECT_THAT(finding("pattern-agreement").sentence, HasSubstr("this machine, its copies or"));
}

TEST_F(Patterns, WithOtherKernelsThereIsNothingToAgreeWith) {
  pattern(busy_rows(), {{"recorded_ns", 100'000'000}, {"kernel_factor", 0.5}});
  mode("eager", {101e6, 102e6, 103e6});
  EXPECT_FALSE(rows().at(0).agreement);
}

TEST_F(Patterns, GraphsAreHeldAgainstLaunchesOneByOne) {
  pattern(idle_rows());
  mode("eager", {4e6, 4.1e6, 4.2e6});
  mode("graph", {1e6, 1.1e6, 1.2e6});
  const Finding found = finding("pattern-graph");
  EXPECT_EQ(found.severity, Severity::act);
  EXPECT_THAT(found.sentence, HasSubstr("As graphs the step p takes 0.27 times the time"));
}

TEST_F(Patterns, GraphsMayGainNothing) {
  pattern(busy_rows());
  mode("eager", {100e6, 101e6, 102e6});
  mode("graph", {100e6, 101e6, 102e6});
  EXPECT_EQ(finding("pattern-graph").severity, Severity::fine);
}

TEST_F(Patterns, GraphsMayTakeLonger) {
  pattern(idle_rows());
  mode("eager", {1e6, 1.1e6, 1.2e6});
  mode("graph", {2e6, 2.1e6, 2.2e6});
  EXPECT_EQ(finding("pattern-graph").severity, Severity::note);
}

TEST_F(Patterns, FewRunsDoNotTellWhatGraphsGain) {
  pattern(idle_rows());
  mode("eager", {4e6});
  mode("graph", {1e6});
  EXPECT_EQ(finding("pattern-graph").severity, Severity::open);
}

TEST_F(Patterns, AFileThatIsGoneOrDamagedIsAProblem) {
  pattern("action\nkernel\n");
  mode("eager", {4e6});
  session_ = read();
  EXPECT_THAT(session_.problems, ElementsAre(HasSubstr("a pattern cannot be read")));
  EXPECT_THAT(pattern_rows(session_, summarise(session_)), IsEmpty());
}

TEST_F(Patterns, ANameThatLeadsElsewhereIsNotFollowed) {
  pattern(idle_rows());
  meta["patterns"][0]["name"] = "../p";
  session_ = read();
  EXPECT_THAT(session_.problems, ElementsAre(HasSubstr("a pattern cannot be read")));
}

// --- Another generation ---

TEST(GenerationCosts, AreOfModelsWhoseLaunchesAreKnown) {
  std::vector<std::string> names;
  for (const GenerationCosts& costs : generation_costs()) {
    names.push_back(costs.gpu);
    EXPECT_GT(costs.call_ns, 500) << costs.gpu;
    EXPECT_LT(costs.roundtrip_ns, 100e3) << costs.gpu;
    EXPECT_GE(costs.roundtrip_ns, costs.call_ns) << costs.gpu;
    EXPECT_GT(costs.tflops, 1) << costs.gpu;
  }
  EXPECT_THAT(names, IsSupersetOf({"K80 (per die)", "V100 SXM2 16GB", "H100 SXM"}));
  EXPECT_THAT(names, Not(Contains("V100 SXM2 32GB"))) << "one board of a model";
  const auto k80 = std::ranges::find(generation_costs(), "K80 (per die)", &GenerationCosts::gpu);
  EXPECT_TRUE(k80->published);
  EXPECT_EQ(k80->call_ns, 5700);
  EXPECT_NEAR(k80->tflops, 4.37, 0.01);
}

TEST_F(Patterns, AreToldForAnotherGenerationByBandwidthAndRate) {
  pattern(busy_rows(), {{"gpu", "Tesla V100-SXM2-32GB"}, {"recorded_ns", 100'500'000}});
  session_ = read();
  const auto predicted = predicted_patterns(session_);
  const auto on = [&](std::string_view gpu) {
    return *std::ranges::find(
        predicted, gpu, [](const PredictedPattern& one) { return one.costs->gpu; });
  };
  const PredictedPattern k80 = on("K80 (per die)");
  EXPECT_NEAR(k80.kernel_factor_lo, 15.67 / 4.37, 0.03);
  EXPECT_NEAR(k80.kernel_factor_hi, 900.0 / 240, 0.01);
  EXPECT_NEAR(k80.lo_ns, 100e6 * k80.kernel_factor_lo, 1e6);
  EXPECT_EQ(k80.bound_lo, BoundBy::work);
  const PredictedPattern h100 = on("H100 SXM");
  EXPECT_LT(h100.kernel_factor_hi, 0.3);
  EXPECT_EQ(h100.bound_hi, BoundBy::program) << "100 times 0.5 ms";
  ASSERT_TRUE(h100.model_agreement);
  EXPECT_NEAR(*h100.model_agreement, 1, 0.01);
}

TEST_F(Patterns, OfAGpuThatIsNotKnownNothingIsToldElsewhere) {
  pattern(busy_rows(), {{"gpu", "Some Card"}});
  session_ = read();
  EXPECT_THAT(predicted_patterns(session_), IsEmpty());
}

}  // namespace
}  // namespace launchgap
