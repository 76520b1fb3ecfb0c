// launchgap declares the part of CUDA's binary interface that it calls. Here the compiler compares
// that with NVIDIA's headers: a mismatch does not build.
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// Before NVIDIA's, whose macros rename functions to their newest versions.
#include "harness/core/errors.h"
#include "harness/device/convolution.h"
#include "harness/device/cuda/abi/cublas.h"
#include "harness/device/cuda/abi/cublaslt.h"
#include "harness/device/cuda/abi/cudnn.h"
#include "harness/device/cuda/abi/cudnn_backend.h"
#include "harness/device/cuda/abi/driver.h"
#include "harness/device/cuda/abi/nccl.h"
#include "harness/device/cuda/cudnn_backend.h"
#include "harness/device/device.h"
#include "harness/device/shared_library.h"
#include "harness/measure/shapes.h"
#include "tests/fake_cuda/refused_attributes.h"

// clang-format off
#include <cuda.h>
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#endif
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
// clang-format on

// The name is that of cuGraphExecUpdate_v2 in CUDA 12 and later, whose headers show the exported
// function of that name no more. Source: cuda.h of 11.8.
CUresult exported_graph_exec_update(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*);

#if __has_include(<cublas_v2.h>)
// NVIDIA's header overloads these for C++, so the exported functions are picked by their types.
using GemmEx = cublasStatus_t(cublasHandle_t,
                              cublasOperation_t,
                              cublasOperation_t,
                              int,
                              int,
                              int,
                              const void*,
                              const void*,
                              cudaDataType,
                              int,
                              const void*,
                              cudaDataType,
                              int,
                              const void*,
                              void*,
                              cudaDataType,
                              int,
                              cublasComputeType_t,
                              cublasGemmAlgo_t);
static_assert(sizeof(static_cast<GemmEx*>(&cublasGemmEx)) != 0);
GemmEx exported_gemm_ex;
using GemmStridedBatchedEx = cublasStatus_t(cublasHandle_t,
                                            cublasOperation_t,
                                            cublasOperation_t,
                                            int,
                                            int,
                                            int,
                                            const void*,
                                            const void*,
                                            cudaDataType,
                                            int,
                                            long long int,
                                            const void*,
                                            cudaDataType,
                                            int,
                                            long long int,
                                            const void*,
                                            void*,
                                            cudaDataType,
                                            int,
                                            long long int,
                                            int,
                                            cublasComputeType_t,
                                            cublasGemmAlgo_t);
static_assert(sizeof(static_cast<GemmStridedBatchedEx*>(&cublasGemmStridedBatchedEx)) != 0);
GemmStridedBatchedEx exported_gemm_strided_batched_ex;
#endif

