#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/cudnn_library.h"
#include "harness/device/cuda/libraries.h"

namespace launchgap::cuda {
namespace {

/// What a direction's algorithms are called, by their numbers, and what is special about them.
struct Algorithm {
  const char* name;
  bool transforms = false;  // Winograd, FFT: even integers come out rounded
};
constexpr Algorithm kForwardAlgorithms[] = {{"implicit GEMM"},
                                            {"implicit precomputed GEMM"},
                                            {"GEMM"},
                                            {"direct"},
                                            {"FFT", true},
                                            {"tiled FFT", true},
                                            {"Winograd", true},
                                            {"non-fused Winograd", true}};
constexpr Algorithm kDataAlgorithms[] = {{"algorithm 0 (sums in any order)"},
                                         {"algorithm 1"},
                                         {"FFT", true},
                                         {"tiled FFT", true},
                                         {"Winograd", true},
                                         {"non-fused Winograd", true}};
constexpr Algorithm kFilterAlgorithms[] = {{"algorithm 0 (sums in any order)"},
                                           {"algorithm 1"},
                                           {"FFT", true},
                                           {"algorithm 3 (sums in any order)"},
                                           {"Winograd", true},
                                           {"non-fused Winograd", true},
                                           {"tiled FFT", true}};

const char* math_name(int math_type) {
  return math_type == abi::kCudnnTensorOpMath ? "tensor cores"
         : math_type == abi::kCudnnFmaMath    ? "FMA"
                                              : "default math";
}

/// The calls of a direction.
struct DirectionCalls {
  std::span<const Algorithm> algorithms;
  abi::CudnnGetAlgorithm* get_algorithm;
  const char* get_algorithm_name;
  abi::CudnnFindAlgorithm* find_algorithm;  // null where the library has none
  const char* find_algorithm_name;
  abi::CudnnGetWorkspaceSize* get_workspace_size;
  abi::CudnnConvolve* convolve;
  const char* convolve_name;
  bool filters_first;  // the library takes the second operand before the first
};

DirectionCalls calls_of(const Cudnn& library, ConvolutionDirection direction) {
#define LAUNCHGAP_DIRECTION(name, algorithms, filters_first)                              \
  {                                                                                       \
    algorithms, library.cudnnGetConvolution##name##Algorithm_v7,                          \
        "cudnnGetConvolution" #name "Algorithm_v7",                                       \
        library.cudnnFindConvolution##name##AlgorithmEx,                                  \
        "cudnnFindConvolution" #name "AlgorithmEx",                                       \
        library.cudnnGetConvolution##name##WorkspaceSize, library.cudnnConvolution##name, \
        "cudnnConvolution" #name, filters_first                                           \
  }
  switch (direction) {
    case ConvolutionDirection::forward:
      break;
    case ConvolutionDirection::data:
      return LAUNCHGAP_DIRECTION(BackwardData, kDataAlgorithms, true);
    case ConvolutionDirection::filter:
      return LAUNCHGAP_DIRECTION(BackwardFilter, kFilterAlgorithms, false);
  }
  return LAUNCHGAP_DIRECTION(Forward, kForwardAlgorithms, false);
#undef LAUNCHGAP_DIRECTION
}

/// Throws Unsupported for what the legacy interface does not convolve.
abi::CudnnDataType data_type(const ProductType& type) {
  if (type.a == ElementType::int8 || type.a == ElementType::int32 || type.is_fp8())
    throw Unsupported("cuDNN's legacy interface is not used for {}", type.name);
  return cudnn_data_type(type.a);
}

class CudnnConvolution : public CudnnConvolutionBase {
 public:
  CudnnConvolution(Device& device, abi::Stream stream, const ConvolutionShape& shape)
      : CudnnConvolutionBase(device, shape),
        library_(Cudnn::get(capability(device.facts()))),
        calls_(calls_of(library_, shape.direction)) {
    need_tf32(device.facts(), shape.type);
    try {
      prepare(stream);
    } catch (...) {
      release();
      throw;
    }
  }
  ~CudnnConvolution() override { release(); }

