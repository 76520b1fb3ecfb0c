// What makes a recorded job's launches slow or uneven, as far as its recording tells. The figures
// are those that harness/recording kept with the events at hand; what they mean is decided here.
// docs/recordings.md says what each is, docs/definitions.md by what rule.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/summary/advice.h"
#include "harness/summary/session_data.h"

namespace launchgap {

struct Cause {
  std::string device;            // UUID; empty: of all ranks
  std::optional<int> replicate;  // the process on it
  std::string_view code;         // "wait-stalls"
  AdviceSeverity severity = AdviceSeverity::know;
  std::string seen;                           // one sentence
  std::string evidence;                       // the numbers behind it, apart by "; "
  std::string advice;                         // what to do, one sentence
  std::optional<double> lost_ns, lost_share;  // what it costs, and of which the recording's length
};

/// Process by process, what costs most first; then what ranks show together.
std::vector<Cause> causes(const SessionData& session);

}  // namespace launchgap
