// How much of the variation of a measurement is between hosts, between the devices of a host, and
// between the runs of a device.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace launchgap::stats {

/// Variances of natural logarithms: without unit, and they add up.
struct NestedEffects {
  std::optional<double> host, device, run;
};

/// The two-way nested random-effects model log x_hdr = mu + a_h + b_hd + e_hdr, all independent;
/// `hosts` holds of each host the values of each of its devices, each list of any length.
///
/// Estimates by the analysis of variance for groups of different sizes (Searle, Casella, McCulloch,
/// Variance Components, 1992, section 5.3): with H hosts, D devices, N values, n_hd of a device and
/// n_h of a host, and the mean squares MSR = SSR / (N-D), MSD = SSD / (D-H), MSH = SSH / (H-1),
///   E MSR = run, E MSD = run + k1 device, E MSH = run + k2 device + k3 host,
///   k1 = (N - s) / (D-H), k2 = (s - sum n_hd² / N) / (H-1), k3 = (N - sum n_h² / N) / (H-1),
///   s = sum n_hd² / n_h.
/// What would be negative is 0. It costs one pass over the values.
///
/// Without a second run of any device `run` is absent, and `device` is what devices and runs are
/// together. `device` is absent where no host has two, and `host` where there is one. Everything is
/// absent where a value is not positive and finite. Lists without values do not count.
NestedEffects nested_effects(std::span<const std::vector<std::vector<double>>> hosts);

}  // namespace launchgap::stats
