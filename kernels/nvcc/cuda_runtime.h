// nvcc includes cuda_runtime.h for each architecture by itself. Of CUDA's own, which is three
// quarters of its work, the kernels use the names of threads and blocks alone.
#pragma once

#include <device_launch_parameters.h>
#include <vector_types.h>
