// What is put right in a recording once it is read: records that a file has more than once,
// launches that are captured into a graph, and times that cannot be.
#pragma once

#include <cstdint>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Where calls, kernels or copies of a process occur again and again with the same times, numbers
/// and place, one of each stays, and the recording says how many were left out. A few alike are no
/// copies: times may be coarse.
void drop_copies(Recording& recording);

/// Of what a process called and what its GPUs did: equal for two files of the same.
std::uint64_t digest_of(const Process& process);

// --- Launches that are captured into a graph ---

/// A launch into a stream that is captured starts nothing: it becomes a node of a graph. Such calls
/// stay calls and are launches no more: those without a kernel of their own that were made while
/// any stream of the process was captured, between cudaStreamBeginCapture and cudaStreamEndCapture,
/// or the driver's. Which stream a call was for, no record tells: a launch into another one
/// meanwhile has its kernel, unless that is lost. A capture without an end is none, and where the
/// process has no kernels at all, their absence tells nothing.
void forget_captured_launches(Process& process);

// --- Times that cannot be, since nothing else of their process was within a day of them ---

/// Takes the times of calls, and of what GPUs did, that lie a day or more from all others: of a
/// hundred such records one at most, of ten one. One such time would make the recording as long as
/// it is away, and the GPU idle in all of that. Such a record then has no time, as others that are
/// impossible, and the recording says how many there were.
void forget_stray_times(Recording& recording);

}  // namespace launchgap::recording
