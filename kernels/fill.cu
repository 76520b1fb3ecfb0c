#include "device.h"
#include "element.h"

using namespace launchgap::kernels;

extern "C" __global__ void launchgap_fill(void* out,
                                          unsigned long long count,
                                          unsigned long long seed,
                                          int type,
                                          int distribution) {
  for (unsigned long long i = global_thread(); i < count; i += grid_threads()) {
    store_element(out,
                  i,
                  static_cast<ElementType>(type),
                  element(seed, i, static_cast<Distribution>(distribution)));
  }
}
