#include <limits>

#include <gmock/gmock.h>

#include "harness/regression/session_figures.h"

namespace launchgap::regression {
namespace {

using namespace testing;

MetricFigures figures(const std::string& device,
                      const std::string& case_name,
                      const std::string& metric,
                      const std::vector<double>& medians,
                      double tick) {
  MetricFigures made;
  made.key = {{device, "plain", CaseName::parse(case_name).family(), CaseName::parse(case_name)},
              metric};
  for (const double median : medians)
    made.runs.push_back({static_cast<int>(made.runs.size()), median, {}, {}});
  made.tick = tick;
  return made;
}

const std::string kNull = "launch/null/api:driver/mode:idle";

TEST(JudgedMetric, TellsWhatIsOnlyWatched) {
  struct Row {
    std::string metric;
    std::vector<double> medians;
    double tick;
    std::string reason;  // empty: judged
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Row rows[] = {
      {"api_ns", {2000, 2010}, 1, ""},
      {"api_ns", {2000, 2010}, 0, ""},
      {"api_ns", {100, 100}, 1, ""},
      {"api_ns", {99, 99}, 1, "99 ticks of 1 ns: one tick is 1.0 % of it"},
      {"api_ns", {64, 64}, 32, "2 ticks of 32 ns"},
      {"api_ns", {}, 1, "no values"},
      {"api_ns", {2000, 0}, 1, "0 or negative"},
      {"api_ns", {2000, -3}, 1, "0 or negative"},
      {"api_ns", {2000, kNan}, 1, "not finite"},
      {"api_ns", {2000, std::numeric_limits<double>::infinity()}, 1, "not finite"},
      {"kernels", {3, 3}, 0, "no unit"},
      {"starved_share", {0.5, 0.5}, 0, "no unit"},
      {"of_a_later_launchgap", {3, 3}, 0, "does not know"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.metric + " " + row.reason);
    const auto why = why_only_watched(figures("GPU-1", kNull, row.metric, row.medians, row.tick));
    if (row.reason.empty()) {
      EXPECT_EQ(why, std::nullopt);
    } else {
      EXPECT_THAT(why, Optional(HasSubstr(row.reason)));
    }
  }
}

// What others do to a launch is not the launch's own.
TEST(JudgedMetric, InterferenceIsComparedWithinItsSessionAlone) {
  const std::string name = "launch/interference/beside:event/mode:idle";
  EXPECT_THAT(why_only_watched(figures("GPU-1", name, "disturbed_api_ns", {2000, 2010}, 1)),
              Optional(HasSubstr("interference.csv")));
}

TEST(JudgedMetric, HasALeastChange) {
  struct Row {
    std::string device, case_name, metric;
    double value, tick, share, expected;
  };
  const std::string matmul = "matmul/square/n:1024/type:fp32";
  const Row rows[] = {
      {"GPU-1", kNull, "api_ns", 2000, 1, 0.02, 0.05},      // 100 ns
      {"GPU-1", kNull, "api_ns", 50000, 1, 0.02, 0.02},     // 1000 ns
      {"GPU-1", kNull, "api_ns", 50000, 1, 0.03, 0.03},     // of a night
      {"MIG-1", kNull, "api_ns", 1000, 1, 0.02, 0.1},       // a part of a GPU is a GPU
      {"host-1", kNull, "api_ns", 100, 0.1, 0.02, 0.02},    // no limit on the host
      {"host-1", kNull, "api_ns", 1000, 30, 0.02, 0.03},    // a tick
      {"GPU-1", matmul, "device_ns", 2000, 1, 0.02, 0.02},  // no launch
      {"GPU-1", matmul, "tflops", 20, 0, 0.02, 0.02},       // no time
  };
  for (const Row& row : rows) {
    const auto base =
        figures(row.device, row.case_name, row.metric, {row.value, row.value}, row.tick);
    EXPECT_DOUBLE_EQ(least_change(base, row.share), row.expected) << row.device << row.case_name;
  }
}

TEST(JudgedMetric, KnowsWhichDirectionIsWorse) {
  EXPECT_EQ(sign_of_worse(figures("GPU-1", kNull, "api_ns", {1}, 0)), 1);
  EXPECT_EQ(sign_of_worse(figures("GPU-1", kNull, "tflops", {1}, 0)), -1);
}

}  // namespace
}  // namespace launchgap::regression
