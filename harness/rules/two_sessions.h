// The rule by which a session is judged against one other. Two sessions cannot tell a change from
// the night, so nothing is ever `slower`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/verdict.h"
#include "harness/rules/spread.h"
#include "harness/stats/stats.h"

namespace launchgap::rules {

/// Fewer processes say too little of a session.
inline constexpr std::size_t kFewestRuns = 3;

/// What the processes of a session have of a metric; of each figure those that have it.
struct SessionProcesses {
  std::vector<double> medians = {}, cvs = {}, tails = {}, p99s = {};
  std::optional<double> within_run_cv = {};  // of them all
  std::optional<double> p99 = {};            // of all samples
};

struct LevelVerdict {
  Verdict verdict = Verdict::same;  // suspect, faster, same or cannot_tell
  std::string reason;               // of the latter, without a full stop
  double change = 0;                // of the median of the processes' medians: now / before - 1
  stats::Interval interval{0, 0};   // 99 %, of the mean logarithm's; the median's lies within
};

/// By Welch's 99 % interval on the logarithms of the medians, widened to the change of their median
/// where that lies outside: `suspect` or `faster` if it excludes 0 and the change is `least` or
/// more; `cannot_tell` if the change is `least` or more all the same, or if the interval spans more
/// than that in both directions, with how many runs would tell; else `same`. `sign_of_worse`: 1
/// where larger values are worse. Absent below kFewestRuns processes in either, and where a median
/// has no logarithm.
std::optional<LevelVerdict> judge_level(const SessionProcesses& before,
                                        const SessionProcesses& now,
                                        double sign_of_worse,
                                        double least);

/// By the same interval on the CVs within processes, by kLeastSpreadRatio at least, and on p99/p50,
/// by kLeastTailRatio. A CV below kLeastSpreadCv in both does not count. The first that is larger
/// decides.
SpreadVerdict judge_spread(const SessionProcesses& before, const SessionProcesses& now);

/// How many times as long the p99 of all samples is as before, where it and the processes' p99s are
/// longer by kLeastTailRatio more than the median, which moved by `change`, and the latter beyond
/// chance; absent where they are not.
std::optional<double> judge_tail(const SessionProcesses& before,
                                 const SessionProcesses& now,
                                 double change);

}  // namespace launchgap::rules
