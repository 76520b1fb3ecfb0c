// The kept events of a process as a Chrome trace by Kineto's conventions: for Perfetto,
// chrome://tracing and Holistic Trace Analysis; and `launchgap import` reads it back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace launchgap::recording {

/// A value that somebody read of a GPU while the events happened.
struct CounterValue {
  std::string name;        // "power"
  std::string unit;        // "W"
  std::int64_t at_ns = 0;  // on the clock of the events
  double value = 0;
};

/// Writes `output`, compressed if its name ends in .gz, in memory for a block of events. Returns
/// how many events have no time that a trace could show, and were left out. Throws Error for a
/// damaged file of events, and WriteError.
std::uint64_t export_chrome_trace(const std::filesystem::path& events_file,
                                  const std::filesystem::path& output,
                                  const std::vector<CounterValue>& counters = {});

}  // namespace launchgap::recording
