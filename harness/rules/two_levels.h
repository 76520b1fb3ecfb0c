// Values that change between two levels, as of a machine that is in one of two states.
#pragma once

#include <optional>
#include <span>

namespace launchgap::rules {

/// Two values about which others lie.
struct TwoLevels {
  double lower = 0, upper = 0;
  double deviation = 0;  // about each, of logarithms
};

/// Whether positive values in order of time have two levels between which they change again and
/// again.
///
/// Their logarithms are cut where the squares within both parts are smallest. There are two levels
/// if the parts' means are log(1.03) or more apart, and 2.5 + 72/n times the root mean square of
/// both standard deviations (Ashman's D; Ashman, Bird and Zepf, Astronomical Journal 108 (1994)
/// 2348); if a tenth of the n values, and three, lie on each side of the middle between them; if
/// they pass that middle four times, which a new level and one stray value do not; and if they are
/// explained so at least 1.5 times as well, in squares, as by any two changes in time: one change
/// is a new level, two are a bad week.
///
/// In simulations of 60 sessions that vary by 2 %, independent or autocorrelated, 1 in 100 or fewer
/// have two levels; of those of which 20 % are 6 % slower, more than 90 in 100.
std::optional<TwoLevels> two_levels(std::span<const double> in_order);

}  // namespace launchgap::rules
