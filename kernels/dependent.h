// A kernel that can overlap with its neighbours in the stream (programmatic dependent launch,
// compute capability 9.0 and later): it lets the next one be launched at once, and begins its work
// when the one before has ended. What such launches save is what lies between two kernels.
// Parameters: unsigned long long nanoseconds, unsigned* counter, to which the kernel adds one at
// its end, without an atomic: proof that their work is in order.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription dependent_kernel;
}
