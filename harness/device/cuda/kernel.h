// A kernel in the form that this GPU and its driver can load.
#pragma once

#include <string_view>

#include "harness/device/cuda/driver.h"
#include "harness/device/device.h"

namespace launchgap::cuda {

/// One kernel's module. It stays loaded as long as the device is open: CUPTI before 13.4 Update 1
/// may tell the name of a kernel whose module is gone where another was loaded.
class CudaModule {
 public:
  /// `compute_capability` as 90 for 9.0. Throws Unsupported if this build has no form for it.
  CudaModule(const Driver& driver, const KernelDescription& description, int compute_capability);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  const std::string& form() const { return form_; }
  bool compiled_by_driver() const { return compiled_by_driver_; }
  abi::Function function() const { return function_; }

 private:
  void allow_shared_memory(const KernelDescription& description);
  bool load(std::string_view image);
  void load_portable(std::string_view ptx);

  const Driver& driver_;
  abi::Module module_ = nullptr;
  abi::Function function_ = nullptr;
  abi::Result refused_ = abi::kSuccess;  // why the native form was not loaded
  std::string form_;
  bool compiled_by_driver_ = false;
};

/// The kernel of a module, which outlives it.
class CudaKernel : public Kernel {
 public:
  explicit CudaKernel(const CudaModule& module) : module_(module) {}

  std::string form() const override { return module_.form(); }
  bool compiled_by_driver() const override { return module_.compiled_by_driver(); }
  abi::Function function() const { return module_.function(); }

 private:
  const CudaModule& module_;
};

/// Device::map_matrix().
Device::MatrixMap map_matrix(const Driver& driver,
                             void* address,
                             int rows,
                             int columns,
                             int box_rows);

}  // namespace launchgap::cuda
