// Names in Chrome traces that reading and writing share.
#pragma once

#include <string>
#include <string_view>

#include "harness/device/activity.h"

namespace launchgap::recording {

/// The category of a graph that was recorded as a whole; launchgap's own.
inline constexpr std::string_view kWholeGraph = "launchgap_graph";

/// As Kineto names overheads, and back: any name with such a part.
std::string_view name_of_overhead(activity::OverheadKind kind);
activity::OverheadKind overhead_named(std::string_view name);

/// The name of a launch call by which tools know it: "cudaLaunchKernel" of
/// "__cudaLaunchKernel_ptsz".
std::string name_for_tools(std::string_view call);

}  // namespace launchgap::recording
