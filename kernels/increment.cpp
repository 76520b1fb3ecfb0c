#include "kernels/increment.h"

namespace launchgap::kernels {
namespace {
constexpr std::size_t kParameters[] = {sizeof(unsigned*)};
}
const KernelDescription increment_kernel{"launchgap_increment",
                                         kParameters,
                                         [](void* const* arguments, LaunchShape) {
                                           **static_cast<unsigned* const*>(arguments[0]) += 1;
                                         }};
}  // namespace launchgap::kernels