  void enqueue(std::size_t set) override {
    const Tensors& tensors = sets_[set];
    // alpha and beta are double for FP64 alone.
    const double one = 1, zero = 0;
    const float one_single = 1, zero_single = 0;
    const bool wide = shape_.type.compute == Compute::fp64;
    const void* const alpha = wide ? static_cast<const void*>(&one) : &one_single;
    const void* const beta = wide ? static_cast<const void*>(&zero) : &zero_single;
    const bool swap = calls_.filters_first;
    library_.check(calls_.convolve(handle_,
                                   alpha,
                                   first(),
                                   swap ? tensors.second : tensors.first,
                                   second(),
                                   swap ? tensors.first : tensors.second,
                                   convolution_,
                                   chosen_.algorithm,
                                   workspace(),
                                   chosen_.workspace_bytes,
                                   beta,
                                   result_,
                                   tensors.result->address()),
                   calls_.convolve_name);
  }

  std::string method() const override {
    return fmt::format("cuDNN {} {}, {}, {}, {}, workspace {} MiB",
                       library_.facts.version,
                       calls_.convolve_name,
                       algorithm_of(chosen_).name,
                       layout(),
                       math_name(chosen_.math_type),
                       whole_mib(chosen_.workspace_bytes));
  }

  std::string algorithm() const override {
    return fmt::format("{}, {}", algorithm_of(chosen_).name, math_name(chosen_.math_type));
  }

  bool rounds_integers() const override { return algorithm_of(chosen_).transforms; }

  std::string selection_call(Selection how) const override {
    return how == Selection::get ? calls_.get_algorithm_name : calls_.find_algorithm_name;
  }

  std::size_t select(Selection how) override {
    const std::vector<Offer> now = offers(how, kSelectionWorkspaceBytes);
    set_math(chosen_.math_type);  // asking has changed it
    if (now.empty()) refuse(kSelectionWorkspaceBytes);
    for (const Offer& offer : now) {
      if (std::ranges::find(offered_, offer) == offered_.end()) offered_.push_back(offer);
    }
    return static_cast<std::size_t>(std::ranges::find(offered_, now.front()) - offered_.begin());
  }

  std::vector<ConvolutionCandidate> candidates() const override {
    std::vector<ConvolutionCandidate> all;
    for (const Offer& offer : offered_) {
      const Algorithm& algorithm = algorithm_of(offer);
      all.push_back(
          {fmt::format("{} ({}, {})", offer.algorithm, algorithm.name, math_name(offer.math_type)),
           offer.workspace_bytes,
           algorithm.transforms});
    }
    return all;
  }

  void choose(std::size_t candidate) override { use(offered_.at(candidate)); }

 private:
  /// What the library offers; an algorithm without its math type may run many times slower (pytorch
  /// PR #15881).
  struct Offer {
    int algorithm = 0;
    int math_type = 0;
    std::size_t workspace_bytes = 0;

    bool operator==(const Offer&) const = default;
  };

  const Algorithm& algorithm_of(const Offer& offer) const {
    return calls_.algorithms[static_cast<std::size_t>(offer.algorithm)];
  }

