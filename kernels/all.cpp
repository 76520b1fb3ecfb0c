#include "kernels/echo.h"
#include "kernels/fill.h"
#include "kernels/flag.h"
#include "kernels/gate.h"
#include "kernels/increment.h"
#include "kernels/kernel.h"
#include "kernels/null.h"

namespace launchgap::kernels {

std::span<const KernelDescription* const> all_kernels() {
  static const KernelDescription* const kernels[] = {
      &null_kernel, &increment_kernel, &gate_kernel, &fill_kernel, &flag_kernel, &echo_kernel};
  return kernels;
}

}  // namespace launchgap::kernels
