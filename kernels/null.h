// The kernel that does nothing: what remains of its time is the launch.
#pragma once

#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription null_kernel;
}
