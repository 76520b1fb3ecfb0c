// Records that a file has more than once, and files that are the same recording.
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

}  // namespace launchgap::recording
