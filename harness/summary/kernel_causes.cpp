// Kernels whose time changes: compared with all of them, since what takes no time is no matter.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/import/call_names.h"
#include "harness/summary/causes.h"

namespace launchgap {
namespace {

using cause_text::kMostNamed;

struct Found {
  const CountedKernels* kernel;
  double lost_ns;
};

double sum(std::vector<Found>& found) {
  std::ranges::stable_sort(found, std::ranges::greater(), &Found::lost_ns);
  double all = 0;
  for (const Found& one : found) all += one.lost_ns;
  return all;
}

std::vector<Evidence> named(const std::vector<Found>& found, const auto& text) {
  std::vector<Evidence> lines;
  for (const Found& one : found) {
    if (lines.size() < kMostNamed) lines.emplace_back(text(*one.kernel));
  }
  if (found.size() > kMostNamed)
    lines.emplace_back(fmt::format("{} more: kernels.csv", found.size() - kMostNamed));
  return lines;
}

/// Kernels that have changed, and those of two modes.
struct Changes {
  std::vector<Found> changed, modal;
  std::size_t tested = 0;
};

Changes changes_of(const std::vector<CountedKernels>& kernels, double total_ns) {
  constexpr double kRatio = 1.05, kWorthIt = 0.005;
  Changes changes;
  changes.tested = static_cast<std::size_t>(std::ranges::count_if(
      kernels, [](const CountedKernels& kernel) { return kernel.change_chance.has_value(); }));
  const auto tested = static_cast<double>(changes.tested);
  for (const CountedKernels& kernel : kernels) {
    const double early = kernel.early_ns.value_or(0), late = kernel.late_ns.value_or(0);
    // Of many kernels, one may differ by chance alone: Bonferroni.
    const bool certain = kernel.change_chance &&
                         *kernel.change_chance * tested <= cause_text::kCertain &&
                         std::max(early, late) >= kRatio * std::min(early, late);
    const double change = std::abs(late - early) * static_cast<double>(kernel.repeats.value_or(0));
    const double modes = kernel.modes_apart_ns.value_or(0) * kernel.slow_mode_share.value_or(0) *
                         static_cast<double>(kernel.count);
    if (certain && change >= kWorthIt * total_ns) {
      changes.changed.push_back({&kernel, change / 2});
    } else if (kernel.modes_apart_ns && modes >= kWorthIt * total_ns) {
      changes.modal.push_back({&kernel, modes});
    }
  }
  return changes;
}

constexpr double kToAct = 0.02;
constexpr const char* kPeers =
    "Its time contains waiting for the other GPUs: see which rank comes late.";

void add_changed(const RecordedProcess& process,
                 std::vector<Found>& changed,
                 std::size_t tested,
                 std::vector<Finding>& causes) {
  if (changed.empty()) return;
  // What became faster is worth knowing, and nothing is lost by it. What grows or shrinks all the
  // way has other work from one repetition to the next.
  double slower = 0, to_act = 0;
  for (const Found& one : changed) {
    if (*one.kernel->late_ns <= *one.kernel->early_ns) continue;
    slower += one.lost_ns;
    if (!one.kernel->ramp.value_or(false) && !recording::is_collective(one.kernel->name))
      to_act += one.lost_ns;
  }
  sum(changed);
  const CountedKernels& most = *changed.front().kernel;
  const bool ramp = most.ramp.value_or(false);
  Finding& cause = causes.emplace_back(process.finding(
      "kernel-changed",
      to_act >= kToAct * process.total_kernel_ns() ? Severity::act : Severity::note));
  cause.sentence = fmt::format(
      "{} takes {} in the later half and took {} in the earlier, launched with the same name and "
      "grid{}{}.",
      cause_text::name(most.name),
      cause_text::time(*most.late_ns),
      cause_text::time(*most.early_ns),
      ramp ? ": it grows or shrinks all the way" : "",
      changed.size() == 1 ? ""
                          : fmt::format("; {} of {} such kernels changed", changed.size(), tested));
  cause.evidence = named(changed, [](const CountedKernels& kernel) {
    return fmt::format("{}: {} then {} a repetition, of {}, chance {}",
                       cause_text::name(kernel.name),
                       cause_text::time(*kernel.early_ns),
                       cause_text::time(*kernel.late_ns),
                       *kernel.repeats,
                       cause_text::chance(*kernel.change_chance));
  });
  cause.remedy = recording::is_collective(most.name) ? kPeers
                 : ramp ? "Its work probably changes from one repetition to the next. If it does "
                          "not, watch the GPU's clocks and temperature while the job runs."
                        : "See whether its input changed. If not, watch the GPU's clocks, "
                          "temperature and neighbours while the job runs.";
  cause.unknown = "whether its input was the same: no recording has it";
  if (slower > 0) cause.share = process.share(slower);
}

void add_modal(const RecordedProcess& process,
               std::vector<Found>& modal,
               std::vector<Finding>& causes) {
  if (modal.empty()) return;
  const double lost = sum(modal);
  double to_act = 0;
  for (const Found& one : modal)
    to_act += recording::is_collective(one.kernel->name) ? 0 : one.lost_ns;
  const CountedKernels& most = *modal.front().kernel;
  Finding& cause = causes.emplace_back(
      process.finding("kernel-modes",
                      to_act >= kToAct * process.total_kernel_ns() ? Severity::act : Severity::note,
                      lost));
  cause.sentence = fmt::format(
      "{} takes {} or {} at the same place of the same work: its times form two clusters{}.",
      cause_text::name(most.name),
      cause_text::time(*most.fast_mode_ns),
      cause_text::time(*most.fast_mode_ns + *most.modes_apart_ns),
      modal.size() == 1
          ? ""
          : fmt::format(", and so do those of {}", counted(modal.size() - 1, "other kernel")));
  cause.evidence = named(modal, [](const CountedKernels& kernel) {
    return fmt::format("{}: {} of its runs take {} longer than {}",
                       cause_text::name(kernel.name),
                       percent_text(*kernel.slow_mode_share),
                       cause_text::time(*kernel.modes_apart_ns),
                       cause_text::time(*kernel.fast_mode_ns));
  });
  cause.remedy = recording::is_collective(most.name)
                     ? kPeers
                     : "See what runs beside it (other streams, copies, collectives) and whether "
                       "its input differs. If neither, watch the GPU's clocks.";
}

}  // namespace

void add_kernel_causes(const RecordedProcess& process, std::vector<Finding>& causes) {
  if (!process.kernels) return;
  Changes changes = changes_of(*process.kernels, process.total_kernel_ns());
  add_changed(process, changes.changed, changes.tested, causes);
  add_modal(process, changes.modal, causes);
}

}  // namespace launchgap
