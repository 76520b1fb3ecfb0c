#include "harness/summary/interference.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "tests/device/a_device.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

/// A session with one case of launch/interference, whose launches take 10 us.
class Interfered {
 public:
  static constexpr int kBlocks = 4, kLaunches = 200;

  Interfered() { session_.devices = {a_device("GPU-1", "Some GPU")}; }

  /// A process that is `speed` times as slow as others. `disturbed` and `after` give what is added
  /// to the i-th launch of such a phase.
  template <class Disturbed, class After>
  void add_run(double speed, Disturbed&& disturbed, After&& after) {
    for (int block = 0; block < kBlocks; ++block) {
      BlockInfo& info = data().blocks.emplace_back();
      info.replicate = replicate_;
      info.block = block;
      for (int i = 0; i < kLaunches; ++i) {
        keep("quiet_roundtrip_ns", speed * noisy(0));
        keep("disturbed_roundtrip_ns", speed * noisy(disturbed(i)));
        keep("after_roundtrip_ns", speed * noisy(after(i)));
      }
      for (const char* metric :
           {"quiet_roundtrip_ns", "disturbed_roundtrip_ns", "after_roundtrip_ns"})
        info.counts[metric] = kLaunches;
    }
    ++replicate_;
  }
  std::vector<InterferenceRow> rows() const { return interference_rows(session_); }
  InterferenceRow row(std::string_view statistic) const {
    for (const InterferenceRow& row : rows()) {
      if (row.statistic == statistic) return row;
    }
    ADD_FAILURE() << "no row of " << statistic;
    return {};
  }
  SessionData& session() { return session_; }

 private:
  CaseData& data() {
    return session_.cases[{"GPU-1",
                           "plain",
                           ProcessConfig("launch"),
                           CaseName::parse("launch/interference/beside:event/mode:idle")}];
  }
  void keep(const char* metric, double ns) { data().samples[metric][replicate_].push_back(ns); }
  double noisy(double added) {
    return (10'000 + added) * std::exp(std::normal_distribution<>(0, 0.02)(random_));
  }

  SessionData session_;
  int replicate_ = 0;
  std::mt19937_64 random_{7};
};

constexpr auto kNothing = [](int) { return 0.0; };

TEST(Interference, IsFoundBesideProcessesThatDiffer) {
  Interfered made;
  for (const double speed : {1.0, 2.0, 0.7, 1.5})
    made.add_run(
        speed, [](int) { return 1'000.0; }, kNothing);
  const InterferenceRow row = made.row("p50");
  EXPECT_EQ(row.verdict(), "slower");
  EXPECT_NEAR(*row.ratio.value, 1.1, 0.005);
  EXPECT_EQ(row.runs, 4u);
  EXPECT_EQ(row.launches, 4u * Interfered::kBlocks * Interfered::kLaunches);
  ASSERT_TRUE(row.added_interval_ns());
  EXPECT_LT(row.added_interval_ns()->low, row.added_ns());
  EXPECT_GT(row.added_interval_ns()->high, row.added_ns());
  ASSERT_TRUE(row.aftermath);
  EXPECT_EQ(row.aftermath->launches, 0u);
  EXPECT_FALSE(row.aftermath->longer);
}

TEST(Interference, LastsAsLongAsLaunchesAreSlower) {
  Interfered made;
  for (int run = 0; run < 4; ++run)
    made.add_run(
        1, [](int) { return 20'000.0; }, [](int i) { return i < 8 ? 10'000.0 : 0; });
  const InterferenceRow row = made.row("p50");
  ASSERT_TRUE(row.aftermath);
  EXPECT_EQ(row.aftermath->launches, 8u);
  EXPECT_NEAR(row.aftermath->ns, 8 * 20'000, 4'000);
  EXPECT_FALSE(row.aftermath->longer);

  Interfered longer;
  for (int run = 0; run < 4; ++run)
    longer.add_run(
        1, [](int) { return 20'000.0; }, [](int) { return 10'000.0; });
  EXPECT_TRUE(longer.row("p50").aftermath->longer);
  EXPECT_EQ(longer.row("p50").aftermath->launches, static_cast<std::size_t>(Interfered::kLaunches));
}

// One launch in 150 takes 30 times as long: nothing of it is in the median.
TEST(Interference, WhatIsRareShowsInMeanAndTail) {
  Interfered made;
  for (int run = 0; run < 5; ++run)
    made.add_run(
        1, [](int i) { return i % 40 == 7 ? 300'000.0 : 0; }, kNothing);
  EXPECT_EQ(made.row("p50").verdict(), "same");
  EXPECT_FALSE(made.row("p50").aftermath);
  EXPECT_EQ(made.row("mean").verdict(), "slower");
  EXPECT_EQ(made.row("p99").verdict(), "slower");
  for (const InterferenceRow& row : made.rows())
    EXPECT_NE(row.statistic, "p99.9") << "800 launches of a run have no two beyond it";
}

TEST(Interference, TwoRunsTellNothing) {
  Interfered made;
  for (int run = 0; run < 2; ++run)
    made.add_run(
        1, [](int) { return 20'000.0; }, kNothing);
  EXPECT_EQ(made.row("p50").verdict(), "cannot-tell");
  Interfered alone;
  alone.add_run(
      1, [](int) { return 20'000.0; }, kNothing);
  EXPECT_EQ(alone.row("p50").verdict(), "cannot-tell");
  EXPECT_FALSE(alone.row("p50").added_interval_ns());
}

// A clock that stands still gives 0, of which there is no ratio; other benchmarks are not asked.
TEST(Interference, NoRowWithoutARatio) {
  SessionData session;
  CaseData& data = session.cases[{"GPU-1",
                                  "plain",
                                  ProcessConfig("launch"),
                                  CaseName::parse("launch/interference/beside:event/mode:idle")}];
  data.samples["quiet_api_ns"][0] = {0, 0, 0};
  data.samples["disturbed_api_ns"][0] = {5, 5, 5};
  data.samples["quiet_roundtrip_ns"][0] = {5};
  session
      .cases[{"GPU-1",
              "plain",
              ProcessConfig("launch"),
              CaseName::parse("launch/null/api:driver/mode:idle")}]
      .samples["quiet_api_ns"][0] = {1};
  EXPECT_THAT(interference_rows(session), IsEmpty());
}

// Of 200 sessions in which nothing disturbs, a two-sided test at 5 % with a least difference of 5 %
// finds next to none.
TEST(Interference, QuietSessionsBlameNothing) {
  std::size_t blamed = 0;
  Interfered made;
  for (int session = 0; session < 60; ++session) {
    made.session().cases.clear();
    for (int run = 0; run < 3; ++run) made.add_run(1 + 0.1 * run, kNothing, kNothing);
    for (const InterferenceRow& row : made.rows()) blamed += row.verdict() == "slower";
  }
  EXPECT_EQ(blamed, 0u);
}

TEST(Interference, TheTableHasWhatWasFound) {
  Interfered made;
  for (int run = 0; run < 4; ++run)
    made.add_run(
        1, [](int) { return 20'000.0; }, [](int i) { return i < 2 ? 10'000.0 : 0; });
  const auto lines = lines_of(table_named("interference.csv"), made.session());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], Contains("slower"));
  EXPECT_THAT(lines[0], Contains("event"));
  EXPECT_THAT(lines[0], Contains("2"));
}

}  // namespace
}  // namespace launchgap
