// What a reader must know of a session before any number: what was not measured, or is not to be
// trusted, and why.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/night_rows.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// The names of a session's devices; those that share one have their index too, "A100 (1)", or of
/// sessions that are together node and PCI address, "A100 (n3, 0000:07:00.0)".
class DeviceLabels {
 public:
  explicit DeviceLabels(const SessionData& session);
  /// The UUID itself if the session has no such device.
  const std::string& of(const std::string& uuid) const;

 private:
  std::map<std::string, std::string> labels_;
};

/// Devices that could not be used, runs and cases without a result, traces that say nothing, and
/// what disturbed the runs. Equal reasons are one finding, so that a library that is missing on
/// eight devices is read once; its evidence says where.
std::vector<Finding> session_findings(const SessionData& session,
                                      const std::vector<SummaryRow>& rows);

/// What of sessions that were put together is missing, as one finding with a line for each; none
/// where nothing is.
std::vector<Finding> merged_findings(const SessionData& session);

/// One for each metric that is slower, and one for all that are suspect, erratic or faster.
std::vector<Finding> night_findings(const SessionData& session,
                                    const std::vector<VerdictRow>& verdicts);

}  // namespace launchgap
