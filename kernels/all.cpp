#include <vector>

#include "kernels/convolution/convolution_rungs.h"
#include "kernels/kernels.h"
#include "kernels/matmul/matmul_rungs.h"

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
                                                 &multiply_add_kernel,
                                                 &scale_kernel,
                                                 &scale_repeated_kernel,
                                                 &spin_kernel};
    for (const Rung& rung : rungs()) all.push_back(rung.kernel);
    for (const ConvolutionRung& rung : convolution_rungs()) all.push_back(rung.kernel);
    for (const std::size_t bytes : argument_sizes()) all.push_back(arguments_kernel(bytes));
    return all;
  }();
  return kernels;
}

}  // namespace launchgap::kernels
