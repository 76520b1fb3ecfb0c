// The body of the kernels arguments_*.cu, which differ in the size of their argument alone.
#include "device.h"

#define LAUNCHGAP_ARGUMENTS_KERNEL(bytes)                                             \
  struct Arguments {                                                                  \
    unsigned* to;                                                                     \
    unsigned words[(bytes - 8) / 4];                                                  \
  };                                                                                  \
  extern "C" __global__ void launchgap_arguments_##bytes(const Arguments arguments) { \
    if (arguments.to) *arguments.to = arguments.words[(bytes - 8) / 4 - 1];           \
  }
