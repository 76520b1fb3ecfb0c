#include "harness/rules/ratio.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "harness/core/text.h"
#include "harness/stats/distributions.h"

namespace launchgap::rules {
namespace {

stats::Interval exponential(const stats::Interval& logarithms) {
  return {std::exp(logarithms.low), std::exp(logarithms.high)};
}

RatioVerdict verdict_of(double ratio, const stats::Interval& interval) {
  const bool excludes_one = interval.low > 1 || interval.high < 1;
  if (excludes_one && ratio > kLeastDifference) return RatioVerdict::more;
  if (excludes_one && ratio < 1 / kLeastDifference) return RatioVerdict::less;
  return interval.low < 1 / kTooWide || interval.high > kTooWide ? RatioVerdict::unclear
                                                                 : RatioVerdict::same;
}

}  // namespace

std::optional<stats::Estimate> ratio(std::span<const double> a,
                                     std::span<const double> b,
                                     double tail) {
  const auto logs_a = stats::logarithms(a), logs_b = stats::logarithms(b);
  if (!logs_a || !logs_b) return std::nullopt;
  const auto difference = stats::difference(*logs_a, *logs_b, tail);
  if (!difference) return std::nullopt;
  return stats::Estimate{std::exp(difference->value), exponential(difference->interval)};
}

std::optional<stats::Interval> interval_around(double shown,
                                               std::span<const double> a,
                                               std::span<const double> b,
                                               double tail) {
  const auto found = ratio(a, b, tail);
  if (!found) return std::nullopt;
  return stats::Interval{std::min(shown, found->interval.low),
                         std::max(shown, found->interval.high)};
}

std::optional<PooledRatio> pooled_ratio(std::span<const double> a,
                                        std::span<const double> b,
                                        double tail) {
  const auto logs_a = stats::logarithms(a), logs_b = stats::logarithms(b);
  if (!logs_a || !logs_b || a.empty() || b.empty()) return std::nullopt;
  const double distance = *stats::mean(*logs_a) - *stats::mean(*logs_b);
  PooledRatio pooled{std::exp(distance), std::nullopt};
  if (const auto reach = stats::pooled_reach(*logs_a, *logs_b, tail))
    pooled.interval = exponential({distance - *reach, distance + *reach});
  return pooled;
}

Verdict time_verdict(RatioVerdict verdict) {
  switch (verdict) {
    case RatioVerdict::more:
      return Verdict::slower;
    case RatioVerdict::less:
      return Verdict::faster;
    case RatioVerdict::same:
      return Verdict::same;
    default:
      return Verdict::cannot_tell;
  }
}

Ratio ratio_of(std::span<const double> medians, std::span<const double> reference) {
  Ratio result;
  result.runs = medians.size();
  result.reference_runs = reference.size();
  const auto a = stats::logarithms(medians), b = stats::logarithms(reference);
  if (!a || !b) {
    result.verdict = RatioVerdict::no_ratio;
    return result;
  }
  if (a->empty() || b->empty()) return result;
  result.value = std::exp(*stats::mean(*a) - *stats::mean(*b));
  if (const auto difference = stats::difference(*a, *b))
    result.interval = exponential(difference->interval);
  if (std::min(a->size(), b->size()) < kRunsForAClaim || !result.interval) return result;
  result.verdict = verdict_of(*result.value, *result.interval);
  return result;
}

Ratio paired_ratio_of(std::span<const double> values, std::span<const double> reference) {
  Ratio result;
  result.runs = values.size();
  result.reference_runs = reference.size();
  if (values.size() != reference.size() || values.empty()) return result;
  const auto a = stats::logarithms(values), b = stats::logarithms(reference);
  if (!a || !b) {
    result.verdict = RatioVerdict::no_ratio;
    return result;
  }
  std::vector<double> differences;
  for (std::size_t i = 0; i < a->size(); ++i) differences.push_back((*a)[i] - (*b)[i]);
  const double mean = *stats::mean(differences);
  result.value = std::exp(mean);
  const auto deviation = stats::standard_deviation(differences);
  if (!deviation) return result;
  const auto n = static_cast<double>(differences.size());
  const double reach = stats::student_t(n - 1, 0.025) * *deviation / std::sqrt(n);
  result.interval = exponential({mean - reach, mean + reach});
  if (differences.size() < kRunsForAClaim) return result;
  result.verdict = verdict_of(*result.value, *result.interval);
  return result;
}

std::string_view name_of(SpeedVerdict verdict) {
  constexpr std::array<std::string_view, 4> kNames = {
      "faster", "slower", "same", "within the noise"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

SpeedVerdict Speedup::verdict() const {
  if (unknown_noise) return SpeedVerdict::within_noise;
  if (at_most() < 1 / kSame) return SpeedVerdict::slower;
  if (at_least() > kSame) return SpeedVerdict::faster;
  return certain && (times > kSame || times < 1 / kSame) ? SpeedVerdict::within_noise
                                                         : SpeedVerdict::same;
}

Speedup speedup(double times,
                std::span<const double> fast,
                std::span<const double> slow,
                std::size_t comparisons) {
  constexpr double kTail = 0.025;
  return {times,
          interval_around(times, fast, slow, kTail),
          interval_around(times, fast, slow, kTail / static_cast<double>(comparisons)),
          !stats::logarithms(fast) || !stats::logarithms(slow)};
}

}  // namespace launchgap::rules
