// What cudnnConvolutionForward computes.
#pragma once

#include <cstddef>

#include "kernels/element.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

enum class Layout { nchw, nhwc };

/// Extents of a 4-d tensor; of a filter, n and c are output and input channels.
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

/// Cross-correlation, accumulated in binary32: output = alpha input * filter + beta output.
struct ForwardConvolution {
  Extents input, filter, output;
  Layout input_layout{}, filter_layout{}, output_layout{};
  kernels::ElementType type{};
  std::size_t pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  float alpha = 1, beta = 0;
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
  bool tf32 = false;
};

Operation convolution_operation(const ForwardConvolution& convolution);

}  // namespace launchgap::fake
