// The fake libcudnn: convolutions computed on the host, laid on the fake driver's streams.
#include "tests/fake_cuda/cudnn.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

struct Convolution {
  ConvolutionWork settings;  // paddings, strides, dilations and groups
  int math_type = kCudnnDefaultMath;
  int compute_type = kCudnnFloat;
};

template <typename T, typename Opaque>
CudnnStatus create(const char* call, Opaque** handle) {
  if (const CudnnStatus status = enter_cudnn(call)) return status;
  if (handle == nullptr) return status_of(kBadParameter);
  *handle = reinterpret_cast<Opaque*>(new T);
  return kCudnnSuccess;
}

template <typename T, typename Opaque>
CudnnStatus destroy(const char* call, Opaque* handle) {
  if (const CudnnStatus status = enter_cudnn(call)) return status;
  delete as<T>(handle);
  return kCudnnSuccess;
}

/// The narrow types are the graph interface's alone.
std::optional<kernels::ElementType> element_type(int type) {
  const bool narrow =
      type == kCudnnInt8 || type == kCudnnInt32 || type == kCudnnFp8E4m3 || type == kCudnnFp8E5m2;
  return narrow ? std::nullopt : element_type_of(type);
}

CudnnStatus set_tensor(Tensor* tensor, int format, int type, int n, int c, int h, int w) {
  if (tensor == nullptr || n < 1 || c < 1 || h < 1 || w < 1) return status_of(kBadParameter);
  const auto its_type = element_type(type);
  if (!its_type || (format != kCudnnNchw && format != kCudnnNhwc))
    return status_of(kNotSupportedByCudnn);
  tensor->extents = {static_cast<std::size_t>(n),
                     static_cast<std::size_t>(c),
                     static_cast<std::size_t>(h),
                     static_cast<std::size_t>(w)};
  tensor->layout = format == kCudnnNchw ? Layout::nchw : Layout::nhwc;
  tensor->type = *its_type;
  return kCudnnSuccess;
}

/// What the device makes of a convolution.
struct Plan {
  CudnnStatus status = kCudnnSuccess;
  Arithmetic how;
  double duration_ns = 0;  // of the fastest algorithm
  int math_type = kCudnnDefaultMath;
};

/// Which of a call's operands and result are x, w and y.
template <class T>
std::array<T, 3> by_role(Direction direction, T first, T second, T result) {
  switch (direction) {
    case Direction::forward:
      return {first, second, result};
    case Direction::data:
      return {result, first, second};
    case Direction::filter:
      return {first, result, second};
  }
  return {};
}

/// What a call of one of the directions is about; whichever of the tensors are its operands.
struct Problem {
  Direction direction;
  CudnnTensor first, second;
  CudnnConvolution convolution;
  CudnnTensor result;

  /// Without memory; of descriptors that are there.
  ConvolutionWork work() const {
    ConvolutionWork work = as<Convolution>(convolution)->settings;
    work.direction = direction;
    const auto [x, w, y] = by_role(direction, first, second, result);
    work.x = *as<Tensor>(x), work.w = *as<Tensor>(w), work.y = *as<Tensor>(y);
    return work;
  }
  const Tensor& filter() const { return *as<Tensor>(by_role(direction, first, second, result)[1]); }
  Plan plan() const;
};

Plan Problem::plan() const {
  const auto failed = [](const Failure& failure) {
    Plan result;
    result.status = status_of(failure);
    return result;
  };
  if (!first || !second || !convolution || !result) return failed(kBadParameter);
  const ConvolutionWork its = work();
  const kernels::ElementType type = its.x.type;
  if (output_extents(its.x.extents, its.w.extents, its) != its.y.extents)
    return failed(kBadParameter);
  if (type != its.w.type || type != its.y.type) return failed(kBadParameter);
  const auto& [settings, math_type, compute_type] = *as<Convolution>(convolution);
  const bool computes = type == kernels::ElementType::fp64 ? compute_type == kCudnnDouble
                        : compute_type == kCudnnHalf       ? type == kernels::ElementType::fp16
                                                           : compute_type == kCudnnFloat;
  if (!computes) return failed(kBadParameter);
  // Mixed layouts are refused, as most engines do.
  if (its.x.layout != its.y.layout) return failed(kNotSupportedByCudnn);
  const DeviceDescription* const device = current_device();
  if (device == nullptr) return failed(kExecutionFailed);
  if (device->capability() < facts_of(type).first_capability) return failed(kArchMismatch);
  Plan result;
  // Since cuDNN 8 the default math of fp32 is TF32 where there is some; FMA math forbids it.
  result.how = arithmetic(*device, type, math_type != kCudnnFmaMath);
  if (!result.how.tflops) return failed(kNotSupportedByCudnn);
  result.duration_ns = work_ns(its.flops(), *result.how.tflops);
  constexpr int kFirstTensorCores = 70;
  const bool narrow = type == kernels::ElementType::fp16 || type == kernels::ElementType::bf16;
  if (narrow && device->capability() >= kFirstTensorCores) result.math_type = kCudnnTensorOpMath;
  return result;
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
  return algorithm == kCudnnImplicitPrecompGemm ? filter.bytes() : 0;
}

