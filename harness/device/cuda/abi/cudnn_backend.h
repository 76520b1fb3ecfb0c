// The part of cuDNN's graph interface that launchgap calls, through its C functions for descriptors
// ("backend API"), which cuDNN 8 and 9 have. tests/device/cuda_abi_test.cpp compares it with
// cudnn_graph.h where a toolkit is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "harness/device/cuda/abi/cudnn.h"

namespace launchgap::cuda::abi {

/// The first version whose libraries have these functions, and the first that knows FP8. Source:
/// cuDNN's release notes of 8.0 and 8.6.
inline constexpr int kCudnnFirstBackend = 8000;
inline constexpr int kCudnnFirstFp8 = 8600;

using CudnnBackendDescriptor = void*;

/// cudnnBackendDescriptorType_t.
enum CudnnDescriptorType : int {
  kCudnnConvolutionDescriptor = 1,
  kCudnnEngineDescriptor = 2,
  kCudnnEngineConfigDescriptor = 3,
  kCudnnHeuristicsDescriptor = 4,
  kCudnnPlanDescriptor = 5,
  kCudnnKnobChoiceDescriptor = 7,
  kCudnnForwardDescriptor = 10,
  kCudnnBackwardFilterDescriptor = 11,
  kCudnnBackwardDataDescriptor = 12,
  kCudnnOperationGraphDescriptor = 15,
  kCudnnVariantPackDescriptor = 16,
  kCudnnTensorDescriptor = 17,
  kCudnnDevicePropertiesDescriptor = 38,
};

/// cudnnBackendAttributeType_t: of what an attribute is an array.
enum CudnnAttributeType : int {
  kCudnnTypeHandle = 0,
  kCudnnTypeDataType = 1,
  kCudnnTypeInt64 = 3,
  kCudnnTypeFloat = 4,
  kCudnnTypeDouble = 5,
  kCudnnTypePointer = 6,
  kCudnnTypeConvolutionMode = 7,
  kCudnnTypeHeuristicsMode = 8,
  kCudnnTypeKnob = 9,
  kCudnnTypeNumericalNote = 11,
  kCudnnTypeDescriptor = 15,
  kCudnnTypeBehaviorNote = 19,
  kCudnnTypeInt32 = 23,
  kCudnnTypeChar = 24,
};

/// cudnnBackendAttributeName_t.
enum CudnnAttribute : int {
  kCudnnConvolutionComputeType = 100,
  kCudnnConvolutionModeAttribute = 101,
  kCudnnConvolutionDilations = 102,
  kCudnnConvolutionStrides = 103,
  kCudnnConvolutionPostPaddings = 104,
  kCudnnConvolutionPrePaddings = 105,
  kCudnnConvolutionDimensions = 106,
  kCudnnHeuristicsMode = 200,
  kCudnnHeuristicsGraph = 201,
  kCudnnHeuristicsResults = 202,
  kCudnnHeuristicsDevice = 204,
  kCudnnConfigEngine = 300,
  kCudnnConfigKnobs = 302,
  kCudnnPlanHandle = 400,
  kCudnnPlanConfig = 401,
  kCudnnPlanWorkspace = 402,
  kCudnnPlanDevice = 407,
  kCudnnKnobType = 600,
  kCudnnKnobValue = 601,
  kCudnnForwardAlpha = 700,
  kCudnnForwardBeta = 701,
  kCudnnForwardConvolution = 702,
  kCudnnForwardW = 703,
  kCudnnForwardX = 704,
  kCudnnForwardY = 705,
  kCudnnDataAlpha = 706,
  kCudnnDataBeta = 707,
  kCudnnDataConvolution = 708,
  kCudnnDataW = 709,
  kCudnnDataDx = 710,
  kCudnnDataDy = 711,
  kCudnnFilterAlpha = 712,
  kCudnnFilterBeta = 713,
  kCudnnFilterConvolution = 714,
  kCudnnFilterDw = 715,
  kCudnnFilterX = 716,
  kCudnnFilterDy = 717,
  kCudnnGraphHandle = 800,
  kCudnnGraphOperations = 801,
  kCudnnTensorAlignment = 900,
  kCudnnTensorDataType = 901,
  kCudnnTensorDimensions = 902,
  kCudnnTensorStrides = 903,
  kCudnnTensorId = 906,
  kCudnnPackIds = 1000,
  kCudnnPackPointers = 1001,
  kCudnnPackWorkspace = 1003,
  kCudnnEngineIndex = 1301,
  kCudnnEngineNumericalNotes = 1303,
  kCudnnEngineBehaviorNotes = 1305,
  kCudnnDeviceJson = 2702,
};

/// cudnnBackendHeurMode_t. A has taken the place of INSTANT.
enum CudnnHeuristics : int {
  kCudnnHeuristicsInstant = 0,
  kCudnnHeuristicsB = 1,
  kCudnnHeuristicsFallback = 2,
  kCudnnHeuristicsA = 3,
};

/// cudnnBackendNumericalNote_t: what an engine does to numbers.
enum CudnnNumericalNote : int {
  kCudnnNoteTensorCore = 0,
  kCudnnNoteDownConvertInputs = 1,
  kCudnnNoteReducedPrecisionReduction = 2,
  kCudnnNoteFft = 3,
  kCudnnNoteNondeterministic = 4,
  kCudnnNoteWinograd = 5,
  kCudnnNoteWinograd4x4 = 6,
  kCudnnNoteWinograd6x6 = 7,
  kCudnnNoteWinograd13x13 = 8,
  kCudnnNoteStrictNan = 9,
};

/// cudnnBackendBehaviorNote_t: what else an engine does, or asks for.
enum CudnnBehaviorNote : int {
  kCudnnNoteRuntimeCompilation = 0,
  kCudnnNoteFilterReorder = 1,
  kCudnnNoteBiasReorder = 2,
  kCudnnNoteCudaGraph = 3,
  kCudnnNoteCublasLt = 4,
};

/// X(exported symbol, required, signature). None is required: cuDNN 7 has them not.
#define LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS(X)                                                   \
  X(cudnnBackendCreateDescriptor, false, CudnnStatus(int type, CudnnBackendDescriptor* made))  \
  X(cudnnBackendDestroyDescriptor, false, CudnnStatus(CudnnBackendDescriptor descriptor))      \
  X(cudnnBackendFinalize, false, CudnnStatus(CudnnBackendDescriptor descriptor))               \
  X(cudnnBackendSetAttribute,                                                                  \
    false,                                                                                     \
    CudnnStatus(CudnnBackendDescriptor descriptor,                                             \
                int attribute,                                                                 \
                int type,                                                                      \
                std::int64_t count,                                                            \
                const void* elements))                                                         \
  X(cudnnBackendGetAttribute,                                                                  \
    false,                                                                                     \
    CudnnStatus(CudnnBackendDescriptor descriptor,                                             \
                int attribute,                                                                 \
                int type,                                                                      \
                std::int64_t requested,                                                        \
                std::int64_t* count,                                                           \
                void* elements))                                                               \
  X(cudnnBackendExecute,                                                                       \
    false,                                                                                     \
    CudnnStatus(                                                                               \
        CudnnHandle handle, CudnnBackendDescriptor plan, CudnnBackendDescriptor variant_pack)) \
  /* Since cuDNN 9: what the thread's last call found wrong, in words. */                      \
  X(cudnnGetLastErrorString, false, void(char* message, std::size_t size))

/// One pointer per function, null where the library lacks it.
struct CudnnBackendFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cuda::abi
