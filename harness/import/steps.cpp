#include "harness/import/steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "harness/core/number_text.h"
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

}  // namespace launchgap::recording
