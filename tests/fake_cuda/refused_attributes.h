// Attributes of cuDNN's descriptors that the library refuses as they are set: the fake must too.
#pragma once

#include <cstdint>

#include "harness/device/cuda/abi/cudnn_backend.h"

namespace launchgap::fake {

struct RefusedAttribute {
  const char* why;
  int descriptor, attribute, type;
  std::int64_t count;
  int status;  // of cuDNN 9
};

inline constexpr RefusedAttribute kRefusedAttributes[] = {
    {"dimensions are integers",
     cuda::abi::kCudnnTensorDescriptor,
     cuda::abi::kCudnnTensorDimensions,
     cuda::abi::kCudnnTypeFloat,
     4,
     2010},
    {"an alignment is one",
     cuda::abi::kCudnnTensorDescriptor,
     cuda::abi::kCudnnTensorAlignment,
     cuda::abi::kCudnnTypeInt64,
     2,
     2000},
    {"no dimensions",
     cuda::abi::kCudnnTensorDescriptor,
     cuda::abi::kCudnnTensorDimensions,
     cuda::abi::kCudnnTypeInt64,
     0,
     2000},
    {"no descriptor has it",
     cuda::abi::kCudnnTensorDescriptor,
     9999,
     cuda::abi::kCudnnTypeInt64,
     1,
     2000},
    {"another descriptor has it",
     cuda::abi::kCudnnTensorDescriptor,
     cuda::abi::kCudnnConvolutionComputeType,
     cuda::abi::kCudnnTypeDataType,
     1,
     2000},
    {"alpha is no integer",
     cuda::abi::kCudnnForwardDescriptor,
     cuda::abi::kCudnnForwardAlpha,
     cuda::abi::kCudnnTypeInt64,
     1,
     2000},
};

}  // namespace launchgap::fake
