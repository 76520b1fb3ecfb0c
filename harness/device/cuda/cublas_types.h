// What cuBLAS and cuBLASLt have in common: which of them a device can use, and what they call
// types.
#pragma once

#include <string>

#include "harness/device/cuda/abi/cublas.h"
#include "harness/device/facts.h"
#include "harness/device/product_type.h"

namespace launchgap::cuda {

/// The newest major of which a device of this compute capability, and its driver, can use anything.
int newest_cublas(int compute_capability);

/// "13.1.0" of 130100; cuBLAS before 11 counted in hundreds, and none of those is loaded here.
std::string cublas_version_text(int version);

/// Throws Unsupported for what the library says that it does not compute on this device,
/// LibraryError for all else that is no success. `call` is its source, of which the name is said;
/// `words_of` may be null.
void check_cublas(const LoadedLibrary& library,
                  abi::CublasStatus status,
                  const char* call,
                  const char* (*words_of)(abi::CublasStatus));

abi::CudaDataType data_type(ElementType type);

/// What cuBLAS calls an arithmetic, and the element type that alpha and beta then have.
struct Computation {
  abi::CublasComputeType type;
  const char* name;
  ElementType scalar;
};
Computation computation(Compute compute);

/// alpha or beta.
class Scalar {
 public:
  Scalar(ElementType type, double value) { kernels::store_element(bytes_, 0, type, value); }
  const void* get() const { return bytes_; }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes_);
  }

 private:
  alignas(8) unsigned char bytes_[8] = {};
};

}  // namespace launchgap::cuda
