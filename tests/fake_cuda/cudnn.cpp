// The fake libcudnn: convolutions computed on the host, laid on the fake driver's streams.
#include "harness/device/cuda/abi/cudnn.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <type_traits>

#include "tests/fake_cuda/convolution.h"
#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/operation.h"
#include "tests/fake_cuda/wrong_result.h"

#define EXPORT LAUNCHGAP_FAKE_EXPORT

EXPORT int launchgap_fake_library;
int launchgap_fake_library = 1;

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

/// cuDNN 9 renumbered its status codes, and gave some other names. Source: cudnn_graph.h of 9.19
/// and cudnn_ops_infer.h of 8.9.
struct Failure {
  const char* name_before_9;
  CudnnStatus before_9;
  const char* name_since_9;
  CudnnStatus since_9;
};
constexpr Failure kNotInitialized{"CUDNN_STATUS_NOT_INITIALIZED",
                                  1,
                                  "CUDNN_STATUS_NOT_INITIALIZED",
                                  1001};
constexpr Failure kBadParameter{"CUDNN_STATUS_BAD_PARAM", 3, "CUDNN_STATUS_BAD_PARAM", 2000};
constexpr Failure kNotSupported{"CUDNN_STATUS_NOT_SUPPORTED",
                                9,
                                "CUDNN_STATUS_NOT_SUPPORTED",
                                3000};
constexpr Failure kArchMismatch{"CUDNN_STATUS_ARCH_MISMATCH",
                                6,
                                "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH",
                                3007};
constexpr Failure kInternalError{"CUDNN_STATUS_INTERNAL_ERROR",
                                 4,
                                 "CUDNN_STATUS_INTERNAL_ERROR",
                                 4000};
constexpr Failure kExecutionFailed{"CUDNN_STATUS_EXECUTION_FAILED",
                                   8,
                                   "CUDNN_STATUS_EXECUTION_FAILED",
                                   5000};
// Only by faults.
constexpr Failure kVersionMismatch{"CUDNN_STATUS_VERSION_MISMATCH",
                                   14,
                                   "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
                                   1002};
constexpr Failure kPrerequisiteMissing{"CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING",
                                       11,
                                       "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING",
                                       3008};
constexpr const Failure* kFailures[] = {&kNotInitialized,
                                        &kBadParameter,
                                        &kNotSupported,
                                        &kArchMismatch,
                                        &kInternalError,
                                        &kExecutionFailed,
                                        &kVersionMismatch,
                                        &kPrerequisiteMissing};

struct Handle {
  Stream stream = nullptr;
};

struct Tensor {
  Extents extents;
  Layout layout{};
  kernels::ElementType type{};
};

struct Convolution {
  std::size_t pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::size_t groups = 1;
  int math_type = kCudnnDefaultMath;
  int compute_type = kCudnnFloat;
};

const Node* node() {
  return find_driver() != nullptr ? find_driver()->node() : nullptr;
}

bool is_version_9() {
  return node() == nullptr || node()->cudnn_version >= 90000;
}

CudnnStatus status_of(const Failure& failure) {
  return is_version_9() ? failure.since_9 : failure.before_9;
}

CudnnStatus enter(const char* call) {
  Driver* const driver = find_driver();
  return driver == nullptr ? kNotInitialized.since_9 : driver->enter(Library::cudnn, call);
}

template <typename T, typename Opaque>
T* as(Opaque* handle) {
  return reinterpret_cast<T*>(handle);
}

template <typename T, typename Opaque>
CudnnStatus create(const char* call, Opaque** handle) {
  if (const CudnnStatus status = enter(call)) return status;
  if (handle == nullptr) return status_of(kBadParameter);
  *handle = reinterpret_cast<Opaque*>(new T);
  return kCudnnSuccess;
}

template <typename T, typename Opaque>
CudnnStatus destroy(const char* call, Opaque* handle) {
  if (const CudnnStatus status = enter(call)) return status;
  delete as<T>(handle);
  return kCudnnSuccess;
}

