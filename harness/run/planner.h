// Which cases run on which devices, how often, under tracing or not, and in which order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/plan.h"
#include "harness/device/facts.h"

namespace launchgap {

/// What is planned for.
struct PlanRequest {
  Profile profile = Profile::quick;
  std::string filter = {};       // ECMAScript expression, '-' in front negates; empty: everything
  std::optional<int> runs = {};  // else as the profile and the benchmarks have it
  bool trace_host = true;
  bool trace_gpus = true;
  bool trace_all = true;        // else in quick not the host's products
  bool observer_effect = true;  // of tracing, in processes of its own
  std::uint64_t seed = 0;
};

/// Everything that the devices do. Throws UsageError if the filter is no expression, or if no case
/// passes it.
Plan plan_cases(const std::vector<DeviceFacts>& devices, const PlanRequest& request);

/// What its records will take, estimated.
double record_bytes(const Plan& plan, Profile profile);

}  // namespace launchgap