namespace launchgap::cuda::abi {
namespace {

#define SAME(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
#define SAME_FIELD(Ours, field, Theirs, their_field)                      \
  static_assert(offsetof(Ours, field) == offsetof(Theirs, their_field) && \
                sizeof(std::declval<Ours>().field) == sizeof(std::declval<Theirs>().their_field))

SAME(kSuccess, CUDA_SUCCESS);
SAME(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(kDeinitialized, CUDA_ERROR_DEINITIALIZED);
SAME(kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
SAME(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(kNoDevice, CUDA_ERROR_NO_DEVICE);
SAME(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME(kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
SAME(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(kUnsupportedLimit, CUDA_ERROR_UNSUPPORTED_LIMIT);
SAME(kInvalidPtx, CUDA_ERROR_INVALID_PTX);
SAME(kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME(kNotFound, CUDA_ERROR_NOT_FOUND);
SAME(kNotReady, CUDA_ERROR_NOT_READY);
SAME(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(kAssert, CUDA_ERROR_ASSERT);
SAME(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(kInvalidPc, CUDA_ERROR_INVALID_PC);
SAME(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
SAME(kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
SAME(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
SAME(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(kCompatNotSupportedOnDevice, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SAME(kInvalidSource, CUDA_ERROR_INVALID_SOURCE);
SAME(kHostMemoryAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(kHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME(kTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK);
SAME(kMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED);
SAME(kCooperativeLaunchTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SAME(kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(kCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(kGraphUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
SAME(kUnknown, CUDA_ERROR_UNKNOWN);

SAME(kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(kMaxGridX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(kThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(kStreamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
SAME(kCooperativeLaunchSupported, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SAME(kWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(kClockRateKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(kIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME(kCanMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
SAME(kComputeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME(kEccEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
SAME(kMemoryClockRateKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(kGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(kL2CacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(kManagedMemorySupported, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
SAME(kConcurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
SAME(kVirtualMemorySupported, CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED);
SAME(kMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);

SAME(kPtxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
SAME(kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(sizeof(TensorMap), sizeof(CUtensorMap));
static_assert(alignof(TensorMap) >= alignof(CUtensorMap));  // 64 before CUDA 13
SAME(kTensorBfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(kTensorNoInterleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(kTensorSwizzle128, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(kTensorPromote128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
SAME(kTensorFillZero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
SAME(kBinaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME(kJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
SAME(kJitErrorLogBufferSizeBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(kReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(kScheduleSpin, CU_CTX_SCHED_SPIN);
SAME(kScheduleYield, CU_CTX_SCHED_YIELD);
SAME(kScheduleBlockingSync, CU_CTX_SCHED_BLOCKING_SYNC);
SAME(kScheduleAuto, CU_CTX_SCHED_AUTO);
SAME(kStreamDefault, CU_STREAM_DEFAULT);
SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(kEventDefault, CU_EVENT_DEFAULT);
SAME(kEventBlockingSync, CU_EVENT_BLOCKING_SYNC);
SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(kGraphUpdated, CU_GRAPH_EXEC_UPDATE_SUCCESS);
SAME(kGraphUpdateError, CU_GRAPH_EXEC_UPDATE_ERROR);
SAME(kGraphTopologyChanged, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
SAME(kLaunchCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(kLaunchProgrammatic, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
SAME(kHostAllocDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
SAME(kAttachGlobal, CU_MEM_ATTACH_GLOBAL);
SAME(kOnDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(kPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(kReadAndWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(kLeastGranularity, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(kEagerLoading, CU_MODULE_EAGER_LOADING);
SAME(kLazyLoading, CU_MODULE_LAZY_LOADING);

static_assert(sizeof(DevicePointer) == sizeof(CUdeviceptr) && sizeof(Uuid) == sizeof(CUuuid));
static_assert(sizeof(PhysicalMemory) == sizeof(CUmemGenericAllocationHandle));
static_assert(sizeof(MemoryLocation) == sizeof(CUmemLocation));
SAME_FIELD(MemoryLocation, type, CUmemLocation, type);
SAME_FIELD(MemoryLocation, id, CUmemLocation, id);
static_assert(sizeof(PhysicalMemoryProperties) == sizeof(CUmemAllocationProp));
SAME_FIELD(PhysicalMemoryProperties, type, CUmemAllocationProp, type);
SAME_FIELD(PhysicalMemoryProperties, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(PhysicalMemoryProperties, location, CUmemAllocationProp, location);
SAME_FIELD(PhysicalMemoryProperties, flags, CUmemAllocationProp, allocFlags);
static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc));
SAME_FIELD(AccessDescription, location, CUmemAccessDesc, location);
SAME_FIELD(AccessDescription, flags, CUmemAccessDesc, flags);
static_assert(sizeof(MemoryPoolProperties) == sizeof(CUmemPoolProps));
SAME_FIELD(MemoryPoolProperties, type, CUmemPoolProps, allocType);
SAME_FIELD(MemoryPoolProperties, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(MemoryPoolProperties, location, CUmemPoolProps, location);
SAME_FIELD(MemoryPoolProperties, security, CUmemPoolProps, win32SecurityAttributes);
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
SAME_FIELD(LaunchConfig, grid_x, CUlaunchConfig, gridDimX);
SAME_FIELD(LaunchConfig, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(LaunchConfig, stream, CUlaunchConfig, hStream);
SAME_FIELD(LaunchConfig, attributes, CUlaunchConfig, attrs);
SAME_FIELD(LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) &&
              alignof(LaunchAttribute) <= alignof(CUlaunchAttribute));
SAME_FIELD(LaunchAttribute, id, CUlaunchAttribute, id);
SAME_FIELD(LaunchAttribute, value, CUlaunchAttribute, value);
SAME_FIELD(LaunchAttribute, value.flag, CUlaunchAttribute, value.cooperative);
SAME_FIELD(LaunchAttribute,
           value.flag,
           CUlaunchAttribute,
           value.programmaticStreamSerializationAllowed);

static_assert(sizeof(GraphUpdateResult) == sizeof(CUgraphExecUpdateResultInfo));
SAME_FIELD(GraphUpdateResult, result, CUgraphExecUpdateResultInfo, result);
SAME_FIELD(GraphUpdateResult, node, CUgraphExecUpdateResultInfo, errorNode);
SAME_FIELD(GraphUpdateResult, from, CUgraphExecUpdateResultInfo, errorFromNode);

#if __has_include(<cublas_v2.h>)
SAME(kCublasNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(kCublasArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(kCublasExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(kCublasInternalError, CUBLAS_STATUS_INTERNAL_ERROR);
SAME(kCublasOpN, CUBLAS_OP_N);
SAME(kCublasOpT, CUBLAS_OP_T);
SAME(kCudaR32F, CUDA_R_32F);
SAME(kCudaR64F, CUDA_R_64F);
SAME(kCudaR8I, CUDA_R_8I);
SAME(kCudaR32I, CUDA_R_32I);
#if CUDA_VERSION >= 11080
SAME(kCudaR8FE4m3, CUDA_R_8F_E4M3);
SAME(kCudaR8FE5m2, CUDA_R_8F_E5M2);
#endif
SAME(kCudaR16F, CUDA_R_16F);
SAME(kCudaR16BF, CUDA_R_16BF);
SAME(kCompute16F, CUBLAS_COMPUTE_16F);
SAME(kCompute32F, CUBLAS_COMPUTE_32F);
SAME(kCompute32I, CUBLAS_COMPUTE_32I);
SAME(kCompute64F, CUBLAS_COMPUTE_64F);
SAME(kCompute32FPedantic, CUBLAS_COMPUTE_32F_PEDANTIC);
SAME(kCompute32FFastTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(kGemmDefault, CUBLAS_GEMM_DEFAULT);
#if CUDA_VERSION >= 13000
SAME(kGemmAutotune, CUBLAS_GEMM_AUTOTUNE);
#endif
SAME(kDisallowReducedPrecisionReduction, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
#endif

#if __has_include(<cublasLt.h>)
SAME(kLtTransA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(kLtTransB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(kLtFastAccumulation, CUBLASLT_MATMUL_DESC_FAST_ACCUM);
SAME(kLtBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(kLtBatchOffset, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(kLtMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(kLtAlgorithmId, CUBLASLT_ALGO_CONFIG_ID);
SAME(kLtTileId, CUBLASLT_ALGO_CONFIG_TILE_ID);
SAME(kLtSplitK, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
SAME(kLtStagesId, CUBLASLT_ALGO_CONFIG_STAGES_ID);
static_assert(sizeof(CublasLtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(CublasLtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
SAME_FIELD(CublasLtHeuristic, algorithm, cublasLtMatmulHeuristicResult_t, algo);
SAME_FIELD(CublasLtHeuristic, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
SAME_FIELD(CublasLtHeuristic, status, cublasLtMatmulHeuristicResult_t, state);
SAME_FIELD(CublasLtHeuristic, waves, cublasLtMatmulHeuristicResult_t, wavesCount);
#endif

#if __has_include(<nccl.h>)
SAME(kNcclSuccess, ncclSuccess);
SAME(kNcclUnhandledCudaError, ncclUnhandledCudaError);
SAME(kNcclInvalidArgument, ncclInvalidArgument);
SAME(kNcclInvalidUsage, ncclInvalidUsage);
SAME(kNcclFloat32, ncclFloat32);
SAME(kNcclSum, ncclSum);
#endif

#if __has_include(<cudnn.h>)
constexpr int kRealCudnnNotSupported = CUDNN_STATUS_NOT_SUPPORTED;
SAME(kCudnnFloat, CUDNN_DATA_FLOAT);
SAME(kCudnnHalf, CUDNN_DATA_HALF);
SAME(kCudnnDouble, CUDNN_DATA_DOUBLE);
SAME(kCudnnBfloat16, CUDNN_DATA_BFLOAT16);
SAME(kCudnnNchw, CUDNN_TENSOR_NCHW);
SAME(kCudnnNhwc, CUDNN_TENSOR_NHWC);
SAME(kCudnnCrossCorrelation, CUDNN_CROSS_CORRELATION);
SAME(kCudnnDefaultMath, CUDNN_DEFAULT_MATH);
SAME(kCudnnTensorOpMath, CUDNN_TENSOR_OP_MATH);
SAME(kCudnnFmaMath, CUDNN_FMA_MATH);
SAME(kCudnnImplicitGemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
SAME(kCudnnImplicitPrecompGemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
SAME(kCudnnFft, CUDNN_CONVOLUTION_FWD_ALGO_FFT);
SAME(kCudnnWinogradNonfused, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED);
SAME(kCudnnDataAlgo0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0);
SAME(kCudnnDataAlgo1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
SAME(kCudnnDataFft, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT);
SAME(kCudnnDataFftTiling, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING);
SAME(kCudnnDataWinograd, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD);
SAME(kCudnnDataWinogradNonfused, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED);
SAME(kCudnnFilterAlgo0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0);
SAME(kCudnnFilterAlgo1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
SAME(kCudnnFilterFft, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT);
SAME(kCudnnFilterAlgo3, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3);
SAME(kCudnnFilterWinograd, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD);
SAME(kCudnnFilterWinogradNonfused, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED);
SAME(kCudnnFilterFftTiling, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING);
SAME(kCudnnInt8, CUDNN_DATA_INT8);
SAME(kCudnnInt32, CUDNN_DATA_INT32);
SAME(kCudnnFp8E4m3, CUDNN_DATA_FP8_E4M3);
SAME(kCudnnFp8E5m2, CUDNN_DATA_FP8_E5M2);
SAME(kCudnnFastFloatForFp8, CUDNN_DATA_FAST_FLOAT_FOR_FP8);
SAME(kCudnnConvolutionDescriptor, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(kCudnnEngineDescriptor, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(kCudnnEngineConfigDescriptor, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(kCudnnHeuristicsDescriptor, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(kCudnnPlanDescriptor, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(kCudnnKnobChoiceDescriptor, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
SAME(kCudnnForwardDescriptor, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(kCudnnBackwardFilterDescriptor,
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(kCudnnBackwardDataDescriptor, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
SAME(kCudnnOperationGraphDescriptor, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(kCudnnVariantPackDescriptor, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(kCudnnTensorDescriptor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(kCudnnTypeHandle, CUDNN_TYPE_HANDLE);
SAME(kCudnnTypeDataType, CUDNN_TYPE_DATA_TYPE);
SAME(kCudnnTypeInt64, CUDNN_TYPE_INT64);
SAME(kCudnnTypeFloat, CUDNN_TYPE_FLOAT);
SAME(kCudnnTypeDouble, CUDNN_TYPE_DOUBLE);
SAME(kCudnnTypePointer, CUDNN_TYPE_VOID_PTR);
SAME(kCudnnTypeConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(kCudnnTypeHeuristicsMode, CUDNN_TYPE_HEUR_MODE);
SAME(kCudnnTypeKnob, CUDNN_TYPE_KNOB_TYPE);
SAME(kCudnnTypeNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(kCudnnTypeDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(kCudnnTypeBehaviorNote, CUDNN_TYPE_BEHAVIOR_NOTE);
SAME(kCudnnTypeInt32, CUDNN_TYPE_INT32);
SAME(kCudnnTypeChar, CUDNN_TYPE_CHAR);
SAME(kCudnnConvolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(kCudnnConvolutionModeAttribute, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(kCudnnConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(kCudnnConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(kCudnnConvolutionPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(kCudnnConvolutionPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(kCudnnConvolutionDimensions, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(kCudnnHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(kCudnnHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(kCudnnHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(kCudnnConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(kCudnnConfigKnobs, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
SAME(kCudnnPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SAME(kCudnnPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(kCudnnPlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(kCudnnKnobType, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
SAME(kCudnnKnobValue, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
SAME(kCudnnForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(kCudnnForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(kCudnnForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(kCudnnDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
SAME(kCudnnDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
SAME(kCudnnDataConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
SAME(kCudnnFilterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
SAME(kCudnnFilterBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
SAME(kCudnnFilterConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME(kCudnnForwardW, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(kCudnnForwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(kCudnnForwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(kCudnnDataW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
SAME(kCudnnDataDx, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
SAME(kCudnnDataDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
SAME(kCudnnFilterDw, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(kCudnnFilterX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(kCudnnFilterDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(kCudnnGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(kCudnnGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(kCudnnTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(kCudnnTensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(kCudnnTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(kCudnnTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
SAME(kCudnnTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(kCudnnPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(kCudnnPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(kCudnnPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(kCudnnEngineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(kCudnnEngineNumericalNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(kCudnnEngineBehaviorNotes, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
SAME(kCudnnHeuristicsInstant, CUDNN_HEUR_MODE_INSTANT);
SAME(kCudnnHeuristicsB, CUDNN_HEUR_MODE_B);
SAME(kCudnnHeuristicsFallback, CUDNN_HEUR_MODE_FALLBACK);
SAME(kCudnnHeuristicsA, CUDNN_HEUR_MODE_A);
SAME(kCudnnNoteTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
SAME(kCudnnNoteDownConvertInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(kCudnnNoteReducedPrecisionReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(kCudnnNoteFft, CUDNN_NUMERICAL_NOTE_FFT);
SAME(kCudnnNoteNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
SAME(kCudnnNoteWinograd, CUDNN_NUMERICAL_NOTE_WINOGRAD);
SAME(kCudnnNoteWinograd4x4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
SAME(kCudnnNoteWinograd6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
SAME(kCudnnNoteWinograd13x13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
SAME(kCudnnNoteStrictNan, CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);
SAME(kCudnnNoteRuntimeCompilation, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
SAME(kCudnnNoteFilterReorder, CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER);
SAME(kCudnnNoteBiasReorder, CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER);
#if CUDNN_VERSION >= 90500  // the first that says these
SAME(kCudnnDevicePropertiesDescriptor, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
SAME(kCudnnHeuristicsDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SAME(kCudnnPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
SAME(kCudnnDeviceJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
SAME(kCudnnNoteCudaGraph, CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API);
SAME(kCudnnNoteCublasLt, CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY);
#endif
static_assert(sizeof(CudnnPerformance) == sizeof(cudnnConvolutionFwdAlgoPerf_t));
static_assert(sizeof(CudnnPerformance) == sizeof(cudnnConvolutionBwdDataAlgoPerf_t));
static_assert(sizeof(CudnnPerformance) == sizeof(cudnnConvolutionBwdFilterAlgoPerf_t));
SAME_FIELD(CudnnPerformance, algorithm, cudnnConvolutionFwdAlgoPerf_t, algo);
SAME_FIELD(CudnnPerformance, milliseconds, cudnnConvolutionFwdAlgoPerf_t, time);
SAME_FIELD(CudnnPerformance, workspace_bytes, cudnnConvolutionFwdAlgoPerf_t, memory);
SAME_FIELD(CudnnPerformance, math_type, cudnnConvolutionFwdAlgoPerf_t, mathType);
#endif

template <class T>
constexpr std::size_t kSize = sizeof(T);
template <>
constexpr std::size_t kSize<void> = 0;

/// A function of ours takes what NVIDIA's does: as many parameters, each of the same size.
template <class Ours, class Theirs>
struct SameShape : std::false_type {};
template <class OurResult, class... Our, class TheirResult, class... Their>
struct SameShape<OurResult(Our...), TheirResult(Their...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Our) != sizeof...(Their)) {
      return false;
    } else {
      return kSize<OurResult> == kSize<TheirResult> && (... && (sizeof(Our) == sizeof(Their)));
    }
  }();
};

#define CHECK_FUNCTION(name, required, ...) \
  static_assert(SameShape<__VA_ARGS__, decltype(::name)>::value, #name);
#pragma push_macro("cuGraphExecUpdate")
#undef cuGraphExecUpdate
#define cuGraphExecUpdate exported_graph_exec_update
LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(CHECK_FUNCTION)
#pragma pop_macro("cuGraphExecUpdate")
#if __has_include(<cublas_v2.h>)
#define cublasGemmEx exported_gemm_ex
#define cublasGemmStridedBatchedEx exported_gemm_strided_batched_ex
LAUNCHGAP_CUBLAS_FUNCTIONS(CHECK_FUNCTION)
#undef cublasGemmEx
#undef cublasGemmStridedBatchedEx
#endif
#if __has_include(<cublasLt.h>)
LAUNCHGAP_CUBLASLT_FUNCTIONS(CHECK_FUNCTION)
#endif
#if __has_include(<cudnn.h>)
LAUNCHGAP_CUDNN_FUNCTIONS(CHECK_FUNCTION)
LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS(CHECK_FUNCTION)
#endif
#if __has_include(<nccl.h>)
LAUNCHGAP_NCCL_FUNCTIONS(CHECK_FUNCTION)
#endif

// All of it is compared at compile time; what lacks its header says so by being skipped.
TEST(CudaAbi, IsNvidias) {}
TEST(CublasAbi, IsNvidias) {
#if !__has_include(<cublas_v2.h>)
  GTEST_SKIP() << "no cublas_v2.h beside cuda.h";
#endif
}
TEST(CudnnAbi, IsNvidias) {
#if !__has_include(<cudnn.h>)
  GTEST_SKIP() << "no cudnn.h beside cuda.h";
#endif
}
TEST(NcclAbi, IsNvidias) {
#if !__has_include(<nccl.h>)
  GTEST_SKIP() << "no nccl.h beside cuda.h";
#endif
}

/// NVIDIA's own library, as the loader or the toolkit beside the headers has it; none of its calls
/// here needs a GPU.
SharedLibrary real(const char* name, std::vector<std::string> sonames) {
  setenv("CUDA_HOME", LAUNCHGAP_CUDA_ROOT, 0);
  return SharedLibrary::open(
      {name, "LAUNCHGAP_NO_OVERRIDE", std::move(sonames), {"cu13/lib", "cudnn/lib", "cublas/lib"}});
}

/// Skips the test where NVIDIA's library is not here.
#define SKIP_WITHOUT(statement)   \
  try {                           \
    statement;                    \
  } catch (const Error& error) {  \
    GTEST_SKIP() << error.what(); \
  }
#define EXPECT_EXPORTED(name, required, ...) EXPECT_NE(library->find(#name), nullptr) << #name;

TEST(RealCublas, ExportsWhatIsCalled) {
  std::optional<SharedLibrary> library;
  SKIP_WITHOUT(
      library.emplace(real("cuBLAS", {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"})));
  LAUNCHGAP_CUBLAS_FUNCTIONS(EXPECT_EXPORTED)
}

TEST(RealCublasLt, ExportsWhatIsCalled) {
  std::optional<SharedLibrary> library;
  SKIP_WITHOUT(library.emplace(
      real("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"})));
  LAUNCHGAP_CUBLASLT_FUNCTIONS(EXPECT_EXPORTED)
}

TEST(RealNccl, ExportsWhatIsCalledAndSaysItsVersion) {
  std::optional<SharedLibrary> library;
  SKIP_WITHOUT(library.emplace(real("NCCL", {"libnccl.so.2"})));
  LAUNCHGAP_NCCL_FUNCTIONS(EXPECT_EXPORTED)
  const auto get_version =
      reinterpret_cast<NcclResult (*)(int*)>(library->require("ncclGetVersion"));
  int version = 0;
  ASSERT_EQ(get_version(&version), kNcclSuccess);
  EXPECT_EQ(nccl_version_text(version).substr(0, 2), "2.");
}

TEST(RealCudnn, ExportsWhatIsCalledAndAgreesOnTheShapeOfEveryOutput) {
  try {
    const std::optional<SharedLibrary> library = real("cuDNN", {"libcudnn.so.9", "libcudnn.so.8"});
    LAUNCHGAP_CUDNN_FUNCTIONS(EXPECT_EXPORTED)
    CudnnFunctions cudnn;
#define LOAD(name, required, ...) \
  cudnn.name = reinterpret_cast<decltype(cudnn.name)>(library->require(#name));
    LAUNCHGAP_CUDNN_FUNCTIONS(LOAD)
    CudnnTensor input = nullptr;
    CudnnFilter filter = nullptr;
    CudnnConvolution convolution = nullptr;
    ASSERT_EQ(cudnn.cudnnCreateTensorDescriptor(&input), kCudnnSuccess);
    ASSERT_EQ(cudnn.cudnnCreateFilterDescriptor(&filter), kCudnnSuccess);
    ASSERT_EQ(cudnn.cudnnCreateConvolutionDescriptor(&convolution), kCudnnSuccess);
    for (const NamedShape<ConvolutionShape>& layer : convolution_shapes()) {
      const ConvolutionShape& shape = layer.shape;
      const Tensor4 filters = shape.filters(), output = shape.output();
      ASSERT_EQ(cudnn.cudnnSetTensor4dDescriptor(
                    input, kCudnnNchw, kCudnnHalf, shape.n, shape.c, shape.h, shape.w),
                kCudnnSuccess);
      ASSERT_EQ(cudnn.cudnnSetFilter4dDescriptor(
                    filter, kCudnnHalf, kCudnnNchw, filters.n, filters.c, filters.h, filters.w),
                kCudnnSuccess);
      ASSERT_EQ(cudnn.cudnnSetConvolution2dDescriptor(convolution,
                                                      shape.pad_h,
                                                      shape.pad_w,
                                                      shape.stride_h,
                                                      shape.stride_w,
                                                      shape.dilation_h,
                                                      shape.dilation_w,
                                                      kCudnnCrossCorrelation,
                                                      kCudnnFloat),
                kCudnnSuccess);
      ASSERT_EQ(cudnn.cudnnSetConvolutionGroupCount(convolution, shape.groups), kCudnnSuccess);
      for (const int math : {kCudnnTensorOpMath, kCudnnFmaMath, kCudnnDefaultMath}) {
        EXPECT_EQ(cudnn.cudnnSetConvolutionMathType(convolution, math), kCudnnSuccess) << math;
      }
      int n = 0, k = 0, h = 0, w = 0;
      ASSERT_EQ(
          cudnn.cudnnGetConvolution2dForwardOutputDim(convolution, input, filter, &n, &k, &h, &w),
          kCudnnSuccess);
      EXPECT_EQ((Tensor4{n, k, h, w}), output) << layer.name;
    }
    cudnn.cudnnDestroyConvolutionDescriptor(convolution);
    cudnn.cudnnDestroyFilterDescriptor(filter);
    cudnn.cudnnDestroyTensorDescriptor(input);
    // The words by which the device tells what is unsupported from what failed.
    EXPECT_NE(std::string(cudnn.cudnnGetErrorString(kRealCudnnNotSupported)).find("NOT_SUPPORTED"),
              std::string::npos);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
}

/// The properties of a GPU, as cuDNN takes them in place of one: of compute capability 9.0.
constexpr std::string_view kHopper = R"({
  "deviceName": "a GPU of compute capability 9.0", "deviceVer": 900, "driverVer": 13000,
  "cudaDeviceId": 0, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1,
  "multiProcessorCount": 132, "warpSize": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
  "maxCtasPerSM": 32, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "l2CacheSize": 52428800, "totalGlobalMem": 84929216512,
  "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64]
})";

/// cuDNN 9, without its GPU. Throws Error where there is none.
Cudnn real_cudnn_9() {
  const SharedLibrary library = real("cuDNN", {"libcudnn.so.9"});
  Cudnn cudnn;
#define LOAD_BACKEND(name, required, ...) \
  cudnn.name = reinterpret_cast<decltype(cudnn.name)>(library.find(#name));
  LAUNCHGAP_CUDNN_FUNCTIONS(LOAD_BACKEND)
  LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS(LOAD_BACKEND)
  return cudnn;
}

/// The fake refuses the same (fake_cudnn_test.cpp).
TEST(RealCudnn, RefusesTheAttributesThatTheFakeRefuses) {
  Cudnn cudnn;
  SKIP_WITHOUT(cudnn = real_cudnn_9());
  const std::vector<unsigned char> elements(std::size_t{16} * 64);
  for (const fake::RefusedAttribute& refused : fake::refused_attributes()) {
    CudnnBackendDescriptor descriptor = nullptr;
    ASSERT_EQ(cudnn.cudnnBackendCreateDescriptor(refused.descriptor, &descriptor), kCudnnSuccess);
    EXPECT_EQ(cudnn.cudnnBackendSetAttribute(
                  descriptor, refused.attribute, refused.type, refused.count, elements.data()),
              refused.status)
        << refused.why;
    EXPECT_EQ(cudnn.cudnnBackendDestroyDescriptor(descriptor), kCudnnSuccess);
  }
}

/// The heuristics of the library itself, and its plans, for our graphs.
TEST(RealCudnn, OffersEnginesForEveryDirectionLayoutAndType) {
  Cudnn cudnn;
  SKIP_WITHOUT(cudnn = real_cudnn_9());
  if (cudnn.cudnnGetVersion() < 91900)
    GTEST_SKIP() << "this cuDNN is not known to answer for a GPU that is not there";
  CudnnDescriptor device(cudnn, kCudnnDevicePropertiesDescriptor, "a device");
  device.set(
      kCudnnDeviceJson, kCudnnTypeChar, static_cast<std::int64_t>(kHopper.size()), kHopper.data());
  device.finalize();
  for (const char* type : {"fp64", "fp32", "tf32", "fp16", "bf16", "int8"}) {
    for (const TensorLayout layout : {TensorLayout::nchw, TensorLayout::nhwc}) {
      for (const ConvolutionDirection direction : {ConvolutionDirection::forward,
                                                   ConvolutionDirection::data,
                                                   ConvolutionDirection::filter}) {
        const bool narrow = type == std::string("int8");
        if (narrow && (direction != ConvolutionDirection::forward || layout != TensorLayout::nhwc))
          continue;
        ConvolutionShape shape{
            .n = 8, .c = 64, .h = 28, .w = 28, .k = 64, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1};
        shape.direction = direction, shape.layout = layout, shape.type = product_type(type);
        SCOPED_TRACE(std::string(type) + " " + std::string(name_of(layout)) + " " +
                     std::string(name_of(direction)));
        const CudnnConvolutionGraph graph(cudnn, {.device = &device}, shape);
        std::size_t offered = 0, serving = 0, planned = 0;
        for (const CudnnHeuristics mode :
             {kCudnnHeuristicsA, kCudnnHeuristicsB, kCudnnHeuristicsFallback}) {
          for (const CudnnOffer& offer : graph.offers(mode)) {
            ++offered;
            EXPECT_EQ(offer.engine.notes().find("note"), std::string::npos)
                << "a note without words: " << offer.engine.notes();
            if (!offer.engine.serves(shape.type)) continue;
            ++serving;
            if (mode == kCudnnHeuristicsA && planned > 0) continue;  // some are compiled
            EXPECT_GE(graph.plan(offer).integer(kCudnnPlanWorkspace), 0) << offer.engine.name();
            ++planned;
          }
        }
        EXPECT_GT(planned, 0u) << offered << " offered, " << serving << " serve";
        if (type == std::string("fp32")) {
          EXPECT_LT(serving, offered) << "those of tensor cores are left out";
        }
      }
    }
  }
}

}  // namespace
}  // namespace launchgap::cuda::abi
