// What others have published about launches, beside what was measured here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

struct LaunchAnchor {  // a row of data/launch_anchors.csv
  std::string gpu;
  std::string quantity;
  double ns = 0;
  std::string method;
  std::string host;
  std::string source;
};

/// The embedded table, read once. Throws Error if a row does not make sense.
const std::vector<LaunchAnchor>& launch_anchors();
std::vector<LaunchAnchor> parse_launch_anchors(std::string_view csv);

/// A published value and ours, measured in the same way.
struct Published {
  const SummaryRow* ours = nullptr;
  const LaunchAnchor* theirs = nullptr;
  bool same_model = false;  // of GPU, by name

  double ratio() const { return *ours->p50 / theirs->ns; }
};

/// Every published value whose method a case repeats, for every GPU on which that case was
/// measured; plain runs. The host's numbers are compared with none.
std::vector<Published> published(const SessionData& session,
                                 const std::vector<SummaryRow>& rows,
                                 const std::vector<LaunchAnchor>& anchors = launch_anchors());

/// Whether a device's name means the GPU model that a table calls `model`: "NVIDIA H200" is an
/// "H200", "NVIDIA A100-SXM4-80GB" an "A100" and an "A100-80", "RTX 3080 Ti" no "RTX 3080".
bool is_model(std::string_view device_name, std::string_view model);

/// T(V) = a + V / b by least squares over the sizes of small kernels.
struct SmallKernelFit {
  std::string device;
  std::string method;
  std::size_t sizes = 0;
  std::size_t runs = 0;
  double overhead_ns = 0;                            // a, of the medians
  std::optional<double> overhead_min, overhead_max;  // a of each run by itself
  std::optional<double> bytes_per_ns;                // b; absent where time does not grow with size
};

/// For each device and method with three sizes at least.
std::vector<SmallKernelFit> small_kernel_fits(const std::vector<SummaryRow>& rows);

// --- What others have published, as an import keeps it in a session's folder `published` ---

/// Reads the files of a session of published tables: into its cases, with a run for each GPU and
/// family and the arm `published`, or, of more than
/// kMostPublishedCases values, into `published`. A product or convolution whose shape is in
/// its case has both `tflops` and `device_ns`, of which one may be computed from the other; among
/// very many only the rate. What cannot be read is a line of the session's `problems`.
void read_published(SessionData& session, const PublishedSheets& sheets);

}  // namespace launchgap
