// Fills a matrix or tensor with the elements of element.h.
// Parameters: void* out, unsigned long long count (elements), unsigned long long seed,
// int type (ElementType), int distribution (Distribution), unsigned long long step (of
// sparse_element). Any grid covers any count.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"
#include "element.h"

using namespace launchgap::kernels;

extern "C" __global__ void launchgap_fill(void* out,
                                          unsigned long long count,
                                          unsigned long long seed,
                                          int type,
                                          int distribution,
                                          unsigned long long step) {
  for (unsigned long long i = global_thread(); i < count; i += grid_threads()) {
    store_element(out,
                  i,
                  static_cast<ElementType>(type),
                  sparse_element(seed,
                                 i,
                                 static_cast<Distribution>(distribution),
                                 static_cast<ElementType>(type),
                                 step));
  }
}

#else

#include "kernels/kernels.h"

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(void*),
                                       sizeof(unsigned long long),
                                       sizeof(unsigned long long),
                                       sizeof(int),
                                       sizeof(int),
                                       sizeof(unsigned long long)};

void fill(void* const* arguments, LaunchShape) {
  void* const out = *static_cast<void* const*>(arguments[0]);
  const auto count = *static_cast<const unsigned long long*>(arguments[1]);
  const auto seed = *static_cast<const unsigned long long*>(arguments[2]);
  const auto type = static_cast<ElementType>(*static_cast<const int*>(arguments[3]));
  const auto distribution = static_cast<Distribution>(*static_cast<const int*>(arguments[4]));
  const auto step = *static_cast<const unsigned long long*>(arguments[5]);
  for (unsigned long long i = 0; i < count; ++i)
    store_element(out, i, type, sparse_element(seed, i, distribution, type, step));
}

}  // namespace

const KernelDescription fill_kernel{"launchgap_fill", kParameters, fill};

}  // namespace launchgap::kernels

#endif
