// Hartigans' dip: how far a sample is from having one mode.
#pragma once

#include <cstddef>
#include <span>

namespace launchgap::stats {

struct Dip {
  double value = 0;     // 0 to 1/4, without unit
  std::size_t cut = 0;  // the values before this rank and those from it on are on either side
};

/// The smallest of the greatest distances between the empirical distribution of ascending values
/// and any unimodal distribution function, and at which rank it is (J. A. Hartigan and P. M.
/// Hartigan, Annals of Statistics 13 (1985) 70). Their algorithm, in O(n): P. M. Hartigan, Applied
/// Statistics 34 (1985) 320, as corrected in R's package diptest. 0 for no values and where all are
/// equal.
Dip dip(std::span<const double> sorted);

/// The dip that 0.5 % of samples of n uniform values exceed. Hardly any sample of another unimodal
/// distribution does: the uniform is the one with the largest dips. Simulated, and interpolated in
/// sqrt(n) times itself; tests/stats/dip_limits.py prints the table. Below 10 values 1/4, which no
/// dip exceeds; above 2,000 up to 2 % too low.
double dip_limit(std::size_t n);

}  // namespace launchgap::stats
