// How many modes a distribution has.
#pragma once

#include <optional>
#include <span>

namespace launchgap::stats {

/// Number of modes of values in the order in which they were measured: into how many parts they
/// must be cut until each is unimodal.
///
/// A part is cut where its dip is (dip.h), or that of its lowest or highest quarter, if the dip
/// exceeds dip_limit. The parts likewise; this follows UniDip (Maurus and Plant, KDD 2016, doi
/// 10.1145/2939672.2939740), which also judges what is beside a mode without it: in the whole, a
/// large mode hides a small one. Then neighbours that together are unimodal are united again, since
/// a cut can part a mode from its flank, and a part that is too small is united with the neighbour
/// with which it is the less bimodal.
///
/// A mode holds at least 5 % of the values: outliers are none, be they few or far away. (In what is
/// looked at, 4 % suffice; chance may have left some out.) Looked at are at most 2,000 values,
/// spread over the time, since more would show ripples that nobody cares about. Equal values, which
/// the ticks of a clock cause, are spread over a tick.
///
/// In simulations, fewer than 1 % of unimodal samples of 40 to 2,000 values show more than one
/// mode, and of uniform ones, the worst case, 2 %. A second mode that holds 10 % of 400 values, or
/// 6 % of 2,000, is found in 19 of 20 samples where it is 7 of the wider mode's standard deviations
/// away. A shoulder is not found, nor are modes of up to four different values each, which look
/// like ticks. Values that depend closely on those before them, such as a random walk's, crowd here
/// and there without any mode of the process; that counts.
///
/// Absent below 40 values, and where one is not finite.
std::optional<int> modes(std::span<const double> in_order);

}  // namespace launchgap::stats
