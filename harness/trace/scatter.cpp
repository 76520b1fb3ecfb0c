#include "harness/trace/scatter.h"

#include <algorithm>
#include <cmath>

#include "harness/stats/stats.h"

namespace launchgap {

std::vector<double> launch_times(const activity::Trace& trace,
                                 const Joined& joined,
                                 const std::function<bool(std::int64_t)>& belongs) {
  std::vector<double> times;
  for (const Launch& launch : joined.launches) {
    if (launch.kernel_count == 0 || !belongs(launch.begin_ns)) continue;
    const activity::KernelRun& kernel = trace.kernels[joined.kernels_of(launch).front()];
    times.push_back(static_cast<double>(kernel.begin_ns - launch.begin_ns));
  }
  return times;
}

std::int64_t scatter_of_launches(std::vector<double> launch_ns) {
  constexpr std::size_t kFewest = 20;
  constexpr double kDeviations = 5, kMadOfNormal = 1.4826, kMost = 5'000;
  std::erase_if(launch_ns, [](double value) { return std::isnan(value); });
  if (launch_ns.size() < kFewest) return 0;
  const double centre = *stats::median(launch_ns);
  for (double& value : launch_ns) value = std::abs(value - centre);
  return static_cast<std::int64_t>(
      std::min(kMost, std::ceil(kDeviations * kMadOfNormal * *stats::median(launch_ns))));
}

}  // namespace launchgap
