#include "harness/stats/padding_gains.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <iterator>
#include <numeric>

#include "harness/stats/compare.h"

namespace launchgap::stats {
namespace {

constexpr double kLeastGainOfAHalf = 1.03;
constexpr double kTailOfOwn = 0.005;      // on either side, of one size's own standard error
constexpr double kTailOfPooled = 0.5e-4;  // of all sizes together
constexpr double kErrorsAdded = 2;        // to the median of what is chosen

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return *quantile(values, 0.5);
}

struct TrimmedMean {
  double mean = 0, standard_error = 0, freedom = 0;
};

/// A tenth is trimmed on either side.
TrimmedMean trimmed_mean(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t cut = values.size() / 10, kept = values.size() - 2 * cut;
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(cut);
  const auto end = begin + static_cast<std::ptrdiff_t>(kept);
  TrimmedMean result;
  result.mean = *mean(std::vector<double>(begin, end));
  const double low = *begin, high = *(end - 1);
  for (double& value : values) value = std::clamp(value, low, high);
  const auto n = static_cast<double>(values.size()), h = static_cast<double>(kept);
  result.standard_error = *standard_deviation(values) * std::sqrt((n - 1) / (h * (h - 1)));
  result.freedom = h - 1;
  return result;
}

/// For each of ascending sizes, which has the least value up to kMostPadding times it; of equals
/// the first. Linear in their number.
std::vector<std::size_t> least_above(const std::vector<double>& sizes,
                                     const std::vector<double>& values) {
  std::vector<std::size_t> least(sizes.size());
  std::deque<std::size_t> rising;  // candidates, each with a greater value than the one before
  std::size_t next = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (; next < sizes.size() && sizes[next] <= kMostPadding * sizes[i]; ++next) {
      while (!rising.empty() && values[rising.back()] > values[next]) rising.pop_back();
      rising.push_back(next);
    }
    while (rising.front() < i) rising.pop_front();
    least[i] = rising.front();
  }
  return least;
}

bool is_time(double value) {
  return std::isfinite(value) && value > 0;
}

/// Logarithms of times, by process and size, of sizes that all processes have.
struct Logs {
  std::vector<std::vector<double>> of;  // [process][size]

  std::vector<double> column(std::size_t size) const {
    std::vector<double> values;
    for (const auto& process : of) values.push_back(process[size]);
    return values;
  }
};

/// Each size's standard error of half of the processes, drawn halfway to that of the others: own
/// errors of few processes are as often too small.
std::vector<double> errors_of_a_half(const Logs& centred, std::size_t sizes) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < sizes; ++i)
    errors.push_back(trimmed_mean(centred.column(i)).standard_error * std::sqrt(2));
  const double usual = median(errors);
  for (double& error : errors) error = std::sqrt((error * error + usual * usual) / 2);
  return errors;
}

/// What is least among the processes of one half, 0 or 1; of 2: of all.
std::vector<std::size_t> choose(const Logs& centred,
                                const std::vector<double>& sizes,
                                const std::vector<double>& errors,
                                std::size_t half) {
  std::vector<double> values;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<double> own;
    for (std::size_t p = 0; p < centred.of.size(); ++p) {
      if (half == 2 || p % 2 == half) own.push_back(centred.of[p][i]);
    }
    values.push_back(median(own) + kErrorsAdded * errors[i]);
  }
  return least_above(sizes, values);
}

