// Keeps the device busy for a time, and counts: work of a known length, and proof that it was done.
// Parameters: unsigned long long nanoseconds, unsigned* counter (may be null). Each block lasts
// that long; the counter, which may be shared with the host, is incremented once per launch, at the
// end.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription spin_kernel;
}
