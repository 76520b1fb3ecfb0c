#include "harness/regression/report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/metric.h"

namespace launchgap::regression {
namespace {

bool compared(const Result& result) {
  switch (result.verdict) {
    case Verdict::slower:
    case Verdict::suspect:
    case Verdict::faster:
    case Verdict::same:
      return true;
    default:
      return false;
  }
}

}  // namespace

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

std::optional<double> Result::slowdown() const {
  if (!change) return std::nullopt;
  const Metric* const known = find_metric(key.metric);
  return known && known->direction == Direction::higher_is_better ? -*change : *change;
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::pairs:
      return "compare";
    case Kind::sessions:
      return "two sessions";
    case Kind::history:
      return "history";
  }
  return "";
}

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(results, verdict, &Result::verdict));
}

std::size_t Report::tests() const {
  return static_cast<std::size_t>(std::ranges::count_if(results, compared));
}

std::optional<double> Report::expected_false_alarms() const {
  std::optional<double> sum;
  for (const Result& result : results) {
    if (compared(result) && result.power) sum = sum.value_or(0) + result.power->false_alarm_rate;
  }
  return sum;
}

std::size_t Report::tests_without_rate() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      results, [](const Result& result) { return compared(result) && !result.power; }));
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
