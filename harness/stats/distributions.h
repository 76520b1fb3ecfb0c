// The distributions that rules and intervals ask, those of Boost.Math: compiled here once, since
// each source that includes them takes 2 s longer. What is outside a distribution's range throws
// std::domain_error, as there.
#pragma once

#include <cstddef>

#include "harness/stats/stats.h"

namespace launchgap::stats {

/// Of `trials`, each of which succeeds with `probability`: the chance of at most, or at least, so
/// many successes. At least 0 is not asked.
double binomial_at_most(double trials, double probability, double successes);
double binomial_at_least(double trials, double probability, double successes);

/// The 95 % interval of a probability of which `successes` of `trials` were seen (Clopper and
/// Pearson, Biometrika 26 (1934) 404); 0 to 1 without a trial.
Interval binomial_interval(std::size_t successes, std::size_t trials);

/// Student's t that is exceeded on either side with probability `tail`, and the chance of more.
double student_t(double freedom, double tail);
double student_t_beyond(double freedom, double t);

/// Chi-square: its density, the value below which it is with `probability`, the one above which it
/// is with probability `tail`, and the chance of more than `value`.
double chi_squared_density(double freedom, double value);
double chi_squared_quantile(double freedom, double probability);
double chi_squared_upper(double freedom, double tail);
double chi_squared_beyond(double freedom, double value);

/// Fisher's F, the same.
double f_quantile(double freedom, double freedom_below, double probability);
double f_upper(double freedom, double freedom_below, double tail);
double f_beyond(double freedom, double freedom_below, double value);

}  // namespace launchgap::stats
