// Attributes of cuDNN's descriptors that the library refuses as they are set: the fake must too.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/device/cuda/abi/cudnn_backend.h"

namespace launchgap::fake {

struct RefusedAttribute {
  const char* why;
  int descriptor, attribute, type;
  std::int64_t count;
  int status;  // of cuDNN 9
};

inline std::vector<RefusedAttribute> refused_attributes() {
  using namespace cuda::abi;
  constexpr int kTensor = kCudnnTensorDescriptor, kForward = kCudnnForwardDescriptor;
  return {
      {"dimensions are integers", kTensor, kCudnnTensorDimensions, kCudnnTypeFloat, 4, 2010},
      {"an alignment is one", kTensor, kCudnnTensorAlignment, kCudnnTypeInt64, 2, 2000},
      {"no dimensions", kTensor, kCudnnTensorDimensions, kCudnnTypeInt64, 0, 2000},
      {"no descriptor has it", kTensor, 9999, kCudnnTypeInt64, 1, 2000},
      {"of another", kTensor, kCudnnConvolutionComputeType, kCudnnTypeDataType, 1, 2000},
      {"alpha is no integer", kForward, kCudnnForwardAlpha, kCudnnTypeInt64, 1, 2000},
  };
}

}  // namespace launchgap::fake
