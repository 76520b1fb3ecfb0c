#include "harness/stats/distributions.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace launchgap::stats {

using boost::math::binomial;
using boost::math::chi_squared;
using boost::math::complement;
using boost::math::fisher_f;
using boost::math::students_t;

double binomial_at_most(double trials, double probability, double successes) {
  return cdf(binomial(trials, probability), successes);
}

double binomial_at_least(double trials, double probability, double successes) {
  return cdf(complement(binomial(trials, probability), successes - 1));
}

Interval binomial_interval(std::size_t successes, std::size_t trials) {
  constexpr double kEachSide = 0.025;
  if (trials == 0) return {0, 1};
  const auto n = static_cast<double>(trials), k = static_cast<double>(successes);
  return {binomial::find_lower_bound_on_p(n, k, kEachSide),
          binomial::find_upper_bound_on_p(n, k, kEachSide)};
}

double student_t(double freedom, double tail) {
  return boost::math::quantile(complement(students_t(freedom), tail));
}

double student_t_beyond(double freedom, double t) {
  return cdf(complement(students_t(freedom), t));
}

double chi_squared_density(double freedom, double value) {
  return pdf(chi_squared(freedom), value);
}

double chi_squared_quantile(double freedom, double probability) {
  return boost::math::quantile(chi_squared(freedom), probability);
}

double chi_squared_upper(double freedom, double tail) {
  return boost::math::quantile(complement(chi_squared(freedom), tail));
}

double chi_squared_beyond(double freedom, double value) {
  return cdf(complement(chi_squared(freedom), value));
}

double f_quantile(double freedom, double freedom_below, double probability) {
  return boost::math::quantile(fisher_f(freedom, freedom_below), probability);
}

double f_upper(double freedom, double freedom_below, double tail) {
  return boost::math::quantile(complement(fisher_f(freedom, freedom_below), tail));
}

double f_beyond(double freedom, double freedom_below, double value) {
  return cdf(complement(fisher_f(freedom, freedom_below), value));
}

}  // namespace launchgap::stats
