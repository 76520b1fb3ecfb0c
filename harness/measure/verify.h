// Results against the definition of the operation, from inputs that kernels/element.h can
// recompute.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/matmul.h"
#include "harness/measure/fill.h"

namespace launchgap {

/// Inputs of an operation: how `fill` made them.
struct InputSeeds {
  std::uint64_t first = 0;   // A, or the first operand of a convolution
  std::uint64_t second = 0;  // B, or the second one
  kernels::Distribution distribution = kernels::Distribution::small_integer;
  /// Of A, or of a convolution's second operand, only each `step`-th element is not zero; 1: all
  /// (sparse_element).
  std::uint64_t step = 1;
};

/// The least step with which all sums of a product of small integers are exact in its types, and
/// with which all places of a row have their turn.
std::uint64_t exact_step(const MatmulShape& shape);
/// The same for the second operand of a convolution.
std::uint64_t exact_step(const ConvolutionShape& shape);

/// What C must be for small integers whose sums are exact (exact_step), in each matrix of the
/// batch, by Freivalds' method in exact arithmetic: C x = A (B x) row by row, for random x of
/// non-zero integers of 15 bits. So one wrong element is always noticed, and several in a row but
/// for a chance of 2^-15. Freivalds, "Probabilistic machines can use less running time", IFIP 1977.
class ExactProduct {
 public:
  /// Computes A (B x). Throws Error where sums are not exact.
  ExactProduct(const MatmulShape& shape, const InputSeeds& inputs);
  /// Throws WrongResult, which names an element, if C is not A B.
  void verify(Device& device, const Buffer& c) const;

 private:
  MatmulShape shape_;
  InputSeeds inputs_;
  long long largest_;
  std::vector<long long> x_;
  std::vector<std::vector<long long>> abx_;  // of each product of the batch
};

/// The same for one result.
inline void verify_matmul(Device& device,
                          const Buffer& c,
                          const MatmulShape& shape,
                          const InputSeeds& inputs) {
  ExactProduct(shape, inputs).verify(device, c);
}

/// The same for a convolution's result in host memory: its channels (of the gradient of the input;
/// else its filters), combined by random weights, are the convolution with operands combined
/// likewise, which is a fraction of the work. Where the algorithm may transform its inputs
/// (Winograd, FFT) sums are rounded, and all of the second operand is dense: every element must be
/// within that rounding of an integer, which is then compared, and of all none or at least 1 % are
/// rounded. Where the rounding is more than a quarter (16 bits), 1,024 elements at random places
/// and the corners of the first and the last plane are compared instead; of all others only that
/// they are numbers, and no larger than can be.
void verify_convolution(const void* result,
                        const ConvolutionShape& shape,
                        const InputSeeds& inputs,
                        bool rounds_integers);

/// Throws WrongResult if 64 random elements of C differ from A B by more than summation and the
/// types' rounding allow, for inputs of any distribution: |error| <= gamma_k |A||B| with
/// gamma_k = k u / (1 - k u) (Higham, Accuracy and Stability of Numerical Algorithms, section 3.5).
/// That bound is a worst case, which TF32 in place of FP32 stays below for large k; so for plain
/// FP32 the root mean square of the errors, relative to that of the products' sums, must also stay
/// below 2^-15, where FP32 has about 2^-18 and TF32 2^-12; and for FP64 below 2^-40. For sums in
/// FP16, where k u is more than 1, errors count as independent: 8 u sqrt(k) times the products'
/// root of sum of squares. Integers are exact.
void verify_timed_matmul(Device& device,
                         const Buffer& c,
                         const MatmulShape& shape,
                         const InputSeeds& inputs);

/// The same for a convolution's result in host memory; an algorithm that transforms its inputs is
/// allowed 16 times the error. A gradient of filters of 16 bits may have been added up from sums of
/// parts in its own type: u / 4 sqrt(k) times the root of the sum of squares more.
void verify_timed_convolution(const void* result,
                              const ConvolutionShape& shape,
                              const InputSeeds& inputs,
                              bool transforms_inputs);

}  // namespace launchgap
