// The work of scale.h so many times over in one launch, with a barrier of the whole grid after
// each: what launches cost is what it spares. All blocks must be on the device at once. Parameters:
// double* a, const double* b, int size, int repetitions, unsigned* arrivals, which is 0 before the
// launch and blocks times repetitions after it.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription scale_repeated_kernel;
}
