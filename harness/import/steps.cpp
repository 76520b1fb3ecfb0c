#include "harness/import/steps.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/core/number_text.h"
#include "harness/import/call_names.h"
#include "harness/import/cover.h"
#include "harness/stats/random_effects.h"

namespace launchgap::recording {
namespace {

/// What stands behind the name of a step: nothing, or "#" and digits, which are its number, or the
/// number that PyTorch gives an operator, which is none of the step. Nothing
/// at all for another range. Digits that no number has room for are a name.
struct StepName {
  std::optional<std::uint64_t> number;
};

std::optional<StepName> step_name(std::string_view range, std::string_view step) {
  if (!range.starts_with(step)) return std::nullopt;
  std::string_view rest = range.substr(step.size());
  if (rest.empty() || rest.starts_with(", op_id = ")) return StepName{};
  if (rest.front() != '#' || rest.size() < 2) return std::nullopt;
  rest.remove_prefix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::ranges::all_of(rest, is_digit)) return std::nullopt;
  return StepName{number_of_text<std::uint64_t>(rest)};
}

RecordedCv cv_of(const stats::Estimate& sd) {
  return {stats::lognormal_cv(sd.value),
          stats::lognormal_cv(sd.interval.low),
          stats::lognormal_cv(sd.interval.high)};
}

}  // namespace

std::vector<Step> steps_of(const Process& process, std::string_view name) {
  std::vector<Step> steps;
  bool numbered = true;
  for (const Range& range : process.ranges) {
    if (range.begin_ns <= 0 || range.end_ns <= range.begin_ns) continue;
    const auto found = step_name(process.trace.name(range.name), name);
    if (!found) continue;
    numbered = numbered && found->number;
    steps.push_back({range.begin_ns, range.end_ns, found->number.value_or(0)});
  }
  std::ranges::stable_sort(steps, {}, &Step::begin_ns);
  if (!numbered) {
    for (std::uint64_t i = 0; Step & step : steps) step.number = i++;
  }
  return steps;
}

std::vector<StepVariation> step_variation(const Process& process,
                                          const RecordedLaunches& launches,
                                          std::uint64_t gpu,
                                          const std::vector<Step>& steps,
                                          bool clocks_agree) {
  using Groups = std::vector<std::vector<double>>;  // by step
  std::map<std::pair<StreamState, std::string_view>, Groups> found;
  const auto add = [&](StreamState state, std::string_view metric, std::size_t step, auto ns) {
    Groups& groups = found[{state, metric}];
    groups.resize(steps.size());
    if (ns > 0) groups[step].push_back(static_cast<double>(ns));
  };
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.is_graph || !launch.stream || process.streams[*launch.stream].gpu != gpu) continue;
    const activity::Call& call = process.trace.calls[launch.call];
    const auto next = std::ranges::upper_bound(steps, call.begin_ns, {}, &Step::begin_ns);
    if (next == steps.begin() || std::prev(next)->end_ns <= call.begin_ns) continue;
    const auto step = static_cast<std::size_t>(std::prev(next) - steps.begin());
    const StreamState state = clocks_agree ? launch.state : StreamState::unknown;
    add(state, "api_record_ns", step, call.end_ns - call.begin_ns);
    if (state == StreamState::idle) add(state, "launch_ns", step, launch.begin_ns - call.begin_ns);
  }
  std::vector<StepVariation> result;
  for (auto& [key, groups] : found) {
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    const stats::RandomEffects effects = stats::random_effects(groups);
    if (!effects.within_sd || !effects.between_sd) continue;
    result.push_back({fmt::format("recorded/launch/stream:{}", name_of(key.first)),
                      std::string(key.second),
                      groups.size(),
                      cv_of(*effects.within_sd),
                      cv_of(*effects.between_sd)});
  }
  return result;
}

// --- What a GPU did in steps and before collectives ---

namespace {

/// When what ran on a GPU, and when the program loaded data.
class DividedWork {
 public:
  DividedWork(const Process& process, std::uint64_t gpu, const GpuGaps& gaps) : gaps_(gaps) {
    const activity::Trace& trace = process.trace;
    std::vector<bool> collective;
    for (const std::string& name : trace.names()) collective.push_back(is_collective(name));
    const auto add = [&](const auto& record, auto&... covers) {
      if (has_times(record) && process.streams[record.stream].gpu == gpu)
        (covers.add(record.begin_ns, record.end_ns), ...);
    };
    for (const activity::KernelRun& kernel : trace.kernels) {
      if (collective[kernel.name]) {
        add(kernel, all_);
      } else {
        add(kernel, kernels_, with_copies_, with_input_, all_);
      }
    }
    for (const activity::Graph& graph : trace.graphs)
      add(graph, kernels_, with_copies_, with_input_, all_);
    for (const activity::Transfer& transfer : trace.transfers) {
      if (transfer.from_host) {
        add(transfer, with_input_, all_);
      } else {
        add(transfer, with_copies_, with_input_, all_);
      }
    }
    std::vector<bool> loading;
    for (const std::string& name : trace.names()) loading.push_back(loads_data(name));
    for (const Range& range : process.ranges) {
      if (loading[range.name] && has_times(range)) loading_.add(range.begin_ns, range.end_ns);
    }
    for (Cover* const cover : {&kernels_, &with_copies_, &with_input_, &all_, &loading_})
      cover->build();
  }

