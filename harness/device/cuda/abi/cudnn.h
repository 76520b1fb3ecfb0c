// The part of cuDNN's legacy binary interface that launchgap calls: it is the one that cuDNN 5 to 9
// share, so one code path spans all GPU generations. tests/device/cuda_abi_test.cpp compares it
// with cudnn.h where a toolkit is installed.
#pragma once

#include <cstddef>
#include <type_traits>

#include "harness/device/cuda/abi/driver.h"

namespace launchgap::cuda::abi {

using CudnnHandle = struct CudnnContext*;
using CudnnTensor = struct CudnnTensorHandle*;
using CudnnFilter = struct CudnnFilterHandle*;
using CudnnConvolution = struct CudnnConvolutionHandle*;
using CudnnStatus = int;

enum : CudnnStatus { kCudnnSuccess = 0 };
enum CudnnDataType : int { kCudnnFloat = 0, kCudnnHalf = 2, kCudnnBfloat16 = 9 };
enum CudnnTensorFormat : int { kCudnnNchw = 0, kCudnnNhwc = 1 };
enum CudnnConvolutionMode : int { kCudnnCrossCorrelation = 1 };
enum CudnnMathType : int { kCudnnDefaultMath = 0, kCudnnTensorOpMath = 1, kCudnnFmaMath = 3 };
enum CudnnForwardAlgorithm : int {
  kCudnnImplicitGemm = 0,
  kCudnnImplicitPrecompGemm = 1,
  kCudnnGemm = 2,
  kCudnnDirect = 3,
  kCudnnFft = 4,
  kCudnnFftTiling = 5,
  kCudnnWinograd = 6,
  kCudnnWinogradNonfused = 7,
};

/// cudnnConvolutionFwdAlgoPerf_t.
struct CudnnForwardPerformance {
  int algorithm;
  int status;
  float milliseconds;
  std::size_t workspace_bytes;
  int determinism;
  int math_type;
  int reserved[3];
};

/// X(exported symbol, required, signature).
#define LAUNCHGAP_CUDNN_FUNCTIONS(X)                                                             \
  X(cudnnGetVersion, true, std::size_t())                                                        \
  X(cudnnGetErrorString, true, const char*(CudnnStatus status))                                  \
  X(cudnnCreate, true, CudnnStatus(CudnnHandle* handle))                                         \
  X(cudnnDestroy, true, CudnnStatus(CudnnHandle handle))                                         \
  X(cudnnSetStream, true, CudnnStatus(CudnnHandle handle, Stream stream))                        \
  X(cudnnCreateTensorDescriptor, true, CudnnStatus(CudnnTensor* tensor))                         \
  X(cudnnDestroyTensorDescriptor, true, CudnnStatus(CudnnTensor tensor))                         \
  X(cudnnSetTensor4dDescriptor,                                                                  \
    true,                                                                                        \
    CudnnStatus(CudnnTensor tensor, int format, int type, int n, int c, int h, int w))           \
  X(cudnnCreateFilterDescriptor, true, CudnnStatus(CudnnFilter* filter))                         \
  X(cudnnDestroyFilterDescriptor, true, CudnnStatus(CudnnFilter filter))                         \
  X(cudnnSetFilter4dDescriptor,                                                                  \
    true,                                                                                        \
    CudnnStatus(CudnnFilter filter, int type, int format, int k, int c, int h, int w))           \
  X(cudnnCreateConvolutionDescriptor, true, CudnnStatus(CudnnConvolution* convolution))          \
  X(cudnnDestroyConvolutionDescriptor, true, CudnnStatus(CudnnConvolution convolution))          \
  X(cudnnSetConvolution2dDescriptor,                                                             \
    true,                                                                                        \
    CudnnStatus(CudnnConvolution convolution,                                                    \
                int pad_h,                                                                       \
                int pad_w,                                                                       \
                int stride_h,                                                                    \
                int stride_w,                                                                    \
                int dilation_h,                                                                  \
                int dilation_w,                                                                  \
                int mode,                                                                        \
                int compute_type))                                                               \
  X(cudnnSetConvolutionMathType, true, CudnnStatus(CudnnConvolution convolution, int math_type)) \
  X(cudnnGetConvolution2dForwardOutputDim,                                                       \
    true,                                                                                        \
    CudnnStatus(CudnnConvolution convolution,                                                    \
                CudnnTensor input,                                                               \
                CudnnFilter filter,                                                              \
                int* n,                                                                          \
                int* c,                                                                          \
                int* h,                                                                          \
                int* w))                                                                         \
  X(cudnnGetConvolutionForwardAlgorithm_v7,                                                      \
    true,                                                                                        \
    CudnnStatus(CudnnHandle handle,                                                              \
                CudnnTensor input,                                                               \
                CudnnFilter filter,                                                              \
                CudnnConvolution convolution,                                                    \
                CudnnTensor output,                                                              \
                int requested,                                                                   \
                int* returned,                                                                   \
                CudnnForwardPerformance* results))                                               \
  X(cudnnGetConvolutionForwardWorkspaceSize,                                                     \
    true,                                                                                        \
    CudnnStatus(CudnnHandle handle,                                                              \
                CudnnTensor input,                                                               \
                CudnnFilter filter,                                                              \
                CudnnConvolution convolution,                                                    \
                CudnnTensor output,                                                              \
                int algorithm,                                                                   \
                std::size_t* bytes))                                                             \
  X(cudnnConvolutionForward,                                                                     \
    true,                                                                                        \
    CudnnStatus(CudnnHandle handle,                                                              \
                const void* alpha,                                                               \
                CudnnTensor input_descriptor,                                                    \
                const void* input,                                                               \
                CudnnFilter filter_descriptor,                                                   \
                const void* filter,                                                              \
                CudnnConvolution convolution,                                                    \
                int algorithm,                                                                   \
                void* workspace,                                                                 \
                std::size_t workspace_bytes,                                                     \
                const void* beta,                                                                \
                CudnnTensor output_descriptor,                                                   \
                void* output))

/// One pointer per function; optional ones may be null.
struct CudnnFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cuda::abi
