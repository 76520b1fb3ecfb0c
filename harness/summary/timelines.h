// The slowest samples of traced and recorded runs, and what happened around those that are odd.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// Something that happened, by its row in a timeline.
struct TimelineEvent {
  std::string row;   // "thread 4242", "stream 7"
  std::string kind;  // call, kernel, graph, copy, fill, overhead, wait, allocate, release, range
  std::string name;
  std::int64_t begin_ns = 0, end_ns = 0;  // from the sample's begin
  std::uint64_t bytes = 0;
};

/// One of a case's slowest samples, beside what is usual.
struct SlowSample {
  /// From so many times the case's median on, a sample is odd.
  static constexpr double kOddRatio = 1.5;
  /// Timelines are for so many samples of a case and a device, the oddest first, and have so many
  /// events, the nearest.
  static constexpr std::size_t kTimelinesPerCase = 2;
  static constexpr std::size_t kTimelinesPerDevice = 6;
  static constexpr std::size_t kEventsPerTimeline = 400;

  const SlowSampleInfo* info = nullptr;
  CaseName name;
  double value = 0, median = 0;
  /// The part of it that took most longer than usual, if that is at least half of the difference.
  std::string longer_part;
  std::optional<double> longer_by_ns;

  /// What the machine said of itself after the sample's block: "sm_clock_mhz 1980; power_w 212".
  std::string telemetry;

  /// What its timeline shows, from the sample's begin; absent where it has none.
  std::optional<std::int64_t> view_begin_ns, view_end_ns;
  std::vector<TimelineEvent> events;  // by begin
  std::size_t left_out = 0;           // of that view: further away, or shorter
  /// The longest time in the sample in which nothing that was recorded ran, and when it began.
  std::optional<std::int64_t> quiet_ns, quiet_begin_ns;
  std::string problem;  // why there is no timeline where there should be one

  double ratio() const { return value / median; }
  std::int64_t lasts_ns() const {
    return std::max<std::int64_t>(info->record.end_ns - info->record.begin_ns, 0);
  }
  bool is_odd() const { return ratio() >= kOddRatio; }
};

/// Of all that the session has, by device, case, run and slowness; with timelines.
std::vector<SlowSample> slow_samples_of(const SessionData& session,
                                        const std::vector<SummaryRow>& rows);

/// The same, found out when first asked for: the events are read for it.
class SlowSamples {
 public:
  SlowSamples(const SessionData& session, const std::vector<SummaryRow>& rows)
      : session_(session), rows_(rows) {}
  const std::vector<SlowSample>& all() const {
    if (!all_) all_ = slow_samples_of(session_, rows_);
    return *all_;
  }

 private:
  const SessionData& session_;
  const std::vector<SummaryRow>& rows_;
  mutable std::optional<std::vector<SlowSample>> all_;
};

}  // namespace launchgap
