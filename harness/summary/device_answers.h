// The first screen's answer: of each device what a launch costs, how much it varies within and
// between runs, and whether these runs are enough to say so.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/stats/stats.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// How much a verdict has to be worried about.
enum class Tone { ok, warning, bad };
std::string_view name_of(Tone tone);

struct DeviceAnswer {
  std::string device;   // UUID
  std::string verdict;  // "steady so far", a word or a few
  Tone tone = Tone::ok;
  std::string note;      // why, or what to do; may be empty
  std::string sentence;  // its launch call: median, tail, variation; empty if none was measured
  std::string kind;      // how it differs from the others of its name; empty if it does not
  std::size_t runs = 0;  // with launches
  std::optional<double> within_run_cv;            // of the launch call
  std::optional<stats::Estimate> between_run_cv;  // of its runs' medians
};

/// Of every device, by the plain runs of `launch/null`, on an idle stream where it was measured.
///
/// `unstable`, `steady so far`: rules/spread.h.
std::vector<DeviceAnswer> device_answers(const SessionData& session,
                                         const std::vector<SummaryRow>& rows);

}  // namespace launchgap
