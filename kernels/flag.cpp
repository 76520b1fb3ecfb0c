#include "kernels/flag.h"

#include <atomic>

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(unsigned*), sizeof(unsigned)};

void raise(void* const* arguments, LaunchShape) {
  std::atomic_ref<unsigned> flag(**static_cast<unsigned* const*>(arguments[0]));
  flag.store(*static_cast<const unsigned*>(arguments[1]), std::memory_order_release);
}

}  // namespace

const KernelDescription flag_kernel{"launchgap_flag", kParameters, raise};

}  // namespace launchgap::kernels