/// A selection that runs nothing lists an algorithm whatever workspace it wants.
constexpr std::size_t kAnyWorkspace = ~std::size_t{0};

/// What both kinds of selection answer: every algorithm, the best first, unless this one flips.
CudnnStatus list_algorithms(const Problem& problem,
                            int requested,
                            int* returned,
                            CudnnPerformance* results,
                            std::size_t workspace_bytes) {
  const Plan its_plan = problem.plan();
  if (its_plan.status != kCudnnSuccess) return its_plan.status;
  constexpr int kAlgorithms = 6;  // each direction has as many, at least
  static std::atomic<int> selections{0};
  const int every = cudnn_node()->cudnn_flips_every;
  const bool flips = every > 0 && ++selections % every == 0;
  *returned = std::min(requested, kAlgorithms);
  for (int i = 0; i < *returned; ++i) {
    const int algorithm = i >= 2 ? i : flips ? i : 1 - i;
    const std::size_t needed = workspace_of(algorithm, problem.filter());
    const double times = needed <= workspace_bytes ? slowdown(algorithm) : 0;
    CudnnPerformance& candidate = results[i];
    candidate = {};
    candidate.algorithm = algorithm;
    candidate.status = times > 0 ? CudnnStatus{kCudnnSuccess} : status_of(kNotSupportedByCudnn);
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
                          CudnnHandle handle,
                          const Problem& problem,
                          int requested,
                          int* returned,
                          CudnnPerformance* results) {
  if (const CudnnStatus status = enter_cudnn(call)) return status;
  if (!handle || requested < 1 || !returned || !results) return status_of(kBadParameter);
  return list_algorithms(problem, requested, returned, results, kAnyWorkspace);
}

/// What a call that computes is given.
struct Memory {
  const void* first;
  const void* second;
  void* result;
  void* workspace;
  std::size_t workspace_bytes;
};

/// Does not run what it lists, but leaves the result overwritten, as the real one does.
CudnnStatus find_algorithm(const char* call,
                           CudnnHandle handle,
                           const Problem& problem,
                           const Memory& memory,
                           int requested,
                           int* returned,
                           CudnnPerformance* results) {
  if (const CudnnStatus status = enter_cudnn(call)) return status;
  if (!handle || !memory.first || !memory.second || !memory.result || requested < 1 || !returned ||
      !results || (!memory.workspace && memory.workspace_bytes > 0))
    return status_of(kBadParameter);
  const CudnnStatus status =
      list_algorithms(problem, requested, returned, results, memory.workspace_bytes);
  if (status == kCudnnSuccess)
    std::memset(memory.result, 0xff, as<Tensor>(problem.result)->bytes());
  return status;
}

CudnnStatus get_workspace_size(const char* call,
                               CudnnHandle handle,
                               const Problem& problem,
                               int algorithm,
                               std::size_t* bytes) {
  if (const CudnnStatus status = enter_cudnn(call)) return status;
  if (handle == nullptr || bytes == nullptr) return status_of(kBadParameter);
  if (const CudnnStatus status = problem.plan().status) return status;
  if (slowdown(algorithm) == 0) return status_of(kNotSupportedByCudnn);
  *bytes = workspace_of(algorithm, problem.filter());
  return kCudnnSuccess;
}

CudnnStatus convolve(double begin,
                     const char* call,
                     CudnnHandle handle,
                     const Problem& problem,
                     const Memory& memory,
                     const void* alpha,
                     const void* beta,
                     int algorithm) {
  if (const CudnnStatus status = enter_cudnn(call)) return status;
  if (handle == nullptr || alpha == nullptr || beta == nullptr) return status_of(kBadParameter);
  const Plan its_plan = problem.plan();
  if (its_plan.status != kCudnnSuccess) return its_plan.status;
  if (slowdown(algorithm) == 0) return status_of(kNotSupportedByCudnn);
  const std::size_t needed = workspace_of(algorithm, problem.filter());
  if (memory.workspace_bytes < needed || (needed > 0 && memory.workspace == nullptr))
    return status_of(kBadParameter);

  ConvolutionWork work = problem.work();
  const auto scalar = work.x.type == kernels::ElementType::fp64 ? kernels::ElementType::fp64
                                                                : kernels::ElementType::fp32;
  work.alpha = kernels::load_element(alpha, 0, scalar);
  work.beta = kernels::load_element(beta, 0, scalar);
  const auto [x, w, y] =
      by_role<const void*>(problem.direction, memory.first, memory.second, memory.result);
  work.x.memory = x, work.w.memory = w, work.y.memory = y;
  work.tf32 = its_plan.how.tf32;
  Operation operation = convolution_operation(work);
  if (cudnn_node()->cudnn_wrong == algorithm) spoil_first_element(operation);
  return launch(begin, handle, work, its_plan.how, slowdown(algorithm), std::move(operation));
}

}  // namespace

