// Fills a matrix or tensor with the elements of element.h.
// Parameters: void* out, unsigned long long count (elements), unsigned long long seed,
// int type (ElementType), int distribution (Distribution). Any grid covers any count.
#pragma once

#include "kernels/element.h"
#include "kernels/kernel.h"

namespace launchgap::kernels {
extern const KernelDescription fill_kernel;
}
