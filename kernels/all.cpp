#include <vector>

#include "kernels/arguments.h"
#include "kernels/dependent.h"
#include "kernels/echo.h"
#include "kernels/fill.h"
#include "kernels/flag.h"
#include "kernels/gate.h"
#include "kernels/increment.h"
#include "kernels/kernel.h"
#include "kernels/null.h"
#include "kernels/scale.h"
#include "kernels/scale_repeated.h"
#include "kernels/spin.h"

namespace launchgap::kernels {

std::span<const KernelDescription* const> all_kernels() {
  static const std::vector<const KernelDescription*> kernels = [] {
    std::vector<const KernelDescription*> all = {&null_kernel,
                                                 &increment_kernel,
                                                 &gate_kernel,
                                                 &fill_kernel,
                                                 &flag_kernel,
                                                 &echo_kernel,
                                                 &dependent_kernel,
                                                 &scale_kernel,
                                                 &scale_repeated_kernel,
                                                 &spin_kernel};
    for (const std::size_t bytes : argument_sizes()) all.push_back(arguments_kernel(bytes));
    return all;
  }();
  return kernels;
}

}  // namespace launchgap::kernels
