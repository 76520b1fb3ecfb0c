#include "harness/rules/factors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace launchgap::rules {
namespace {

constexpr double kMostChance = 0.01;
constexpr double kExplains = 0.5;

std::optional<Explained> explained_by_groups(const std::vector<double>& logs,
                                             const std::vector<FactorValue>& values,
                                             double total,
                                             double mean) {
  std::map<std::string, std::pair<double, double>> groups;  // sum and number
  for (std::size_t i = 0; i < logs.size(); ++i) {
    auto& [sum, n] = groups[values[i].text];
    sum += logs[i];
    ++n;
  }
  const auto n = static_cast<double>(logs.size()), g = static_cast<double>(groups.size());
  if (groups.size() < 2 || groups.size() == logs.size()) return std::nullopt;
  double between = 0;
  for (const auto& [text, group] : groups) {
    const double own = group.first / group.second - mean;
    between += group.second * own * own;
  }
  const double within = std::max(total - between, 1e-12 * total);
  const double f = (between / (g - 1)) / (within / (n - g));
  // As many ways there are to divide the runs so: the best of them is found by chance once in all.
  double log_ways = std::lgamma(n + 1);
  for (const auto& [text, group] : groups) log_ways -= std::lgamma(group.second + 1);
  return Explained{between / total,
                   std::max(stats::f_beyond(g - 1, n - g, f), std::exp(-log_ways))};
}

/// Places in ascending order, from 1; of equal values their mean.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(static_cast<double>(below) + static_cast<double>(equal + 1) / 2);
  }
  return ranks;
}

/// By ranks, so that one run far from the others is no more than one.
std::optional<Explained> explained_by_numbers(const std::vector<double>& logs,
                                              const std::vector<FactorValue>& values) {
  std::vector<double> numbers;
  for (const FactorValue& value : values) numbers.push_back(*value.number);
  const std::vector<double> of_logs = ranks_of(logs), of_numbers = ranks_of(numbers);
  const double middle = (static_cast<double>(logs.size()) + 1) / 2;
  double own = 0, total = 0, both = 0;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    own += (of_numbers[i] - middle) * (of_numbers[i] - middle);
    total += (of_logs[i] - middle) * (of_logs[i] - middle);
    both += (of_numbers[i] - middle) * (of_logs[i] - middle);
  }
  if (!(own > 0) || !(total > 0)) return std::nullopt;
  const double share = std::min(both * both / (own * total), 1.0);
  const double freedom = static_cast<double>(logs.size()) - 2;
  const double t = std::sqrt(freedom * share / std::max(1 - share, 1e-12));
  return Explained{share, 2 * stats::student_t_beyond(freedom, t)};
}

}  // namespace

std::optional<Explained> explained(const std::vector<double>& logs,
                                   const std::vector<FactorValue>& values) {
  if (logs.size() < kFewestRunsForFactors || values.size() != logs.size()) return std::nullopt;
  const auto told = [](const FactorValue& value) {
    return value.number ? std::isfinite(*value.number) : !value.text.empty();
  };
  const auto finite = [](double log) { return std::isfinite(log); };
  if (!std::ranges::all_of(values, told) || !std::ranges::all_of(logs, finite)) return std::nullopt;
  const double mean = *stats::mean(logs);
  double total = 0;
  for (const double log : logs) total += (log - mean) * (log - mean);
  if (!(total > 0)) return std::nullopt;
  const bool numbers = std::ranges::all_of(
      values, [](const FactorValue& value) { return value.number.has_value(); });
  return numbers ? explained_by_numbers(logs, values)
                 : explained_by_groups(logs, values, total, mean);
}

std::string_view name_of(FactorVerdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"explains", "in-part", "may-be-chance"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

FactorVerdict verdict_of(const Explained& found, std::size_t tried) {
  if (found.chance * static_cast<double>(tried) > kMostChance) return FactorVerdict::may_be_chance;
  return found.variance_share >= kExplains ? FactorVerdict::explains : FactorVerdict::in_part;
}

}  // namespace launchgap::rules
