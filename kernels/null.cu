#include "device.h"

extern "C" __global__ void launchgap_null() {}
