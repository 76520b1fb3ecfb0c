// What it costs when a program falls back to the CPU: the host and a GPU on the same case.
#pragma once

#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// One case that both the host and a GPU computed.
struct FallbackCost {
  std::string device;  // the GPU's UUID
  CaseName name;
  double gpu_ns = 0, host_ns = 0;  // per operation: medians of device_ns, plain runs

  /// How many times as long the host takes.
  double ratio() const { return host_ns / gpu_ns; }
};

/// Every case of matrix products and convolutions that a session has of the host and of a GPU.
std::vector<FallbackCost> fallback_costs(const SessionData& session,
                                         const std::vector<SummaryRow>& rows);

/// One per GPU and family: the median ratio over its cases, and the cases with the smallest and the
/// largest.
std::vector<Finding> fallback_findings(const SessionData& session,
                                       const std::vector<FallbackCost>& costs);

}  // namespace launchgap
