// Which metrics are judged at all, and which change of one is too small to count. `compare` and
// `check` share it.
#pragma once

#include <optional>
#include <string>

#include "harness/core/metric.h"
#include "harness/regression/report.h"
#include "harness/regression/session_figures.h"

namespace launchgap::regression {

/// Why no value of a metric is ever judged, in words without a full stop; absent if some are.
std::optional<std::string> why_never_judged(const std::string& metric);

/// Why a metric is only watched, in words without a full stop; absent if it is judged.
///
/// Watched is a metric that this launchgap does not know, since nothing says which direction is
/// worse; one that is computed from another, which would count one change twice; one without unit
/// (shares, counts), whose ratio says little; one with a median that is not positive and finite,
/// which has no logarithm; one whose median is below kLeastTicks ticks of its clock; and those of
/// launch/interference, which compares its own within each process.
std::optional<std::string> why_only_watched(const MetricFigures& figures);

/// The smallest change that counts, as a share of the base's value: 0.02 is 2 %. It is `share`, or
/// one tick of the clock where that is more; for times of launches on a GPU at least 100 ns. The
/// host has no such limit. The base must be one that is judged.
double least_change(const MetricFigures& base, double share);

/// Logarithms of ratios are multiplied by it: positive is then worse. The metric must be known.
double sign_of_worse(const MetricFigures& figures);

// --- What a result says before anything is compared ---

/// With key, device, value and processes. `invalid` or `watch`, with the reason, if the metric is
/// not to be compared; else `same`.
Result measured_result(const SessionFigures& session, const MetricFigures& figures);

/// Whether it is to be compared.
inline bool is_open(const Result& result) {
  return result.verdict == Verdict::same;
}

/// Why a session has nothing valid, if that is so: its own reason, or that of its first metric.
std::string invalid_as_a_whole(const SessionFigures& session, std::span<const Result> results);

}  // namespace launchgap::regression
