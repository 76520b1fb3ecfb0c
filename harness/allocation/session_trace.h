// The allocations among a session's kept events, as a trace.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/allocation/trace.h"

namespace launchgap::allocation {

/// Of one file of `events/`: what the program did with its allocator, or else what it took from the
/// driver. Addresses become numbers; what was freed without having been allocated is left out and
/// counted, and makes the trace `truncated`. Throws Error that names the file for what is damaged,
/// and if it has no allocations.
std::unique_ptr<Trace> open_events(const std::filesystem::path& events_file);

/// The same, or nothing if it has none.
std::unique_ptr<Trace> find_trace(const std::filesystem::path& events_file);
/// Says that something has no allocations, and what records them.
std::string no_allocations(const std::string& of);

/// The files of events of a session, sorted. Throws UsageError that says who keeps them if there
/// are none.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& session);

/// A gmtrace, or a session's one file of events, or of several the one that `run` names by part of
/// its name. Throws UsageError that says what it is instead.
std::unique_ptr<Trace> open_trace(const std::filesystem::path& path, const std::string& run);

}  // namespace launchgap::allocation
