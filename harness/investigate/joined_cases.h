// The joined samples by case: what is compared with what, and as a table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/investigate/joined_report.h"
#include "harness/investigate/moved_part.h"

namespace launchgap::investigate {

/// The samples of one case on one device, of all its runs.
struct JoinedCase {
  std::string device;  // UUID
  std::string name;
  std::string metric;                     // whose values the session's are
  std::uint64_t keys = 0;                 // samples of the session
  std::vector<Observation> observations;  // that the report has, with a value
};

/// The metric is the one that is asked for, or of the host's and the device's times the longest,
/// since that holds the others. Throws UsageError for a metric that no case has.
std::vector<JoinedCase> joined_cases(const JoinedReport& report, const std::string& metric);

/// One row per joined sample; docs/record-schema.md has the columns. Throws WriteError, and Stopped
/// once a signal was noted.
void write_joined(const JoinedReport& report,
                  const std::vector<JoinedCase>& cases,
                  const std::string& session_id,
                  const std::filesystem::path& file);

}  // namespace launchgap::investigate
