#include "harness/stats/compare.h"

#include <cmath>

#include <boost/math/distributions/students_t.hpp>

#include "harness/stats/moments.h"

namespace launchgap::stats {
namespace {

Scatter scatter_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  return {n, sum_of_squared_deviations(values) / (n - 1)};
}

}  // namespace

double student_t(double freedom, double tail) {
  return quantile(complement(boost::math::students_t(freedom), tail));
}

double welch_reach(const Scatter& a, const Scatter& b, double tail) {
  const double u = a.variance / a.n, v = b.variance / b.n;
  if (u + v == 0) return 0;
  const double share = u / (u + v);
  const double freedom = 1 / (share * share / (a.n - 1) + (1 - share) * (1 - share) / (b.n - 1));
  return student_t(freedom, tail) * std::sqrt(u + v);
}

std::optional<double> pooled_reach(std::span<const double> a,
                                   std::span<const double> b,
                                   double tail) {
  if (a.empty() || b.empty() || a.size() + b.size() < 4) return std::nullopt;
  const auto n_a = static_cast<double>(a.size()), n_b = static_cast<double>(b.size());
  const double freedom = n_a + n_b - 2;
  const double variance = (sum_of_squared_deviations(a) + sum_of_squared_deviations(b)) / freedom;
  return student_t(freedom, tail) * std::sqrt(variance * (1 / n_a + 1 / n_b));
}

std::optional<Estimate> difference(std::span<const double> a,
                                   std::span<const double> b,
                                   double tail) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const double value = mean_above(a[0], a) - mean_above(a[0], b);
  const double reach = welch_reach(scatter_of(a), scatter_of(b), tail);
  return Estimate{value, {value - reach, value + reach}};
}

}  // namespace launchgap::stats
