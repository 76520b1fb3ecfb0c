#include "harness/device/cuda/abi/cudnn.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/driver.h"
#include "harness/device/cuda/libraries.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {
namespace {

/// cuDNN 9 for CUDA 12 and later does not run on a driver of CUDA 11; from 9.11 on it has nothing
/// below compute capability 7.5, and none of it below 5.0 (data/cudnn_support.csv).
int newest_major(int compute_capability) {
  const int driver = std::atoi(Driver::get().facts.version.c_str());
  return driver < 12 || compute_capability < 75 ? 8 : 9;
}

struct Cudnn : abi::CudnnFunctions {
  LoadedLibrary facts;

  /// For the process's one GPU: the newest library that driver and GPU can use comes first.
  static Cudnn& get(int compute_capability) {
    static Cudnn library = load(compute_capability);
    return library;
  }

  void check(abi::CudnnStatus status, const char* call) const {
    if (status == abi::kCudnnSuccess) return;
    const std::string text(call);
    const std::string name = text.substr(0, text.find('('));
    const std::string words = cudnnGetErrorString(status);
    if (words.find("NOT_SUPPORTED") != std::string::npos ||
        words.find("ARCH_MISMATCH") != std::string::npos) {
      throw Unsupported(
          fmt::format("cuDNN {}: {} answers {} ({})", facts.version, name, words, status));
    }
    throw LibraryError(
        "cuDNN", name, status, words, words.find("EXECUTION_FAILED") != std::string::npos);
  }

 private:
  static Cudnn load(int compute_capability) {
    const SharedLibrary file = [&] {
      try {
        return SharedLibrary::open(by_version({"cuDNN", "LAUNCHGAP_CUDNN", {}, {}},
                                              {{8, "libcudnn.so.8"}, {9, "libcudnn.so.9"}},
                                              newest_major(compute_capability),
                                              "libcudnn.so"));
      } catch (const Error& error) {
        throw Unsupported(fmt::format(
            "{}. Without it nothing is convolved on this GPU; scripts/setup --with-cuda brings it",
            error.what()));
      }
    }();
    Cudnn library;
#define LAUNCHGAP_LOAD(name, required, ...)                                                \
  library.name = reinterpret_cast<decltype(library.name)>((required) ? file.require(#name) \
                                                                     : file.find(#name));
    LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_LOAD)
#undef LAUNCHGAP_LOAD
    library.facts = file.facts();
    library.facts.version = cudnn_version_text(library.cudnnGetVersion());
    note_loaded(library.facts);
    return library;
  }
};

#define CHECK_CUDNN(library, call) (library).check((library).call, #call)

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

/// The calls of a direction.
struct DirectionCalls {
  std::span<const Algorithm> algorithms;
  abi::CudnnGetAlgorithm* get_algorithm;
  const char* get_algorithm_name;
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
  switch (type.a) {
    case ElementType::fp64:
      return abi::kCudnnDouble;
    case ElementType::fp32:
      return abi::kCudnnFloat;
    case ElementType::fp16:
      return abi::kCudnnHalf;
    case ElementType::bf16:
      return abi::kCudnnBfloat16;
    case ElementType::int8:
    case ElementType::int32:
    case ElementType::fp8_e4m3:
    case ElementType::fp8_e5m2:
      break;
  }
  throw Unsupported(fmt::format("cuDNN's legacy interface is not used for {}", type.name));
}

abi::CudnnDataType compute_type(Compute compute) {
  return compute == Compute::fp64   ? abi::kCudnnDouble
         : compute == Compute::fp16 ? abi::kCudnnHalf
                                    : abi::kCudnnFloat;
}

class CudnnConvolution : public Convolution {
 public:
  CudnnConvolution(Device& device, abi::Stream stream, const ConvolutionShape& shape)
      : library_(Cudnn::get(capability(device.facts()))),
        device_(device),
        shape_(shape),
        calls_(calls_of(library_, shape.direction)) {
    // An older GPU computes in FP32 without a word.
    if (shape.type.compute == Compute::tf32 && capability(device.facts()) < 80) {
      throw Unsupported(fmt::format("TF32 needs compute capability 8.0; this device has {}",
                                    device.facts().compute_capability.value_or("an unknown one")));
    }
    try {
      prepare(stream);
    } catch (...) {
      release();
      throw;
    }
  }
  ~CudnnConvolution() override { release(); }

  void add_tensors(const Buffer& first, const Buffer& second) override {
    sets_.push_back({first.address(), second.address(), device_.allocate(shape_.result_bytes())});
    const std::unique_ptr<Stream> stream = device_.create_stream();
    stream->fill_bytes(sets_.back().result->address(),
                       kernels::unwritten_byte(shape_.type.c),
                       shape_.result_bytes());
    stream->wait();
  }
  void update_tensors(std::size_t) override {}  // cuDNN reads them where they are

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
                                   swap ? second_ : first_,
                                   swap ? tensors.second : tensors.first,
                                   swap ? first_ : second_,
                                   swap ? tensors.first : tensors.second,
                                   convolution_,
                                   algorithm_,
                                   workspace_ ? workspace_->address() : nullptr,
                                   workspace_ ? workspace_->bytes() : 0,
                                   beta,
                                   result_,
                                   tensors.result->address()),
                   calls_.convolve_name);
  }

