// A distribution of durations, as the node description names it.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/random.h"

namespace launchgap::fake {

/// Draws nanoseconds, never negative.
struct Distribution {
  enum class Kind { constant, normal, lognormal, mixture };

  Kind kind = Kind::constant;
  double location = 0;              // constant, mean or median in ns
  double spread = 0;                // sd in ns, or sigma of the logarithm
  std::vector<double> weights;      // mixture only
  std::vector<Distribution> parts;  // mixture only, as many as weights

  bool zero() const { return kind == Kind::constant && location == 0; }

  static Distribution constant(double ns) { return {Kind::constant, ns, 0, {}, {}}; }

  double operator()(std::mt19937_64& random) const {
    switch (kind) {
      case Kind::constant:
        return location;
      case Kind::normal:
        return std::max(0.0, location + spread * normal(random));
      case Kind::lognormal:
        return location * std::exp(spread * normal(random));
      case Kind::mixture:
        return parts[std::discrete_distribution<std::size_t>(weights.begin(),
                                                             weights.end())(random)](random);
    }
    return 0;
  }
};

}  // namespace launchgap::fake
