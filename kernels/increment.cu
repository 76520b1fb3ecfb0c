#include "device.h"

extern "C" __global__ void launchgap_increment(unsigned* counter) {
  *counter += 1;
}