  void read_output(std::size_t set, void* output) override {
    device_.check();
    device_.read(*sets_.at(set).result, 0, output, shape_.result_bytes());
  }

  std::string method() const override {
    return fmt::format("cuDNN {} {}, {}, {}, {}, workspace {} MiB",
                       library_.facts.version,
                       calls_.convolve_name,
                       algorithm().name,
                       shape_.layout == TensorLayout::nhwc ? "NHWC" : "NCHW",
                       math_type_ == abi::kCudnnTensorOpMath ? "tensor cores"
                       : math_type_ == abi::kCudnnFmaMath    ? "FMA"
                                                             : "default math",
                       workspace_ ? (workspace_->bytes() + (1 << 20) - 1) >> 20 : 0);
  }

  bool rounds_integers() const override { return algorithm().transforms; }

 private:
  struct Tensors {
    const void* first;
    const void* second;
    std::unique_ptr<Buffer> result;
  };

  // The choice of algorithm depends on it, so it is fixed and documented.
  static constexpr std::size_t kMaxWorkspaceBytes = std::size_t{1} << 30;

  const Algorithm& algorithm() const {
    return calls_.algorithms[static_cast<std::size_t>(algorithm_)];
  }

  void prepare(abi::Stream stream) {
    const int type = data_type(shape_.type);
    const int format = shape_.layout == TensorLayout::nhwc ? abi::kCudnnNhwc : abi::kCudnnNchw;
    CHECK_CUDNN(library_, cudnnCreate(&handle_));
    CHECK_CUDNN(library_, cudnnSetStream(handle_, stream));
    CHECK_CUDNN(library_, cudnnCreateTensorDescriptor(&input_));
    CHECK_CUDNN(library_, cudnnCreateTensorDescriptor(&output_));
    CHECK_CUDNN(library_, cudnnCreateFilterDescriptor(&filter_));
    CHECK_CUDNN(library_, cudnnCreateConvolutionDescriptor(&convolution_));
    const Tensor4 input = shape_.input(), filters = shape_.filters(), output = shape_.output();
    CHECK_CUDNN(
        library_,
        cudnnSetTensor4dDescriptor(input_, format, type, input.n, input.c, input.h, input.w));
    CHECK_CUDNN(library_,
                cudnnSetFilter4dDescriptor(
                    filter_, type, format, filters.n, filters.c, filters.h, filters.w));
    CHECK_CUDNN(library_,
                cudnnSetConvolution2dDescriptor(convolution_,
                                                shape_.pad_h,
                                                shape_.pad_w,
                                                shape_.stride_h,
                                                shape_.stride_w,
                                                shape_.dilation_h,
                                                shape_.dilation_w,
                                                abi::kCudnnCrossCorrelation,
                                                compute_type(shape_.type.compute)));
    if (shape_.groups > 1)
      CHECK_CUDNN(library_, cudnnSetConvolutionGroupCount(convolution_, shape_.groups));
    Tensor4 said;
    CHECK_CUDNN(library_,
                cudnnGetConvolution2dForwardOutputDim(
                    convolution_, input_, filter_, &said.n, &said.c, &said.h, &said.w));
    if (said != output) {
      throw WrongResult(fmt::format("cuDNN says the output is {}x{}x{}x{}, but it is {}x{}x{}x{}",
                                    said.n,
                                    said.c,
                                    said.h,
                                    said.w,
                                    output.n,
                                    output.c,
                                    output.h,
                                    output.w));
    }
    CHECK_CUDNN(
        library_,
        cudnnSetTensor4dDescriptor(output_, format, type, output.n, output.c, output.h, output.w));
    const ConvolutionDirection direction = shape_.direction;
    first_ = direction == ConvolutionDirection::data ? output_ : input_;
    second_ = direction == ConvolutionDirection::filter ? output_ : filter_;
    result_ = direction == ConvolutionDirection::forward ? output_
              : direction == ConvolutionDirection::data  ? input_
                                                         : filter_;
    choose_algorithm();
  }

