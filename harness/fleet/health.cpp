#include "harness/fleet/health.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/stats/stats.h"

namespace launchgap::fleet {
namespace {

/// "GPU 2 (NVIDIA A100, GPU-5f3a…, 0000:07:00.0)".
std::string name_of(const DeviceFacts& device) {
  std::vector<std::string> parts;
  for (const std::string& part : {device.name, device.uuid, device.pci_bus_id.value_or("")}) {
    if (!part.empty()) parts.push_back(printable(part, 80));
  }
  return fmt::format("GPU {} ({})", device.index, fmt::join(parts, ", "));
}

/// What a finding of the doctor means; nothing for one that work can go on with.
std::optional<HealthState> state_of(const Finding& finding, bool any_usable) {
  if (finding.code == "ecc-uncorrectable" || finding.code == "memory-remap-failed")
    return HealthState::critical;
  if (finding.code == "memory-remap-pending") return HealthState::warning;
  if (finding.severity != Severity::prevents) return std::nullopt;
  return any_usable ? HealthState::warning : HealthState::critical;
}

struct Reason {
  HealthState state;
  std::string text;
};

void judge_gpu(const GpuHealth& gpu,
               const std::vector<GpuHealth>& all,
               const std::string& not_measured,
               std::vector<Reason>& why) {
  const std::string name = name_of(gpu.device);
  if (!gpu.problem.empty()) {
    why.push_back(
        {HealthState::critical, fmt::format("{}: {}", name, printable(gpu.problem, 300))});
    return;
  }
  if (!not_measured.empty() && gpu.busy.empty()) return;  // which is said once
  if (!gpu.busy.empty() || !gpu.roundtrip_ns) {
    // One that a session has is as well as that session finds it.
    why.push_back({gpu.busy.empty() ? HealthState::warning : HealthState::ok,
                   fmt::format("{} not measured: {}",
                               name,
                               printable(gpu.busy.empty() ? "no answer in time" : gpu.busy, 200))});
    return;
  }
  std::string of_what;
  const std::optional<double> score = score_of(gpu, all, of_what);
  if (!gpu.history_ns && gpu.published_score && *gpu.published_score < kPublishedScore) {
    why.push_back({HealthState::warning,
                   fmt::format("{}: launch and wait takes {}, and is {} times as fast as what is "
                               "published of its model",
                               name,
                               quantity(gpu.roundtrip_ns, "ns"),
                               times_text(*gpu.published_score))});
  }
  if (!score || *score >= kWarningScore) return;
  why.push_back({*score < kCriticalScore ? HealthState::critical : HealthState::warning,
                 fmt::format("{}: launch and wait takes {}, and is {} times as fast as {}",
                             name,
                             quantity(gpu.roundtrip_ns, "ns"),
                             times_text(*score),
                             of_what)});
}

/// For Nagios: a value is a label in quotes, and a number with its unit.
std::string measured_text(const std::vector<GpuHealth>& gpus) {
  std::string text;
  for (const GpuHealth& gpu : gpus) {
    if (gpu.roundtrip_ns)
      text +=
          fmt::format(" '{}'={:.2f}us", file_name_part(gpu.device.uuid), *gpu.roundtrip_ns / 1000);
  }
  return text.empty() ? "" : " |" + text;
}

}  // namespace

std::string_view name_of(HealthState state) {
  constexpr std::string_view kNames[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  return kNames[static_cast<std::size_t>(state)];
}

std::optional<double> score_of(const GpuHealth& gpu,
                               const std::vector<GpuHealth>& all,
                               std::string& of_what) {
  if (!gpu.roundtrip_ns || !(*gpu.roundtrip_ns > 0)) return std::nullopt;
  std::optional<double> least;
  const auto take = [&](double expected_ns, const char* what) {
    const double score = expected_ns / *gpu.roundtrip_ns;
    if (least && *least <= score) return;
    least = score;
    of_what = fmt::format("{} ({})", what, quantity(expected_ns, "ns"));
  };
  if (gpu.history_ns) take(*gpu.history_ns, "in its best night");
  std::vector<double> alike;
  for (const GpuHealth& other : all) {
    if (other.device.name == gpu.device.name && other.roundtrip_ns)
      alike.push_back(*other.roundtrip_ns);
  }
  if (alike.size() >= 3) take(*stats::median(alike), "the median of its kind on this node");
  return least;
}

HealthAnswer judge(const NodeHealth& node) {
  std::vector<Reason> why;
  if (!node.problem.empty()) why.push_back({HealthState::critical, printable(node.problem, 300)});
  if (!node.not_measured.empty()) {
    why.push_back({HealthState::warning,
                   fmt::format("no launch was timed: {}", printable(node.not_measured, 300))});
  }
  if (!node.history_problem.empty()) {
    why.push_back(
        {HealthState::warning,
         fmt::format("its nights are not known: {}", printable(node.history_problem, 300))});
  }
  const bool any_usable =
      std::ranges::any_of(node.gpus, [](const GpuHealth& gpu) { return gpu.problem.empty(); });
  for (const Finding& finding : node.findings) {
    const auto state = state_of(finding, any_usable);
    if (!state) continue;
    why.push_back({*state, fmt::format("{} [{}]", printable(finding.sentence, 300), finding.code)});
  }
  const auto expected = static_cast<std::size_t>(node.expected_gpus.value_or(0));
  if (node.gpus.size() < expected) {
    why.push_back({HealthState::critical,
                   fmt::format("{} of {} GPUs are found", node.gpus.size(), expected)});
  }
  for (const GpuHealth& gpu : node.gpus) judge_gpu(gpu, node.gpus, node.not_measured, why);
  HealthAnswer answer;
  if (node.gpus.empty() && why.empty())
    why.push_back({HealthState::unknown, "this machine has no GPU to look at"});
  std::ranges::stable_sort(
      why, std::ranges::greater(), [](const Reason& reason) { return reason.state; });
  if (!why.empty()) answer.state = why.front().state;
  std::vector<std::string> texts;
  for (const Reason& reason : why) texts.push_back(reason.text);
  if (answer.state == HealthState::ok) {
    texts.insert(texts.begin(), fmt::format("{} well", counted(node.gpus.size(), "GPU")));
  }
  std::string said = fmt::format("{}", fmt::join(texts, "; "));
  std::ranges::replace(said, '|', '/');  // behind it Nagios reads numbers
  answer.line = fmt::format("launchgap {} {}: {}{}",
                            name_of(answer.state),
                            printable(node.node, 60),
                            said,
                            measured_text(node.gpus));
  return answer;
}

}  // namespace launchgap::fleet
