// Devices laid beside each other: which one the others are set in relation to, and how many times
// as fast each is in every case of it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "harness/gap/gpu_columns.h"
#include "harness/summary/gap_rows.h"

namespace launchgap::gap {

/// Every usable device of sessions that were measured or published, the host's first, then by
/// release, compute capability and name; what different jobs did is never put in relation. The
/// first GPU is the reference; without one the first device. Empty where there is nothing to
/// compare: one measured session whose GPUs are of one generation.
std::vector<GapDeviceRow> compared_devices(std::span<const ComparedSession> sessions);

/// Of each other device the cases and metrics that the reference has too, where a device's own
/// launch path counts as one and the same, and a published value as a plain one. The rows of an
/// observer count nowhere. No ratio is formed of a simulated device and a real one, and none of two
/// GPUs that timed a case in another way.
void each_ratio(std::span<const ComparedSession> sessions,
                const std::function<void(const GapRatioRow&)>& put);

/// Launches of each recorded GPU beside the empty launch of the measured GPUs of its name; where no
/// such GPU was measured, of every one that was. Nothing where it is not known which streams of the
/// job were idle.
std::vector<GapRecordedRow> recorded_beside_measured(std::span<const ComparedSession> sessions);

}  // namespace launchgap::gap
