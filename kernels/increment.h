// Adds one to a counter, by one thread: proof that each launch ran once and in order, before
// launches are timed. Parameters: unsigned* counter.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription increment_kernel;
}
