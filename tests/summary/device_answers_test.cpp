#include "harness/summary/device_answers.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace launchgap
