#include "harness/rules/two_sessions.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/rules/ratio.h"
#include "harness/stats/distributions.h"

namespace launchgap::rules {
namespace {

constexpr double kTailOf99 = 0.005;

std::optional<stats::Estimate> ratio_of_runs(const std::vector<double>& now,
                                             const std::vector<double>& before) {
  if (std::min(now.size(), before.size()) < kFewestRuns) return std::nullopt;
  return ratio(now, before, kTailOf99);
}

/// How many runs of each session would make the interval as narrow as the smallest change that
/// counts, on either side, if runs vary as these do.
std::string runs_that_tell(const std::vector<double>& now,
                           const std::vector<double>& before,
                           double least) {
  constexpr int kMost = 1000;
  const double variance = std::pow(*stats::standard_deviation(*stats::logarithms(now)), 2) +
                          std::pow(*stats::standard_deviation(*stats::logarithms(before)), 2);
  for (int runs = static_cast<int>(std::max(now.size(), before.size())) + 1; runs <= kMost;
       ++runs) {
    // Where both vary alike, Welch's degrees of freedom are those of both.
    const double reach = stats::student_t(2 * (runs - 1), kTailOf99) * std::sqrt(variance / runs);
    if (reach <= std::log1p(least))
      return fmt::format("some {} runs of each session would tell", runs);
  }
  return fmt::format("more than {} runs of each session would tell", kMost);
}

}  // namespace

std::optional<LevelVerdict> judge_level(const SessionProcesses& before,
                                        const SessionProcesses& now,
                                        double sign_of_worse,
                                        double least) {
  if (std::min(now.medians.size(), before.medians.size()) < kFewestRuns) return std::nullopt;
  // A run that is far from the others moves the mean logarithm, and hardly the median.
  const double times = *stats::median(now.medians) / *stats::median(before.medians);
  const auto found = interval_around(times, now.medians, before.medians, kTailOf99);
  if (!found) return std::nullopt;
  LevelVerdict level;
  level.change = times - 1;
  level.interval = {found->low - 1, found->high - 1};
  const auto& [low, high] = level.interval;
  const bool beyond_chance = low > 0 || high < 0, counts = std::abs(level.change) >= least;
  if (beyond_chance && counts) {
    level.verdict = level.change * sign_of_worse > 0 ? Verdict::suspect : Verdict::faster;
  } else if (counts || (low < -least && high > least)) {
    level.verdict = Verdict::cannot_tell;
    level.reason = runs_that_tell(now.medians, before.medians, least);
  }
  return level;
}

SpreadVerdict judge_spread(const SessionProcesses& before, const SessionProcesses& now) {
  SpreadVerdict verdict;
  const auto judge = [&](const std::vector<double>& of_now,
                         const std::vector<double>& of_before,
                         std::string_view name,
                         double least) {
    const auto found = ratio_of_runs(of_now, of_before);
    if (!found || verdict.steadiness == Steadiness::erratic) return;
    const bool erratic = found->interval.low > 1 && found->value >= least;
    const bool steadier = found->interval.high < 1 && found->value <= 1 / least;
    if (!erratic && !steadier) return;
    verdict.steadiness = erratic ? Steadiness::erratic : Steadiness::steadier;
    verdict.reason = fmt::format("{} {:.1f} times that of before", name, found->value);
  };
  if (std::max(now.within_run_cv.value_or(0), before.within_run_cv.value_or(0)) >= kLeastSpreadCv)
    judge(now.cvs, before.cvs, name_of(SpreadFigure::within_run_cv), kLeastSpreadRatio);
  judge(now.tails, before.tails, name_of(SpreadFigure::tail), kLeastTailRatio);
  return verdict;
}

std::optional<double> judge_tail(const SessionProcesses& before,
                                 const SessionProcesses& now,
                                 double change) {
  const auto found = ratio_of_runs(now.p99s, before.p99s);
  if (!found || !now.p99 || !before.p99 || !(*before.p99 > 0)) return std::nullopt;
  // The processes' p99s, and that of all samples, which is what is shown.
  const double of_all = *now.p99 / *before.p99;
  if (found->interval.low <= 1 || std::min(found->value, of_all) / (1 + change) < kLeastTailRatio)
    return std::nullopt;
  return of_all;
}

}  // namespace launchgap::rules
