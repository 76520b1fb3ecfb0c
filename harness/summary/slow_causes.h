// Why samples of a measured case took long: each slow one has one cause, on evidence of its own
// time; those of a slow block have the block's. docs/definitions.md, "Why samples are slow".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/thread_events.h"
#include "harness/record/launch_tail.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// Above which a sample is slow: 1.5 times the median, and three interquartile ranges above the
/// third quartile. Absent below 20 values.
std::optional<double> slow_limit(std::span<const double> values);

/// What the system did to a run's thread, as causes of its slow samples. A kind of event counts
/// only if 5 % of usual samples have it at most, if 5 % at most of the slow samples that have it
/// have it by chance, and if the binomial test says with 99 % that not all of them do: a counter
/// that moves all the time explains nothing.
class EventRule {
 public:
  /// `slow`: of the run's slow samples; `usual`: while the others were taken.
  EventRule(std::span<const WatchedSample* const> slow, const ThreadEvents& usual);

  /// Unexplained where nothing that counts happened. `extra_ns`: above the run's median.
  TailCause cause_of(const WatchedSample& watched, double extra_ns) const;

 private:
  bool counts(std::uint64_t ThreadEvents::*event) const;
  std::vector<std::uint64_t ThreadEvents::*> counting_;
};

/// Telemetry of a block: what counters grew by for each second of it, and gauges at its end.
using BlockTelemetry = std::map<std::string, double>;

/// The cause of a slow block, beside the others of its run; unexplained where nothing shows one.
TailCause cause_of_block(const BlockTelemetry& slow, std::span<const BlockTelemetry> others);

/// The slow samples of a case that have one cause.
struct SlowPart {
  CaseKey key;
  std::string metric;
  bool of_blocks = false;
  TailCause cause = TailCause::unexplained;
  std::uint64_t samples = 0;     // with this cause
  std::uint64_t of_samples = 0;  // that the case has
  double extra_ns = 0;           // above the run's median, of all of them
  double extra_share = 0;        // of all slow samples' of the case
  double longest_ns = 0;
};

/// Of every case, and of each of its metrics on the host's clock that has slow samples, in the
/// order of cases and causes; `unexplained` is always among them. Cases whose blocks have phases,
/// and what others recorded, are left out.
std::vector<SlowPart> slow_parts(const SessionData& session);

}  // namespace launchgap
