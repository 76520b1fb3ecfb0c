// What calls are for, by the names and numbers that recorders give them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/device/activity.h"

namespace launchgap::recording {

/// By name: "cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cudaMemcpyAsync". A version at the end
/// is part of no name.
activity::Purpose purpose_of(std::string_view name);

/// "cu…" is the driver's, anything else the runtime's.
activity::Domain domain_of(std::string_view name);

/// "cudaLaunchKernel" of "cudaLaunchKernel_v7000".
std::string_view without_version(std::string_view name);

/// The name of a call that nvprof knows by its number alone; empty for one that says nothing about
/// launches.
std::string_view name_of_call(activity::Domain domain, std::uint64_t number);

/// The same; "driver call 4242" for one that says nothing.
std::string name_or_number(activity::Domain domain, std::uint64_t number);

/// A wait for all of a device, by which name a recorder may know it.
bool waits_for_device(std::string_view name);

/// Of a kernel in which GPUs talk to each other, and wait for each other.
bool is_collective(std::string_view kernel);

/// "hipLaunchKernel": of an AMD GPU.
bool is_of_amd(std::string_view name);

}  // namespace launchgap::recording
