#include <optional>

#include <fmt/format.h>

#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/doctor/compatibility/what_if.h"

namespace launchgap::doctor {
namespace {

constexpr const char* kCurrent = "current";

std::optional<Capability> capability_of(std::string_view gpu, std::string_view capability) {
  if (const auto known = find_gpu(gpu)) return known->capability;
  if (capability.empty()) return std::nullopt;
  const auto known = find_gpu(capability);
  return known ? std::optional(known->capability) : std::nullopt;
}

/// The newest release of cuDNN that a confirmed row has for the GPU. Open where the newest row has
/// no upper end.
std::optional<LastSupport> last_cudnn(Capability capability) {
  std::optional<LastSupport> last;
  std::optional<Version> newest;
  for (const CudnnRow& row : tables().cudnn) {
    if (row.source.recalled("min_cc") || row.source.recalled("cudnn") || !row.minimum ||
        capability < *row.minimum || (row.maximum && *row.maximum < capability))
      continue;
    const std::vector<Version> versions = row.cudnn.versions();
    if (versions.empty() || (newest && !(*newest < versions.back()))) continue;
    newest = versions.back();
    const bool open = row.cudnn.text().ends_with('+');
    last = LastSupport{"cuDNN", open ? std::string(kCurrent) : newest->text(), row.source.text};
  }
  return last;
}

}  // namespace

std::vector<LastSupport> last_support(std::string_view gpu, std::string_view capability) {
  const auto known = capability_of(gpu, capability);
  if (!known) return {};
  std::vector<LastSupport> all;
  if (const ArchitectureRow* const life = life_of(*known)) {
    all.push_back({"CUDA toolkit",
                   life->last_toolkit ? life->last_toolkit->text() : kCurrent,
                   life->source.text});
    if (life->driver_branch_applies)
      all.push_back({"driver",
                     life->last_driver_branch ? fmt::format("R{}", *life->last_driver_branch)
                                              : std::string(kCurrent),
                     life->source.text});
  }
  if (auto cudnn = last_cudnn(*known)) all.push_back(*std::move(cudnn));
  for (const char* framework : {"tensorflow", "torch"}) {
    const Newest newest = newest_builds(framework, *known, std::nullopt);
    if (newest.certain)
      all.push_back({title_of(framework),
                     fmt::format("{} with CUDA {} ({})",
                                 newest.certain->version.text(),
                                 newest.certain->cuda.text(),
                                 newest.certain->package),
                     "data/tensorflow_builds.csv, data/pytorch_builds.csv"});
  }
  return all;
}

}  // namespace launchgap::doctor
