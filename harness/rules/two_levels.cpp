#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/rules/nights.h"
#include "harness/stats/stats.h"

namespace launchgap::rules {
namespace {

constexpr std::size_t kFewestOfLevel = 3;
constexpr double kShareOfLevel = 0.1;
constexpr double kLevelsApart = 0.03;
constexpr double kBetterThanChanges = 1.5;
constexpr int kFewestSteps = 4;

/// Sums of numbers from the first on, and of their squares, so that a part's squares about its mean
/// are found at once.
class Parts {
 public:
  explicit Parts(std::span<const double> numbers) : sums_(1), squares_(1) {
    for (const double number : numbers) {
      sums_.push_back(sums_.back() + number);
      squares_.push_back(squares_.back() + number * number);
    }
  }
  double mean(std::size_t begin, std::size_t end) const {
    return (sums_[end] - sums_[begin]) / static_cast<double>(end - begin);
  }
  double squares(std::size_t begin, std::size_t end) const {
    if (begin == end) return 0;
    const double sum = sums_[end] - sums_[begin];
    return std::max(0.0,
                    squares_[end] - squares_[begin] - sum * sum / static_cast<double>(end - begin));
  }

 private:
  std::vector<double> sums_, squares_;
};

/// The squares that are left where values change at most twice in time.
double least_of_two_changes(std::span<const double> in_order) {
  const Parts parts(in_order);
  const std::size_t n = in_order.size();
  double least = parts.squares(0, n);
  for (std::size_t i = 1; i < n; ++i) {
    for (std::size_t j = i; j <= n; ++j)
      least = std::min(least, parts.squares(0, i) + parts.squares(i, j) + parts.squares(j, n));
  }
  return least;
}

}  // namespace

std::optional<TwoLevels> two_levels(std::span<const double> in_order) {
  std::vector<double> logs;
  for (const double value : in_order) logs.push_back(std::log(value));
  const std::size_t n = logs.size();
  const auto fewest = std::max(
      kFewestOfLevel, static_cast<std::size_t>(std::ceil(kShareOfLevel * static_cast<double>(n))));
  if (n < 2 * fewest) return std::nullopt;
  const double pivot = *stats::median(logs);  // squares of what is left lose no digits
  for (double& value : logs) value -= pivot;
  std::vector<double> sorted = logs;
  std::ranges::sort(sorted);

  const Parts parts(sorted);
  std::size_t cut = fewest;
  const auto within = [&](std::size_t at) { return parts.squares(0, at) + parts.squares(at, n); };
  for (std::size_t i = fewest; i <= n - fewest; ++i) {
    if (within(i) < within(cut)) cut = i;
  }
  const double lower = parts.mean(0, cut), upper = parts.mean(cut, n);
  const auto variance = [&](std::size_t begin, std::size_t end) {
    return parts.squares(begin, end) / static_cast<double>(end - begin - 1);
  };
  const double deviation = std::sqrt((variance(0, cut) + variance(cut, n)) / 2);
  const double least_apart =
      std::max(std::log1p(kLevelsApart), (2.5 + 72 / static_cast<double>(n)) * deviation);
  if (upper - lower < least_apart) return std::nullopt;
  const double middle = (lower + upper) / 2;
  const auto above =
      static_cast<std::size_t>(sorted.end() - std::ranges::lower_bound(sorted, middle));
  if (above < fewest || n - above < fewest) return std::nullopt;
  int steps = 0;
  for (std::size_t i = 1; i < n; ++i) steps += (logs[i] >= middle) != (logs[i - 1] >= middle);
  if (steps < kFewestSteps) return std::nullopt;
  if (least_of_two_changes(logs) <= kBetterThanChanges * within(cut)) return std::nullopt;
  return TwoLevels{std::exp(lower + pivot), std::exp(upper + pivot), deviation};
}

}  // namespace launchgap::rules
