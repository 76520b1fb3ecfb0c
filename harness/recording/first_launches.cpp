#include "harness/recording/first_launches.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include <boost/math/distributions/chi_squared.hpp>

#include "harness/stats/stats.h"

namespace launchgap::recording {
namespace {

/// What the calls that launched one kernel took, in order.
using Durations = std::vector<std::int64_t>;

double quantile_of(const Durations& values, double p) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return stats::quantile(sorted, p).value_or(0);
}

/// That a launch which is like the next ones takes as long as the first did.
double chance_of_first(const Durations& own) {
  const std::size_t others = std::min(kLocal, own.size() - 1);
  const auto end = own.begin() + 1 + static_cast<std::ptrdiff_t>(others);
  const auto as_slow =
      std::count_if(own.begin() + 1, end, [&](std::int64_t ns) { return ns >= own.front(); });
  return static_cast<double>(1 + as_slow) / static_cast<double>(1 + others);
}

}  // namespace

std::optional<FirstLaunches> first_launches(const Process& process,
                                            const RecordedLaunches& launches,
                                            std::uint64_t gpu) {
  const activity::Trace& trace = process.trace;
  std::unordered_map<std::uint32_t, Durations> by_kernel;
  Durations all;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.is_graph || launch.kernels == 0 || process.streams[*launch.stream].gpu != gpu)
      continue;
    const activity::Call& call = trace.calls[launch.call];
    by_kernel[trace.kernels[launch.kernel].name].push_back(call.end_ns - call.begin_ns);
    all.push_back(call.end_ns - call.begin_ns);
  }
  FirstLaunches found;
  Durations firsts, firsts_of_all, laters, nexts;
  double statistic = 0, extra = 0;
  for (const auto& [name, own] : by_kernel) {
    firsts_of_all.push_back(own.front());
    if (own.size() <= kLeastLater) continue;
    const double later = quantile_of({own.begin() + 1, own.end()}, 0.5);
    statistic -= 2 * std::log(chance_of_first(own));
    firsts.push_back(own.front());
    laters.push_back(std::llround(later));
    const auto next = own.begin() + 1;
    nexts.push_back(std::llround(quantile_of({next, next + kLeastLater}, 0.5)));
    extra += std::max(0.0, static_cast<double>(own.front()) - later);
  }
  if (firsts.empty()) return std::nullopt;
  found.kernels = firsts.size();
  const boost::math::chi_squared distribution(2 * static_cast<double>(firsts.size()));
  found.chance = cdf(complement(distribution, std::max(statistic, 0.0)));
  found.first_p50_ns = quantile_of(firsts, 0.5);
  found.later_p50_ns = quantile_of(laters, 0.5);
  found.next_p50_ns = quantile_of(nexts, 0.5);
  found.extra_ns = std::llround(std::min(extra, 9e18));
  const double limit = quantile_of(all, 0.99);
  const auto is_slow = [limit](std::int64_t ns) { return static_cast<double>(ns) > limit; };
  found.slow = static_cast<std::uint64_t>(std::ranges::count_if(all, is_slow));
  found.slow_firsts = static_cast<std::uint64_t>(std::ranges::count_if(firsts_of_all, is_slow));
  return found;
}

}  // namespace launchgap::recording
