#include "harness/device/cuda/cudnn_library.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/driver.h"
#include "harness/device/cuda/libraries.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {
namespace {

/// cuDNN 9 for CUDA 12 and later does not run on a driver of CUDA 11; from 9.11 on it has nothing
/// below compute capability 7.5, and none of it below 5.0 (data/cudnn_support.csv).
int newest_cudnn(int compute_capability) {
  const int driver = std::atoi(Driver::get().facts.version.c_str());
  return driver < 12 || compute_capability < 75 ? 8 : 9;
}

Cudnn load_cudnn(int compute_capability) {
  const SharedLibrary file = SharedLibrary::open(
      by_version({"cuDNN", "LAUNCHGAP_CUDNN", {}, {}},
                 {{8, "libcudnn.so.8"}, {9, "libcudnn.so.9"}},
                 newest_cudnn(compute_capability),
                 "libcudnn.so"),
      "Without it nothing is convolved on this GPU; scripts/setup --with-cuda brings it");
  Cudnn library;
  LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_TAKE)
  LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS(LAUNCHGAP_TAKE)
  library.facts = file.facts();
  library.facts.version = cudnn_version_text(library.cudnnGetVersion());
  note_loaded(library.facts);
  return library;
}

}  // namespace

Cudnn& Cudnn::get(int compute_capability) {
  static Cudnn library = load_cudnn(compute_capability);
  return library;
}

void Cudnn::check(abi::CudnnStatus status, std::string_view call, std::string_view detail) const {
  if (status == abi::kCudnnSuccess) return;
  const std::string name(call.substr(0, call.find('(')));
  const std::string words = cudnnGetErrorString(status);
  const std::string all = detail.empty() ? words : fmt::format("{}: {}", words, detail);
  if (words.find("NOT_SUPPORTED") != std::string::npos ||
      words.find("ARCH_MISMATCH") != std::string::npos) {
    throw Unsupported("cuDNN {}: {} answers {} ({})", facts.version, name, all, status);
  }
  throw LibraryError(
      "cuDNN", name, status, all, words.find("EXECUTION_FAILED") != std::string::npos);
}

abi::CudnnDataType cudnn_data_type(ElementType type) {
  switch (type) {
    case ElementType::fp64:
      return abi::kCudnnDouble;
    case ElementType::fp16:
      return abi::kCudnnHalf;
    case ElementType::bf16:
      return abi::kCudnnBfloat16;
    case ElementType::int8:
      return abi::kCudnnInt8;
    case ElementType::int32:
      return abi::kCudnnInt32;
    case ElementType::fp8_e4m3:
      return abi::kCudnnFp8E4m3;
    case ElementType::fp8_e5m2:
      return abi::kCudnnFp8E5m2;
    case ElementType::fp32:
      break;
  }
  return abi::kCudnnFloat;
}

abi::CudnnDataType cudnn_compute_type(const ProductType& type) {
  switch (type.compute) {
    case Compute::fp64:
      return abi::kCudnnDouble;
    case Compute::fp16:
      return abi::kCudnnHalf;
    case Compute::int32:
      return abi::kCudnnInt32;
    case Compute::fp32:
    case Compute::fp32_pedantic:
    case Compute::tf32:
      break;
  }
  return type.fast_accumulation ? abi::kCudnnFastFloatForFp8 : abi::kCudnnFloat;
}

void CudnnConvolutionBase::add_tensors(const Buffer& first, const Buffer& second) {
  sets_.push_back({first.address(), second.address(), device_.allocate(shape_.result_bytes())});
  const std::unique_ptr<Stream> stream = device_.create_stream();
  stream->fill_bytes(sets_.back().result->address(),
                     kernels::unwritten_byte(shape_.type.c),
                     shape_.result_bytes());
  stream->wait();
}

void CudnnConvolutionBase::read_output(std::size_t set, void* output) {
  device_.check();
  device_.read(*sets_.at(set).result, 0, output, shape_.result_bytes());
}

std::size_t CudnnConvolutionBase::most_workspace(std::size_t allowed) const {
  return std::min(allowed, device_.free_memory_bytes() / 10 * 9 + held_bytes());
}

void CudnnConvolutionBase::hold_workspace(std::size_t bytes) {
  if (bytes <= held_bytes()) return;
  device_.check();  // what was enqueued may use the one that goes
  workspace_.reset();
  workspace_ = device_.allocate(bytes);
}

std::unique_ptr<Convolution> cudnn_convolution(Device& device,
                                               abi::Stream stream,
                                               const ConvolutionShape& shape,
                                               std::string_view interface) {
  if (interface.empty() || interface == "legacy")
    return cudnn_legacy_convolution(device, stream, shape);
  if (interface == "graph") return cudnn_graph_convolution(device, stream, shape);
  throw Unsupported("cuDNN has no interface '{}' for convolutions", interface);
}

}  // namespace launchgap::cuda
