#include "harness/stats/random_effects.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/tools/roots.hpp>

#include "harness/stats/moments.h"

namespace launchgap::stats {
namespace {

using boost::math::cdf;
using boost::math::chi_squared;
using boost::math::complement;
using boost::math::fisher_f;

constexpr double kTail = 0.025;  // on either side of an interval

struct Group {
  double size;
  double mean;  // of the logarithms, above the logarithm of the first value of all
};

/// What the likelihood knows of the data.
struct Sufficient {
  std::vector<Group> groups;
  double within_squares = 0;   // SSW
  double between_squares = 0;  // of the groups' means, each counted once
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  double total = 0;

  double within_freedom() const { return total - static_cast<double>(groups.size()); }
  double between_freedom() const { return static_cast<double>(groups.size()) - 1; }
};

Sufficient reduce(std::span<const std::vector<double>> groups) {
  Sufficient data;
  std::vector<double> logs, means;
  Sum within;
  double pivot = 0;
  for (const std::vector<double>& group : groups) {
    if (group.empty()) continue;
    if (pivot == 0) pivot = group.front();
    logs.resize(group.size());
    std::ranges::transform(
        group, logs.begin(), [pivot](double value) { return log_ratio(value, pivot); });
    within.add(sum_of_squared_deviations(logs));
    means.push_back(mean_above(0, logs));
    const auto size = static_cast<double>(group.size());
    data.groups.push_back({size, means.back()});
    data.smallest = std::min(data.smallest, size);
    data.largest = std::max(data.largest, size);
    data.total += size;
  }
  data.within_squares = within.value();
  if (!means.empty()) data.between_squares = sum_of_squared_deviations(means);
  return data;
}

/// Sums over the groups with the inverse variance of each mean, 1 / (between + within / n), as its
/// weight w.
struct Weighted {
  double weights = 0;          // sum w
  double weights_squared = 0;  // sum w²
  double squares = 0;          // sum w (mean - weighted mean)²
  double slope = 0;            // sum w² (mean - weighted mean)², minus the derivative by `between`
};

Weighted weighted(const Sufficient& data, double between, double within) {
  const auto weight = [=](const Group& group) { return 1 / (between + within / group.size); };
  Weighted sums;
  double center = 0;
  for (const Group& group : data.groups) {
    const double w = weight(group);
    sums.weights += w;
    sums.weights_squared += w * w;
    center += w * group.mean;
  }
  center /= sums.weights;
  for (const Group& group : data.groups) {
    const double w = weight(group), deviation = group.mean - center;
    sums.squares += w * deviation * deviation;
    sums.slope += w * w * deviation * deviation;
  }
  return sums;
}

/// The root of a function that changes its sign between `low` and `high`, to 13 digits.
template <class Function>
double root(Function&& function, double low, double high) {
  const auto near_enough = [](double a, double b) { return b - a <= 1e-13 * b; };
  std::uintmax_t steps = 500;
  const auto [a, b] = boost::math::tools::toms748_solve(function, low, high, near_enough, steps);
  return a + (b - a) / 2;
}

/// between² / within² of the greatest restricted likelihood; SSW is not 0.
double reml_ratio(const Sufficient& data) {
  const double freedom = data.total - 1;
  const auto deviance = [&](double ratio) {  // -2 log likelihood, up to a constant
    const Weighted sums = weighted(data, ratio, 1);
    return freedom * std::log1p(sums.squares / data.within_squares) + std::log(sums.weights) +
           sum_of(data.groups, [&](const Group& group) { return std::log1p(ratio * group.size); });
  };
  const auto slope = [&](double ratio) {  // of the deviance
    const Weighted sums = weighted(data, ratio, 1);
    return sums.weights - sums.weights_squared / sums.weights -
           freedom * sums.slope / (data.within_squares + sums.squares);
  };
  // With groups of different sizes the deviance can have several minima, so all are looked at. Above
  // `limit` it only rises: there w_i > 1 / 2r, so what is before the minus exceeds (k-1) / 2r, and
  // what is after it is below (N-1) between_squares / (r² SSW).
  const double limit =
      std::max(1 / data.smallest,
               2 * freedom * data.between_squares / (data.between_freedom() * data.within_squares));
  double best = 0, best_deviance = deviance(0);
  double low = 0, slope_at_low = slope(0);
  for (double high = 1e-3 / data.largest; low < limit; high *= 2) {
    const double slope_at_high = slope(high);
    if (slope_at_low < 0 && slope_at_high >= 0) {
      const double minimum = root(slope, low, high);
      if (const double there = deviance(minimum); there <= best_deviance) {
        best = minimum;
        best_deviance = there;
      }
    }
    low = high;
    slope_at_low = slope_at_high;
  }
  return best;
}

Interval within_variance_interval(const Sufficient& data) {
  const chi_squared distribution(data.within_freedom());
  return {data.within_squares / quantile(complement(distribution, kTail)),
          data.within_squares / quantile(distribution, kTail)};
}

/// Wald's interval of between² / within²; SSW is not 0.
Interval ratio_interval(const Sufficient& data) {
  const fisher_f distribution(data.between_freedom(), data.within_freedom());
  const double unit = data.between_freedom() * data.within_squares / data.within_freedom();
  const auto ratio_at = [&](double f) {
    const auto excess = [&](double ratio) { return weighted(data, ratio, 1).squares - f * unit; };
    return excess(0) <= 0 ? 0 : root(excess, 0, 2 * data.between_squares / (f * unit));
  };
  return {ratio_at(quantile(complement(distribution, kTail))),
          ratio_at(quantile(distribution, kTail))};
}

/// The generalised interval of between²; between_squares is not 0.
Interval between_variance_interval(const Sufficient& data) {
  const chi_squared u(data.between_freedom());
  const double largest = data.between_squares / quantile(u, kTail);
  if (data.within_squares == 0) {
    return {data.between_squares / quantile(complement(u, kTail)), largest};
  }
  // The mean over V, by Gauss and Legendre's quadrature over its probability.
  struct Node {
    double within;  // SSW / V
    double weight;
  };
  using Rule = boost::math::quadrature::gauss<double, 30>;
  std::vector<Node> nodes;
  const chi_squared v(data.within_freedom());
  for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
    for (const double p : {(1 - Rule::abscissa()[i]) / 2, (1 + Rule::abscissa()[i]) / 2})
      nodes.push_back({data.within_squares / quantile(v, p), Rule::weights()[i] / 2});
  }
  const auto between_at = [&](double probability) {
    const auto excess = [&](double between) {
      return sum_of(nodes,
                    [&](const Node& node) {
                      const double squares = weighted(data, between, node.within).squares;
                      return node.weight * cdf(complement(u, squares));
                    }) -
             probability;
    };
    return excess(0) >= 0 ? 0 : root(excess, 0, 2 * largest);
  };
  return {between_at(kTail), between_at(1 - kTail)};
}

Estimate square_root(double variance, const Interval& interval) {
  return {std::sqrt(variance), {std::sqrt(interval.low), std::sqrt(interval.high)}};
}

}  // namespace

