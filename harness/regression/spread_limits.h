// How much more, or less, a metric must vary before that counts: the same for pairs, two sessions
// and nights.
#pragma once

namespace launchgap::regression {

/// Of CVs, within a process and between processes.
inline constexpr double kLeastSpreadRatio = 1.5;
/// Of p99/p50, over nights and between two sessions; in pairs it is that of CVs.
inline constexpr double kLeastTailRatio = 1.25;
/// A CV counts only if it is that large, now or before.
inline constexpr double kLeastSpreadCv = 0.01;

}  // namespace launchgap::regression
