// Keeps the device busy for a time, and counts: work of a known length, and proof that it was done.
// Parameters: unsigned long long nanoseconds, unsigned* counter (may be null). Each block lasts
// that long; the counter, which may be shared with the host, is incremented once per launch, at the
// end of block 0, so only a launch of one block says by it that it is over. The increment has the
// device's scope, since sm_35 has no other: a host that polls the counter sees it in practice, and
// no memory model promises that.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription spin_kernel;
}
