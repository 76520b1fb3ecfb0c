// One convolution, written in the idiom of each generation of GPUs that changed it, as the product
// of kernels/matmul is. Each rung's file explains it.
#pragma once

#include <span>
#include <string_view>

#include "kernels/convolution/sides.h"
#include "kernels/element.h"
#include "kernels/kernel.h"

namespace launchgap::kernels {

/// A forward convolution; a block computes `filters` of `pixels`, or as many elements as it has
/// threads where they are 0. Parameters of the kernel: images, filters, output, ConvolutionSides.
struct ConvolutionRung {
  std::string_view name;  // of the axis `rung`
  const KernelDescription* kernel = nullptr;
  ElementType type = ElementType::fp32;  // of all tensors; sums are FP32
  std::string_view type_name;
  bool channels_last = false;  // NHWC, and filters k, r, s, c; else NCHW, and k, c, r, s
  unsigned threads = 0, filters = 0, pixels = 0;
  unsigned multiple_of_c = 1, multiple_of_k = 1;  // the channels that it takes
  std::string_view idiom;                         // for the reader of a report
  double rate = 1;  // about what it reaches of the library: for estimates, and on fake GPUs
};

/// From the oldest on.
std::span<const ConvolutionRung> convolution_rungs();
/// Null if none has this name.
const ConvolutionRung* find_convolution_rung(std::string_view name);
/// Null if it is no rung's.
const ConvolutionRung* convolution_rung_of(const KernelDescription& kernel);

LaunchShape launch_shape(const ConvolutionRung& rung, const ConvolutionSides& sides);

}  // namespace launchgap::kernels