/// The verdicts over sizes that all processes have; `gains` are these sizes' rows.
void judge(const Logs& logs,
           const std::vector<double>& sizes,
           std::span<PaddingGain* const> gains) {
  const std::size_t count = sizes.size();
  Logs centred = logs;
  for (std::vector<double>& process : centred.of) {
    const double level = median(process);
    for (double& value : process) value -= level;
  }
  const std::vector<double> errors = errors_of_a_half(centred, count);
  const std::array chosen = {choose(centred, sizes, errors, 0), choose(centred, sizes, errors, 1)};
  const std::vector<std::size_t> of_all = choose(centred, sizes, errors, 2);

  std::vector<TrimmedMean> means;
  std::vector<double> least_half;  // the smaller median of the two halves
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> differences;
    std::array<std::vector<double>, 2> halves;
    for (std::size_t p = 0; p < logs.of.size(); ++p) {
      const std::size_t to = chosen[1 - p % 2][i];  // chosen on the other half
      differences.push_back(logs.of[p][i] - logs.of[p][to]);
      halves[p % 2].push_back(differences.back());
    }
    means.push_back(trimmed_mean(differences));
    least_half.push_back(std::min(median(halves[0]), median(halves[1])));
    squares += means.back().standard_error * means.back().standard_error;
  }
  const auto n = static_cast<double>(count);
  const double pooled =
      std::sqrt(squares / n) * student_t(means.front().freedom * n, kTailOfPooled / n);
  for (std::size_t i = 0; i < count; ++i) {
    const double own = means[i].standard_error * student_t(means[i].freedom, kTailOfOwn);
    const double width = std::max(own, pooled), log_gain = means[i].mean;
    PaddingGain& row = *gains[i];
    if (of_all[i] == i) {
      row.pad_to = row.size, row.gain = 1, row.interval = Interval{1, 1};
      continue;
    }
    row.pad_to = gains[of_all[i]]->size;
    row.gain = std::exp(log_gain);
    row.interval = Interval{std::exp(log_gain - width), std::exp(log_gain + width)};
    if (row.gain <= 1) {  // what looked better on all is not on the other half
      row.pad_to = row.size, row.gain = 1, row.interval = Interval{1, 1};
      continue;
    }
    row.cliff = row.gain > kLeastGain && row.interval->low > 1 &&
                least_half[i] > std::log(kLeastGainOfAHalf);
  }
}

}  // namespace

std::vector<PaddingGain> padding_gains(std::span<const SizeTimes> series) {
  std::size_t processes = 0;
  for (const SizeTimes& size : series) processes = std::max(processes, size.times.size());
  std::vector<PaddingGain> gains;
  std::vector<double> sizes, medians;
  std::vector<std::size_t> whole;  // which rows have a time of each process
  for (std::size_t i = 0; i < series.size(); ++i) {
    std::vector<double> times;
    std::ranges::copy_if(series[i].times, std::back_inserter(times), is_time);
    if (times.empty() || !is_time(series[i].size)) continue;
    PaddingGain row;
    row.size = row.pad_to = i;
    gains.push_back(row);
    medians.push_back(median(times));
  }
  std::vector<std::size_t> order(gains.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return series[gains[i].size].size; });
  std::vector<PaddingGain> ascending;
  std::vector<double> ascending_medians;
  for (const std::size_t i : order) {
    ascending.push_back(gains[i]);
    ascending_medians.push_back(medians[i]);
    sizes.push_back(series[gains[i].size].size);
    const std::vector<double>& times = series[gains[i].size].times;
    if (processes >= kProcessesForACliff && times.size() == processes &&
        std::ranges::all_of(times, is_time))
      whole.push_back(ascending.size() - 1);
  }
  const std::vector<std::size_t> least = least_above(sizes, ascending_medians);
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    ascending[i].pad_to = ascending[least[i]].size;
    ascending[i].gain = ascending_medians[i] / ascending_medians[least[i]];
  }
  if (whole.size() < 2) return ascending;
  Logs logs{std::vector<std::vector<double>>(processes)};
  std::vector<double> whole_sizes;
  std::vector<PaddingGain*> rows;
  for (const std::size_t i : whole) {
    rows.push_back(&ascending[i]);
    whole_sizes.push_back(sizes[i]);
    for (std::size_t p = 0; p < processes; ++p)
      logs.of[p].push_back(std::log(series[ascending[i].size].times[p]));
  }
  judge(logs, whole_sizes, rows);
  return ascending;
}

}  // namespace launchgap::stats
