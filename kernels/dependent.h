// A kernel that can overlap with its neighbours in the stream (programmatic dependent launch,
// compute capability 9.0 and later): it lets the next one begin at once, and waits for the one
// before only after half of its own work. Parameters: unsigned long long nanoseconds, unsigned*
// counter, to which the kernel adds one after the wait, without an atomic: proof that the work
// behind the wait is in order.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription dependent_kernel;
}
