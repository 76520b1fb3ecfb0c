#include <cmath>
#include <random>

#include "harness/regression/selftest.h"
#include "harness/stats/stats.h"

namespace launchgap::regression {
namespace {

/// Comparisons of equals, with a shift that makes them unequal.
class Resampler {
 public:
  Resampler(std::span<const double> log_medians,
            const rules::PairedRule& rule,
            std::size_t pairs,
            double sign_of_worse,
            std::uint64_t seed)
      : rule_(rule), sign_(sign_of_worse), seed_(seed), log_ratios_(pairs) {
    for (std::size_t i = 1; i < log_medians.size(); ++i)
      differences_.push_back(log_medians[i] - log_medians[i - 1]);
  }

  /// Share that is slower.
  double slower(double slowdown, int comparisons) {
    std::mt19937_64 random(seed_);  // the same comparisons for every slowdown
    const double shift = sign_ * std::log1p(slowdown);
    int found = 0;
    for (int i = 0; i < comparisons; ++i) {
      for (double& log_ratio : log_ratios_) {
        const std::uint64_t drawn = random();
        const double difference = differences_[(drawn >> 1) % differences_.size()];
        log_ratio = shift + (drawn & 1 ? difference : -difference);
      }
      found += rule_.judge(log_ratios_, true).verdict == Verdict::slower;
    }
    return static_cast<double>(found) / comparisons;
  }

 private:
  const rules::PairedRule& rule_;
  double sign_;
  std::uint64_t seed_;
  std::vector<double> differences_, log_ratios_;
};

constexpr std::size_t kStretch = 15;
constexpr int kSeries = 100;
constexpr std::size_t kBefore = rules::kMostNights, kJudged = 60, kWithin = 5;
constexpr std::int64_t kDayS = std::int64_t{24} * 3600;
constexpr double kStep = 0.005;

/// The smallest slowdown, of those in steps, of which `found` gives the share that is asked for;
/// what is found of a slowdown is found of a larger one, so halving finds it.
std::optional<double> smallest_detectable(double step, const auto& found) {
  int low = 0, high = static_cast<int>(kMostDetectable / step) + 1;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (found(middle * step) >= kPower ? high : low) = middle;
  }
  return high * step <= kMostDetectable ? std::optional(high * step) : std::nullopt;
}

/// A series of nights as some that were measured.
std::vector<rules::Night> draw(std::span<const rules::Night> nights,
                               std::size_t count,
                               std::mt19937_64& random) {
  std::vector<rules::Night> series;
  while (series.size() < count) {
    const std::size_t first = random() % (nights.size() - kStretch + 1);
    for (std::size_t i = 0; i < kStretch && series.size() < count; ++i) {
      rules::Night night = nights[first + i];
      night.begin_s = static_cast<std::int64_t>(series.size()) * kDayS;
      rules::remember({}, night);
      series.push_back(night);
    }
  }
  return series;
}

/// Judges a night by those before it, and leaves in it what the next ones must know.
rules::NightJudgement judge(std::vector<rules::Night>& series,
                            std::size_t at,
                            Direction direction,
                            double least_step) {
  rules::NightJudgement judgement =
      rules::judge_night(std::span(series).first(at), series[at], direction, least_step);
  rules::remember(judgement, series[at]);
  return judgement;
}

}  // namespace

MeasuredPower resample(std::span<const double> log_medians,
                       const rules::PairedRule& rule,
                       std::size_t pairs,
                       double sign_of_worse,
                       std::uint64_t seed) {
  constexpr int kForRate = 20'000, kForPower = 4'000;
  Resampler resampler(log_medians, rule, pairs, sign_of_worse, seed);
  MeasuredPower power;
  power.false_alarm_rate = resampler.slower(0, kForRate);
  power.detectable = smallest_detectable(
      kDetectableStep, [&](double slowdown) { return resampler.slower(slowdown, kForPower); });
  return power;
}

