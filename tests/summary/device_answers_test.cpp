#include "harness/summary/device_answers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/rules/spread.h"
#include "tests/sentences/said.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

struct DeviceAnswers : WrittenSession {
  /// A run whose 2,000 launch calls take 2.31 µs, one in 500 of them 11 µs, all times `factor`.
  void run(int replicate, double factor) {
    std::vector<double> values(2000, 2310 * factor);
    for (std::size_t i = 0; i < values.size(); i += 500) values[i] = 11'000 * factor;
    run_of_case(begin(replicate), kIdle, {{"api_ns", values}});
  }
  DeviceAnswer answer() {
    const SessionData session = read();
    const std::vector<DeviceAnswer> answers = device_answers(session, summarise(session));
    EXPECT_EQ(answers.size(), 1u);
    const DeviceAnswer& found = answers.at(0);
    said("device", found.verdict, found.sentence);
    said("device", found.verdict, found.note);
    return found;
  }
};

TEST_F(DeviceAnswers, SayWhatALaunchCostsAndHowItVaries) {
  for (int replicate = 0; replicate < 6; ++replicate) run(replicate, replicate == 3 ? 1.04 : 1);
  const DeviceAnswer found = answer();
  EXPECT_EQ(found.device, "GPU-1");
  EXPECT_EQ(found.verdict, "steady");
  EXPECT_EQ(found.tone, Tone::ok);
  EXPECT_EQ(found.runs, 6u);
  EXPECT_THAT(found.sentence,
              HasSubstr("A launch call takes 2.31 µs (p50), and 11.0 µs at p99.9. It varies by "));
  EXPECT_THAT(found.sentence,
              ContainsRegex(
                  "between runs \\(CV\\)\\. To tell a change of 2 % takes (9|1[0-3]) runs of each"))
      << "2 (2.8 x 0.016 / 0.02)^2";
  EXPECT_NEAR(found.between_run_cv->value, 0.016, 0.002) << "of six medians, one 4 % above";
}

TEST_F(DeviceAnswers, OfThreeRunsSteadinessIsSaidWithAHedge) {
  for (int replicate = 0; replicate < 3; ++replicate) run(replicate, 1 + 0.01 * replicate);
  const DeviceAnswer found = answer();
  EXPECT_EQ(found.verdict, "steady so far");
  EXPECT_EQ(found.note, "3 runs are too few to be sure: use --runs 6 or more.");
  EXPECT_EQ(found.sentence.find("To tell"), std::string::npos);
}

TEST_F(DeviceAnswers, RunsThatDifferAreUnstableHoweverFewTheyAre) {
  run(0, 1);
  run(1, 1.5);
  const DeviceAnswer found = answer();
  EXPECT_EQ(found.verdict, "unstable");
  EXPECT_EQ(found.tone, Tone::warning);
}

/// Of four GPUs of a kind, the first differs in one metric.
TEST_F(DeviceAnswers, SlowerThanItsKindMeansMoreTimeOrLessThroughput) {
  constexpr const char* kProduct = "matmul/library/size:256";
  const struct {
    const char *name, *metric;
    double ratio;
    const char *verdict, *words;
  } rows_of_first[] = {
      {kIdle,
       "roundtrip_ns",
       1.08,
       "slower than its kind",
       "slower than the others of its kind "
       "in round trips"},
      {kIdle, "roundtrip_ns", 0.9, "steady", "faster than the others of its kind in round trips"},
      {kProduct,
       "tflops",
       0.9,
       "slower than its kind",
       "slower than the others of its kind in "
       "tflops of matmul/library/size:256"},
      {kProduct, "tflops", 1.08, "steady", "faster than the others of its kind in tflops"},
  };
  for (const auto& expected : rows_of_first) {
    SessionData session;
    std::vector<SummaryRow> rows;
    for (int i = 0; i < 4; ++i) {
      const std::string uuid = "GPU-" + std::to_string(i);
      session.devices.push_back(a_device(uuid, "NVIDIA A100"));
      for (const auto& [name, metric, level] :
           {std::tuple<const char*, const char*, double>{kIdle, "api_ns", 2000},
            std::tuple<const char*, const char*, double>{expected.name, expected.metric, 5000}}) {
        const double own = i == 0 && metric == expected.metric ? expected.ratio : 1;
        std::vector<double> medians;
        for (int k = 0; k < 8; ++k)
          medians.push_back(level * own * (1 + 0.001 * ((k * 3 + i) % 5)));
        SummaryRow& row = rows.emplace_back(
            a_row(uuid, name, metric, medians, "plain", std::string(name).substr(0, 6)));
        row.p50 = level;
        row.n = 10;
        row.between_run_cv = stats::Estimate{0.001, {0.0005, 0.002}};
      }
    }
    const std::vector<DeviceAnswer> answers = device_answers(session, rows);
    said("device", answers.at(0).verdict, answers.at(0).kind);
    EXPECT_THAT(answers.at(0).kind, HasSubstr(expected.words));
    EXPECT_EQ(answers.at(0).verdict, expected.verdict);
    EXPECT_THAT(answers.at(1).kind, IsEmpty());
  }
}