RandomEffects random_effects(std::span<const std::vector<double>> groups) {
  for (const std::vector<double>& group : groups) {
    if (!std::ranges::all_of(group, has_logarithm)) return {};
  }
  const Sufficient data = reduce(groups);
  if (data.groups.empty() || data.within_freedom() == 0) return {};
  const bool varies_within = data.within_squares > 0, varies_between = data.between_squares > 0;
  const double freedom = data.total - 1;
  RandomEffects effects;
  if (data.groups.size() == 1) {
    effects.within_sd =
        square_root(data.within_squares / freedom, within_variance_interval(data));
    return effects;
  }
  if (!varies_within) {
    effects.within_sd = Estimate{0, {0, 0}};
    effects.between_sd = Estimate{0, {0, 0}};
    if (!varies_between) return effects;
    effects.between_sd = square_root(data.between_squares / data.between_freedom(),
                                     between_variance_interval(data));
    effects.icc = Estimate{1, {1, 1}};
    return effects;
  }
  const double ratio = reml_ratio(data);
  const double within = (data.within_squares + weighted(data, ratio, 1).squares) / freedom;
  const auto share = [](double r) { return r / (1 + r); };
  const Interval ratios = varies_between ? ratio_interval(data) : Interval{0, 0};
  effects.within_sd = square_root(within, within_variance_interval(data));
  effects.between_sd = square_root(
      ratio * within, varies_between ? between_variance_interval(data) : Interval{0, 0});
  effects.icc = Estimate{share(ratio), {share(ratios.low), share(ratios.high)}};
  return effects;
}

double lognormal_cv(double log_sd) {
  return std::sqrt(std::expm1(log_sd * log_sd));
}

}  // namespace launchgap::stats
