// The work of scale.h so many times over in one launch, with a barrier of the whole grid after
// each: what launches cost is what it spares. All blocks must be on the device at once. Parameters:
// double* a, const double* b, int size, int repetitions, unsigned* arrivals: two words, 0 before
// the launch; after it the first is blocks times repetitions, and the second how often a thread was
// seen beyond a barrier to which not all had come.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription scale_repeated_kernel;
}
