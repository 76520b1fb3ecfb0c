#include "harness/stats/padding_gains.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>

#include "harness/stats/distributions.h"

namespace launchgap::stats {
namespace {

constexpr double kLeastGainOfAHalf = 1.03;
constexpr double kTailOfOwn = 0.005;      // on either side, of one size's own standard error
constexpr double kTailOfPooled = 0.5e-4;  // of all sizes together
constexpr double kErrorsAdded = 2;        // to the median of what is chosen
constexpr double kErrorsAsGood = 2;       // of a difference that does not tell two sizes apart

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

/// To which of ascending sizes each is best padded: the nearest whose value is above the least by
/// no more than `slack(which, least)`.
template <class Slack>
std::vector<std::size_t> nearest_as_good(const std::vector<double>& sizes,
                                         const std::vector<double>& values,
                                         const Slack& slack) {
  std::vector<std::size_t> nearest = least_above(sizes, values);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t least = nearest[i];
    for (nearest[i] = i; nearest[i] < least; ++nearest[i]) {
      if (values[nearest[i]] <= values[least] + slack(nearest[i], least)) break;
    }
  }
  return nearest;
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

/// The processes of a half, 0 or 1, or all.
constexpr std::size_t kAll = 2;

/// To which size each is best padded by the processes of `half`. `errors` are standard errors of
/// all processes.
std::vector<std::size_t> choose(const Logs& centred,
                                const std::vector<double>& sizes,
                                const std::vector<double>& errors,
                                std::size_t half) {
  const double more = half == kAll ? 1 : std::sqrt(2);  // of fewer processes
  std::vector<double> values;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<double> own;
    for (std::size_t p = 0; p < centred.of.size(); ++p) {
      if (half == kAll || p % 2 == half) own.push_back(centred.of[p][i]);
    }
    values.push_back(*median(own) + kErrorsAdded * more * errors[i]);
  }
  return nearest_as_good(sizes, values, [&](std::size_t i, std::size_t least) {
    // Not std::hypot: glibc's has another symbol since 2.35.
    const double both = std::sqrt(errors[i] * errors[i] + errors[least] * errors[least]);
    return std::max(std::log(kAsGood), kErrorsAsGood * more * both);
  });
}

/// What padding gains, as logarithms.
struct Gains {
  TrimmedMean named;      // by what all processes choose
  TrimmedMean crossed;    // by what the other half chooses
  double least_half = 0;  // the smaller of the halves' medians of `crossed`
};

Gains gains_of(const Logs& logs,
               std::size_t size,
               std::size_t pad_to,
               const std::array<std::size_t, 2>& of_halves) {
  std::vector<double> named, crossed;
  std::array<std::vector<double>, 2> halves;
  for (std::size_t p = 0; p < logs.of.size(); ++p) {
    const std::vector<double>& process = logs.of[p];
    named.push_back(process[size] - process[pad_to]);
    crossed.push_back(process[size] - process[of_halves[1 - p % 2]]);
    halves[p % 2].push_back(crossed.back());
  }
  return {
      trimmed_mean(named), trimmed_mean(crossed), std::min(*median(halves[0]), *median(halves[1]))};
}

/// The verdicts over sizes that all processes have; `rows` are these sizes'.
void judge(const Logs& logs, const std::vector<double>& sizes, std::span<PaddingGain* const> rows) {
  const std::size_t count = sizes.size();
  Logs centred = logs;
  for (std::vector<double>& process : centred.of) {
    const double level = *median(process);
    for (double& value : process) value -= level;
  }
  std::vector<double> errors;
  double squares = 0, freedom = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const TrimmedMean own = trimmed_mean(centred.column(i));
    errors.push_back(own.standard_error);
    squares += own.standard_error * own.standard_error;
    freedom += own.freedom;
  }
  const auto n = static_cast<double>(count);
  const double pooled = std::sqrt(2 * squares / n) * student_t(freedom, kTailOfPooled / n);
  // Drawn halfway to that of the others: own errors of few processes are as often too small.
  const double usual = *median(errors);
  for (double& error : errors) error = std::sqrt((error * error + usual * usual) / 2);
  const std::array halves = {choose(centred, sizes, errors, 0), choose(centred, sizes, errors, 1)};
  const std::vector<std::size_t> of_all = choose(centred, sizes, errors, kAll);

