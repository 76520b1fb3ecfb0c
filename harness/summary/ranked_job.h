// The processes of a session as the ranks of one job, with their times side by side.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/job_record.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// The time of each part of a stretch, by StretchPart.
using PartTimes = std::array<double, kStretchParts.size()>;

/// The processes of one job, and their times in what all of them have: steps, or collectives.
struct RankedJob {
  std::vector<const JobInfo*> ranks;
  std::vector<std::string> names;  // "rank 3", or the file and the process
  /// By rank, the time of each step without collectives; or of each collective.
  std::vector<std::vector<double>> times;
  /// Of steps, with the time in which a GPU only talked to others; empty where some rank has none.
  std::vector<std::vector<double>> whole;
  /// By rank, what the GPU did in each step, or before each collective; empty where some rank does
  /// not tell.
  std::vector<std::vector<PartTimes>> parts;
  std::vector<std::string> kinds;  // of each collective, its kernel's name; of steps none
  double length_ns = 0;            // of the longest recording
  bool all_recorded = true;        // no rank of the job is missing, as far as is known

  /// What a time is of the recording; 0 where its length is not known.
  double share(double ns) const { return length_ns > 0 ? ns / length_ns : 0; }
};

/// The recorded processes of a session, if they are ranks of one job: they have ranks, each
/// another, and were not recorded at other times; or they are of one file; or they ran at the same
/// time, by Unix time. Empty if they are not, or have fewer than two steps in common, or if the
/// clocks of host and GPU disagree in one and collectives tell more.
RankedJob ranked_job(const SessionData& session);

/// As ranked_job, and `times` are those of collectives: the i-th of one kernel's name on one GPU of
/// each. Empty too if some rank has another number of them.
RankedJob job_by_collectives(const SessionData& session);

/// What forbids to compare the processes of a session that could be ranks, or all of them.
struct RankDoubts {
  std::vector<std::string> names;     // of the processes; none where nothing could be compared
  std::optional<std::int64_t> twice;  // the least rank that several say to be
  bool other_times = false;           // they were recorded, by Unix time, when others were not
  bool untied = false;                // nothing tells that they are of one job
  bool nothing_common = false;        // they have neither steps nor collectives in common
  std::vector<std::size_t> steps, collectives;  // how many each process has
  std::vector<std::int64_t> missing;            // the first ranks that are missing
  std::uint64_t missing_count = 0;
};
RankDoubts rank_doubts(const SessionData& session);

}  // namespace launchgap
