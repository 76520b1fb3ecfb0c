// Sums, means and squares that stay exact for many values and for small spreads on large offsets.
// What harness/stats and harness/rules are made of; not for others.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace launchgap::stats {

inline constexpr double kTail = 0.025;  // what a 95 % interval leaves out on either side

/// Neumaier's compensated sum: exact to a rounding or two however many values there are.
class Sum {
 public:
  void add(double value) {
    const double next = sum_ + value;
    lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - next) + value : (value - next) + sum_;
    sum_ = next;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

template <class Values, class Function>
double sum_of(const Values& values, Function&& function) {
  Sum sum;
  for (const auto& value : values) sum.add(std::invoke(function, value));
  return sum.value();
}

/// Mean of value - pivot. A pivot near the values keeps digits that the mean itself has no room
/// for.
inline double mean_above(double pivot, std::span<const double> values) {
  return sum_of(values, [pivot](double value) { return value - pivot; }) /
         static_cast<double>(values.size());
}

/// Deviations from the mean. Taken by way of the first value: for small spreads on a large offset,
/// the mean itself, rounded, is already too coarse.
class FromMean {
 public:
  explicit FromMean(std::span<const double> values)
      : pivot_(values[0]), shift_(mean_above(pivot_, values)) {}
  double operator()(double value) const { return (value - pivot_) - shift_; }

 private:
  double pivot_;
  double shift_;
};

inline double sum_of_squared_deviations(std::span<const double> values) {
  return sum_of(values, [deviation = FromMean(values)](double value) {
    return deviation(value) * deviation(value);
  });
}

// --- What models of several groups need of the logarithms of their values ---

struct LogMoments {
  std::size_t group;  // its index
  double size;
  double mean;     // of the logarithms, less the logarithm of the first value of all
  double squares;  // sum of the logarithms' squared deviations from their mean
};

/// Of each group with values. Relative to the first value of all, since a logarithm itself has no
/// room for spreads that the values have. Absent if a value is not positive and finite.
std::optional<std::vector<LogMoments>> log_moments(std::span<const std::vector<double>> groups);

}  // namespace launchgap::stats
