#include "harness/import/first_launches.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <unordered_map>
#include <vector>

#include <boost/math/distributions/chi_squared.hpp>

#include "harness/stats/stats.h"

namespace launchgap::recording {
namespace {

/// What the calls that launched one kernel took, in order.
using Durations = std::vector<std::int64_t>;

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
  std::size_t n = 0;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.is_graph || launch.kernels == 0 || process.streams[*launch.stream].gpu != gpu)
      continue;
    const activity::Call& call = trace.calls[launch.call];
    by_kernel[trace.kernels[launch.kernel].name].push_back(call.end_ns - call.begin_ns);
    ++n;
  }
  FirstLaunches found;
  Durations all, firsts, firsts_of_all, laters, nexts;
  all.reserve(n);
  double statistic = 0, extra = 0;
  for (auto& [name, own] : by_kernel) {
    firsts_of_all.push_back(own.front());
    all.insert(all.end(), own.begin(), own.end());
    if (own.size() > kLeastLater) {
      statistic -= 2 * std::log(chance_of_first(own));
      firsts.push_back(own.front());
      std::array<std::int64_t, kLeastLater> next;
      std::copy_n(own.begin() + 1, kLeastLater, next.begin());
      nexts.push_back(std::llround(stats::quantile_in_place(next, 0.5).value_or(0)));
      const auto first = static_cast<double>(own.front());
      const double later = stats::quantile_in_place(std::span(own).subspan(1), 0.5).value_or(0);
      laters.push_back(std::llround(later));
      extra += std::max(0.0, first - later);
    }
    Durations().swap(own);
  }
  if (firsts.empty()) return std::nullopt;
  found.kernels = firsts.size();
  const boost::math::chi_squared distribution(2 * static_cast<double>(firsts.size()));
  found.chance = cdf(complement(distribution, std::max(statistic, 0.0)));
  found.first_p50_ns = stats::quantile_in_place(firsts, 0.5).value_or(0);
  found.later_p50_ns = stats::quantile_in_place(laters, 0.5).value_or(0);
  found.next_p50_ns = stats::quantile_in_place(nexts, 0.5).value_or(0);
  found.extra_ns = std::llround(std::min(extra, 9e18));
  const double limit = stats::quantile_in_place(all, 0.99).value_or(0);
  const auto is_slow = [limit](std::int64_t ns) { return static_cast<double>(ns) > limit; };
  found.slow = static_cast<std::uint64_t>(std::ranges::count_if(all, is_slow));
  found.slow_firsts = static_cast<std::uint64_t>(std::ranges::count_if(firsts_of_all, is_slow));
  return found;
}

}  // namespace launchgap::recording
