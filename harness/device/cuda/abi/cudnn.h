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
/// A filter's is another type in cudnn.h, and a pointer too; here one type has both, so that the
/// directions have the same signatures.
using CudnnFilter = CudnnTensor;
using CudnnConvolution = struct CudnnConvolutionHandle*;
using CudnnStatus = int;

enum : CudnnStatus { kCudnnSuccess = 0 };
enum CudnnDataType : int {
  kCudnnFloat = 0,
  kCudnnDouble = 1,
  kCudnnHalf = 2,
  kCudnnInt8 = 3,
  kCudnnInt32 = 4,
  kCudnnBfloat16 = 9,
  kCudnnFp8E4m3 = 12,
  kCudnnFp8E5m2 = 13,
  kCudnnFastFloatForFp8 = 14,
};
enum CudnnTensorFormat : int { kCudnnNchw = 0, kCudnnNhwc = 1 };
enum CudnnConvolutionMode : int { kCudnnCrossCorrelation = 1 };
enum CudnnMathType : int { kCudnnDefaultMath = 0, kCudnnTensorOpMath = 1, kCudnnFmaMath = 3 };
/// cudnnConvolutionFwdAlgo_t.
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

/// cudnnConvolutionBwdDataAlgo_t. The first adds in any order, so its results differ in rounding.
enum CudnnBackwardDataAlgorithm : int {
  kCudnnDataAlgo0 = 0,
  kCudnnDataAlgo1 = 1,
  kCudnnDataFft = 2,
  kCudnnDataFftTiling = 3,
  kCudnnDataWinograd = 4,
  kCudnnDataWinogradNonfused = 5,
};
/// cudnnConvolutionBwdFilterAlgo_t. 0 and 3 add in any order.
enum CudnnBackwardFilterAlgorithm : int {
  kCudnnFilterAlgo0 = 0,
  kCudnnFilterAlgo1 = 1,
  kCudnnFilterFft = 2,
  kCudnnFilterAlgo3 = 3,
  kCudnnFilterWinograd = 4,
  kCudnnFilterWinogradNonfused = 5,
  kCudnnFilterFftTiling = 6,
};

/// cudnnConvolutionFwdAlgoPerf_t, and the same of the other directions.
struct CudnnPerformance {
  int algorithm;
  int status;
  float milliseconds;
  std::size_t workspace_bytes;
  int determinism;
  int math_type;
  int reserved[3];
};

/// What the three directions have alike. `first` and `second` are the operands' descriptors in the
/// library's order: input and filter; filter and output's gradient; input and output's gradient.
using CudnnGetAlgorithm = CudnnStatus(CudnnHandle handle,
                                      CudnnTensor first,
                                      CudnnTensor second,
                                      CudnnConvolution convolution,
                                      CudnnTensor result,
                                      int requested,
                                      int* returned,
                                      CudnnPerformance* results);
/// Runs every algorithm that its workspace allows and times it; overwrites the result.
using CudnnFindAlgorithm = CudnnStatus(CudnnHandle handle,
                                       CudnnTensor first_descriptor,
                                       const void* first,
                                       CudnnTensor second_descriptor,
                                       const void* second,
                                       CudnnConvolution convolution,
                                       CudnnTensor result_descriptor,
                                       void* result,
                                       int requested,
                                       int* returned,
                                       CudnnPerformance* results,
                                       void* workspace,
                                       std::size_t workspace_bytes);
using CudnnGetWorkspaceSize = CudnnStatus(CudnnHandle handle,
                                          CudnnTensor first,
                                          CudnnTensor second,
                                          CudnnConvolution convolution,
                                          CudnnTensor result,
                                          int algorithm,
                                          std::size_t* bytes);
using CudnnConvolve = CudnnStatus(CudnnHandle handle,
                                  const void* alpha,
                                  CudnnTensor first_descriptor,
                                  const void* first,
                                  CudnnTensor second_descriptor,
                                  const void* second,
                                  CudnnConvolution convolution,
                                  int algorithm,
                                  void* workspace,
                                  std::size_t workspace_bytes,
                                  const void* beta,
                                  CudnnTensor result_descriptor,
                                  void* result);

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
  X(cudnnSetConvolutionGroupCount, true, CudnnStatus(CudnnConvolution convolution, int groups))  \
  X(cudnnGetConvolution2dForwardOutputDim,                                                       \
    true,                                                                                        \
    CudnnStatus(CudnnConvolution convolution,                                                    \
                CudnnTensor input,                                                               \
                CudnnFilter filter,                                                              \
                int* n,                                                                          \
                int* c,                                                                          \
                int* h,                                                                          \
                int* w))                                                                         \
  X(cudnnGetConvolutionForwardAlgorithm_v7, true, CudnnGetAlgorithm)                             \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7, true, CudnnGetAlgorithm)                        \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7, true, CudnnGetAlgorithm)                      \
  X(cudnnFindConvolutionForwardAlgorithmEx, false, CudnnFindAlgorithm)                           \
  X(cudnnFindConvolutionBackwardDataAlgorithmEx, false, CudnnFindAlgorithm)                      \
  X(cudnnFindConvolutionBackwardFilterAlgorithmEx, false, CudnnFindAlgorithm)                    \
  X(cudnnGetConvolutionForwardWorkspaceSize, true, CudnnGetWorkspaceSize)                        \
  X(cudnnGetConvolutionBackwardDataWorkspaceSize, true, CudnnGetWorkspaceSize)                   \
  X(cudnnGetConvolutionBackwardFilterWorkspaceSize, true, CudnnGetWorkspaceSize)                 \
  X(cudnnConvolutionForward, true, CudnnConvolve)                                                \
  X(cudnnConvolutionBackwardData, true, CudnnConvolve)                                           \
  X(cudnnConvolutionBackwardFilter, true, CudnnConvolve)

/// One pointer per function; optional ones may be null.
struct CudnnFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cuda::abi