TEST_F(DeviceAnswers, OfOneRunNothingIsSaidOfRuns) {
  run(0, 1);
  const DeviceAnswer found = answer();
  EXPECT_EQ(found.verdict, "one run only");
  EXPECT_FALSE(found.between_run_cv);
}

TEST_F(DeviceAnswers, OneThatDidStepsWithOthersWasMeasured) {
  SessionData session = read();
  EXPECT_EQ(device_answers(session, summarise(session)).at(0).verdict, "not measured");
  DeviceSkew skew;
  skew.members.emplace_back().name = session.devices.front().uuid;
  session.skews.push_back({{"another", "plain", {}, 0}, skew});
  EXPECT_EQ(device_answers(session, summarise(session)).at(0).verdict, "launch call not measured");
}

TEST_F(DeviceAnswers, WhatWasNotMeasuredSaysWhy) {
  DeviceAnswer found = answer();
  EXPECT_EQ(found.verdict, "not measured");
  EXPECT_EQ(found.note, "Nothing was measured.");
  EXPECT_THAT(found.sentence, IsEmpty());

  RecordWriter writer = begin(0);
  summary(writer, kIdle, "unsupported", "no kernels were built");
  end(writer);
  found = answer();
  EXPECT_EQ(found.note, "Empty launches: unsupported, no kernels were built.");
}

TEST_F(DeviceAnswers, UnderAToolThereIsNoBaseline) {
  for (int replicate = 0; replicate < 6; ++replicate) run(replicate, 1);
  SessionData session = read();
  session.runs.at(2).measured_under_tool = "Nsight Systems";
  const std::vector<DeviceAnswer> answers = device_answers(session, summarise(session));
  EXPECT_EQ(answers.at(0).verdict, "no baseline");
  EXPECT_EQ(answers.at(0).note, "Measured under Nsight Systems.");
  said("device", answers.at(0).verdict, answers.at(0).note);
}

TEST_F(DeviceAnswers, WithoutTheEmptyLaunchSayWhichWasNotMeasured) {
  run_of_case(begin(0), "launch/queue", {{"api_ns", std::vector<double>(100, 2000)}});
  EXPECT_EQ(answer().note, "The empty launch call was not part of this session.");
  SessionData session = read();
  session.runs.at(0).status = "failed";
  session.runs.at(0).reason = "the worker crashed";
  session.devices.at(0).usable = true;
  DeviceAnswer found = device_answers(session, {}).at(0);
  EXPECT_EQ(found.note, "A run is marked failed: the worker crashed.");
  said("device", found.verdict, found.note);
  session.devices.at(0).usable = false;
  found = device_answers(session, {}).at(0);
  EXPECT_EQ(found.note, "No reason was recorded.");
  said("device", found.verdict, found.note);
}

// --- Of rows that are put together here ---------------------------------------------------------

/// Of so many runs of the empty launch, whose medians vary by this.
SummaryRow call_row(std::size_t runs, std::optional<double> between_run_cv) {
  SummaryRow row = a_row("GPU-1", kIdle, "api_ns", std::vector<double>(runs, 2000));
  row.n = 999;
  row.p99 = 3000;
  row.p999 = 9000;
  if (between_run_cv) row.between_run_cv = stats::Estimate{*between_run_cv, {0, 1}};
  return row;
}

SessionData one_device() {
  SessionData session;
  session.devices = {a_device("GPU-1", "A")};
  return session;
}

DeviceAnswer answer_to(const std::vector<SummaryRow>& rows) {
  return device_answers(one_device(), rows).at(0);
}

TEST(DeviceSentence, HasATailThatTheSamplesReach) {
  SummaryRow row = call_row(1, {});
  EXPECT_EQ(answer_to({row}).sentence, "A launch call takes 2.00 µs (p50), and 3.00 µs at p99.");
  row.n = 1000;
  EXPECT_EQ(answer_to({row}).sentence, "A launch call takes 2.00 µs (p50), and 9.00 µs at p99.9.");
}

