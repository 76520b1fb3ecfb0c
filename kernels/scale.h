// A quarter of each number: a[i] = b[i] / 4, one thread per element. The grid has at least so many
// threads. Parameters: double* a, const double* b, int size.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription scale_kernel;
}