std::optional<kernels::ElementType> element_type(int type) {
  switch (type) {
    case kCudnnFloat:
      return kernels::ElementType::fp32;
    case kCudnnDouble:
      return kernels::ElementType::fp64;
    case kCudnnHalf:
      return kernels::ElementType::fp16;
    case kCudnnBfloat16:
      return kernels::ElementType::bf16;
    default:
      return std::nullopt;
  }
}

CudnnStatus set_tensor(Tensor* tensor, int format, int type, int n, int c, int h, int w) {
  if (tensor == nullptr || n < 1 || c < 1 || h < 1 || w < 1) return status_of(kBadParameter);
  const auto its_type = element_type(type);
  if (!its_type || (format != kCudnnNchw && format != kCudnnNhwc)) return status_of(kNotSupported);
  tensor->extents = {static_cast<std::size_t>(n),
                     static_cast<std::size_t>(c),
                     static_cast<std::size_t>(h),
                     static_cast<std::size_t>(w)};
  tensor->layout = format == kCudnnNchw ? Layout::nchw : Layout::nhwc;
  tensor->type = *its_type;
  return kCudnnSuccess;
}

/// Source: cuDNN API reference, cudnnGetConvolution2dForwardOutputDim. 0 when the filter exceeds
/// the padded input.
std::size_t output_extent(std::size_t in,
                          std::size_t filter,
                          std::size_t pad,
                          std::size_t stride,
                          std::size_t dilation) {
  const std::size_t padded = in + 2 * pad;
  const std::size_t reach = (filter - 1) * dilation + 1;
  return padded < reach ? 0 : 1 + (padded - reach) / stride;
}

std::optional<Extents> output_extents(const Tensor& input,
                                      const Tensor& filter,
                                      const Convolution& convolution) {
  if (input.extents.c != filter.extents.c * convolution.groups ||
      filter.extents.n % convolution.groups != 0)
    return std::nullopt;
  const Extents output{input.extents.n,
                       filter.extents.n,
                       output_extent(input.extents.h,
                                     filter.extents.h,
                                     convolution.pad_h,
                                     convolution.stride_h,
                                     convolution.dilation_h),
                       output_extent(input.extents.w,
                                     filter.extents.w,
                                     convolution.pad_w,
                                     convolution.stride_w,
                                     convolution.dilation_w)};
  if (output.h == 0 || output.w == 0) return std::nullopt;
  return output;
}

/// What the device makes of a convolution.
struct Plan {
  CudnnStatus status = kCudnnSuccess;
  Arithmetic how;
  double duration_ns = 0;  // of the fastest algorithm
  int math_type = kCudnnDefaultMath;
};

Plan plan(const Tensor* input,
          const Tensor* filter,
          const Convolution* convolution,
          const Tensor* output) {
  const auto failed = [](const Failure& failure) {
    Plan result;
    result.status = status_of(failure);
    return result;
  };
  if (input == nullptr || filter == nullptr || convolution == nullptr || output == nullptr)
    return failed(kBadParameter);
  if (output_extents(*input, *filter, *convolution) != output->extents)
    return failed(kBadParameter);
  if (input->type != filter->type || input->type != output->type) return failed(kBadParameter);
  const int compute_type = convolution->compute_type;
  const bool computes = input->type == kernels::ElementType::fp64 ? compute_type == kCudnnDouble
                        : compute_type == kCudnnHalf ? input->type == kernels::ElementType::fp16
                                                     : compute_type == kCudnnFloat;
  if (!computes) return failed(kBadParameter);
  // Mixed layouts are refused, as most engines do.
  if (input->layout != output->layout) return failed(kNotSupported);
  const DeviceDescription* device = nullptr;
  if (find_driver()->current_device(&device) != kSuccess) return failed(kExecutionFailed);
  if (device->capability() < first_capability(input->type)) return failed(kArchMismatch);
  Plan result;
  // Since cuDNN 8 the default math of fp32 is TF32 where there is some; FMA math forbids it.
  result.how = arithmetic(*device, input->type, convolution->math_type != kCudnnFmaMath);
  if (!result.how.tflops) return failed(kNotSupported);
  const double flops =
      2.0 * static_cast<double>(output->extents.count()) *
      static_cast<double>(filter->extents.c * filter->extents.h * filter->extents.w);
  result.duration_ns = work_ns(flops, *result.how.tflops);
  constexpr int kFirstTensorCores = 70;
  const bool narrow =
      input->type == kernels::ElementType::fp16 || input->type == kernels::ElementType::bf16;
  if (narrow && device->capability() >= kFirstTensorCores) {
    result.math_type = kCudnnTensorOpMath;
  }
  return result;
}

