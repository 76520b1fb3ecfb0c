// Kernels of a library that compute nothing: they bring a tensor into the layout or the type that
// the library computes in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// By the name that the trace gives, mangled or not. The names are those of cuDNN 9.19's kernels
/// that transform, transpose, fold, pad, convert or reorder tensors; a kernel of another name
/// counts as one that computes, and so does one that changes the layout while it computes.
bool only_changes_layout(std::string_view kernel);

/// The kernels of one case in all traced runs; launchgap's own are not among them.
struct LayoutKernels {
  std::string device, case_name;
  std::uint64_t count = 0, all_count = 0;  // kernels that only change the layout; all
  double ns = 0, all_ns = 0;               // that they take
  std::string kernel;                      // of the former, the one that takes the longest
};

/// Of the cases that have some, in the order of device and case.
std::vector<LayoutKernels> layout_kernels(const SessionData& session);

/// One per device, of the cases in which they take a tenth of the kernels' time or more.
std::vector<Finding> layout_findings(const SessionData& session);

}  // namespace launchgap
