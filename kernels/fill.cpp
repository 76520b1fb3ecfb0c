#include "kernels/fill.h"

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(void*),
                                       sizeof(unsigned long long),
                                       sizeof(unsigned long long),
                                       sizeof(int),
                                       sizeof(int)};

void fill(void* const* arguments, LaunchShape) {
  void* const out = *static_cast<void* const*>(arguments[0]);
  const auto count = *static_cast<const unsigned long long*>(arguments[1]);
  const auto seed = *static_cast<const unsigned long long*>(arguments[2]);
  const auto type = static_cast<ElementType>(*static_cast<const int*>(arguments[3]));
  const auto distribution = static_cast<Distribution>(*static_cast<const int*>(arguments[4]));
  for (unsigned long long i = 0; i < count; ++i)
    store_element(out, i, type, element(seed, i, distribution));
}

}  // namespace

const KernelDescription fill_kernel{"launchgap_fill", kParameters, fill};

}  // namespace launchgap::kernels