/// A convolution is two kernels: one brings its first operand into another order, one computes.
std::vector<LibraryKernel> kernels_of(const ConvolutionWork& convolution, const Arithmetic& how) {
  constexpr unsigned kThreads = 256;
  constexpr std::size_t kElements = 1024;  // per block of the first
  constexpr std::size_t kTile = 128;
  constexpr double kShareOfFirst = 0.1;
  const std::string type = rate_name(convolution.type, how);
  const Extents& result = convolution.result_extents();
  const Extents& operand =
      convolution.direction == Direction::data ? convolution.output : convolution.input;
  const char* const name = convolution.direction == Direction::forward ? "fake_convolution_"
                           : convolution.direction == Direction::data  ? "fake_convolution_data_"
                                                                       : "fake_convolution_filter_";
  const std::size_t pixels = result.n * result.h * result.w;
  const KernelShape transform{kernel_name("fake_transform_" + type),
                              {blocks_for(operand.count(), kElements), 1, 1},
                              {kThreads, 1, 1},
                              0};
  const KernelShape convolve{kernel_name(name + type),
                             {blocks_for(pixels, kTile), blocks_for(result.c, kTile), 1},
                             {kThreads, 1, 1},
                             0};
  return {{transform, kShareOfFirst}, {convolve, 1 - kShareOfFirst}};
}

/// How much longer an algorithm takes than the fastest; 0 when the fake has none. In every
/// direction number 1 is the fastest and 0 the one without a workspace.
double slowdown(int algorithm) {
  switch (algorithm) {
    case kCudnnImplicitPrecompGemm:
      return 1;
    case kCudnnImplicitGemm:
      return 2;
    default:
      return 0;
  }
}

/// The fastest wants the filters once more.
std::size_t workspace_of(int algorithm, const Tensor& filter) {
  return algorithm == kCudnnImplicitPrecompGemm
             ? filter.extents.count() * kernels::element_bytes(filter.type)
             : 0;
}

/// A direction's three tensors, whichever the call has for operands.
struct Tensors {
  const Tensor* input;
  const Tensor* filter;
  const Tensor* output;
};

Tensors tensors_of(Direction direction, CudnnTensor first, CudnnTensor second, CudnnTensor result) {
  switch (direction) {
    case Direction::forward:
      break;
    case Direction::data:
      return {as<Tensor>(result), as<Tensor>(first), as<Tensor>(second)};
    case Direction::filter:
      return {as<Tensor>(first), as<Tensor>(result), as<Tensor>(second)};
  }
  return {as<Tensor>(first), as<Tensor>(second), as<Tensor>(result)};
}

Plan plan(const Tensors& tensors, CudnnConvolution convolution) {
  return plan(tensors.input, tensors.filter, as<Convolution>(convolution), tensors.output);
}

/// A selection that runs nothing lists an algorithm whatever workspace it wants.
constexpr std::size_t kAnyWorkspace = ~std::size_t{0};