  void choose_algorithm() {
    // The default math of cuDNN 8 and later rounds FP32 to TF32 where the GPU can; FP32 here means
    // FP32. cuDNN 7 knows neither TF32 nor this setting.
    const bool single = shape_.type.a == ElementType::fp32;
    const bool exact_fp32 = single && shape_.type.compute != Compute::tf32;
    const int wanted = exact_fp32                                     ? abi::kCudnnFmaMath
                       : single || shape_.type.a == ElementType::fp64 ? abi::kCudnnDefaultMath
                                                                      : abi::kCudnnTensorOpMath;
    if (library_.cudnnSetConvolutionMathType(convolution_, wanted) != abi::kCudnnSuccess) {
      CHECK_CUDNN(library_, cudnnSetConvolutionMathType(convolution_, abi::kCudnnDefaultMath));
    }
    const abi::CudnnTensor first = calls_.filters_first ? second_ : first_;
    const abi::CudnnTensor second = calls_.filters_first ? first_ : second_;
    std::array<abi::CudnnPerformance, 8> found{};
    int count = 0;
    library_.check(calls_.get_algorithm(handle_,
                                        first,
                                        second,
                                        convolution_,
                                        result_,
                                        static_cast<int>(found.size()),
                                        &count,
                                        found.data()),
                   calls_.get_algorithm_name);
    count = std::clamp(count, 0, static_cast<int>(found.size()));
    for (int i = 0; i < count; ++i) {
      const abi::CudnnPerformance& candidate = found[static_cast<std::size_t>(i)];
      const bool keeps_fp32 = !exact_fp32 || candidate.math_type == abi::kCudnnFmaMath ||
                              candidate.math_type == abi::kCudnnDefaultMath;
      if (candidate.status != abi::kCudnnSuccess || !keeps_fp32 || candidate.algorithm < 0 ||
          candidate.algorithm >= static_cast<int>(calls_.algorithms.size())) {
        continue;
      }
      // An algorithm without its math type may run many times slower (pytorch PR #15881); but where
      // FP32 was asked for, the setting that keeps it stays.
      if (!exact_fp32) {
        CHECK_CUDNN(library_, cudnnSetConvolutionMathType(convolution_, candidate.math_type));
      }
      std::size_t bytes = 0;
      if (calls_.get_workspace_size(
              handle_, first, second, convolution_, result_, candidate.algorithm, &bytes) !=
              abi::kCudnnSuccess ||
          bytes > kMaxWorkspaceBytes || bytes > device_.free_memory_bytes() / 10 * 9) {
        continue;
      }
      algorithm_ = candidate.algorithm;
      math_type_ = exact_fp32 ? wanted : candidate.math_type;
      if (bytes > 0) workspace_ = device_.allocate(bytes);
      return;
    }
    throw Unsupported(
        fmt::format("cuDNN {} has no algorithm for this convolution within {} MiB of workspace",
                    library_.facts.version,
                    kMaxWorkspaceBytes >> 20));
  }

  void release() {
    if (convolution_) library_.cudnnDestroyConvolutionDescriptor(convolution_);
    if (filter_) library_.cudnnDestroyFilterDescriptor(filter_);
    if (output_) library_.cudnnDestroyTensorDescriptor(output_);
    if (input_) library_.cudnnDestroyTensorDescriptor(input_);
    if (handle_) library_.cudnnDestroy(handle_);
  }

  Cudnn& library_;
  Device& device_;
  ConvolutionShape shape_;
  DirectionCalls calls_;
  abi::CudnnHandle handle_ = nullptr;
  abi::CudnnTensor input_ = nullptr;
  abi::CudnnTensor output_ = nullptr;
  abi::CudnnFilter filter_ = nullptr;
  abi::CudnnTensor first_ = nullptr, second_ = nullptr, result_ = nullptr;  // of these three
  abi::CudnnConvolution convolution_ = nullptr;
  int algorithm_ = 0;
  int math_type_ = 0;
  std::vector<Tensors> sets_;
  std::unique_ptr<Buffer> workspace_;
};

}  // namespace

std::unique_ptr<Convolution> cudnn_convolution(Device& device,
                                               abi::Stream stream,
                                               const ConvolutionShape& shape) {
  return std::make_unique<CudnnConvolution>(device, stream, shape);
}

}  // namespace launchgap::cuda
