#include "harness/summary/layout_kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "harness/core/trace_state.h"
#include "harness/summary/session_findings.h"

namespace launchgap {
namespace {

constexpr double kLeastShare = 0.1;
constexpr std::size_t kLongestName = 100;

/// "void cudnn::ops::nchwToNhwcKernel<float, …>(…)" without what follows the name, where the types
/// of parameters may have such words too.
std::string_view without_parameters(std::string_view kernel) {
  return kernel.substr(0, kernel.find_first_of("<("));
}

Finding finding_of(const std::vector<const LayoutKernels*>& cases, const std::string& device) {
  const LayoutKernels& most = **std::ranges::max_element(
      cases, {}, [](const LayoutKernels* own) { return own->ns / own->all_ns; });
  Finding finding =
      new_finding(FindingSource::session, "layout-kernels", Severity::act, device, most.device);
  finding.share = most.ns / most.all_ns;
  finding.sentence = fmt::format(
      "{} up to {:.0f} % of the GPU's time on kernels that only bring tensors into another "
      "layout.",
      cases.size() == 1 ? "1 case spends" : fmt::format("{} cases spend", cases.size()),
      100 * *finding.share);
  for (const LayoutKernels* const own : cases) {
    finding.evidence.emplace_back(
        fmt::format("{}: {} of {} kernels, {}",
                    own->case_name,
                    own->count,
                    own->all_count,
                    without_parameters(own->kernel).substr(0, kLongestName)),
        own->ns / own->all_ns,
        std::string(kShareUnit));
    finding.cases += (finding.cases.empty() ? "" : " ") + own->case_name;
  }
  finding.remedy =
      "Keep the tensors in the layout that the library computes in, for tensor cores NHWC "
      "(channels last): convolution/shapes measures both.";
  return finding;
}

}  // namespace

bool only_changes_layout(std::string_view kernel) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "nchwTo",
      "nhwcTo",
      "NchwTo",
      "NhwcTo",
      "AddPaddingKernel",
      "SliceCKernel",
      "tensorTransformGeneric",
      "transposeWarp_kernel",
      "transposeBlock_kernel",
      "transposeDirect_kernel",
      "genericTranspose_kernel",
      "cubeTransposeDeviceGeneric_kernel",
      "transpose_readWrite_alignment_kernel",
      "convertTensor_kernel",
      "genericVectorizedConvertTensor",
      "cuda_reorder_imma"};
  const std::string_view name = without_parameters(kernel);
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return name.find(word) != name.npos; });
}

std::vector<LayoutKernels> layout_kernels(const SessionData& session) {
  std::map<std::pair<std::string, std::string>, LayoutKernels> sums;
  std::map<std::pair<std::string, std::string>, double> longest;
  for (const TraceInfo& trace : session.traces) {
    const TraceRecord& record = trace.record;
    if (record.of_run() || record.state != text_of(TraceState::ok) ||
        !trace.process_config.usual() || !record.kernels)
      continue;
    const std::pair key(trace.device, *record.case_name);
    for (const CountedKernels& kernel : *record.kernels) {
      if (kernel.name.starts_with("launchgap_")) continue;
      LayoutKernels& own = sums[key];
      std::tie(own.device, own.case_name) = key;
      const auto ns = static_cast<double>(kernel.total_ns);
      own.all_count += kernel.count;
      own.all_ns += ns;
      if (!only_changes_layout(kernel.name)) continue;
      own.count += kernel.count;
      own.ns += ns;
      if (own.kernel.empty() || ns > longest[key]) {
        own.kernel = kernel.name;
        longest[key] = ns;
      }
    }
  }
  std::vector<LayoutKernels> all;
  for (auto& [key, own] : sums) {
    if (own.count > 0) all.push_back(std::move(own));
  }
  return all;
}

std::vector<Finding> layout_findings(const SessionData& session) {
  const DeviceLabels labels(session);
  const std::vector<LayoutKernels> all = layout_kernels(session);
  std::map<std::string, std::vector<const LayoutKernels*>> by_device;
  for (const LayoutKernels& own : all) {
    if (own.all_ns > 0 && own.ns >= kLeastShare * own.all_ns) by_device[own.device].push_back(&own);
  }
  std::vector<Finding> findings;
  for (const auto& [device, cases] : by_device)
    findings.push_back(finding_of(cases, labels.of(device)));
  return findings;
}

}  // namespace launchgap