/// What both kinds of selection answer: every algorithm, the best first, unless this one flips.
CudnnStatus list_algorithms(const Tensors& tensors,
                            CudnnConvolution convolution,
                            int requested,
                            int* returned,
                            CudnnPerformance* results,
                            std::size_t workspace_bytes) {
  const Plan its_plan = plan(tensors, convolution);
  if (its_plan.status != kCudnnSuccess) return its_plan.status;
  constexpr int kAlgorithms = 6;  // each direction has as many, at least
  static std::atomic<int> selections{0};
  const int every = node()->cudnn_flips_every;
  const bool flips = every > 0 && ++selections % every == 0;
  *returned = std::min(requested, kAlgorithms);
  for (int i = 0; i < *returned; ++i) {
    const int algorithm = i >= 2 ? i : flips ? i : 1 - i;
    const std::size_t needed = workspace_of(algorithm, *tensors.filter);
    const double times = needed <= workspace_bytes ? slowdown(algorithm) : 0;
    CudnnPerformance& candidate = results[i];
    candidate = {};
    candidate.algorithm = algorithm;
    candidate.status = times > 0 ? CudnnStatus{kCudnnSuccess} : status_of(kNotSupported);
    candidate.milliseconds =
        times > 0 ? static_cast<float>(its_plan.duration_ns * times * 1e-6) : -1.0f;
    candidate.workspace_bytes = times > 0 ? needed : 0;
    candidate.determinism = times > 0 ? 1 : 0;
    candidate.math_type = its_plan.math_type;
  }
  // What can be computed stands before what cannot.
  std::stable_partition(results, results + *returned, [](const CudnnPerformance& candidate) {
    return candidate.status == kCudnnSuccess;
  });
  return kCudnnSuccess;
}

CudnnStatus get_algorithm(const char* call,
                          Direction direction,
                          CudnnHandle handle,
                          CudnnTensor first,
                          CudnnTensor second,
                          CudnnConvolution convolution,
                          CudnnTensor result,
                          int requested,
                          int* returned,
                          CudnnPerformance* results) {
  if (const CudnnStatus status = enter(call)) return status;
  if (handle == nullptr || requested < 1 || returned == nullptr || results == nullptr)
    return status_of(kBadParameter);
  return list_algorithms(tensors_of(direction, first, second, result),
                         convolution,
                         requested,
                         returned,
                         results,
                         kAnyWorkspace);
}

/// Does not run what it lists, but leaves the result overwritten, as the real one does.
CudnnStatus find_algorithm(const char* call,
                           Direction direction,
                           CudnnHandle handle,
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
                           std::size_t workspace_bytes) {
  if (const CudnnStatus status = enter(call)) return status;
  if (handle == nullptr || first == nullptr || second == nullptr || result == nullptr ||
      requested < 1 || returned == nullptr || results == nullptr ||
      (workspace == nullptr && workspace_bytes > 0))
    return status_of(kBadParameter);
  const Tensors tensors =
      tensors_of(direction, first_descriptor, second_descriptor, result_descriptor);
  const CudnnStatus status =
      list_algorithms(tensors, convolution, requested, returned, results, workspace_bytes);
  if (status == kCudnnSuccess) {
    const Tensor& overwritten = *as<Tensor>(result_descriptor);
    std::memset(
        result, 0xff, overwritten.extents.count() * kernels::element_bytes(overwritten.type));
  }
  return status;
}

CudnnStatus get_workspace_size(const char* call,
                               Direction direction,
                               CudnnHandle handle,
                               CudnnTensor first,
                               CudnnTensor second,
                               CudnnConvolution convolution,
                               CudnnTensor result,
                               int algorithm,
                               std::size_t* bytes) {
  if (const CudnnStatus status = enter(call)) return status;
  if (handle == nullptr || bytes == nullptr) return status_of(kBadParameter);
  const Tensors tensors = tensors_of(direction, first, second, result);
  const Plan its_plan = plan(tensors, convolution);
  if (its_plan.status != kCudnnSuccess) return its_plan.status;
  if (slowdown(algorithm) == 0) return status_of(kNotSupported);
  *bytes = workspace_of(algorithm, *tensors.filter);
  return kCudnnSuccess;
}

