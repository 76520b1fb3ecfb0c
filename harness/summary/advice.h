// What a machine's own numbers say that a program should do, or need not do, about its launches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

enum class AdviceSeverity {
  act,   // a difference that a program can use
  know,  // a number to reckon with
  open,  // a question that these runs do not answer
  fine,  // no difference worth minding
};
std::string_view name_of(AdviceSeverity severity);

/// One sentence on one axis of the launch benchmarks, and the numbers behind it.
struct Advice {
  std::string device;  // UUID
  std::string axis;    // the benchmark, "launch/graph"
  AdviceSeverity severity = AdviceSeverity::know;
  std::string advice;
  std::string evidence;  // medians, ratios with their 95 % intervals, numbers of runs
  std::string cases;     // whose numbers these are, apart by blanks
};

/// Advice for every device, one line at least for every axis that was measured; plain runs, and of
/// traced runs only what it alone can tell. docs/advice.md has the rules.
///
/// A difference is claimed only if both sides have kRunsForAClaim runs, the 95 % interval of the
/// ratio excludes 1, and the ratio is beyond kLeastDifference.
std::vector<Advice> advice(const SessionData& session, const std::vector<SummaryRow>& rows);

inline constexpr std::size_t kRunsForAClaim = 3;
inline constexpr double kLeastDifference = 1.05;  // or its inverse
/// An interval that reaches beyond this, or its inverse, says too little for "no difference".
inline constexpr double kTooWide = 1.25;

}  // namespace launchgap
