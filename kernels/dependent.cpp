#include "kernels/dependent.h"

#include <chrono>

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(unsigned long long), sizeof(unsigned*)};

void work(void* const* arguments, LaunchShape) {
  const auto length =
      std::chrono::nanoseconds(*static_cast<const unsigned long long*>(arguments[0]));
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < length) {
  }
  **static_cast<unsigned* const*>(arguments[1]) += 1;
}

}  // namespace

const KernelDescription dependent_kernel{"launchgap_dependent", kParameters, work, 90};

}  // namespace launchgap::kernels