CudnnStatus convolve(double begin,
                     const char* call,
                     Direction direction,
                     CudnnHandle handle,
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
                     void* result) {
  if (const CudnnStatus status = enter(call)) return status;
  if (handle == nullptr || alpha == nullptr || beta == nullptr) return status_of(kBadParameter);
  const Tensors tensors =
      tensors_of(direction, first_descriptor, second_descriptor, result_descriptor);
  const Plan its_plan = plan(tensors, convolution);
  if (its_plan.status != kCudnnSuccess) return its_plan.status;
  if (slowdown(algorithm) == 0) return status_of(kNotSupported);
  const std::size_t needed = workspace_of(algorithm, *tensors.filter);
  if (workspace_bytes < needed || (needed > 0 && workspace == nullptr))
    return status_of(kBadParameter);

  const auto* const how = as<Convolution>(convolution);
  ConvolutionWork work;
  work.direction = direction;
  work.input = tensors.input->extents;
  work.filter = tensors.filter->extents;
  work.output = tensors.output->extents;
  work.input_layout = tensors.input->layout;
  work.filter_layout = tensors.filter->layout;
  work.output_layout = tensors.output->layout;
  work.type = tensors.input->type;
  work.pad_h = how->pad_h;
  work.pad_w = how->pad_w;
  work.stride_h = how->stride_h;
  work.stride_w = how->stride_w;
  work.dilation_h = how->dilation_h;
  work.dilation_w = how->dilation_w;
  work.groups = how->groups;
  const auto scalar = work.type == kernels::ElementType::fp64 ? kernels::ElementType::fp64
                                                              : kernels::ElementType::fp32;
  work.alpha = kernels::load_element(alpha, 0, scalar);
  work.beta = kernels::load_element(beta, 0, scalar);
  work.x = direction == Direction::data ? result : first;
  work.w = direction == Direction::forward ? second : direction == Direction::data ? first : result;
  work.y = direction == Direction::forward ? result : second;
  work.result = result;
  work.tf32 = its_plan.how.tf32;
  Operation operation = convolution_operation(work);
  if (node()->cudnn_wrong == algorithm) spoil_first_element(operation);
  const auto launched = find_driver()->launch(LibraryCaller::library,
                                              as<Handle>(handle)->stream,
                                              begin,
                                              kernels_of(work, its_plan.how),
                                              its_plan.duration_ns * slowdown(algorithm),
                                              std::move(operation));
  return launched == kSuccess ? CudnnStatus{kCudnnSuccess} : status_of(kExecutionFailed);
}

}  // namespace

EXPORT std::size_t cudnnGetVersion() {
  return node() != nullptr ? static_cast<std::size_t>(node()->cudnn_version) : 0;
}

EXPORT const char* cudnnGetErrorString(CudnnStatus status) {
  if (status == kCudnnSuccess) return "CUDNN_STATUS_SUCCESS";
  for (const Failure* const failure : kFailures) {
    if (status_of(*failure) == status)
      return is_version_9() ? failure->name_since_9 : failure->name_before_9;
  }
  return "CUDNN_UNKNOWN_STATUS";
}

EXPORT CudnnStatus cudnnCreate(CudnnHandle* handle) {
  const DeviceDescription* device = nullptr;
  if (find_driver() == nullptr) return kNotInitialized.since_9;
  if (find_driver()->current_device(&device) != kSuccess) return status_of(kNotInitialized);
  find_driver()->load_library(Library::cudnn);
  return create<Handle>("cudnnCreate", handle);
}

EXPORT CudnnStatus cudnnDestroy(CudnnHandle handle) {
  return destroy<Handle>("cudnnDestroy", handle);
}

