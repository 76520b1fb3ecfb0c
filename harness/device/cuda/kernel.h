// A kernel in the form that this GPU and its driver can load.
#pragma once

#include <string_view>

#include "harness/device/cuda/driver.h"
#include "harness/device/device.h"

namespace launchgap::cuda {

class CudaKernel : public Kernel {
 public:
  /// `compute_capability` as 90 for 9.0. Throws Unsupported if this build has no form for it.
  CudaKernel(const Driver& driver, const KernelDescription& description, int compute_capability);
  ~CudaKernel() override;

  std::string form() const override { return form_; }
  bool compiled_by_driver() const override { return compiled_by_driver_; }
  abi::Function function() const { return function_; }

 private:
  bool load(std::string_view image);
  void load_portable(std::string_view ptx);

  const Driver& driver_;
  abi::Module module_ = nullptr;
  abi::Function function_ = nullptr;
  std::string form_;
  bool compiled_by_driver_ = false;
};

}  // namespace launchgap::cuda
