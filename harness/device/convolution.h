// Convolutions of a device's library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/product_type.h"

namespace launchgap {

class Buffer;

/// Which of the three tensors is computed from the other two.
enum class ConvolutionDirection {
  forward,  // the output, from input and filters
  data,     // the gradient of the input, from that of the output and the filters
  filter,   // the gradient of the filters, from the input and the gradient of the output
};
std::string_view name_of(ConvolutionDirection direction);

/// In which order elements are in memory.
enum class TensorLayout {
  any,   // of the outside NCHW; the library may keep them in an order of its own
  nchw,  // filters k, c, r, s
  nhwc,  // filters k, r, s, c
};
std::string_view name_of(TensorLayout layout);

/// A tensor of four dimensions; of filters, n and c are those of the output and of the input.
struct Tensor4 {
  int n = 1, c = 1, h = 1, w = 1;

  bool operator==(const Tensor4&) const = default;
  std::size_t count() const { return std::size_t{1} * n * c * h * w; }
  /// Where an element is in memory.
  std::size_t index(TensorLayout layout,
                    std::size_t at_n,
                    std::size_t at_c,
                    std::size_t at_h,
                    std::size_t at_w) const {
    const auto C = static_cast<std::size_t>(c), H = static_cast<std::size_t>(h),
               W = static_cast<std::size_t>(w);
    return layout == TensorLayout::nhwc ? ((at_n * H + at_h) * W + at_w) * C + at_c
                                        : ((at_n * C + at_c) * H + at_h) * W + at_w;
  }
};

/// A two-dimensional convolution (cross-correlation) without bias. With several groups, each of
/// them convolves its share of the channels with its share of the filters.
struct ConvolutionShape {
  int n = 1, c = 1, h = 1, w = 1;
  int k = 1, r = 1, s = 1;
  int stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1;
  int groups = 1;
  TensorLayout layout = TensorLayout::any;
  ConvolutionDirection direction = ConvolutionDirection::forward;
  ProductType type = kFp32;

  int out_h() const { return (h + 2 * pad_h - (r - 1) * dilation_h - 1) / stride_h + 1; }
  int out_w() const { return (w + 2 * pad_w - (s - 1) * dilation_w - 1) / stride_w + 1; }
  Tensor4 input() const { return {n, c, h, w}; }
  Tensor4 filters() const { return {k, c / groups, r, s}; }
  Tensor4 output() const { return {n, k, out_h(), out_w()}; }

  /// The operands and the result of this direction.
  Tensor4 first() const { return direction == ConvolutionDirection::data ? output() : input(); }
  Tensor4 second() const {
    return direction == ConvolutionDirection::filter ? output() : filters();
  }
  Tensor4 result() const {
    return direction == ConvolutionDirection::forward ? output()
           : direction == ConvolutionDirection::data  ? input()
                                                      : filters();
  }
  /// Products of which one element of the result is the sum, at most: where nothing lies outside of
  /// the image.
  std::size_t terms() const {
    const Tensor4 w = filters(), y = output();
    switch (direction) {
      case ConvolutionDirection::forward:
        return std::size_t{1} * w.c * r * s;
      case ConvolutionDirection::data:
        return std::size_t{1} * (k / groups) * r * s;
      case ConvolutionDirection::filter:
        return std::size_t{1} * n * y.h * y.w;
    }
    return 0;
  }
  std::size_t first_bytes() const { return first().count() * kernels::element_bytes(type.a); }
  std::size_t second_bytes() const { return second().count() * kernels::element_bytes(type.b); }
  std::size_t result_bytes() const { return result().count() * kernels::element_bytes(type.c); }
  /// The same in every direction; products with what lies outside of the image are counted, as
  /// everybody does.
  double operations() const {
    const Tensor4 w = filters();
    return 2.0 * static_cast<double>(output().count()) * w.c * w.h * w.w;
  }
};

/// A way in which a library can compute a convolution.
struct ConvolutionCandidate {
  std::string algorithm;  // its number, its name and its kind of math: "1 (direct, FMA)"
  std::size_t workspace_bytes = 0;
  bool rounds_integers = false;
  std::optional<std::int64_t> engine = {};  // the library's number of it, where it has engines
  std::string notes = {};                   // what the library says of the engine, in words
};

/// How a library selects an algorithm.
enum class Selection {
  get,   // from the shape, without running anything
  find,  // by running and timing what it has
};

/// What a selection may take beside the tensors: which algorithms come into question depends on it.
inline constexpr std::size_t kSelectionWorkspaceBytes = std::size_t{256} << 20;

/// Candidates that are kept of a library which offers dozens, beside those that a selection has
/// first.
inline constexpr std::size_t kMostCandidates = 16;

/// A library's convolution, ready to run on one or several sets of tensors. It may keep them in a
/// layout of its own: `add_tensors` brings them into it and `read_output` back, neither of which is
/// part of `enqueue`.
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// A set of tensors with these operands (ConvolutionShape::first, second), which must live as
  /// long; sets are numbered from 0. What is never written to its result is no number. Waits.
  virtual void add_tensors(const Buffer& first, const Buffer& second) = 0;
  /// Brings the operands of a set in again, after they were changed. Waits.
  virtual void update_tensors(std::size_t set) = 0;
  virtual void enqueue(std::size_t set) = 0;
  /// What the last `enqueue` on this set computed, `result_bytes()` in host memory. Waits.
  virtual void read_output(std::size_t set, void* output) = 0;
  virtual std::string method() const = 0;
  /// See Matmul::algorithm().
  virtual std::string algorithm() const { return {}; }
  /// Whether the algorithm transforms its inputs (Winograd, FFT), so that even integers come out
  /// rounded.
  virtual bool rounds_integers() const = 0;

  /// Has the library select an algorithm anew, and says which candidate it has first. Chooses
  /// nothing. `find` waits, needs a set of tensors, and overwrites the result of the first. Throws
  /// Unsupported where the library has no such selection.
  virtual std::size_t select(Selection how);
  /// The library's call for it; empty where it has none.
  virtual std::string selection_call(Selection) const { return {}; }
  /// What selections have offered so far within kSelectionWorkspaceBytes.
  virtual std::vector<ConvolutionCandidate> candidates() const { return {}; }
  /// From now on by one of them, with the kind of math that belongs to it.
  virtual void choose(std::size_t candidate);
};

// --- The names of algorithms, as methods of cases have them ---

/// All that algorithm_of() finds: "Winograd", "algorithm 1" as cuDNN numbers those without a name,
/// and "3m", three real products in place of the four of a complex one.
std::span<const std::string_view> algorithm_names();

/// The algorithm that a case's method names: "implicit GEMM" of "cuDNN 9.19
/// cudnnConvolutionForward, implicit GEMM, NCHW, …", "direct" of "oneDNN 3.5 direct convolution,
/// …"; of what others have published what stands before "published by"; empty where it names none.
std::string algorithm_of(std::string_view method);

/// The method of a case that others have published. `algorithm` is one of algorithm_names(), or
/// empty.
std::string published_method(std::string_view algorithm,
                             std::string_view source,
                             std::string_view software);

}  // namespace launchgap
