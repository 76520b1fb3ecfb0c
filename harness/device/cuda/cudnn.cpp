#include "harness/device/cuda/abi/cudnn.h"

#include <array>
#include <cstdlib>
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

constexpr std::array kAlgorithmNames = {"implicit GEMM",
                                        "implicit precomputed GEMM",
                                        "GEMM",
                                        "direct",
                                        "FFT",
                                        "tiled FFT",
                                        "Winograd",
                                        "non-fused Winograd"};

abi::CudnnDataType data_type(ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return abi::kCudnnFloat;
    case ElementType::fp16:
      return abi::kCudnnHalf;
    case ElementType::bf16:
      return abi::kCudnnBfloat16;
  }
  return abi::kCudnnFloat;
}

class CudnnConvolution : public Convolution {
 public:
  CudnnConvolution(Device& device, abi::Stream stream, const ConvolutionShape& shape)
      : library_(Cudnn::get(capability(device.facts()))), device_(device) {
    if (shape.allow_tf32 && capability(device.facts()) < 80) {
      throw Unsupported(fmt::format("TF32 needs compute capability 8.0; this device has {}",
                                    device.facts().compute_capability.value_or("an unknown one")));
    }
    try {
      prepare(stream, shape);
    } catch (...) {
      release();
      throw;
    }
  }
  ~CudnnConvolution() override { release(); }

  void add_tensors(const Buffer& input, const Buffer& filter) override {
    sets_.push_back({input.address(), filter.address(), device_.allocate(output_bytes_)});
    const std::unique_ptr<Stream> stream = device_.create_stream();
    stream->fill_bytes(sets_.back().output->address(), 0xFF, output_bytes_);
    stream->wait();
  }
  void update_tensors(std::size_t) override {}  // cuDNN reads them where they are

  void enqueue(std::size_t set) override {
    const Tensors& tensors = sets_[set];
    const float one = 1, zero = 0;
    CHECK_CUDNN(library_,
                cudnnConvolutionForward(handle_,
                                        &one,
                                        input_,
                                        tensors.input,
                                        filter_,
                                        tensors.filter,
                                        convolution_,
                                        algorithm_,
                                        workspace_ ? workspace_->address() : nullptr,
                                        workspace_ ? workspace_->bytes() : 0,
                                        &zero,
                                        result_,
                                        tensors.output->address()));
  }

  void read_output(std::size_t set, void* output) override {
    device_.check();
    device_.read(*sets_.at(set).output, 0, output, output_bytes_);
  }

  std::string method() const override {
    return fmt::format("cuDNN {} cudnnConvolutionForward, {}, NCHW, {}, workspace {} MiB",
                       library_.facts.version,
                       kAlgorithmNames.at(static_cast<std::size_t>(algorithm_)),
                       math_type_ == abi::kCudnnTensorOpMath ? "tensor cores"
                       : math_type_ == abi::kCudnnFmaMath    ? "FMA"
                                                             : "default math",
                       workspace_ ? (workspace_->bytes() + (1 << 20) - 1) >> 20 : 0);
  }

  bool rounds_integers() const override { return algorithm_ >= abi::kCudnnFft; }

 private:
  struct Tensors {
    const void* input;
    const void* filter;
    std::unique_ptr<Buffer> output;
  };

  // The choice of algorithm depends on it, so it is fixed and documented.
  static constexpr std::size_t kMaxWorkspaceBytes = std::size_t{1} << 30;

