#include "harness/stats/nested_effects.h"

#include <algorithm>
#include <cstddef>

#include "harness/stats/moments.h"

namespace launchgap::stats {
namespace {

/// Of one host: the moments of its devices, and what they come to.
struct Host {
  std::vector<LogMoments> devices;
  double size = 0, mean = 0;
};

double weighted_mean(const auto& groups) {
  return sum_of(groups, [](const auto& group) { return group.size * group.mean; }) /
         sum_of(groups, [](const auto& group) { return group.size; });
}

/// Sum of n (mean - center)².
double between(const auto& groups, double center) {
  return sum_of(groups, [center](const auto& group) {
    return group.size * (group.mean - center) * (group.mean - center);
  });
}

}  // namespace

NestedEffects nested_effects(std::span<const std::vector<std::vector<double>>> hosts) {
  // The moments of all are relative to one value, so they are taken together.
  std::vector<std::vector<double>> devices;
  std::vector<std::size_t> host_of;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    for (const std::vector<double>& device : hosts[h]) {
      devices.push_back(device);
      host_of.push_back(h);
    }
  }
  const auto moments = log_moments(devices);
  if (!moments || moments->empty()) return {};
  std::vector<Host> all(hosts.size());
  for (const LogMoments& device : *moments) all[host_of[device.group]].devices.push_back(device);
  std::erase_if(all, [](const Host& host) { return host.devices.empty(); });
  for (Host& host : all) {
    host.size = sum_of(host.devices, &LogMoments::size);
    host.mean = weighted_mean(host.devices);
  }

  const double n = sum_of(all, &Host::size);
  const auto h = static_cast<double>(all.size()), d = static_cast<double>(moments->size());
  const double of_runs = sum_of(*moments, &LogMoments::squares);
  const double of_devices =
      sum_of(all, [](const Host& host) { return between(host.devices, host.mean); });
  const double of_hosts = between(all, weighted_mean(all));
  const auto square = [](const auto& group) { return group.size * group.size; };
  const double s =
      sum_of(all, [&](const Host& host) { return sum_of(host.devices, square) / host.size; });

  NestedEffects effects;
  if (n > d) effects.run = of_runs / (n - d);
  const double run = effects.run.value_or(0);
  if (d > h) {
    const double k1 = (n - s) / (d - h);
    effects.device = std::max(0.0, (of_devices / (d - h) - run) / k1);
  }
  if (h > 1) {
    const double k2 = (s - sum_of(*moments, square) / n) / (h - 1);
    const double k3 = (n - sum_of(all, square) / n) / (h - 1);
    const double below = run + k2 * effects.device.value_or(0);
    effects.host = std::max(0.0, (of_hosts / (h - 1) - below) / k3);
  }
  return effects;
}

}  // namespace launchgap::stats
