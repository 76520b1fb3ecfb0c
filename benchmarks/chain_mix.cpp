#include "benchmarks/chain_mix.h"

#include <cmath>
#include <random>

#include "harness/core/plan.h"

namespace launchgap {
namespace {

/// The value at `share`, 0 to 1, of what lies evenly by the logarithm between `low` and `high`.
double log_uniform(double low, double high, double share) {
  return low * std::pow(high / low, share);
}

/// The duration below which `share` of all operations are.
double duration_us(double share) {
  if (share < 0.5) return log_uniform(2, 9, share / 0.5);
  if (share < 0.9) return log_uniform(9, 140, (share - 0.5) / 0.4);
  return log_uniform(140, 500, (share - 0.9) / 0.1);
}

/// So many numbers spread evenly over 0 to 1, in a random order.
std::vector<double> spread(std::size_t count, std::uint64_t seed) {
  std::vector<double> shares(count);
  for (std::size_t i = 0; i < count; ++i)
    shares[i] = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
  std::mt19937_64 random(seed);
  shuffle(shares, random);
  return shares;
}

}  // namespace

std::vector<ChainOperation> chain_operations(int count, std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(count);
  const std::vector<double> durations = spread(n, derive_seed(seed, "durations"));
  std::vector<ChainOperation> operations(n);
  for (std::size_t i = 0; i < n; ++i)
    operations[i].nanoseconds =
        static_cast<std::uint64_t>(std::llround(1e3 * duration_us(durations[i])));

  const auto allocating =
      static_cast<std::size_t>(std::llround(kAllocationsPerOperation * static_cast<double>(n)));
  const std::vector<double> sizes = spread(allocating, derive_seed(seed, "sizes"));
  std::vector<std::size_t> places(n);
  for (std::size_t i = 0; i < n; ++i) places[i] = i;
  std::mt19937_64 random(derive_seed(seed, "places"));
  shuffle(places, random);
  for (std::size_t i = 0; i < allocating; ++i) {
    operations[places[i]].allocated_bytes =
        static_cast<std::size_t>(std::llround(log_uniform(4096, 4 << 20, sizes[i])));
  }
  return operations;
}

}  // namespace launchgap
