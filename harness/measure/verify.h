// Results against the definition of the operation, from inputs that kernels/element.h can
// recompute.
#pragma once

#include <cstdint>

#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/matmul.h"

namespace launchgap {

/// Inputs of an operation: how `fill` made them.
struct InputSeeds {
  std::uint64_t first = 0;   // A, or the input tensor
  std::uint64_t second = 0;  // B, or the filters
  kernels::Distribution distribution = kernels::Distribution::small_integer;
};

/// Fills a whole buffer with elements of `type` by the fill kernel, on the stream.
void fill(Device& device,
          Stream& stream,
          const Buffer& buffer,
          std::uint64_t seed,
          ElementType type,
          kernels::Distribution distribution);

/// Throws WrongResult if C is not A B for small-integer inputs, bit by bit. Every element is
/// compared up to 256 x 256. Beyond, FP32 results are checked as a whole by Freivalds' method in
/// exact integer arithmetic (a wrong result passes with probability below 2^-20); 16-bit results,
/// which are rounded, by one element of every 64 x 64 tile at a random place.
void verify_matmul(Device& device,
                   const Buffer& c,
                   const MatmulShape& shape,
                   const InputSeeds& inputs);

/// Throws WrongResult if the output, in host memory, is not the convolution of small-integer
/// inputs: 1,024 elements at random places and the corners of the first and last image, bit by bit;
/// or, where the algorithm transforms its inputs (Winograd, FFT), within the rounding that those
/// allow.
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
