// How many modes a distribution has.
#pragma once

#include <optional>
#include <span>

namespace launchgap::stats {

/// Number of modes of values in the order in which they were measured: what is left when the values
/// are cut wherever they are not unimodal.
///
/// A part whose dip exceeds dip_limit, so that it has one mode with a probability below 1 %, is cut
/// where its dip is; the parts likewise. Then neighbours that together pass the test are united
/// again (a cut can leave a flank of one mode to another), and so is a part below kLeastShare with
/// the neighbour with which it is the less bimodal. Recursive like UniDip (Maurus and Plant, KDD
/// 2016, doi 10.1145/2939672.2939740): each side of a cut is judged on its own, without the mode
/// that dominates the whole.
///
/// A mode holds at least 5 % of the values: outliers are none. kLeastShare is a little less, since
/// chance may leave fewer among those that are looked at. Those are at most 2,000, spread over the
/// time: more would find ripples that nobody cares about. Ties, which the ticks of a clock cause,
/// are spread over a tick.
///
/// What it cannot see: a mode of share s among fewer than about (1.25 / s)² values (2,000 for 95/5,
/// 160 for 90/10 ...), or less than about 4 of the wider mode's standard deviations away from the
/// other; modes of fewer than three ticks each. What it shows beside modes: values that depend on
/// those before can crowd for a while, as a random walk does; these count.
///
/// Absent below 40 values, and where one is not finite.
std::optional<int> modes(std::span<const double> in_order);

}  // namespace launchgap::stats