  void prepare(abi::Stream stream) {
    const int type = data_type(shape_.type);
    const int format = shape_.layout == TensorLayout::nhwc ? abi::kCudnnNhwc : abi::kCudnnNchw;
    LAUNCHGAP_CHECK_CUDNN(library_, cudnnCreate(&handle_));
    LAUNCHGAP_CHECK_CUDNN(library_, cudnnSetStream(handle_, stream));
    LAUNCHGAP_CHECK_CUDNN(library_, cudnnCreateTensorDescriptor(&input_));
    LAUNCHGAP_CHECK_CUDNN(library_, cudnnCreateTensorDescriptor(&output_));
    LAUNCHGAP_CHECK_CUDNN(library_, cudnnCreateFilterDescriptor(&filter_));
    LAUNCHGAP_CHECK_CUDNN(library_, cudnnCreateConvolutionDescriptor(&convolution_));
    const Tensor4 input = shape_.input(), filters = shape_.filters(), output = shape_.output();
    LAUNCHGAP_CHECK_CUDNN(
        library_,
        cudnnSetTensor4dDescriptor(input_, format, type, input.n, input.c, input.h, input.w));
    LAUNCHGAP_CHECK_CUDNN(library_,
                          cudnnSetFilter4dDescriptor(
                              filter_, type, format, filters.n, filters.c, filters.h, filters.w));
    LAUNCHGAP_CHECK_CUDNN(library_,
                          cudnnSetConvolution2dDescriptor(convolution_,
                                                          shape_.pad_h,
                                                          shape_.pad_w,
                                                          shape_.stride_h,
                                                          shape_.stride_w,
                                                          shape_.dilation_h,
                                                          shape_.dilation_w,
                                                          abi::kCudnnCrossCorrelation,
                                                          cudnn_compute_type(shape_.type)));
    if (shape_.groups > 1)
      LAUNCHGAP_CHECK_CUDNN(library_, cudnnSetConvolutionGroupCount(convolution_, shape_.groups));
    Tensor4 said;
    LAUNCHGAP_CHECK_CUDNN(library_,
                          cudnnGetConvolution2dForwardOutputDim(
                              convolution_, input_, filter_, &said.n, &said.c, &said.h, &said.w));
    if (said != output) {
      throw WrongResult("cuDNN says the output is {}x{}x{}x{}, but it is {}x{}x{}x{}",
                        said.n,
                        said.c,
                        said.h,
                        said.w,
                        output.n,
                        output.c,
                        output.h,
                        output.w);
    }
    LAUNCHGAP_CHECK_CUDNN(
        library_,
        cudnnSetTensor4dDescriptor(output_, format, type, output.n, output.c, output.h, output.w));
    const ConvolutionDirection direction = shape_.direction;
    first_ = direction == ConvolutionDirection::data ? output_ : input_;
    second_ = direction == ConvolutionDirection::filter ? output_ : filter_;
    result_ = direction == ConvolutionDirection::forward ? output_
              : direction == ConvolutionDirection::data  ? input_
                                                         : filter_;
    const std::vector<Offer> offered = offers(Selection::get, kDefaultWorkspaceBytes);
    if (offered.empty()) refuse(kDefaultWorkspaceBytes);
    use(offered.front());
  }

  /// FP32 here means FP32: the default math of cuDNN 8 and later rounds it to TF32 where the GPU
  /// can. cuDNN 7 knows neither TF32 nor a setting that forbids it.
  bool is_exact_fp32() const {
    return shape_.type.a == ElementType::fp32 && shape_.type.compute != Compute::tf32;
  }

  void set_math(int math_type) {
    LAUNCHGAP_CHECK_CUDNN(library_, cudnnSetConvolutionMathType(convolution_, math_type));
  }

  /// What a selection has to offer within a workspace, its own preference first.
  std::vector<Offer> offers(Selection how, std::size_t allowed_workspace) {
    const bool exact_fp32 = is_exact_fp32();
    const bool wide = shape_.type.a == ElementType::fp32 || shape_.type.a == ElementType::fp64;
    int wanted = exact_fp32 ? abi::kCudnnFmaMath
                 : wide     ? abi::kCudnnDefaultMath
                            : abi::kCudnnTensorOpMath;
    if (library_.cudnnSetConvolutionMathType(convolution_, wanted) != abi::kCudnnSuccess) {
      wanted = abi::kCudnnDefaultMath;
      set_math(wanted);
    }
    const std::size_t most_bytes = most_workspace(allowed_workspace);
    std::vector<Offer> sound;
    for (const abi::CudnnPerformance& candidate : performances(how, most_bytes)) {
      const bool keeps_fp32 = !exact_fp32 || candidate.math_type == abi::kCudnnFmaMath ||
                              candidate.math_type == abi::kCudnnDefaultMath;
      if (candidate.status != abi::kCudnnSuccess || !keeps_fp32 || candidate.algorithm < 0 ||
          candidate.algorithm >= static_cast<int>(calls_.algorithms.size()))
        continue;
      // Where FP32 was asked for, the setting that keeps it stays.
      Offer offer{candidate.algorithm, exact_fp32 ? wanted : candidate.math_type, 0};
      set_math(offer.math_type);
      if (calls_.get_workspace_size(handle_,
                                    first(),
                                    second(),
                                    convolution_,
                                    result_,
                                    offer.algorithm,
                                    &offer.workspace_bytes) == abi::kCudnnSuccess &&
          offer.workspace_bytes <= most_bytes)
        sound.push_back(offer);
    }
    return sound;
  }

