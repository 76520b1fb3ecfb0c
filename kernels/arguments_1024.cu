#include "arguments.cuh"

LAUNCHGAP_ARGUMENTS_KERNEL(1024)