TEST(DeviceSentence, HasVariationWithinAndBetweenRunsTogether) {
  SummaryRow row = call_row(5, 0.25);
  EXPECT_THAT(answer_to({row}).sentence, EndsWith("at p99."));
  row.within_run_cv = stats::Estimate{0.5, {0, 1}};
  const DeviceAnswer found = answer_to({row});
  EXPECT_THAT(found.sentence,
              EndsWith(" It varies by 50 % within a run and by 25 % between runs (CV)."));
  EXPECT_EQ(found.within_run_cv, 0.5);
  row.between_run_cv.reset();
  EXPECT_THAT(answer_to({row}).sentence, EndsWith("at p99."));
}

TEST(DeviceSentence, SaysHowManyRunsTellAChangeOfTwoPercent) {
  const struct {
    std::size_t runs;
    double cv;
    const char* ends;
  } cases[] = {
      {5, 0.02, "at p99."},
      {6, 0.02, " To tell a change of 2 % takes 16 runs of each version."},
      {6, 0.0001, " To tell a change of 2 % takes 2 runs of each version."},
      {6, 0.0505, " To tell a change of 2 % takes 100 runs of each version."},
      {6, 0.0506, " To tell a change of 2 % takes more than 100 runs of each version."},
  };
  for (const auto& [runs, cv, ends] : cases)
    EXPECT_THAT(answer_to({call_row(runs, cv)}).sentence, EndsWith(ends));
}

TEST(DeviceSentence, SaysThatAMeanDescribesNoneOfTwoClusters) {
  SummaryRow row = call_row(1, {});
  row.modes = 1;
  EXPECT_THAT(answer_to({row}).sentence, EndsWith("at p99."));
  row.modes = 2;
  EXPECT_THAT(answer_to({row}).sentence,
              EndsWith(" Its times form 2 clusters, so a mean describes none."));
}

TEST(DeviceVerdict, HasItsLimits) {
  const struct {
    std::size_t runs;
    std::optional<double> cv;
    const char *verdict, *note;
  } cases[] = {
      {1, 0.0, "one run only", "How much runs vary is not known: use --runs 6."},
      {2, {}, "one run only", "How much runs vary is not known: use --runs 6."},
      {2, 0.0, "steady so far", "2 runs are too few to be sure: use --runs 6 or more."},
      {5,
       rules::kUnstableCv,
       "steady so far",
       "5 runs are too few to be sure: use --runs 6 or more."},
      {6, rules::kUnstableCv, "steady", ""},
      {6,
       1.001 * rules::kUnstableCv,
       "unstable",
       "A single run is no measurement here: compare medians of several."},
  };
  for (const auto& [runs, cv, verdict, note] : cases) {
    const DeviceAnswer found = answer_to({call_row(runs, cv)});
    EXPECT_EQ(found.verdict, verdict) << runs;
    EXPECT_EQ(found.note, note);
    EXPECT_EQ(found.runs, runs);
  }
}

SummaryRow row_without_result(const char* name, Status status, const char* reason = "") {
  SummaryRow row = a_row("GPU-1", name, "", {0});
  row.status = status;
  row.reason = reason;
  return row;
}

TEST(DeviceVerdict, CountsWhatFailedOrIsInvalid) {
  std::vector<SummaryRow> rows = {row_without_result("matmul/a", Status::unsupported),
                                  call_row(6, 0.0)};
  EXPECT_EQ(answer_to(rows).verdict, "steady");
  rows.push_back(row_without_result("matmul/b", Status::failed));
  EXPECT_EQ(answer_to(rows).verdict, "steady, with failures");
  EXPECT_EQ(answer_to(rows).note, "1 case failed.");
  rows.insert(rows.begin(), row_without_result("matmul/c", Status::invalid));
  EXPECT_EQ(answer_to(rows).note, "2 cases failed.");
}

TEST(DeviceVerdict, IsOfPlainRunsOfTheEmptyLaunchOnAnIdleStream) {
  const std::string burst = "launch/null/api:driver/mode:burst";
  const auto row = [](const std::string& name,
                      const char* metric,
                      double p50,
                      const char* arm = "plain",
                      const char* process_config = "launch") {
    return a_row("GPU-1", name, metric, {p50, p50}, arm, process_config);
  };
  SummaryRow without_median = row(kIdle, "api_ns", 6);
  without_median.p50.reset();
  const std::vector<SummaryRow> others = {
      row(kIdle, "api_ns", 1, "traced"),
      row(kIdle, "api_ns", 2, "plain", "launch+trace_level=none"),
      row("launch/args/bytes:4/mode:idle", "api_ns", 3),
      row(kIdle, "roundtrip_ns", 4),
      row(kIdle, "api_ns", 5, "plain", "launch+wait=block"),
      without_median};
  EXPECT_EQ(answer_to(others).verdict, "launch call not measured");
  EXPECT_EQ(answer_to({others[0], others[1]}).note, "Nothing was measured.");
  std::vector<SummaryRow> rows = others;
  rows.push_back(row(burst, "api_ns", 7));
  EXPECT_THAT(answer_to(rows).sentence, StartsWith("A launch call takes 7 ns (p50)"));
  rows.push_back(row(kIdle, "api_ns", 8));
  rows.push_back(row(burst, "api_ns", 9));
  EXPECT_THAT(answer_to(rows).sentence, StartsWith("A launch call takes 8 ns (p50)"));
}

