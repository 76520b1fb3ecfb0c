// The events of launchgap's own traces, in the model of recordings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Whether an event between these times is kept.
using KeepsEvent = std::function<bool(std::int64_t begin_ns, std::int64_t end_ns)>;

/// Those events of `trace` that `keeps` keeps, of process `pid` and of its one GPU, number 0.
Process own_events(const activity::Trace& trace, std::uint64_t pid, const KeepsEvent& keeps);

/// Forgets what `keeps` does not keep.
void keep_only(Process& process, const KeepsEvent& keeps);

/// "cuLaunchKernel"; "driver call 4242" where the number says no more.
std::string name_of_own_call(activity::Domain domain, std::uint32_t id);

}  // namespace launchgap::recording
