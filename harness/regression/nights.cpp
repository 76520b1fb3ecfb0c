#include "harness/regression/nights.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/stats/stats.h"

namespace launchgap::regression {
namespace {

/// Makes of a median absolute deviation the standard deviation of normal values.
constexpr double kOfNormal = 1.4826;

constexpr std::size_t kFewestOfLevel = 3;
constexpr double kShareOfLevel = 0.1;
constexpr double kLevelsApart = 0.03;
constexpr int kFewestSteps = 3;

struct SpreadRule {
  SpreadFigure figure;
  std::string_view name;
  double least_ratio;
};
constexpr SpreadRule kSpreadRules[kSpreadFigures] = {
    {SpreadFigure::within_run_cv, "within-run CV", kLeastSpreadRatio},
    {SpreadFigure::between_run_cv, "between-run CV", kLeastSpreadRatio},
    {SpreadFigure::tail, "p99/p50", kLeastTailRatio},
    {SpreadFigure::modes, "modes", 1},
};

/// Where values lie.
struct Level {
  double median = 0, deviation = 0;  // 1.4826 times the median absolute deviation
};

/// Absent below the fewest sessions.
std::optional<Level> level_of(std::vector<double> values) {
  if (values.size() < kFewestNights) return std::nullopt;
  std::ranges::sort(values);
  return Level{*stats::quantile(values, 0.5),
               kOfNormal * *stats::median_absolute_deviation(values)};
}

/// 1: above by `limit` or more, -1: below, 0: neither.
int side_of(double distance, double limit) {
  if (std::abs(distance) < limit || distance == 0) return 0;
  return distance > 0 ? 1 : -1;
}

/// How many sessions in a row, this one counts, have this sign; those that follow another one too
/// closely count with it.
template <class SignOf>
int in_a_row(std::span<const Night> earlier, const Night& night, int sign, SignOf sign_of) {
  if (sign == 0) return 0;
  int count = 1;
  std::int64_t last_s = night.begin_s;
  for (std::size_t i = earlier.size(); i-- > 0;) {
    if (sign_of(earlier[i]) != sign) break;
    if (earlier[i].begin_s > last_s - kNightApartS) continue;
    last_s = earlier[i].begin_s;
    ++count;
  }
  return count;
}

/// Those that are compared with, in order of time: without a row of slower ones that goes on, of
/// which the session may be the next. Faster ones stay, and are the level one day.
std::vector<const Night*> baseline_of(std::span<const Night> earlier) {
  std::size_t end = earlier.size();
  while (end > 0 && earlier[end - 1].hit > 0) --end;
  std::vector<const Night*> baseline;
  for (std::size_t i = end; i-- > 0 && baseline.size() < kMostNights;) {
    if (!earlier[i].confirmed) baseline.push_back(&earlier[i]);
  }
  std::ranges::reverse(baseline);
  return baseline;
}

int spread_hit(const std::vector<const Night*>& baseline,
               const Night& night,
               const SpreadRule& rule,
               std::string& words) {
  const auto at = static_cast<std::size_t>(rule.figure);
  const std::optional<double> now = night.spread[at];
  if (!now || !(*now > 0)) return 0;
  std::vector<double> values;
  for (const Night* const before : baseline) {
    if (before->spread[at] && *before->spread[at] > 0)
      values.push_back(std::log(*before->spread[at]));
  }
  const auto level = level_of(values);
  if (!level) return 0;
  const double distance = std::log(*now) - level->median;
  const bool is_cv =
      rule.figure == SpreadFigure::within_run_cv || rule.figure == SpreadFigure::between_run_cv;
  if (is_cv && *now < kLeastSpreadCv && std::exp(level->median) < kLeastSpreadCv) return 0;
  if (rule.figure == SpreadFigure::modes) {
    const auto [least, most] = std::ranges::minmax(values);
    words = fmt::format("{:g} modes, before {:g}", *now, std::round(std::exp(level->median)));
    return std::log(*now) > most ? 1 : std::log(*now) < least ? -1 : 0;
  }
  words = fmt::format("{} {:.1f} times that of before", rule.name, std::exp(distance));
  return side_of(distance, std::max(kNightDistance * level->deviation, std::log(rule.least_ratio)));
}

void judge_spread(std::span<const Night> earlier,
                  const std::vector<const Night*>& baseline,
                  const Night& night,
                  NightJudgement& judgement) {
  for (const SpreadRule& rule : kSpreadRules) {
    const auto at = static_cast<std::size_t>(rule.figure);
    std::string words;
    const int hit = spread_hit(baseline, night, rule, words);
    judgement.spread_hits[at] = hit;
    const int row =
        in_a_row(earlier, night, hit, [at](const Night& before) { return before.spread_hits[at]; });
    if (row < kNightsInARow || judgement.steadiness == Steadiness::erratic) continue;
    judgement.steadiness = hit > 0 ? Steadiness::erratic : Steadiness::steadier;
    judgement.steadiness_reason = fmt::format("{}, in {} sessions in a row", words, row);
  }
}

std::vector<double> values_of(const std::vector<const Night*>& nights) {
  std::vector<double> values;
  for (const Night* const night : nights) values.push_back(night->value);
  return values;
}

std::optional<double> median_p99(const std::vector<const Night*>& nights) {
  std::vector<double> values;
  for (const Night* const night : nights) {
    if (night->p99) values.push_back(*night->p99);
  }
  std::ranges::sort(values);
  return stats::quantile(values, 0.5);
}

void judge_level(std::span<const Night> earlier,
                 const Night& night,
                 const Level& level,
                 Direction direction,
                 double least_step,
                 NightJudgement& judgement) {
  const int worse = direction == Direction::lower_is_better ? 1 : -1;
  const double distance = night.value - level.median;
  const double limit =
      std::max({kNightDistance * level.deviation, kNightLeastChange * level.median, least_step});
  judgement.baseline = level.median;
  judgement.change = distance / level.median;
  judgement.low = level.median - limit;
  judgement.high = level.median + limit;
  if (level.deviation > 0) judgement.z = worse * distance / level.deviation;
  judgement.hit = worse * side_of(distance, limit);
  judgement.hits_in_a_row =
      in_a_row(earlier, night, judgement.hit, [](const Night& before) { return before.hit; });
  if (judgement.hit == 0) return;
  const std::string row = judgement.hits_in_a_row == 1
                              ? std::string("in this session alone")
                              : fmt::format("in {} sessions in a row", judgement.hits_in_a_row);
  const bool lasting = judgement.hits_in_a_row >= kNightsInARow;
  if (judgement.hit > 0) {
    judgement.verdict = lasting ? Verdict::slower : Verdict::suspect;
    judgement.reason = row;
  } else if (lasting) {
    judgement.verdict = Verdict::faster;
    judgement.reason = row;
  } else {
    judgement.reason = fmt::format("faster {}; said from {} on", row, kNightsInARow);
  }
}

}  // namespace

std::string_view name_of(SpreadFigure figure) {
  return kSpreadRules[static_cast<std::size_t>(figure)].name;
}

NightJudgement judge_night(std::span<const Night> earlier,
                           const Night& night,
                           Direction direction,
                           double least_step) {
  NightJudgement judgement;
  const std::vector<const Night*> baseline = baseline_of(earlier);
  judgement.compared_with = baseline.size();
  if (baseline.size() < kFewestNights) {
    judgement.verdict = Verdict::no_baseline;
    judgement.reason =
        fmt::format("{} of {} sessions that it takes", baseline.size(), kFewestNights);
    return judgement;
  }
  judge_spread(earlier, baseline, night, judgement);
  judgement.baseline_p99 = median_p99(baseline);
  const std::vector<double> values = values_of(baseline);
  const auto has_ratio = [](double value) { return value > 0 && std::isfinite(value); };
  if (!has_ratio(night.value) || !std::ranges::all_of(values, has_ratio)) {
    judgement.verdict = Verdict::watch;
    judgement.reason = "a value is not positive, so that there is no ratio";
    return judgement;
  }
  judge_level(earlier, night, *level_of(values), direction, least_step, judgement);
  if (two_levels(values)) {
    judgement.verdict = Verdict::unstable;
    judgement.reason = "the sessions before have two levels";
  }
  return judgement;
}

bool two_levels(std::span<const double> in_order) {
  std::vector<double> logs;
  for (const double value : in_order) logs.push_back(std::log(value));
  std::vector<double> sorted = logs;
  std::ranges::sort(sorted);
  const std::size_t n = sorted.size();
  const auto least = std::max(
      kFewestOfLevel, static_cast<std::size_t>(std::ceil(kShareOfLevel * static_cast<double>(n))));
  if (n < 2 * least) return false;

  // Sums of the values less their median, whose squares lose no digits.
  const double pivot = sorted[n / 2];
  std::vector<double> sums(n + 1), squares(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    const double value = sorted[i] - pivot;
    sums[i + 1] = sums[i] + value;
    squares[i + 1] = squares[i] + value * value;
  }
  struct Part {
    double size, mean, squares;
  };
  const auto part = [&](std::size_t begin, std::size_t end) {
    const auto size = static_cast<double>(end - begin);
    const double mean = (sums[end] - sums[begin]) / size;
    return Part{size, mean, std::max(0.0, squares[end] - squares[begin] - size * mean * mean)};
  };
  std::size_t cut = least;
  for (std::size_t i = least; i <= n - least; ++i) {
    const auto within = [&](std::size_t at) { return part(0, at).squares + part(at, n).squares; };
    if (within(i) < within(cut)) cut = i;
  }
  const Part below = part(0, cut), above = part(cut, n);
  const double apart = above.mean - below.mean;
  const double scatter =
      std::sqrt((below.squares / (below.size - 1) + above.squares / (above.size - 1)) / 2);
  if (apart < std::log(1 + kLevelsApart) || apart < (2.5 + 72 / static_cast<double>(n)) * scatter)
    return false;
  int steps = 0;
  for (std::size_t i = 1; i < n; ++i)
    steps += (logs[i] >= sorted[cut]) != (logs[i - 1] >= sorted[cut]);
  return steps >= kFewestSteps;
}

}  // namespace launchgap::regression
