// Convolutions of a device's library.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/element.h"

namespace launchgap {

using kernels::ElementType;
class Buffer;

/// A two-dimensional forward convolution (cross-correlation) without bias: input n x c x h x w,
/// filters k x c x r x s, output n x k x out_h x out_w, all in this order in memory.
struct ConvolutionShape {
  std::string layer;
  int n = 1, c = 1, h = 1, w = 1;
  int k = 1, r = 1, s = 1;
  int stride = 1, pad = 0;
  ElementType type = ElementType::fp32;  // of all three tensors; products are summed in FP32
  bool allow_tf32 = false;               // as for MatmulShape

  int out_h() const { return (h + 2 * pad - r) / stride + 1; }
  int out_w() const { return (w + 2 * pad - s) / stride + 1; }
  std::size_t input_count() const { return std::size_t{1} * n * c * h * w; }
  /// Products of which one output is the sum, where the filter lies inside of the image.
  std::size_t terms() const { return std::size_t{1} * c * r * s; }
  std::size_t filter_count() const { return terms() * static_cast<std::size_t>(k); }
  std::size_t output_count() const { return std::size_t{1} * n * k * out_h() * out_w(); }
  double operations() const { return 2.0 * static_cast<double>(output_count()) * c * r * s; }
};

/// A library's convolution, ready to run on one or several sets of tensors. It may keep them in a
/// layout of its own: `add_tensors` brings them into it and `read_output` back, neither of which is
/// part of `enqueue`.
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// A set of tensors with these inputs, which must live as long; sets are numbered from 0. What is
  /// never written to its output is no number. Waits.
  virtual void add_tensors(const Buffer& input, const Buffer& filter) = 0;
  /// Brings the inputs of a set in again, after they were changed. Waits.
  virtual void update_tensors(std::size_t set) = 0;
  virtual void enqueue(std::size_t set) = 0;
  /// What the last `enqueue` on this set computed, `output_count()` elements in host memory. Waits.
  virtual void read_output(std::size_t set, void* output) = 0;
  virtual std::string method() const = 0;
  /// Whether the algorithm transforms its inputs (Winograd, FFT), so that even integers come out
  /// rounded.
  virtual bool rounds_integers() const = 0;
};

}  // namespace launchgap
