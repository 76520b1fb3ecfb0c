// Beyond 4 KiB PTX 8.1 is needed, which the portable form does not have, and compute
// capability 7.0: nvcc builds for older ones too.
#if !defined(__clang__) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700)
#include "arguments.cuh"

LAUNCHGAP_ARGUMENTS_KERNEL(32760)
#endif