EXPORT std::size_t cudnnGetVersion() {
  return cudnn_node() != nullptr ? static_cast<std::size_t>(cudnn_node()->cudnn_version) : 0;
}

EXPORT const char* cudnnGetErrorString(CudnnStatus status) {
  if (status == kCudnnSuccess) return "CUDNN_STATUS_SUCCESS";
  for (const Failure* const failure : kFailures) {
    if (status_of(*failure) == status)
      return is_cudnn_9() ? failure->name_since_9 : failure->name_before_9;
  }
  return "CUDNN_UNKNOWN_STATUS";
}

EXPORT CudnnStatus cudnnCreate(CudnnHandle* handle) {
  if (find_driver() == nullptr) return kNotInitialized.since_9;
  if (current_device() == nullptr) return status_of(kNotInitialized);
  find_driver()->load_library(Library::cudnn);
  return create<CudnnState>("cudnnCreate", handle);
}

EXPORT CudnnStatus cudnnDestroy(CudnnHandle handle) {
  return destroy<CudnnState>("cudnnDestroy", handle);
}

EXPORT CudnnStatus cudnnSetStream(CudnnHandle handle, Stream stream) {
  if (const CudnnStatus status = enter_cudnn("cudnnSetStream")) return status;
  if (handle == nullptr) return status_of(kBadParameter);
  as<CudnnState>(handle)->stream = stream;
  return kCudnnSuccess;
}

#define LAUNCHGAP_FAKE_DESCRIPTOR(name, Opaque, T)                       \
  EXPORT CudnnStatus cudnnCreate##name##Descriptor(Opaque* made) {       \
    return create<T>("cudnnCreate" #name "Descriptor", made);            \
  }                                                                      \
  EXPORT CudnnStatus cudnnDestroy##name##Descriptor(Opaque descriptor) { \
    return destroy<T>("cudnnDestroy" #name "Descriptor", descriptor);    \
  }
LAUNCHGAP_FAKE_DESCRIPTOR(Tensor, CudnnTensor, Tensor)
LAUNCHGAP_FAKE_DESCRIPTOR(Filter, CudnnFilter, Tensor)
LAUNCHGAP_FAKE_DESCRIPTOR(Convolution, CudnnConvolution, Convolution)
#undef LAUNCHGAP_FAKE_DESCRIPTOR

EXPORT CudnnStatus
cudnnSetTensor4dDescriptor(CudnnTensor tensor, int format, int type, int n, int c, int h, int w) {
  if (const CudnnStatus status = enter_cudnn("cudnnSetTensor4dDescriptor")) return status;
  return set_tensor(as<Tensor>(tensor), format, type, n, c, h, w);
}

