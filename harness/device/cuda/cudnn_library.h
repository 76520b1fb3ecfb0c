// cuDNN as it was loaded: what its legacy and its graph interface share.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "harness/device/convolution.h"
#include "harness/device/cuda/abi/cudnn.h"
#include "harness/device/cuda/abi/cudnn_backend.h"
#include "harness/device/device.h"
#include "harness/device/facts.h"
#include "harness/device/product_type.h"

namespace launchgap::cuda {

struct Cudnn : abi::CudnnFunctions, abi::CudnnBackendFunctions {
  LoadedLibrary facts;

  /// Loaded on first use, for the process's one GPU: the newest library that driver and GPU can use
  /// comes first. Throws Unsupported where there is none.
  static Cudnn& get(int compute_capability);

  /// Throws Unsupported for what the library says it does not support, LibraryError for all else
  /// but success. `call` is the function's name, with or without what was passed to it; `detail`
  /// goes behind the library's words.
  void check(abi::CudnnStatus status, std::string_view call, std::string_view detail = {}) const;
};

#define LAUNCHGAP_CHECK_CUDNN(library, call) (library).check((library).call, #call)

/// What convolutions by both interfaces have: tensors, which cuDNN reads where they are, and a
/// workspace.
class CudnnConvolutionBase : public Convolution {
 public:
  CudnnConvolutionBase(Device& device, const ConvolutionShape& shape)
      : device_(device), shape_(shape) {}
  void add_tensors(const Buffer& first, const Buffer& second) override;
  void update_tensors(std::size_t) override {}
  void read_output(std::size_t set, void* output) override;

 protected:
  struct Tensors {
    const void* first;
    const void* second;
    std::unique_ptr<Buffer> result;
  };
  /// Within which an algorithm is taken without being asked for by select(): the choice depends on
  /// it, so it is fixed and documented.
  static constexpr std::size_t kDefaultWorkspaceBytes = std::size_t{1} << 30;

  /// As much as is allowed, and the device has.
  std::size_t most_workspace(std::size_t allowed) const;
  std::size_t held_bytes() const { return workspace_ ? workspace_->bytes() : 0; }
  /// Takes another workspace where the one that is held has fewer bytes.
  void hold_workspace(std::size_t bytes);
  void* workspace() const { return workspace_ ? workspace_->address() : nullptr; }
  const char* layout() const { return shape_.layout == TensorLayout::nhwc ? "NHWC" : "NCHW"; }
  static std::size_t whole_mib(std::size_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

  Device& device_;
  ConvolutionShape shape_;
  std::vector<Tensors> sets_;

 private:
  std::unique_ptr<Buffer> workspace_;
};

/// What cuDNN calls the type.
abi::CudnnDataType cudnn_data_type(ElementType type);

/// In which type cuDNN multiplies and sums.
abi::CudnnDataType cudnn_compute_type(const ProductType& type);

}  // namespace launchgap::cuda
