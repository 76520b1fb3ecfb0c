// What a newer GPU is against an older one: the rows of the tables gap_*.csv.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "harness/gap/gpu_columns.h"
#include "harness/gap/shared_cases.h"
#include "harness/summary/gap_rows.h"

namespace launchgap::gap {

/// Over all devices of the sessions; nothing is averaged over cases, types or sizes. Without two
/// GPUs that share a case there are values and limits, and no answer but what is missing.
/// `each_case` and `each_ratio` look at the sessions once more, which must be there still.
GapRows generation_gap(std::span<const ComparedSession> sessions);

// --- Its sentences ---

/// Of the two GPUs that are farthest apart in release among those that share a case: how many times
/// as fast work, memory and launches became, and how much more work a kernel has to do before its
/// launch is worth it. Each factor is of one case, that in which the newer GPU is fastest; none is
/// a mean over cases, types or sizes.
std::vector<GapAnswerRow> gain_answers(const GpuPair& pair);

/// Where the newer one gains least: over all, then of products, then of convolutions. A case is
/// chosen by what is certain of it (SharedCase::at_most), since the least of many noisy ratios
/// looks too bad.
std::vector<GapAnswerRow> worst_answers(const GpuPair& pair);

/// How many cases got slower, how many gained less than half of what the ceilings promise, and what
/// else may have made it so.
std::vector<GapAnswerRow> disappointments(const GpuPair& pair);

/// Per kind of work, type and class of shape, and of all cases together.
std::vector<GapClassRow> class_rows(const GpuPair& pair);

/// Which GPUs stand in the tables alone, since another of the same name stands for them.
std::vector<GapAnswerRow> not_compared(const std::vector<GpuColumn>& columns,
                                       const std::vector<const GpuColumn*>& compared);

// --- What each device does at best and at worst: the table by which somebody chooses ---

/// For each device every quantity, in the order of the page; what it has not is said in words. A
/// quantity that no device has is left out. No value is a mean over cases.
std::vector<GapValueRow> best_values(const std::vector<GpuColumn>& columns);

/// What a GPU cannot run: types and benchmarks that its libraries or hardware refused, and the last
/// software that serves it (the doctor's tables).
std::vector<GapLimitRow> limits_of(const std::vector<const GpuColumn*>& gpus);

// --- Devices laid beside each other: which is the reference, and how fast the others are to it ---

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

// --- Code that a tuner tuned for one GPU, on another ---

/// Of each kernel, problem and set of parameters every ordered pair of GPUs that were tuned: the
/// time of the best configuration of the one on the other, divided by the time of the other's own
/// best. The interval is 95 %, of the logarithms of the runs; absent where they were not recorded.
/// Best is the least mean of many, so the other's own best looks a little too good, and the cost a
/// little too high: by about 4 standard errors of a mean among 20,000 configurations.
///
/// Throws Error for a file that cannot be read.
std::vector<GapTunedRow> tuned_rows(std::span<const ComparedSession> sessions);

/// A sentence for each kernel: on which GPU code that is tuned for others loses most.
std::vector<GapAnswerRow> tuned_answers(const std::vector<GapTunedRow>& rows);

}  // namespace launchgap::gap