TEST(DeviceVerdict, WithoutALaunchCallSaysWhatStandsInItsPlace) {
  const std::vector<SummaryRow> other = {a_row("GPU-1", "matmul/a", "device_ns", {5})};
  EXPECT_EQ(answer_to(other).tone, Tone::warning);
  std::vector<SummaryRow> rows = other;
  rows.push_back(row_without_result("matmul/b", Status::failed, "late"));
  EXPECT_EQ(answer_to(rows).note, "The empty launch call was not part of this session.");
  rows.push_back(row_without_result("launch/queue", Status::failed));
  rows.push_back(row_without_result(kIdle, Status::unsupported, "no kernels"));
  EXPECT_EQ(answer_to(rows).verdict, "not measured");
  EXPECT_EQ(answer_to(rows).tone, Tone::bad);
  EXPECT_EQ(answer_to(rows).note, "Empty launches: failed.") << "the first";
}

TEST(DeviceVerdict, NamesTheFirstRunThatIsNotWhole) {
  SessionData session = one_device();
  for (const char* const status : {"ok", "failed", "stopped"}) {
    RunInfo& run = session.runs.emplace_back();
    run.device = "GPU-1";
    run.status = status;
  }
  EXPECT_EQ(device_answers(session, {}).at(0).note, "A run is marked failed.");
  session.runs[1].reason = "it crashed";
  EXPECT_EQ(device_answers(session, {}).at(0).note, "A run is marked failed: it crashed.");
}

/// What is said of the third of three GPUs, which differs by a factor in cases of matmul/library.
std::string kind_of_third(int cases, double factor, bool in_launches = false) {
  SessionData session;
  std::vector<SummaryRow> rows;
  for (int i = 0; i < 3; ++i) {
    const std::string uuid = "GPU-" + std::to_string(i);
    session.devices.push_back(a_device(uuid, "A"));
    const auto add = [&](const std::string& name, const char* metric) {
      const double level = 1000 * (i == 2 ? factor : 1);
      std::vector<double> medians;
      for (int k = 0; k < 8; ++k) medians.push_back(level * (1 + 0.0005 * ((k * 3 + i) % 5)));
      rows.push_back(a_row(uuid, name, metric, medians, "plain", name.substr(0, 6)));
    };
    for (int k = 0; k < cases; ++k) add(fmt::format("matmul/library/size:{}", k + 1), "device_ns");
    if (in_launches) add("launch/null/api:driver/mode:burst", "per_launch_ns");
  }
  return device_answers(session, rows).at(2).kind;
}

TEST(DeviceKind, HasThreeCasesAndTheNumberOfTheOthers) {
  EXPECT_THAT(kind_of_third(0, 2), IsEmpty());
  EXPECT_THAT(kind_of_third(3, 2),
              AllOf(HasSubstr("device_ns of matmul/library/size:3 "), Not(HasSubstr("more"))));
  EXPECT_THAT(kind_of_third(4, 2),
              AllOf(EndsWith("; and it differs in 1 more case."), Not(HasSubstr("size:4"))));
  EXPECT_THAT(kind_of_third(5, 2), EndsWith("; and it differs in 2 more cases."));
  EXPECT_THAT(kind_of_third(2, 2, true),
              AllOf(StartsWith("100 % slower than the others of its kind in bursts of launches ("),
                    EndsWith("; and it differs in 2 more cases.")));
}

TEST(DeviceKind, HasTheNearerEndOfTheIntervalFirst) {
  EXPECT_THAT(kind_of_third(1, 0.5),
              MatchesRegex("50 % faster than the others of its kind in device_ns of "
                           "matmul/library/size:1 \\(50 % to 50 %\\)\\."));
  const std::string half = kind_of_third(1, 0.9);
  EXPECT_THAT(half, MatchesRegex(".*\\(9\\.9 % to 10 %\\)\\."));
}

}  // namespace
}  // namespace launchgap
