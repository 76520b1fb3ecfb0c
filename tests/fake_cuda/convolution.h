// What cudnnConvolutionForward, BackwardData and BackwardFilter compute.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/element.h"
#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

enum class Layout { nchw, nhwc };
enum class Direction { forward, data, filter };

/// Extents of a 4-d tensor; of a filter, n and c are output and input channels (of a group).
struct Extents {
  std::size_t n = 0, c = 0, h = 0, w = 0;

  std::size_t count() const { return n * c * h * w; }
  std::size_t index(Layout layout,
                    std::size_t in,
                    std::size_t ic,
                    std::size_t ih,
                    std::size_t iw) const {
    return layout == Layout::nchw ? ((in * c + ic) * h + ih) * w + iw
                                  : ((in * h + ih) * w + iw) * c + ic;
  }
  bool operator==(const Extents&) const = default;
};

/// A tensor or a filter.
struct Tensor {
  Extents extents;
  Layout layout{};
  kernels::ElementType type{};
  const void* memory = nullptr;

  std::size_t bytes() const { return extents.count() * kernels::element_bytes(type); }
};

/// Cross-correlation, accumulated in binary32 (of FP64 in binary64): y = alpha x * w + beta y, or
/// the gradient of x or w in its place.
struct ConvolutionWork {
  Direction direction = Direction::forward;
  Tensor x, w, y;
  std::size_t pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::size_t groups = 1;
  double alpha = 1, beta = 0;
  bool tf32 = false;

  const Tensor& result() const {
    return direction == Direction::forward ? y : direction == Direction::data ? x : w;
  }
  /// The first: what the products are made of.
  const Tensor& operand() const { return direction == Direction::data ? y : x; }
  double flops() const {
    return 2.0 * static_cast<double>(y.extents.count()) *
           static_cast<double>(w.extents.c * w.extents.h * w.extents.w);
  }
};

/// The output of a convolution with these tensors and settings; nothing where there is none.
/// Source: cuDNN API reference, cudnnGetConvolution2dForwardOutputDim.
std::optional<Extents> output_extents(const Extents& input,
                                      const Extents& filter,
                                      const ConvolutionWork& settings);

/// A kernel that computes; of tensors in NCHW one before it that brings the first operand into
/// another order, by the name that cuDNN's has.
std::vector<LibraryKernel> convolution_kernels(const ConvolutionWork& convolution,
                                               const Arithmetic& how);

Operation convolution_operation(const ConvolutionWork& convolution);

}  // namespace launchgap::fake
