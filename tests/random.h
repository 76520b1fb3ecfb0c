// Numbers by chance, the same as those of the standard library's distributions: libstdc++ takes two
// logarithms of long doubles for each of them where clang compiles, a quarter of the time of a
// simulation.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <utility>

namespace launchgap {

/// As std::uniform_real_distribution<double>(): of [0, 1).
inline double uniform(std::mt19937_64& random) {
  constexpr double kMost = 1 - 0x1p-53;  // a number may be rounded to 2^64
  return std::min(static_cast<double>(random()) * 0x1p-64, kMost);
}

/// As one std::normal_distribution<double>() for all numbers: it takes two from each pair.
class Normal {
 public:
  double operator()(std::mt19937_64& random) {
    if (left_) return *std::exchange(left_, std::nullopt);
    while (true) {
      const double x = 2 * uniform(random) - 1, y = 2 * uniform(random) - 1;
      const double squares = x * x + y * y;
      if (squares > 1 || squares == 0) continue;
      const double scale = std::sqrt(-2 * std::log(squares) / squares);
      left_ = x * scale;
      return y * scale;
    }
  }

 private:
  std::optional<double> left_;
};

/// As a new std::normal_distribution<double>(): with mean 0 and standard deviation 1.
inline double normal(std::mt19937_64& random) {
  return Normal()(random);
}

}  // namespace launchgap
