#include <cmath>
#include <utility>

#include <gmock/gmock.h>

#include "tests/regression/simulated_nights.h"

namespace launchgap::rules {
namespace {

using namespace regression;  // whose simulated nights these are

/// Nights a day apart of one value, with one figure of its spread.
std::vector<Night> nights_with(SpreadFigure figure, const std::vector<double>& values) {
  std::vector<Night> nights;
  for (const double value : values) {
    Night night;
    night.begin_s = static_cast<std::int64_t>(nights.size()) * kDayS;
    night.value = 1000;
    night.spread[static_cast<std::size_t>(figure)] = value;
    nights.push_back(night);
  }
  return nights;
}

/// The session after them with this figure, which then is one of them.
NightJudgement next_with(std::vector<Night>& nights, SpreadFigure figure, double now) {
  Night night = nights.back();
  night.begin_s += kDayS;
  night.spread[static_cast<std::size_t>(figure)] = now;
  NightJudgement judgement = judge_night(nights, night, Direction::lower_is_better);
  remember(judgement, night);
  nights.push_back(night);
  return judgement;
}

TEST(NightSpread, HitsAtItsLimits) {
  using enum SpreadFigure;
  struct Row {
    SpreadFigure figure;
    double before, now;
    int hit;
  };
  for (const Row& row : {
           Row{within_run_cv, 0.02, 0.0299, 0},
           Row{within_run_cv, 0.02, 0.0301, 1},
           Row{within_run_cv, 0.03, 0.0201, 0},
           Row{within_run_cv, 0.03, 0.0199, -1},
           Row{between_run_cv, 0.02, 0.0299, 0},
           Row{between_run_cv, 0.02, 0.0301, 1},
           Row{tail, 1.2, 1.49, 0},
           Row{tail, 1.2, 1.51, 1},
           Row{tail, 1.5, 1.21, 0},
           Row{tail, 1.5, 1.19, -1},
           Row{modes, 2, 2, 0},
           Row{modes, 2, 3, 1},
           Row{modes, 2, 1, -1},
           // A CV below 1 %, now and before, does not count.
           Row{within_run_cv, 0.005, 0.0099, 0},
           Row{within_run_cv, 0.005, 0.01, 1},
           Row{within_run_cv, 0.0099, 0.005, 0},
           Row{within_run_cv, 0.0101, 0.005, -1},
           Row{between_run_cv, 0.005, 0.0099, 0},
           Row{between_run_cv, 0.005, 0.0101, 1},
           // Nor what has no logarithm.
           Row{within_run_cv, 0.02, 0, 0},
       }) {
    std::vector<Night> nights =
        nights_with(row.figure, std::vector<double>(kFewestNights, row.before));
    EXPECT_EQ(
        next_with(nights, row.figure, row.now).spread_hits[static_cast<std::size_t>(row.figure)],
        row.hit)
        << name_of(row.figure) << ' ' << row.before << ' ' << row.now;
    nights = nights_with(row.figure, std::vector<double>(kFewestNights, row.before));
    nights.front().spread = {};
    EXPECT_THAT(next_with(nights, row.figure, row.now).spread_hits, testing::Each(0))
        << "known of 19 sessions";
  }
}

TEST(NightSpread, HitsWhereItIsThreeDeviationsAway) {
  std::vector<double> before;
  for (int i = 0; i < 20; ++i) before.push_back(0.02 * std::exp(i % 2 ? 0.1 : -0.1));
  const double limit = 3 * 1.4826 * 0.1;  // 1.56 times, which is more than 1.5
  for (const auto& [now, hit] : {std::pair(limit - 1e-4, 0), std::pair(limit + 1e-4, 1)}) {
    std::vector<Night> nights = nights_with(SpreadFigure::within_run_cv, before);
    EXPECT_EQ(next_with(nights, SpreadFigure::within_run_cv, 0.02 * std::exp(now)).spread_hits[0],
              hit);
  }
}

TEST(NightSpread, OfThreeInARowIsErraticOrSteadier) {
  struct Row {
    SpreadFigure figure;
    double before, now;
    Steadiness third;
    const char* reason;
  };
  using enum SpreadFigure;
  const Row rows[] = {
      {within_run_cv, 0.02, 0.05, Steadiness::erratic, "within-run CV 2.5 times that of before"},
      {between_run_cv, 0.05, 0.02, Steadiness::steadier, "between-run CV 0.4 times that of before"},
  };
  for (const Row& row : rows) {
    std::vector<Night> nights = nights_with(row.figure, std::vector<double>(40, row.before));
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(next_with(nights, row.figure, row.now).steadiness, Steadiness::same) << row.reason;
    const NightJudgement third = next_with(nights, row.figure, row.now);
    EXPECT_EQ(third.verdict, Verdict::same);
    EXPECT_EQ(third.steadiness, row.third);
    EXPECT_EQ(third.steadiness_reason, std::string(row.reason) + ", in 3 sessions in a row");
  }
}

TEST(NightSpread, MoreModesThanBeforeAreErraticForAsLongAsThereAreNightsBefore) {
  std::vector<Night> nights = nights_with(SpreadFigure::modes, std::vector<double>(40, 1));
  std::vector<Steadiness> steadiness;
  for (int night = 1; night <= 60; ++night)
    steadiness.push_back(next_with(nights, SpreadFigure::modes, 2).steadiness);
  const auto from = [&](int first, int last, Steadiness all) {
    return std::ranges::all_of(std::span(steadiness).subspan(first - 1, last - first + 1),
                               [&](Steadiness one) { return one == all; });
  };
  EXPECT_TRUE(from(1, 2, Steadiness::same));
  EXPECT_TRUE(from(3, 41, Steadiness::erratic)) << "20 nights before are among the last 60";
  EXPECT_TRUE(from(42, 60, Steadiness::same)) << "it is what is usual now";
}

TEST(NightSpread, MoreModesThanEverAreErratic) {
  std::vector<Night> nights = nights_with(SpreadFigure::modes, std::vector<double>(40, 1));
  next_with(nights, SpreadFigure::modes, 2);
  next_with(nights, SpreadFigure::modes, 3);
  const NightJudgement third = next_with(nights, SpreadFigure::modes, 4);
  EXPECT_EQ(third.steadiness, Steadiness::erratic);
  EXPECT_EQ(third.steadiness_reason, "4 modes, before 1, in 3 sessions in a row");
}

}  // namespace
}  // namespace launchgap::rules