double resample_erratic(std::span<const rules::ProcessSpread> processes,
                        std::size_t pairs,
                        std::uint64_t seed) {
  constexpr int kComparisons = 2'000;
  if (processes.size() < 2) return 0;
  std::mt19937_64 random(seed);
  std::vector<rules::ProcessSpread> a(pairs), b(pairs);
  int erratic = 0;
  for (int i = 0; i < kComparisons; ++i) {
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const std::uint64_t drawn = random();
      const std::size_t first = (drawn >> 1) % (processes.size() - 1);
      const bool swapped = drawn & 1;
      a[pair] = processes[first + (swapped ? 1 : 0)];
      b[pair] = processes[first + (swapped ? 0 : 1)];
    }
    erratic += rules::judge_spread(a, b).steadiness == Steadiness::erratic;
  }
  return static_cast<double>(erratic) / kComparisons;
}

int alarms_that_begin(const std::vector<bool>& alarms) {
  int begun = 0;
  std::size_t quiet = rules::kNightsLookedAt;
  for (const bool alarm : alarms) {
    if (alarm && quiet >= rules::kNightsLookedAt) ++begun;
    quiet = alarm ? 0 : quiet + 1;
  }
  return begun;
}

namespace {

class NightResampler {
 public:
  NightResampler(std::span<const rules::Night> nights,
                 Direction direction,
                 double least_step,
                 std::uint64_t seed)
      : nights_(nights), direction_(direction), least_step_(least_step), seed_(seed) {}

  MeasuredPower rates() const {
    std::mt19937_64 random(seed_);
    int slower = 0, erratic = 0;
    for (int i = 0; i < kSeries; ++i) {
      std::vector<rules::Night> series = draw(nights_, kBefore + kJudged, random);
      std::vector<bool> alarms(kBefore, false);
      for (std::size_t at = kBefore; at < series.size(); ++at) {
        const rules::NightJudgement judgement = judge(series, at, direction_, least_step_);
        alarms.push_back(judgement.verdict == Verdict::slower);
        erratic += judgement.steadiness == Steadiness::erratic;
      }
      slower += alarms_that_begin(alarms);
    }
    constexpr double kAll = kSeries * static_cast<double>(kJudged);
    MeasuredPower power;
    power.false_alarm_rate = (slower / kAll + rate_of_own_nights()) / 2;
    power.erratic_rate = erratic / kAll;
    return power;
  }

  /// As the rule would have judged the nights one after the other.
  double rate_of_own_nights() const {
    std::vector<rules::Night> nights(nights_.begin(), nights_.end());
    std::vector<bool> alarms;
    for (std::size_t at = 0; at < nights.size(); ++at) {
      rules::remember({}, nights[at]);
      const rules::NightJudgement judgement = judge(nights, at, direction_, least_step_);
      if (judgement.verdict != Verdict::no_baseline)
        alarms.push_back(judgement.verdict == Verdict::slower);
    }
    return alarms.empty() ? 0 : alarms_that_begin(alarms) / static_cast<double>(alarms.size());
  }

  /// Share of the series that are found slower in time.
  double found(double slowdown) const {
    std::mt19937_64 random(seed_);  // the same series for every slowdown
    const double factor =
        direction_ == Direction::lower_is_better ? 1 + slowdown : 1 / (1 + slowdown);
    int slower = 0;
    for (int i = 0; i < kSeries; ++i) {
      std::vector<rules::Night> series = draw(nights_, kBefore + kWithin, random);
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
  std::span<const rules::Night> nights_;
  Direction direction_;
  double least_step_;
  std::uint64_t seed_;
};

}  // namespace

std::optional<NightPower> resample_nights(std::span<const rules::Night> nights,
                                          Direction direction,
                                          double least_step,
                                          std::uint64_t seed) {
  if (nights.size() < kFewestToResample) return std::nullopt;
  std::vector<double> logs;
  for (const rules::Night& night : nights) {
    if (!(night.value > 0) || !std::isfinite(night.value)) return std::nullopt;
    logs.push_back(std::log(night.value));
  }
  const NightResampler resampler(nights, direction, least_step, seed);
  NightPower result;
  result.noise = *stats::standard_deviation(logs);
  result.power = resampler.rates();
  result.power.detectable =
      smallest_detectable(kStep, [&](double slowdown) { return resampler.found(slowdown); });
  return result;
}

}  // namespace launchgap::regression