  for (std::size_t i = 0; i < count; ++i) {
    PaddingGain& row = *rows[i];
    row.judged = true;
    row.pad_to = row.size, row.gain = 1;
    if (of_all[i] == i) continue;
    const Gains gains = gains_of(logs, i, of_all[i], {halves[0][i], halves[1][i]});
    if (gains.named.mean <= 0) continue;
    const auto width = [&](const TrimmedMean& of) {
      return std::max(pooled, of.standard_error * student_t(of.freedom, kTailOfOwn));
    };
    const double log_gain = gains.named.mean;
    const double lowest =
        std::min(log_gain - width(gains.named), gains.crossed.mean - width(gains.crossed));
    row.pad_to = rows[of_all[i]]->size;
    row.gain = std::exp(log_gain);
    row.interval = Interval{std::exp(lowest), std::exp(log_gain + width(gains.named))};
    row.cliff = row.gain > kLeastGain && row.interval->low > 1 &&
                gains.least_half > std::log(kLeastGainOfAHalf);
  }
}

/// A time of a process, or NaN.
double time_of(const SizeTimes& size, std::size_t process) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (process >= size.times.size() || !is_time(size.times[process])) return none;
  return size.times[process];
}

/// The processes that are judged: those that have all sizes, where there are enough of them; else
/// all that have any.
std::vector<std::size_t> processes_to_judge(const std::vector<const SizeTimes*>& sizes) {
  std::size_t count = 0;
  for (const SizeTimes* size : sizes) count = std::max(count, size->times.size());
  std::vector<std::size_t> some, complete;
  for (std::size_t p = 0; p < count; ++p) {
    const auto has = [p](const SizeTimes* size) { return !std::isnan(time_of(*size, p)); };
    if (std::ranges::any_of(sizes, has)) some.push_back(p);
    if (std::ranges::all_of(sizes, has)) complete.push_back(p);
  }
  return complete.size() >= kProcessesForACliff ? complete : some;
}

}  // namespace

std::vector<PaddingGain> padding_gains(std::span<const SizeTimes> series) {
  std::vector<std::size_t> order;  // of those that have a time
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (is_time(series[i].size) && std::ranges::any_of(series[i].times, is_time))
      order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return series[i].size; });
  std::vector<PaddingGain> rows;
  std::vector<const SizeTimes*> of_rows;
  std::vector<double> sizes, medians;
  bool several = false;  // values of a size
  for (const std::size_t i : order) {
    std::vector<double> times;
    std::ranges::copy_if(series[i].times, std::back_inserter(times), is_time);
    several = several || times.size() > 1;
    PaddingGain& row = rows.emplace_back();
    row.size = row.pad_to = i;
    of_rows.push_back(&series[i]);
    sizes.push_back(series[i].size);
    medians.push_back(*median(times));
  }
  const std::vector<std::size_t> nearest =
      nearest_as_good(sizes, medians, [&](std::size_t, std::size_t least) {
        return several ? (kAsGood - 1) * medians[least] : 0;
      });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].pad_to = rows[nearest[i]].size;
    rows[i].gain = medians[i] / medians[nearest[i]];
  }

  const std::vector<std::size_t> processes = processes_to_judge(of_rows);
  if (processes.size() < kProcessesForACliff) return rows;
  Logs logs{std::vector<std::vector<double>>(processes.size())};
  std::vector<double> whole_sizes;
  std::vector<PaddingGain*> whole;  // rows that have a time of each process
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto lacks = [&](std::size_t p) { return std::isnan(time_of(*of_rows[i], p)); };
    if (std::ranges::any_of(processes, lacks)) continue;
    whole.push_back(&rows[i]);
    whole_sizes.push_back(sizes[i]);
    for (std::size_t k = 0; k < processes.size(); ++k)
      logs.of[k].push_back(std::log(time_of(*of_rows[i], processes[k])));
  }
  if (whole.size() >= 2) judge(logs, whole_sizes, whole);
  return rows;
}

}  // namespace launchgap::stats
