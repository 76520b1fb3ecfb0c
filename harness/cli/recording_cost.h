// What recording a program costs it: starts with and without, in turns.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/cli/program_recorder.h"

namespace launchgap::cli {

/// Starts the program `rounds` times without recording and at each of `levels` (the names of
/// TraceLevel, from launches on), in another order each time; ends at the first start that fails.
/// Where none is recorded, only how long it runs is written by the same library.
RecordedStarts measure_recording_costs(const std::vector<std::string>& command,
                                       const injected::Settings& settings,
                                       int rounds,
                                       const std::filesystem::path& folder,
                                       const std::vector<std::string>& levels);

/// A line for each level; empty where there are none.
std::string cost_text(const std::vector<RecordingCost>& costs);

}  // namespace launchgap::cli
