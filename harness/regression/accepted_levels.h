// Levels that a human has accepted: from then on a metric is compared with sessions since.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "harness/regression/report.h"
#include "harness/rules/nights.h"

namespace launchgap::regression {

/// Names may have `*` and `?`, as file names in a shell.
struct AcceptedLevel {
  std::string device_id = "*", case_name = "*", metric = "*";
  std::int64_t since_s = 0;     // sessions that began earlier are no longer compared with
  std::int64_t accepted_s = 0;  // what was said of sessions that began until then does not count
  std::string reason;

  bool covers(const SeriesKey& key) const;
  /// Takes back what was said of a session that began before this was accepted.
  void apply_to(rules::Night& night) const;
};

/// The latest of those that cover it and had begun by then; null if none.
const AcceptedLevel* accepted_level(std::span<const AcceptedLevel> levels,
                                    const SeriesKey& key,
                                    std::int64_t begin_s);

/// Reads a text file, to be kept with the project that gates: a level per line,
/// `DEVICE CASE METRIC SINCE ACCEPTED REASON…`, dates as 2026-11-22 or 2026-11-22T03:00:00Z; what
/// follows a `#` is for people. Throws Error that names the line.
std::vector<AcceptedLevel> read_accepted_levels(const std::filesystem::path& file);

enum class Day { begin, end };

/// A time, or a day's begin or end. Throws UsageError.
std::int64_t parse_time(const std::string& text, Day day = Day::begin);

}  // namespace launchgap::regression
