// What a result says before anything is compared.
#pragma once

#include "harness/regression/report.h"
#include "harness/regression/session_figures.h"

namespace launchgap::regression {

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
