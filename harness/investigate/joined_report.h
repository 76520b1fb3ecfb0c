// A report of Nsight Systems and the session that was measured under it, joined sample by sample:
// by the payloads of NVTX ranges, and not by time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/investigate/moved_part.h"
#include "harness/record/reader.h"
#include "harness/summary/session_data.h"

namespace launchgap::investigate {

/// A sample that is in both.
struct JoinedSample {
  std::uint64_t key = 0;
  std::size_t index = 0;       // in its block
  std::int64_t range_ns = 0;   // how long the sample took in the report, all of it
  std::uint32_t launches = 0;  // calls that launch
  std::uint32_t kernels = 0;   // that have records; a graph recorded as a whole is one
  /// From the start of the first of these calls until what it launched began.
  std::optional<std::int64_t> launch_ns;
  PartTimes parts_ns{};
};

/// A block of the session, with those of its samples that the report has, in their order.
struct JoinedBlock {
  const RunInfo* run = nullptr;
  SampleBlock block;
  std::vector<JoinedSample> samples;
};

struct JoinedReport {
  std::string recorder;              // "Nsight Systems 2024.5.1.113"
  std::vector<JoinedBlock> blocks;   // those that have keys, in the order of the records
  std::uint64_t keys = 0;            // samples of the session that have one
  std::uint64_t joined = 0;          // of which the report has so many
  std::uint64_t calls = 0;           // of CUDA, in these
  std::vector<std::string> remarks;  // why the device's times are not told; what is missing
};

/// Throws Error that says what the report or the session lacks, and what would help.
JoinedReport join_report(const std::filesystem::path& report, const SessionData& session);

// --- The joined samples by case: what is compared with what, and as a table ---

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
