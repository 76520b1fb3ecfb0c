// What the fake cuDNN's two interfaces share: its status codes, and the handle.
#pragma once

#include <optional>

#include "harness/device/cuda/abi/cudnn.h"
#include "kernels/element.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

using namespace cuda::abi;

/// cuDNN 9 renumbered its status codes, and gave some other names. Source: cudnn_graph.h of 9.19
/// and cudnn_ops_infer.h of 8.9.
struct Failure {
  const char* name_before_9;
  CudnnStatus before_9;
  const char* name_since_9;
  CudnnStatus since_9;
};
inline constexpr Failure kNotInitialized{"CUDNN_STATUS_NOT_INITIALIZED",
                                         1,
                                         "CUDNN_STATUS_NOT_INITIALIZED",
                                         1001};
inline constexpr Failure kBadParameter{"CUDNN_STATUS_BAD_PARAM", 3, "CUDNN_STATUS_BAD_PARAM", 2000};
inline constexpr Failure kNullPointer{"CUDNN_STATUS_BAD_PARAM",
                                      3,
                                      "CUDNN_STATUS_BAD_PARAM_NULL_POINTER",
                                      2002};
inline constexpr Failure kMisalignedPointer{"CUDNN_STATUS_BAD_PARAM",
                                            3,
                                            "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER",
                                            2003};
inline constexpr Failure kNotFinalized{"CUDNN_STATUS_BAD_PARAM",
                                       3,
                                       "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED",
                                       2004};
inline constexpr Failure kBadAttributeType{"CUDNN_STATUS_BAD_PARAM",
                                           3,
                                           "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE",
                                           2010};
inline constexpr Failure kNotSupportedByCudnn{"CUDNN_STATUS_NOT_SUPPORTED",
                                              9,
                                              "CUDNN_STATUS_NOT_SUPPORTED",
                                              3000};
inline constexpr Failure kArchMismatch{"CUDNN_STATUS_ARCH_MISMATCH",
                                       6,
                                       "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH",
                                       3007};
inline constexpr Failure kInternalError{"CUDNN_STATUS_INTERNAL_ERROR",
                                        4,
                                        "CUDNN_STATUS_INTERNAL_ERROR",
                                        4000};
inline constexpr Failure kExecutionFailed{"CUDNN_STATUS_EXECUTION_FAILED",
                                          8,
                                          "CUDNN_STATUS_EXECUTION_FAILED",
                                          5000};
// Only by faults.
inline constexpr Failure kVersionMismatch{"CUDNN_STATUS_VERSION_MISMATCH",
                                          14,
                                          "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
                                          1002};
inline constexpr Failure kPrerequisiteMissing{
    "CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING",
    11,
    "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING",
    3008};
/// Of the same number before 9, the first names it.
inline constexpr const Failure* kFailures[] = {&kNotInitialized,
                                               &kBadParameter,
                                               &kNullPointer,
                                               &kMisalignedPointer,
                                               &kNotFinalized,
                                               &kBadAttributeType,
                                               &kNotSupportedByCudnn,
                                               &kArchMismatch,
                                               &kInternalError,
                                               &kExecutionFailed,
                                               &kVersionMismatch,
                                               &kPrerequisiteMissing};

/// Nothing for a type that is not faked.
inline std::optional<kernels::ElementType> element_type_of(int type) {
  switch (type) {
    case kCudnnFloat:
      return kernels::ElementType::fp32;
    case kCudnnDouble:
      return kernels::ElementType::fp64;
    case kCudnnHalf:
      return kernels::ElementType::fp16;
    case kCudnnBfloat16:
      return kernels::ElementType::bf16;
    case kCudnnInt8:
      return kernels::ElementType::int8;
    case kCudnnInt32:
      return kernels::ElementType::int32;
    case kCudnnFp8E4m3:
      return kernels::ElementType::fp8_e4m3;
    case kCudnnFp8E5m2:
      return kernels::ElementType::fp8_e5m2;
    default:
      return std::nullopt;
  }
}

/// What a CudnnHandle is.
struct CudnnState {
  Stream stream = nullptr;
};

inline const Node* cudnn_node() {
  return find_driver() != nullptr ? find_driver()->node() : nullptr;
}

inline bool is_cudnn_9() {
  return cudnn_node() == nullptr || cudnn_node()->cudnn_version >= 90000;
}

inline CudnnStatus status_of(const Failure& failure) {
  return is_cudnn_9() ? failure.since_9 : failure.before_9;
}

inline CudnnStatus enter_cudnn(const char* call) {
  Driver* const driver = find_driver();
  return driver == nullptr ? kNotInitialized.since_9 : driver->enter(Library::cudnn, call);
}

}  // namespace launchgap::fake
