// By how much launches are slower beside other work than without it, and for how long afterwards:
// what launch/interference measured.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/rules/ratio.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// How long launches stay slower once the interference is over.
struct Aftermath {
  std::size_t launches = 0;  // that follow it and are slower
  double ns = 0;             // that these take, by their medians
  bool longer = false;       // all that were measured are slower
};

/// One statistic of one metric, beside one interference.
struct InterferenceRow {
  CaseKey key;
  std::string_view metric;     // "roundtrip_ns", without the phase
  std::string_view statistic;  // "p50", "mean", "p99", "p99.9"
  std::size_t runs = 0, launches = 0;
  double quiet_ns = 0, disturbed_ns = 0;  // geometric means over the runs
  rules::Ratio ratio;                     // of the two, by runs in pairs
  std::optional<Aftermath> aftermath;     // of medians of single launches, where it can be told

  /// What the ratio and its interval make of quiet_ns.
  double added_ns() const { return disturbed_ns - quiet_ns; }
  std::optional<stats::Interval> added_interval_ns() const;
  /// "slower", "faster", "same", "cannot-tell".
  std::string_view verdict() const;
};

/// Of every device and arm, in the order of cases; p99 where each run has 200 launches in each
/// phase, p99.9 where it has 2,000: two of them are beyond it. The mean shows what is rare and
/// long. What has a value of 0 or below has no row, as it has no ratio.
std::vector<InterferenceRow> interference_rows(const SessionData& session);

}  // namespace launchgap
