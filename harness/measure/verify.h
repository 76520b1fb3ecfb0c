// Results against the definition of the operation, from inputs that kernels/element.h can
// recompute.
#pragma once

#include <cstdint>

#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/matmul.h"
#include "harness/measure/fill.h"

namespace launchgap {

/// Inputs of an operation: how `fill` made them.
struct InputSeeds {
  std::uint64_t first = 0;   // A, or the input tensor
  std::uint64_t second = 0;  // B, or the filters
  kernels::Distribution distribution = kernels::Distribution::small_integer;
  /// Of A, or of the filters, only each `step`-th element is not zero; 1: all (sparse_element).
  std::uint64_t step = 1;
};

/// The least step with which a sum of `terms` products of small integers is exact in `type`, and
/// that has no divisor in common with `terms`: a row of A, or a filter, then has at most as many
/// non-zeros as that.
std::uint64_t exact_step(ElementType type, std::size_t terms);
/// The same for a product, whichever way A lies in memory.
std::uint64_t exact_step(const MatmulShape& shape);
/// The same for the filters of a convolution.
std::uint64_t exact_step(const ConvolutionShape& shape);

/// Throws WrongResult, which names an element, if C is not A B for small integers whose sums are
/// exact (exact_step). By Freivalds' method in exact arithmetic: C x = A (B x) row by row, for
/// random x of non-zero integers of 15 bits. So one wrong element is always noticed, and several in
/// a row but for a chance of 2^-15. Freivalds, "Probabilistic machines can use less running time",
/// IFIP 1977. Throws Error where sums are not exact.
void verify_matmul(Device& device,
                   const Buffer& c,
                   const MatmulShape& shape,
                   const InputSeeds& inputs);

/// The same for a convolution's output in host memory: its planes, combined by random weights, are
/// the convolution with the filters combined likewise, which is 1/K of the work. Where the
/// algorithm transforms its inputs (Winograd, FFT) sums are rounded: then all filters are dense,
/// and 1,024 elements at random places and the corners of the first and the last image are
/// compared, within the rounding that those allow; of all others only that they are numbers, and no
/// larger than can be.
void verify_convolution(const void* output,
                        const ConvolutionShape& shape,
                        const InputSeeds& inputs,
                        bool rounds_integers);

/// Throws WrongResult if 64 random elements of C differ from A B by more than FP32 summation and
/// the types' rounding allow, for inputs of any distribution: |error| <= gamma_k |A||B| with
/// gamma_k = k u / (1 - k u) (Higham, Accuracy and Stability of Numerical Algorithms, section 3.5).
/// That bound is a worst case, which TF32 in place of FP32 stays below for large k; so for plain
/// FP32 the root mean square of the errors, relative to that of the products' sums, must also stay
/// below 2^-15, where FP32 has about 2^-18 and TF32 2^-12.
void verify_timed_matmul(Device& device,
                         const Buffer& c,
                         const MatmulShape& shape,
                         const InputSeeds& inputs);

/// The same for a convolution's output in host memory; an algorithm that transforms its inputs is
/// allowed 16 times the error.
void verify_timed_convolution(const void* output,
                              const ConvolutionShape& shape,
                              const InputSeeds& inputs,
                              bool transforms_inputs);

}  // namespace launchgap
