// What the fake cuDNN's two interfaces share: its status codes, and the handle.
#pragma once

#include <optional>
#include <utility>

#include "harness/device/cuda/abi/cudnn.h"
#include "kernels/element.h"
#include "tests/fake_cuda/convolution.h"
#include "tests/fake_cuda/element_type.h"
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
// X(constant, name and number before 9, those since). Of the same number before 9, the first names
// it. The last two come of faults alone.
#define LAUNCHGAP_CUDNN_FAILURES(X)                                            \
  X(kNotInitialized, NOT_INITIALIZED, 1, NOT_INITIALIZED, 1001)                \
  X(kBadParameter, BAD_PARAM, 3, BAD_PARAM, 2000)                              \
  X(kNullPointer, BAD_PARAM, 3, BAD_PARAM_NULL_POINTER, 2002)                  \
  X(kMisalignedPointer, BAD_PARAM, 3, BAD_PARAM_MISALIGNED_POINTER, 2003)      \
  X(kNotFinalized, BAD_PARAM, 3, BAD_PARAM_NOT_FINALIZED, 2004)                \
  X(kBadAttributeType, BAD_PARAM, 3, BAD_PARAM_ATTRIBUTE_TYPE, 2010)           \
  X(kNotSupportedByCudnn, NOT_SUPPORTED, 9, NOT_SUPPORTED, 3000)               \
  X(kArchMismatch, ARCH_MISMATCH, 6, NOT_SUPPORTED_ARCH_MISMATCH, 3007)        \
  X(kInternalError, INTERNAL_ERROR, 4, INTERNAL_ERROR, 4000)                   \
  X(kExecutionFailed, EXECUTION_FAILED, 8, EXECUTION_FAILED, 5000)             \
  X(kVersionMismatch, VERSION_MISMATCH, 14, SUBLIBRARY_VERSION_MISMATCH, 1002) \
  X(kPrerequisiteMissing,                                                      \
    RUNTIME_PREREQUISITE_MISSING,                                              \
    11,                                                                        \
    NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING,                                \
    3008)
#define LAUNCHGAP_FAILURE(constant, before, number_before, since, number_since) \
  inline constexpr Failure constant{                                            \
      "CUDNN_STATUS_" #before, number_before, "CUDNN_STATUS_" #since, number_since};
LAUNCHGAP_CUDNN_FAILURES(LAUNCHGAP_FAILURE)
#undef LAUNCHGAP_FAILURE
#define LAUNCHGAP_FAILURE(constant, ...) &constant,
inline constexpr const Failure* kFailures[] = {LAUNCHGAP_CUDNN_FAILURES(LAUNCHGAP_FAILURE)};
#undef LAUNCHGAP_FAILURE

/// Nothing for a type that is not faked.
inline std::optional<kernels::ElementType> element_type_of(int type) {
  using kernels::ElementType;
  static constexpr std::pair<int, ElementType> kTypes[] = {{kCudnnFloat, ElementType::fp32},
                                                           {kCudnnDouble, ElementType::fp64},
                                                           {kCudnnHalf, ElementType::fp16},
                                                           {kCudnnBfloat16, ElementType::bf16},
                                                           {kCudnnInt8, ElementType::int8},
                                                           {kCudnnInt32, ElementType::int32},
                                                           {kCudnnFp8E4m3, ElementType::fp8_e4m3},
                                                           {kCudnnFp8E5m2, ElementType::fp8_e5m2}};
  return found_in(kTypes, type);
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

/// Lays a convolution on the handle's stream, for a call that began at `begin_ns`; `slowdown` is
/// how much longer than the fastest way it takes.
inline CudnnStatus launch(double begin_ns,
                          CudnnHandle handle,
                          const ConvolutionWork& work,
                          const Arithmetic& how,
                          double slowdown,
                          Operation operation) {
  const auto launched = find_driver()->launch(LibraryCaller::library,
                                              as<CudnnState>(handle)->stream,
                                              begin_ns,
                                              convolution_kernels(work, how),
                                              work_ns(work.flops(), *how.tflops) * slowdown,
                                              std::move(operation));
  return launched == kSuccess ? CudnnStatus{kCudnnSuccess} : status_of(kExecutionFailed);
}

}  // namespace launchgap::fake