EXPORT CudnnStatus
cudnnSetFilter4dDescriptor(CudnnFilter filter, int type, int format, int k, int c, int h, int w) {
  if (const CudnnStatus status = enter_cudnn("cudnnSetFilter4dDescriptor")) return status;
  return set_tensor(as<Tensor>(filter), format, type, k, c, h, w);
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
  if (const CudnnStatus status = enter_cudnn("cudnnSetConvolution2dDescriptor")) return status;
  if (convolution == nullptr || std::min(pad_h, pad_w) < 0 ||
      std::min({stride_h, stride_w, dilation_h, dilation_w}) < 1) {
    return status_of(kBadParameter);
  }
  if (mode != kCudnnCrossCorrelation ||
      (compute_type != kCudnnFloat && compute_type != kCudnnDouble && compute_type != kCudnnHalf))
    return status_of(kNotSupportedByCudnn);
  auto& its = *as<Convolution>(convolution);
  its.settings.pad_h = static_cast<std::size_t>(pad_h);
  its.settings.pad_w = static_cast<std::size_t>(pad_w);
  its.settings.stride_h = static_cast<std::size_t>(stride_h);
  its.settings.stride_w = static_cast<std::size_t>(stride_w);
  its.settings.dilation_h = static_cast<std::size_t>(dilation_h);
  its.settings.dilation_w = static_cast<std::size_t>(dilation_w);
  its.compute_type = compute_type;
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnSetConvolutionGroupCount(CudnnConvolution convolution, int groups) {
  if (const CudnnStatus status = enter_cudnn("cudnnSetConvolutionGroupCount")) return status;
  if (convolution == nullptr || groups < 1) return status_of(kBadParameter);
  as<Convolution>(convolution)->settings.groups = static_cast<std::size_t>(groups);
  return kCudnnSuccess;
}

EXPORT CudnnStatus cudnnSetConvolutionMathType(CudnnConvolution convolution, int math_type) {
  if (const CudnnStatus status = enter_cudnn("cudnnSetConvolutionMathType")) return status;
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
  if (const CudnnStatus status = enter_cudnn("cudnnGetConvolution2dForwardOutputDim"))
    return status;
  if (convolution == nullptr || input == nullptr || filter == nullptr)
    return status_of(kBadParameter);
  const auto output = output_extents(as<Tensor>(input)->extents,
                                     as<Tensor>(filter)->extents,
                                     as<Convolution>(convolution)->settings);
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
    const Problem problem{direction, first, second, convolution, result};                   \
    return get_algorithm("cudnnGetConvolution" #name "Algorithm_v7",                        \
                         handle,                                                            \
                         problem,                                                           \
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
    const Problem problem{                                                                  \
        direction, first_descriptor, second_descriptor, convolution, result_descriptor};    \
    const Memory memory{first, second, result, workspace, workspace_bytes};                 \
    return find_algorithm("cudnnFindConvolution" #name "AlgorithmEx",                       \
                          handle,                                                           \
                          problem,                                                          \
                          memory,                                                           \
                          requested,                                                        \
                          returned,                                                         \
                          results);                                                         \
  }                                                                                         \
  EXPORT CudnnStatus cudnnGetConvolution##name##WorkspaceSize(CudnnHandle handle,           \
                                                              CudnnTensor first,            \
                                                              CudnnTensor second,           \
                                                              CudnnConvolution convolution, \
                                                              CudnnTensor result,           \
                                                              int algorithm,                \
                                                              std::size_t* bytes) {         \
    const Problem problem{direction, first, second, convolution, result};                   \
    return get_workspace_size(                                                              \
        "cudnnGetConvolution" #name "WorkspaceSize", handle, problem, algorithm, bytes);    \
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
    const double begin = now_ns();                                                          \
    const Problem problem{                                                                  \
        direction, first_descriptor, second_descriptor, convolution, result_descriptor};    \
    const Memory memory{first, second, result, workspace, workspace_bytes};                 \
    return convolve(                                                                        \
        begin, "cudnnConvolution" #name, handle, problem, memory, alpha, beta, algorithm);  \
  }

LAUNCHGAP_FAKE_DIRECTION(Forward, Direction::forward)
LAUNCHGAP_FAKE_DIRECTION(BackwardData, Direction::data)
LAUNCHGAP_FAKE_DIRECTION(BackwardFilter, Direction::filter)
#undef LAUNCHGAP_FAKE_DIRECTION

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
