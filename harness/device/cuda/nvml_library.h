// NVML's functions, loaded once per process.
#pragma once

#include "harness/device/cuda/abi/nvml.h"
#include "harness/device/facts.h"

namespace launchgap::cuda {

struct Nvml : nvml::NvmlFunctions {
  LoadedLibrary facts;

  /// Loads and initialises it on first use. Throws Error if it cannot be loaded, and LibraryError
  /// if it does not work.
  static const Nvml& get();

  /// Throws LibraryError unless the code is success.
  void check(nvml::Result code, const char* call) const;
};

}  // namespace launchgap::cuda
