// Writes a value to host memory: the earliest sign of a kernel that the host can see without asking
// the driver. Parameters: volatile unsigned* flag (in mapped host memory), unsigned value.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription flag_kernel;
}
