#include "harness/regression/night_resampling.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "harness/regression/resampling.h"
#include "harness/stats/stats.h"

namespace launchgap::regression {
namespace {

constexpr std::size_t kStretch = 5;
constexpr int kSeries = 200;
constexpr std::size_t kBefore = kMostNights, kJudged = 60, kWithin = 5;
constexpr std::int64_t kDayS = std::int64_t{24} * 3600;
constexpr double kStep = 0.005;

/// A series of nights as some that were measured.
std::vector<Night> draw(std::span<const Night> nights, std::size_t count, std::mt19937_64& random) {
  std::vector<Night> series;
  while (series.size() < count) {
    const std::size_t first = random() % (nights.size() - kStretch + 1);
    for (std::size_t i = 0; i < kStretch && series.size() < count; ++i) {
      Night night = nights[first + i];
      night.begin_s = static_cast<std::int64_t>(series.size()) * kDayS;
      night.hit = 0;
      night.spread_hits = {};
      night.confirmed = false;
      series.push_back(night);
    }
  }
  return series;
}

/// Judges a night by those before it, and leaves in it what the next ones must know.
NightJudgement judge(std::vector<Night>& series,
                     std::size_t at,
                     Direction direction,
                     double least_step) {
  NightJudgement judgement =
      judge_night(std::span(series).first(at), series[at], direction, least_step);
  series[at].hit = judgement.hit;
  series[at].spread_hits = judgement.spread_hits;
  series[at].confirmed = judgement.verdict == Verdict::slower;
  return judgement;
}

class Resampler {
 public:
  Resampler(std::span<const Night> nights,
            Direction direction,
            double least_step,
            std::uint64_t seed)
      : nights_(nights), direction_(direction), least_step_(least_step), seed_(seed) {}

  MeasuredPower rates() const {
    std::mt19937_64 random(seed_);
    int slower = 0, erratic = 0;
    for (int i = 0; i < kSeries; ++i) {
      std::vector<Night> series = draw(nights_, kBefore + kJudged, random);
      for (std::size_t at = kBefore; at < series.size(); ++at) {
        const NightJudgement judgement = judge(series, at, direction_, least_step_);
        slower += judgement.verdict == Verdict::slower;
        erratic += judgement.steadiness == Steadiness::erratic;
      }
    }
    constexpr double kAll = kSeries * static_cast<double>(kJudged);
    MeasuredPower power;
    power.false_alarm_rate = slower / kAll;
    power.erratic_rate = erratic / kAll;
    return power;
  }

  /// Share of the series that are found slower in time.
  double found(double slowdown) const {
    std::mt19937_64 random(seed_);  // the same series for every slowdown
    const double factor =
        direction_ == Direction::lower_is_better ? 1 + slowdown : 1 / (1 + slowdown);
    int slower = 0;
    for (int i = 0; i < kSeries; ++i) {
      std::vector<Night> series = draw(nights_, kBefore + kWithin, random);
      bool any = false;
      for (std::size_t at = kBefore; at < series.size() && !any; ++at) {
        series[at].value *= factor;
        any = judge(series, at, direction_, least_step_).verdict == Verdict::slower;
      }
      slower += any;
    }
    return static_cast<double>(slower) / kSeries;
  }

 private:
  std::span<const Night> nights_;
  Direction direction_;
  double least_step_;
  std::uint64_t seed_;
};

}  // namespace

std::optional<NightPower> resample_nights(std::span<const Night> nights,
                                          Direction direction,
                                          double least_step,
                                          std::uint64_t seed) {
  if (nights.size() < kFewestToResample) return std::nullopt;
  std::vector<double> values, logs;
  for (const Night& night : nights) {
    if (!(night.value > 0) || !std::isfinite(night.value)) return std::nullopt;
    values.push_back(night.value);
    logs.push_back(std::log(night.value));
  }
  if (two_levels(values)) return std::nullopt;
  const Resampler resampler(nights, direction, least_step, seed);
  NightPower result;
  result.noise = *stats::standard_deviation(logs);
  result.power = resampler.rates();
  int low = 0, high = static_cast<int>(kMostDetectable / kStep) + 1;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (resampler.found(middle * kStep) >= kPower ? high : low) = middle;
  }
  if (high * kStep <= kMostDetectable) result.power.detectable = high * kStep;
  return result;
}

}  // namespace launchgap::regression
