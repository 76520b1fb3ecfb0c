// One process of a recorded job on one GPU, with what is asked of it to judge it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/session_data.h"

namespace launchgap {

class RecordedProcess {
 public:
  RecordedProcess(const SessionData& session, const RecordingInfo& info);

  /// Of the whole recording.
  std::optional<double> of_job(const std::string& metric) const;
  /// Of all launches, or of those that found their stream in this state.
  std::vector<double> of_launches(const std::string& metric, std::string_view state = "") const;
  /// Of all launches of graphs.
  std::vector<double> of_graphs(const std::string& metric) const;
  /// Of the time from the GPU's first work to its last.
  double share(double nanoseconds) const;
  /// Of the time from the first call or work to the last.
  double share_of_extent(double nanoseconds) const;
  /// The time in which one of these calls or more goes on, of the time from the first call or work
  /// to the last. Calls of several threads may add up to more than that.
  double share_of_calls(const LaunchTail& calls) const;
  double share_of_calls(const TailPart& calls) const;
  double total_kernel_ns() const;

  /// Launches whose kernel is lost or impossible, of all.
  double unknown_launches() const;
  /// What is not known of the GPU's work, since kernels are lost or impossible: the larger of the
  /// shares of launches and of time.
  double unknown_share() const;
  /// Whether that is little enough to say what the GPU waited for.
  bool knows_idleness() const { return unknown_share() < kMostUnknown; }
  /// In launch calls, of the time from the first call or work to the last.
  std::optional<double> launch_share() const;

  /// "rank 3"; "process 17, GPU 1": what tells it from the session's others.
  std::string where() const;
  /// One by which so much time is lost, where that is known.
  Finding finding(std::string_view code,
                  Severity severity,
                  std::optional<double> lost_ns = {}) const;

  const SessionData& session;
  const RecordingInfo& info;
  const RecordingRecord& recording;
  JobRecord job;
  bool has_job = false;  // as no older version wrote
  TraceCounts counts;
  const std::vector<CountedKernels>* kernels = nullptr;
  std::optional<double> length_ns, idle_share;

  static constexpr double kMostUnknown = 0.01;

 private:
  double share_of_calls(std::int64_t time_ns, std::int64_t covered_ns) const;
  std::vector<double> samples(std::string_view benchmark,
                              const std::string& metric,
                              std::string_view state = "") const;

  std::vector<std::pair<const CaseKey*, const CaseData*>> cases_;
};

/// The share of its launches that found an idle stream, of those whose stream is known. Processes
/// whose clocks disagree do not count; nothing where that leaves none.
std::optional<double> idle_launch_share(const SessionData& session, const std::string& device);

/// In the order in which they were imported.
std::vector<RecordedProcess> recorded_processes(const SessionData& session);

}  // namespace launchgap
