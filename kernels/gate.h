// Holds a stream until the host opens the gate, so that work can be enqueued behind it and
// launching is not part of what is measured. A gate that nobody opens gives up after its time-out
// and says so: the sample is then invalid, and the device is not hung. Parameters: volatile
// unsigned* open, volatile unsigned* timed_out (both in mapped host memory), unsigned long long
// timeout_ns.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription gate_kernel;
}
