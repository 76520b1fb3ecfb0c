#include "harness/regression/resampling.h"

#include <cmath>
#include <random>

#include <boost/math/distributions/binomial.hpp>

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

}  // namespace

ResampledPower resample(std::span<const double> log_medians,
                        const rules::PairedRule& rule,
                        std::size_t pairs,
                        double sign_of_worse,
                        std::uint64_t seed) {
  constexpr int kForRate = 20'000, kForPower = 4'000;
  Resampler resampler(log_medians, rule, pairs, sign_of_worse, seed);
  ResampledPower power;
  power.false_alarm_rate = resampler.slower(0, kForRate);
  // What is found of a slowdown is found of a larger one, so halving finds the smallest.
  int low = 0, high = static_cast<int>(kMostDetectable / kDetectableStep) + 1;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (resampler.slower(middle * kDetectableStep, kForPower) >= kPower ? high : low) = middle;
  }
  if (high * kDetectableStep <= kMostDetectable) power.detectable = high * kDetectableStep;
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

stats::Interval binomial_interval(std::size_t successes, std::size_t trials) {
  using boost::math::binomial;
  constexpr double kEachSide = 0.025;
  if (trials == 0) return {0, 1};
  const auto n = static_cast<double>(trials), k = static_cast<double>(successes);
  return {binomial::find_lower_bound_on_p(n, k, kEachSide),
          binomial::find_upper_bound_on_p(n, k, kEachSide)};
}

}  // namespace launchgap::regression
