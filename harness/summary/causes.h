// What makes a recorded job's launches slow or uneven, as far as its recording tells. The figures
// are those that harness/import kept with the events at hand; what they mean is decided here.
// docs/recordings.md says what each is, docs/definitions.md by what rule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/recorded_process.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// Of all processes, and what ranks show together; in the order of sort_findings().
std::vector<Finding> causes(const SessionData& session);

/// Those of each file beside, of one process.
void add_idle_causes(const RecordedProcess& process, std::vector<Finding>& causes);
void add_launch_causes(const RecordedProcess& process, std::vector<Finding>& causes);
void add_kernel_causes(const RecordedProcess& process, std::vector<Finding>& causes);
/// Of the ranks of a job; and whether a finding is one of these that names who is late.
bool tells_who_is_late(const Finding& finding);
void add_stragglers(const SessionData& session, std::vector<Finding>& causes);

/// What their sentences share.
namespace cause_text {
inline constexpr double kCertain = 0.01;
inline constexpr std::size_t kMostNamed = 3;
std::string time(double nanoseconds);
std::string name(std::string_view name);
/// "3e-05", and never 0.
std::string chance(double chance);
/// "2 of 9,628 launches took".
std::string grouped(std::uint64_t number);
}  // namespace cause_text

}  // namespace launchgap
