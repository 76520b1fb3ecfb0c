// Beyond 4 KiB PTX 8.1 is needed, which the portable form does not have.
#if !defined(__clang__)
#include "arguments.cuh"

LAUNCHGAP_ARGUMENTS_KERNEL(32760)
#endif
