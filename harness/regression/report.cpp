#include "harness/regression/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/metric.h"

namespace launchgap::regression {

std::string text_of(const std::vector<KeyChange>& changes) {
  std::string text;
  for (const KeyChange& change : changes) {
    text += fmt::format("{}{} {} → {}",
                        text.empty() ? "" : ", ",
                        change.key,
                        change.from.empty() ? "unknown" : change.from,
                        change.to.empty() ? "unknown" : change.to);
  }
  return text;
}

bool Result::is_compared() const {
  return verdict == Verdict::slower || verdict == Verdict::suspect || verdict == Verdict::faster ||
         verdict == Verdict::same;
}

std::optional<double> Result::slowdown() const {
  if (!change) return std::nullopt;
  const Metric* const known = find_metric(key.metric);
  return known && known->direction == Direction::higher_is_better ? -*change : *change;
}

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"compare", "two sessions", "history"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(results, verdict, &Result::verdict));
}

std::size_t Report::tests() const {
  return static_cast<std::size_t>(std::ranges::count_if(results, &Result::is_compared));
}

std::optional<double> Report::expected_false_alarms() const {
  std::optional<double> sum;
  for (const Result& result : results) {
    if (result.is_compared() && result.power)
      sum = sum.value_or(0) + result.power->false_alarm_rate;
  }
  return sum;
}

std::size_t Report::tests_without_rate() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      results, [](const Result& result) { return result.is_compared() && !result.power; }));
}

std::vector<const Result*> Report::worst_first() const {
  std::vector<const Result*> sorted;
  std::ranges::transform(
      results, std::back_inserter(sorted), [](const Result& result) { return &result; });
  const auto gravity = [](const Result* result) {
    return std::tuple(result->verdict, -std::abs(result->change.value_or(0)));
  };
  std::ranges::stable_sort(sorted, {}, gravity);
  return sorted;
}

ExitCode Report::exit_code() const {
  const bool erratic =
      std::ranges::find(results, Steadiness::erratic, &Result::steadiness) != results.end();
  if (count(Verdict::slower) > 0 || (strictness.gate_spread && erratic))
    return ExitCode::regression;
  const bool lacking = count(Verdict::invalid) > 0 || count(Verdict::no_baseline) > 0 ||
                       count(Verdict::cannot_tell) > 0;
  if (!invalid.empty() || (strictness.require_baseline && lacking)) return ExitCode::failed;
  return ExitCode::done;
}

std::string change_text(const Result& result) {
  if (!result.change) return "";
  std::string text = fmt::format("{:+.1f} %", 100 * *result.change);
  if (result.interval)
    text +=
        fmt::format(" [{:+.1f}, {:+.1f}]", 100 * result.interval->low, 100 * result.interval->high);
  return text;
}

}  // namespace launchgap::regression
