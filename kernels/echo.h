// Answers the host: waits for ping to become 1, 2, … rounds, and writes each to pong. How long a
// flag takes to the device and back, without a launch. A host that falls silent for longer than the
// time-out ends it. Parameters: volatile unsigned* ping, volatile unsigned* pong (both in mapped
// host memory), unsigned rounds, unsigned long long timeout_ns.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription echo_kernel;
}
