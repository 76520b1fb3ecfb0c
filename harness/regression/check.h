// `launchgap check`: a session against those before it, or against one other.
#pragma once

#include <vector>

#include "harness/regression/compare.h"
#include "harness/regression/fingerprint.h"
#include "harness/regression/history.h"
#include "harness/regression/report.h"
#include "harness/regression/session_figures.h"
#include "harness/summary/night_rows.h"

namespace launchgap::regression {

struct CheckOptions {
  Strictness strictness;
  Across across;                        // keys that may differ: what is under test
  std::vector<AcceptedLevel> accepted;  // beside those of the history
};

/// What a session is found to be, and what the history is to keep of it.
struct Checked {
  Report report;
  std::vector<Point> points;  // of the metrics that have values, by key
};

/// By the rule of nights.h, metric by metric, with sessions that began before this one, on the same
/// device and with the same fingerprint (but for keys that may differ). Where fewer than 20 have
/// it, the result says which keys changed since the session before, and how far the metric moved
/// with them: 99 %, Student's, on logarithms, the scatter of sessions pooled.
///
/// A metric that the device's session before had, in a process configuration that this one
/// measured, and that this one lacks, is invalid too.
Checked check_against_history(const History& history,
                              const SessionFigures& session,
                              const CheckOptions& options);

/// By Welch's 99 % interval on the logarithms of the processes' medians, and 3 %. Two sessions
/// cannot tell a change from the night, so nothing is ever `slower`. Throws UsageError if both are
/// one.
Report check_two_sessions(const SessionFigures& base,
                          const SessionFigures& session,
                          const CheckOptions& options);

// --- What is suspect, side by side with a build that is pinned ---

/// Compares the cases of suspect results in pairs of `baseline` and `current`, on their devices.
/// What is slower there is `slower`; what is not stays `suspect` and says so, for what changed may
/// lie in both: a driver, the machine. A comparison that fails leaves everything as it is, and a
/// note.
void confirm(Checked& checked, const Side& baseline, const Side& current);

// --- A check against a history as rows of tables, for the page ---

/// Of so many metrics every night is drawn, and so many nights of each.
inline constexpr std::size_t kMostDrawn = 24, kMostNightsDrawn = 120;

/// All verdicts; and nights of the metrics whose verdict is gravest, then of those that moved most.
NightRows night_rows(const History& history,
                     const SessionFigures& session,
                     const CheckOptions& options);

}  // namespace launchgap::regression