  /// As the library has it. Enough for every algorithm with every kind of math.
  std::vector<abi::CudnnPerformance> performances(Selection how, std::size_t workspace_bytes) {
    std::vector<abi::CudnnPerformance> found(32);
    const int requested = static_cast<int>(found.size());
    int count = 0;
    if (how == Selection::get) {
      library_.check(
          calls_.get_algorithm(
              handle_, first(), second(), convolution_, result_, requested, &count, found.data()),
          calls_.get_algorithm_name);
    } else {
      if (!calls_.find_algorithm)
        throw Unsupported("cuDNN {} has no {}", library_.facts.version, calls_.find_algorithm_name);
      hold_workspace(workspace_bytes);
      const Tensors& tensors = sets_.at(0);
      const bool swap = calls_.filters_first;
      library_.check(calls_.find_algorithm(handle_,
                                           first(),
                                           swap ? tensors.second : tensors.first,
                                           second(),
                                           swap ? tensors.first : tensors.second,
                                           convolution_,
                                           result_,
                                           tensors.result->address(),
                                           requested,
                                           &count,
                                           found.data(),
                                           workspace(),
                                           workspace_bytes),
                     calls_.find_algorithm_name);
    }
    found.resize(static_cast<std::size_t>(std::clamp(count, 0, requested)));
    return found;
  }

  void use(const Offer& offer) {
    set_math(offer.math_type);
    hold_workspace(offer.workspace_bytes);
    chosen_ = offer;
  }

  [[noreturn]] void refuse(std::size_t most_workspace) const {
    throw Unsupported("cuDNN {} has no algorithm for this convolution within {} MiB of workspace",
                      library_.facts.version,
                      most_workspace >> 20);
  }

  // In the library's order.
  abi::CudnnTensor first() const { return calls_.filters_first ? second_ : first_; }
  abi::CudnnTensor second() const { return calls_.filters_first ? first_ : second_; }

  void release() {
    if (convolution_) library_.cudnnDestroyConvolutionDescriptor(convolution_);
    if (filter_) library_.cudnnDestroyFilterDescriptor(filter_);
    if (output_) library_.cudnnDestroyTensorDescriptor(output_);
    if (input_) library_.cudnnDestroyTensorDescriptor(input_);
    if (handle_) library_.cudnnDestroy(handle_);
  }

  Cudnn& library_;
  DirectionCalls calls_;
  abi::CudnnHandle handle_ = nullptr;
  abi::CudnnTensor input_ = nullptr;
  abi::CudnnTensor output_ = nullptr;
  abi::CudnnFilter filter_ = nullptr;
  abi::CudnnTensor first_ = nullptr, second_ = nullptr, result_ = nullptr;  // of these three
  abi::CudnnConvolution convolution_ = nullptr;
  Offer chosen_;
  std::vector<Offer> offered_;  // by selections
};

}  // namespace

std::unique_ptr<Convolution> cudnn_legacy_convolution(Device& device,
                                                      abi::Stream stream,
                                                      const ConvolutionShape& shape) {
  return std::make_unique<CudnnConvolution>(device, stream, shape);
}

}  // namespace launchgap::cuda