EXPORT CudnnStatus cudnnSetStream(CudnnHandle handle, Stream stream) {
  if (const CudnnStatus status = enter("cudnnSetStream")) return status;
  if (handle == nullptr) return status_of(kBadParameter);
  as<Handle>(handle)->stream = stream;
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnCreateTensorDescriptor(CudnnTensor* tensor) {
  return create<Tensor>("cudnnCreateTensorDescriptor", tensor);
}

EXPORT CudnnStatus cudnnDestroyTensorDescriptor(CudnnTensor tensor) {
  return destroy<Tensor>("cudnnDestroyTensorDescriptor", tensor);
}

EXPORT CudnnStatus
cudnnSetTensor4dDescriptor(CudnnTensor tensor, int format, int type, int n, int c, int h, int w) {
  if (const CudnnStatus status = enter("cudnnSetTensor4dDescriptor")) return status;
  return set_tensor(as<Tensor>(tensor), format, type, n, c, h, w);
}

EXPORT CudnnStatus cudnnCreateFilterDescriptor(CudnnFilter* filter) {
  return create<Tensor>("cudnnCreateFilterDescriptor", filter);
}

EXPORT CudnnStatus cudnnDestroyFilterDescriptor(CudnnFilter filter) {
  return destroy<Tensor>("cudnnDestroyFilterDescriptor", filter);
}

EXPORT CudnnStatus
cudnnSetFilter4dDescriptor(CudnnFilter filter, int type, int format, int k, int c, int h, int w) {
  if (const CudnnStatus status = enter("cudnnSetFilter4dDescriptor")) return status;
  return set_tensor(as<Tensor>(filter), format, type, k, c, h, w);
}

EXPORT CudnnStatus cudnnCreateConvolutionDescriptor(CudnnConvolution* convolution) {
  return create<Convolution>("cudnnCreateConvolutionDescriptor", convolution);
}

EXPORT CudnnStatus cudnnDestroyConvolutionDescriptor(CudnnConvolution convolution) {
  return destroy<Convolution>("cudnnDestroyConvolutionDescriptor", convolution);
}

EXPORT CudnnStatus cudnnSetConvolution2dDescriptor(CudnnConvolution convolution,
                                                   int pad_h,
                                                   int pad_w,
                                                   int stride_h,
                                                   int stride_w,
                                                   int dilation_h,
                                                   int dilation_w,
                                                   int mode,
                                                   int compute_type) {
  if (const CudnnStatus status = enter("cudnnSetConvolution2dDescriptor")) return status;
  if (convolution == nullptr || std::min(pad_h, pad_w) < 0 ||
      std::min({stride_h, stride_w, dilation_h, dilation_w}) < 1) {
    return status_of(kBadParameter);
  }
  if (mode != kCudnnCrossCorrelation ||
      (compute_type != kCudnnFloat && compute_type != kCudnnDouble && compute_type != kCudnnHalf))
    return status_of(kNotSupported);
  auto& its = *as<Convolution>(convolution);
  its.pad_h = static_cast<std::size_t>(pad_h);
  its.pad_w = static_cast<std::size_t>(pad_w);
  its.stride_h = static_cast<std::size_t>(stride_h);
  its.stride_w = static_cast<std::size_t>(stride_w);
  its.dilation_h = static_cast<std::size_t>(dilation_h);
  its.dilation_w = static_cast<std::size_t>(dilation_w);
  its.compute_type = compute_type;
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnSetConvolutionGroupCount(CudnnConvolution convolution, int groups) {
  if (const CudnnStatus status = enter("cudnnSetConvolutionGroupCount")) return status;
  if (convolution == nullptr || groups < 1) return status_of(kBadParameter);
  as<Convolution>(convolution)->groups = static_cast<std::size_t>(groups);
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnSetConvolutionMathType(CudnnConvolution convolution, int math_type) {
  if (const CudnnStatus status = enter("cudnnSetConvolutionMathType")) return status;
  constexpr int kLastMathType = 3;
  if (convolution == nullptr || math_type < 0 || math_type > kLastMathType)
    return status_of(kBadParameter);
  as<Convolution>(convolution)->math_type = math_type;
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnGetConvolution2dForwardOutputDim(CudnnConvolution convolution,
                                                         CudnnTensor input,
                                                         CudnnFilter filter,
                                                         int* n,
                                                         int* c,
                                                         int* h,
                                                         int* w) {
  if (const CudnnStatus status = enter("cudnnGetConvolution2dForwardOutputDim")) return status;
  if (convolution == nullptr || input == nullptr || filter == nullptr)
    return status_of(kBadParameter);
  const auto output =
      output_extents(*as<Tensor>(input), *as<Tensor>(filter), *as<Convolution>(convolution));
  if (!output) return status_of(kBadParameter);
  *n = static_cast<int>(output->n);
  *c = static_cast<int>(output->c);
  *h = static_cast<int>(output->h);
  *w = static_cast<int>(output->w);
  return kCudnnSuccess;
}

// The three calls of a direction.
#define LAUNCHGAP_FAKE_DIRECTION(name, direction)                                           \
  EXPORT CudnnStatus cudnnGetConvolution##name##Algorithm_v7(CudnnHandle handle,            \
                                                             CudnnTensor first,             \
                                                             CudnnTensor second,            \
                                                             CudnnConvolution convolution,  \
                                                             CudnnTensor result,            \
                                                             int requested,                 \
                                                             int* returned,                 \
                                                             CudnnPerformance* results) {   \
    return get_algorithm("cudnnGetConvolution" #name "Algorithm_v7",                        \
                         direction,                                                         \
                         handle,                                                            \
                         first,                                                             \
                         second,                                                            \
                         convolution,                                                       \
                         result,                                                            \
                         requested,                                                         \
                         returned,                                                          \
                         results);                                                          \
  }                                                                                         \
  EXPORT CudnnStatus cudnnFindConvolution##name##AlgorithmEx(CudnnHandle handle,            \
                                                             CudnnTensor first_descriptor,  \
                                                             const void* first,             \
                                                             CudnnTensor second_descriptor, \
                                                             const void* second,            \
                                                             CudnnConvolution convolution,  \
                                                             CudnnTensor result_descriptor, \
                                                             void* result,                  \
                                                             int requested,                 \
                                                             int* returned,                 \
                                                             CudnnPerformance* results,     \
                                                             void* workspace,               \
                                                             std::size_t workspace_bytes) { \
    return find_algorithm("cudnnFindConvolution" #name "AlgorithmEx",                       \
                          direction,                                                        \
                          handle,                                                           \
                          first_descriptor,                                                 \
                          first,                                                            \
                          second_descriptor,                                                \
                          second,                                                           \
                          convolution,                                                      \
                          result_descriptor,                                                \
                          result,                                                           \
                          requested,                                                        \
                          returned,                                                         \
                          results,                                                          \
                          workspace,                                                        \
                          workspace_bytes);                                                 \
  }                                                                                         \
  EXPORT CudnnStatus cudnnGetConvolution##name##WorkspaceSize(CudnnHandle handle,           \
                                                              CudnnTensor first,            \
                                                              CudnnTensor second,           \
                                                              CudnnConvolution convolution, \
                                                              CudnnTensor result,           \
                                                              int algorithm,                \
                                                              std::size_t* bytes) {         \
    return get_workspace_size("cudnnGetConvolution" #name "WorkspaceSize",                  \
                              direction,                                                    \
                              handle,                                                       \
                              first,                                                        \
                              second,                                                       \
                              convolution,                                                  \
                              result,                                                       \
                              algorithm,                                                    \
                              bytes);                                                       \
  }                                                                                         \
  EXPORT CudnnStatus cudnnConvolution##name(CudnnHandle handle,                             \
                                            const void* alpha,                              \
                                            CudnnTensor first_descriptor,                   \
                                            const void* first,                              \
                                            CudnnTensor second_descriptor,                  \
                                            const void* second,                             \
                                            CudnnConvolution convolution,                   \
                                            int algorithm,                                  \
                                            void* workspace,                                \
                                            std::size_t workspace_bytes,                    \
                                            const void* beta,                               \
                                            CudnnTensor result_descriptor,                  \
                                            void* result) {                                 \
    return convolve(now_ns(),                                                               \
                    "cudnnConvolution" #name,                                               \
                    direction,                                                              \
                    handle,                                                                 \
                    alpha,                                                                  \
                    first_descriptor,                                                       \
                    first,                                                                  \
                    second_descriptor,                                                      \
                    second,                                                                 \
                    convolution,                                                            \
                    algorithm,                                                              \
                    workspace,                                                              \
                    workspace_bytes,                                                        \
                    beta,                                                                   \
                    result_descriptor,                                                      \
                    result);                                                                \
  }

LAUNCHGAP_FAKE_DIRECTION(Forward, Direction::forward)
LAUNCHGAP_FAKE_DIRECTION(BackwardData, Direction::data)
LAUNCHGAP_FAKE_DIRECTION(BackwardFilter, Direction::filter)
#undef LAUNCHGAP_FAKE_DIRECTION

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
#define LAUNCHGAP_SAME_SIGNATURE(name, required, ...) \
  static_assert(std::is_same_v<decltype(fake::name), __VA_ARGS__>, #name);
LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
