// cuDNN as it was loaded: what its legacy and its graph interface share.
#pragma once

#include <string_view>

#include "harness/device/cuda/abi/cudnn.h"
#include "harness/device/cuda/abi/cudnn_backend.h"
#include "harness/device/facts.h"
#include "harness/device/product_type.h"

namespace launchgap::cuda {

struct Cudnn : abi::CudnnFunctions, abi::CudnnBackendFunctions {
  LoadedLibrary facts;

  /// Loaded on first use, for the process's one GPU: the newest library that driver and GPU can use
  /// comes first. Throws Unsupported where there is none.
  static Cudnn& get(int compute_capability);

  /// Throws Unsupported for what the library says it does not support, LibraryError for all else
  /// but success. `call` is the function's name, with or without what was passed to it; `detail`
  /// goes behind the library's words.
  void check(abi::CudnnStatus status, std::string_view call, std::string_view detail = {}) const;
};

#define LAUNCHGAP_CHECK_CUDNN(library, call) (library).check((library).call, #call)

/// In which type cuDNN multiplies and sums.
abi::CudnnDataType cudnn_compute_type(const ProductType& type);

}  // namespace launchgap::cuda
