// A check against a history as rows of tables, for the page.
#pragma once

#include "harness/regression/check.h"
#include "harness/summary/night_rows.h"

namespace launchgap::regression {

/// Of so many metrics every night is drawn, and so many nights of each.
inline constexpr std::size_t kMostDrawn = 24, kMostNightsDrawn = 120;

/// All verdicts; and nights of the metrics whose verdict is gravest, then of those that moved most.
NightRows night_rows(const History& history,
                     const SessionFigures& session,
                     const CheckOptions& options);

}  // namespace launchgap::regression