  void prepare(abi::Stream stream, const ConvolutionShape& shape) {
    const int type = data_type(shape.type);
    CHECK_CUDNN(library_, cudnnCreate(&handle_));
    CHECK_CUDNN(library_, cudnnSetStream(handle_, stream));
    CHECK_CUDNN(library_, cudnnCreateTensorDescriptor(&input_));
    CHECK_CUDNN(library_, cudnnCreateTensorDescriptor(&result_));
    CHECK_CUDNN(library_, cudnnCreateFilterDescriptor(&filter_));
    CHECK_CUDNN(library_, cudnnCreateConvolutionDescriptor(&convolution_));
    CHECK_CUDNN(library_,
                cudnnSetTensor4dDescriptor(
                    input_, abi::kCudnnNchw, type, shape.n, shape.c, shape.h, shape.w));
    CHECK_CUDNN(library_,
                cudnnSetFilter4dDescriptor(
                    filter_, type, abi::kCudnnNchw, shape.k, shape.c, shape.r, shape.s));
    CHECK_CUDNN(library_,
                cudnnSetConvolution2dDescriptor(convolution_,
                                                shape.pad,
                                                shape.pad,
                                                shape.stride,
                                                shape.stride,
                                                1,
                                                1,
                                                abi::kCudnnCrossCorrelation,
                                                abi::kCudnnFloat));
    int n = 0, k = 0, h = 0, w = 0;
    CHECK_CUDNN(
        library_,
        cudnnGetConvolution2dForwardOutputDim(convolution_, input_, filter_, &n, &k, &h, &w));
    if (n != shape.n || k != shape.k || h != shape.out_h() || w != shape.out_w()) {
      throw WrongResult(fmt::format("cuDNN says the output is {}x{}x{}x{}, but it is {}x{}x{}x{}",
                                    n,
                                    k,
                                    h,
                                    w,
                                    shape.n,
                                    shape.k,
                                    shape.out_h(),
                                    shape.out_w()));
    }
    CHECK_CUDNN(
        library_,
        cudnnSetTensor4dDescriptor(
            result_, abi::kCudnnNchw, type, shape.n, shape.k, shape.out_h(), shape.out_w()));
    choose_algorithm(shape);
    output_bytes_ = shape.output_count() * kernels::element_bytes(shape.type);
  }

  void choose_algorithm(const ConvolutionShape& shape) {
    // The default math of cuDNN 8 and later rounds FP32 to TF32 where the GPU can; FP32 here means
    // FP32. cuDNN 7 knows neither TF32 nor this setting.
    const bool exact_fp32 = shape.type == ElementType::fp32 && !shape.allow_tf32;
    const int wanted = shape.type != ElementType::fp32 ? abi::kCudnnTensorOpMath
                       : exact_fp32                    ? abi::kCudnnFmaMath
                                                       : abi::kCudnnDefaultMath;
    if (library_.cudnnSetConvolutionMathType(convolution_, wanted) != abi::kCudnnSuccess) {
      CHECK_CUDNN(library_, cudnnSetConvolutionMathType(convolution_, abi::kCudnnDefaultMath));
    }
    std::array<abi::CudnnForwardPerformance, 8> found{};
    int count = 0;
    CHECK_CUDNN(library_,
                cudnnGetConvolutionForwardAlgorithm_v7(handle_,
                                                       input_,
                                                       filter_,
                                                       convolution_,
                                                       result_,
                                                       static_cast<int>(found.size()),
                                                       &count,
                                                       found.data()));
    for (int i = 0; i < count; ++i) {
      const abi::CudnnForwardPerformance& candidate = found[static_cast<std::size_t>(i)];
      const bool keeps_fp32 = !exact_fp32 || candidate.math_type == abi::kCudnnFmaMath ||
                              candidate.math_type == abi::kCudnnDefaultMath;
      if (candidate.status != abi::kCudnnSuccess || !keeps_fp32 || candidate.algorithm < 0 ||
          candidate.algorithm >= static_cast<int>(kAlgorithmNames.size())) {
        continue;
      }
      // An algorithm without its math type may run many times slower (pytorch PR #15881); but where
      // FP32 was asked for, the setting that keeps it stays.
      if (!exact_fp32) {
        CHECK_CUDNN(library_, cudnnSetConvolutionMathType(convolution_, candidate.math_type));
      }
      std::size_t bytes = 0;
      if (library_.cudnnGetConvolutionForwardWorkspaceSize(
              handle_, input_, filter_, convolution_, result_, candidate.algorithm, &bytes) !=
              abi::kCudnnSuccess ||
          bytes > kMaxWorkspaceBytes) {
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
    if (result_) library_.cudnnDestroyTensorDescriptor(result_);
    if (input_) library_.cudnnDestroyTensorDescriptor(input_);
    if (handle_) library_.cudnnDestroy(handle_);
  }

  Cudnn& library_;
  Device& device_;
  abi::CudnnHandle handle_ = nullptr;
  abi::CudnnTensor input_ = nullptr;
  abi::CudnnTensor result_ = nullptr;
  abi::CudnnFilter filter_ = nullptr;
  abi::CudnnConvolution convolution_ = nullptr;
  int algorithm_ = 0;
  int math_type_ = 0;
  std::size_t output_bytes_ = 0;
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