  /// Adds a stretch, less the time in which only collectives ran.
  void add(std::int64_t from_ns, std::int64_t to_ns, StretchParts& parts) const {
    std::array<std::int64_t, kStretchParts.size()> own{};
    const auto part = [&own](StretchPart which) -> std::int64_t& {
      return own[static_cast<std::size_t>(which)];
    };
    if (to_ns > from_ns) {
      const std::int64_t kernels = kernels_.within(from_ns, to_ns);
      const std::int64_t with_copies = with_copies_.within(from_ns, to_ns);
      const std::int64_t with_input = with_input_.within(from_ns, to_ns);
      const Idleness idle = gaps_.within(from_ns, to_ns);
      const std::int64_t loading = gaps_.program_in(loading_, from_ns, to_ns);
      part(StretchPart::kernels) = kernels;
      part(StretchPart::copies) = with_copies - kernels;
      part(StretchPart::input) = with_input - with_copies + loading;
      part(StretchPart::program) = idle.of(IdleCause::program) - loading;
      part(StretchPart::launches) = idle.of(IdleCause::launch);
      part(StretchPart::waits) = idle.of(IdleCause::waiting);
      part(StretchPart::allocations) = idle.of(IdleCause::allocating);
      part(StretchPart::calls) = idle.of(IdleCause::calling);
      part(StretchPart::queued) = idle.of(IdleCause::queued);
      // Also before the GPU's first work and after its last.
      const std::int64_t collectives = all_.within(from_ns, to_ns) - with_input;
      part(StretchPart::unknown) =
          to_ns - from_ns - collectives - with_input - idle.idle() + idle.of(IdleCause::unknown);
    }
    for (std::size_t i = 0; i < own.size(); ++i) parts.ns[i].push_back(own[i]);
  }

 private:
  const GpuGaps& gaps_;
  Cover kernels_, with_copies_, with_input_, all_, loading_;
};

}  // namespace

bool loads_data(std::string_view range) {
  std::string letters;
  for (const char c : range.substr(0, 100)) {
    if (std::isalpha(static_cast<unsigned char>(c)))
      letters.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  constexpr std::string_view kNames[] = {
      "dataload", "loaddata", "loadbatch", "nextbatch", "getbatch", "fetchbatch", "inputpipeline"};
  return std::ranges::any_of(
      kNames, [&](std::string_view name) { return letters.find(name) != std::string::npos; });
}

std::vector<CollectiveRecord> collectives_of(const Process& process,
                                             std::uint64_t gpu,
                                             const GpuGaps& gaps) {
  std::vector<const activity::KernelRun*> found;
  for (const activity::KernelRun& kernel : process.trace.kernels) {
    if (process.streams[kernel.stream].gpu == gpu && has_times(kernel) &&
        is_collective(process.trace.name(kernel.name)))
      found.push_back(&kernel);
  }
  if (found.empty()) return {};
  std::ranges::stable_sort(
      found, {}, [](const activity::KernelRun* kernel) { return kernel->begin_ns; });
  const DividedWork work(process, gpu, gaps);
  std::map<std::uint32_t, CollectiveRecord> by_name;
  std::int64_t ended_ns = found.front()->begin_ns;
  for (const activity::KernelRun* const kernel : found) {
    CollectiveRecord& own = by_name[kernel->name];
    own.name = process.trace.name(kernel->name);
    own.ns.push_back(kernel->end_ns - kernel->begin_ns);
    work.add(ended_ns, kernel->begin_ns, own.before);
    ended_ns = std::max(ended_ns, kernel->end_ns);
  }
  std::vector<CollectiveRecord> records;
  for (auto& [name, own] : by_name) records.push_back(std::move(own));
  return records;
}

StretchParts step_parts(const Process& process,
                        std::uint64_t gpu,
                        const GpuGaps& gaps,
                        std::string_view step_name) {
  StretchParts parts;
  const std::vector<Step> steps = steps_of(process, step_name);
  if (steps.empty()) return parts;
  const DividedWork work(process, gpu, gaps);
  for (const Step& step : steps) work.add(step.begin_ns, step.end_ns, parts);
  return parts;
}

}  // namespace launchgap::recording
