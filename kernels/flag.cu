#include "device.h"

extern "C" __global__ void launchgap_flag(volatile unsigned* flag, unsigned value) {
  *flag = value;
}
