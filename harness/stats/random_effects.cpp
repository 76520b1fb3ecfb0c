#include "harness/stats/random_effects.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <boost/math/tools/roots.hpp>

#include "harness/stats/distributions.h"
#include "harness/stats/moments.h"

namespace launchgap::stats {
namespace {

/// What the likelihood knows of the data.
struct Sufficient {
  explicit Sufficient(std::vector<LogMoments> of_groups)
      : groups(std::move(of_groups)),
        total(sum_of(groups, &LogMoments::size)),
        within_squares(sum_of(groups, &LogMoments::squares)) {
    std::vector<double> means;
    for (const LogMoments& group : groups) means.push_back(group.mean);
    between_squares = sum_of_squared_deviations(means);
  }
  double within_freedom() const { return total - static_cast<double>(groups.size()); }
  double between_freedom() const { return static_cast<double>(groups.size()) - 1; }

  std::vector<LogMoments> groups;
  double total;            // N
  double within_squares;   // SSW
  double between_squares;  // of the groups' means, each counted once
};

/// Sums over the groups with the inverse variance of each mean, 1 / (between + within / n), as its
/// weight w.
struct Weighted {
  double weights = 0;          // sum w
  double weights_squared = 0;  // sum w²
  double squares = 0;          // sum w (mean - weighted mean)²
  double slope = 0;  // sum w² (mean - weighted mean)², minus the derivative by `between`
};

Weighted weighted(const Sufficient& data, double between, double within) {
  const auto weight = [=](const LogMoments& group) { return 1 / (between + within / group.size); };
  Weighted sums;
  double center = 0;
  for (const LogMoments& group : data.groups) {
    const double w = weight(group);
    sums.weights += w;
    sums.weights_squared += w * w;
    center += w * group.mean;
  }
  center /= sums.weights;
  for (const LogMoments& group : data.groups) {
    const double w = weight(group), deviation = group.mean - center;
    sums.squares += w * deviation * deviation;
    sums.slope += w * w * deviation * deviation;
  }
  return sums;
}

/// The root of a function that changes its sign between `low` and `high`, to 13 digits.
double root(const auto& function, double low, double high) {
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
           sum_of(data.groups,
                  [&](const LogMoments& group) { return std::log1p(ratio * group.size); });
  };
  const auto slope = [&](double ratio) {  // of the deviance
    const Weighted sums = weighted(data, ratio, 1);
    return sums.weights - sums.weights_squared / sums.weights -
           freedom * sums.slope / (data.within_squares + sums.squares);
  };
  // With groups of different sizes the deviance can have several minima, so all are looked at.
  // Above `limit` it only rises: there w_i >= 1 / 2r, so that the slope's first two terms exceed
  // (k-1) / 2r, and its last is below (N-1) between_squares / (r² SSW).
  const auto [smallest, largest] = std::ranges::minmax(data.groups, {}, &LogMoments::size);
  const double limit =
      std::max(1 / smallest.size,
               2 * freedom * data.between_squares / (data.between_freedom() * data.within_squares));
  double best = 0, best_deviance = deviance(0);
  double low = 0, slope_at_low = slope(0);
  for (double high = 1e-3 / largest.size; low < limit; high *= 2) {
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

struct Variances {
  double between;
  double within;
};

Variances reml(const Sufficient& data) {
  if (data.groups.size() == 1) return {0, data.within_squares / data.within_freedom()};
  if (data.within_squares == 0) return {data.between_squares / data.between_freedom(), 0};
  const double ratio = reml_ratio(data);
  const double within = (data.within_squares + weighted(data, ratio, 1).squares) / (data.total - 1);
  return {ratio * within, within};
}

Interval within_interval(const Sufficient& data) {
  const double freedom = data.within_freedom();
  return {data.within_squares / chi_squared_upper(freedom, kTail),
          data.within_squares / chi_squared_quantile(freedom, kTail)};
}

/// Wald's interval.
Interval icc_interval(const Sufficient& data) {
  if (data.between_squares == 0) return {0, 0};
  if (data.within_squares == 0) return {1, 1};
  const double between = data.between_freedom(), within = data.within_freedom();
  const double unit = between * data.within_squares / within;
  const auto icc_at = [&](double f) {
    const auto excess = [&](double ratio) { return weighted(data, ratio, 1).squares - f * unit; };
    if (excess(0) <= 0) return 0.0;
    const double ratio = root(excess, 0, 2 * data.between_squares / (f * unit));
    return ratio / (1 + ratio);
  };
  return {icc_at(f_upper(between, within, kTail)), icc_at(f_quantile(between, within, kTail))};
}

struct Node {
  double value;
  double weight;
};

/// Values of a chi-square variable whose weighted mean, of any smooth function, is the expectation:
/// the trapezoidal rule over its logarithm between the points that one in a million is beyond. Good
/// to 1e-5 of a probability, and to 3e-4 with a single degree of freedom.
std::vector<Node> nodes_of(double freedom) {
  constexpr double kBeyond = 1e-6;
  const double low = std::log(chi_squared_quantile(freedom, kBeyond));
  const double high = std::log(chi_squared_upper(freedom, kBeyond));
  std::vector<Node> nodes(12 + static_cast<std::size_t>(high - low));
  Sum total;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(nodes.size() - 1);
    nodes[i].value = std::exp(std::lerp(low, high, part));
    nodes[i].weight = nodes[i].value * chi_squared_density(freedom, nodes[i].value);
    total.add(nodes[i].weight);
  }
  for (Node& node : nodes) node.weight /= total.value();
  return nodes;
}

/// The generalised interval of between².
Interval between_interval(const Sufficient& data) {
  const double freedom = data.between_freedom();
  const double largest = data.between_squares / chi_squared_quantile(freedom, kTail);
  if (data.within_squares == 0)
    return {data.between_squares / chi_squared_upper(freedom, kTail), largest};
  const std::vector<Node> v = nodes_of(data.within_freedom());
  const auto between_at = [&](double probability) {
    const auto excess = [&](double between) {
      return sum_of(v,
                    [&](const Node& node) {
                      const double within = data.within_squares / node.value;
                      const double squares = weighted(data, between, within).squares;
                      return node.weight * chi_squared_beyond(freedom, squares);
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
  auto moments = log_moments(groups);
  if (!moments || moments->empty()) return {};
  const Sufficient data(std::move(*moments));
  if (data.within_freedom() == 0) return {};
  const auto [between, within] = reml(data);
  RandomEffects effects;
  effects.within_sd = square_root(within, within_interval(data));
  if (data.groups.size() == 1) return effects;
  effects.between_sd = square_root(between, between_interval(data));
  if (between + within > 0)
    effects.icc = Estimate{between / (between + within), icc_interval(data)};
  return effects;
}

double lognormal_cv(double log_sd) {
  return std::sqrt(std::expm1(log_sd * log_sd));
}

namespace {

/// Of one host: the moments of its devices, and what they come to.
struct Host {
  std::vector<LogMoments> devices;
  double size = 0, mean = 0;
};

double weighted_mean(const auto& groups) {
  return sum_of(groups, [](const auto& group) { return group.size * group.mean; }) /
         sum_of(groups, [](const auto& group) { return group.size; });
}

/// Sum of n (mean - center)².
double between(const auto& groups, double center) {
  return sum_of(groups, [center](const auto& group) {
    return group.size * (group.mean - center) * (group.mean - center);
  });
}

}  // namespace

NestedEffects nested_effects(std::span<const std::vector<std::vector<double>>> hosts) {
  // The moments of all are relative to one value, so they are taken together.
  std::vector<std::vector<double>> devices;
  std::vector<std::size_t> host_of;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    for (const std::vector<double>& device : hosts[h]) {
      devices.push_back(device);
      host_of.push_back(h);
    }
  }
  const auto moments = log_moments(devices);
  if (!moments || moments->empty()) return {};
  std::vector<Host> all(hosts.size());
  for (const LogMoments& device : *moments) all[host_of[device.group]].devices.push_back(device);
  std::erase_if(all, [](const Host& host) { return host.devices.empty(); });
  for (Host& host : all) {
    host.size = sum_of(host.devices, &LogMoments::size);
    host.mean = weighted_mean(host.devices);
  }

  const double n = sum_of(all, &Host::size);
  const auto h = static_cast<double>(all.size()), d = static_cast<double>(moments->size());
  const double of_runs = sum_of(*moments, &LogMoments::squares);
  const double of_devices =
      sum_of(all, [](const Host& host) { return between(host.devices, host.mean); });
  const double of_hosts = between(all, weighted_mean(all));
  const auto square = [](const auto& group) { return group.size * group.size; };
  const double s =
      sum_of(all, [&](const Host& host) { return sum_of(host.devices, square) / host.size; });

  NestedEffects effects;
  if (n > d) effects.run = of_runs / (n - d);
  const double run = effects.run.value_or(0);
  if (d > h) {
    const double k1 = (n - s) / (d - h);
    effects.device = std::max(0.0, (of_devices / (d - h) - run) / k1);
  }
  if (h > 1) {
    const double k2 = (s - sum_of(*moments, square) / n) / (h - 1);
    const double k3 = (n - sum_of(all, square) / n) / (h - 1);
    const double below = run + k2 * effects.device.value_or(0);
    effects.host = std::max(0.0, (of_hosts / (h - 1) - below) / k3);
  }
  return effects;
}

}  // namespace launchgap::stats
