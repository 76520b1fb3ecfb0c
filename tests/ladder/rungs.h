// The rungs' device code on the CPU, and the same in exact arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/convolution/convolution_rungs.h"
#include "kernels/element.h"
#include "kernels/ladder/emulated.h"
#include "kernels/matmul/matmul_rungs.h"

namespace launchgap::kernels {

/// What a rung computes: of products m, n and k, of convolutions the sides.
struct Problem {
  int m = 0, n = 0, k = 0;
  ConvolutionSides sides{};

  std::string text() const;
};

/// A rung's kernel, whatever its operands' type: two operands and the result.
using RungKernel = std::function<void(const void*, const void*, void*, const Problem&)>;

template <class Element>
RungKernel kernel_of(void (*kernel)(const Element*, const Element*, Element*, int, int, int)) {
  return [kernel](const void* a, const void* b, void* c, const Problem& of) {
    kernel(static_cast<const Element*>(a),
           static_cast<const Element*>(b),
           static_cast<Element*>(c),
           of.m,
           of.n,
           of.k);
  };
}

/// The same with tensor maps: of A boxes of 128 rows, of B of 64.
inline RungKernel kernel_of(void (*kernel)(const emulated::TensorMap&,
                                           const emulated::TensorMap&,
                                           std::uint16_t*,
                                           int,
                                           int,
                                           int)) {
  return [kernel](const void* a, const void* b, void* c, const Problem& of) {
    const auto height = static_cast<unsigned>(of.m), width = static_cast<unsigned>(of.n);
    const auto depth = static_cast<unsigned>(of.k);
    kernel(emulated::make_tensor_map(static_cast<const std::uint16_t*>(a), height, depth, 128),
           emulated::make_tensor_map(static_cast<const std::uint16_t*>(b), depth, width, 64),
           static_cast<std::uint16_t*>(c),
           of.m,
           of.n,
           of.k);
  };
}

template <class Element>
RungKernel kernel_of(void (*kernel)(const Element*, const Element*, Element*, ConvolutionSides)) {
  return [kernel](const void* images, const void* filters, void* output, const Problem& of) {
    kernel(static_cast<const Element*>(images),
           static_cast<const Element*>(filters),
           static_cast<Element*>(output),
           of.sides);
  };
}

/// A rung as it is launched, and its device code on the CPU.
struct EmulatedRung {
  std::string name;  // matmul_naive
  std::vector<Problem> problems;
  RungKernel kernel;
  const Rung* matmul = nullptr;  // one of both
  const ConvolutionRung* convolution = nullptr;
};

const std::vector<EmulatedRung>& emulated_rungs();
const EmulatedRung& emulated_rung(const std::string& name);

/// What is wrong with what `kernel` computes of small integers in place of the rung's, or empty:
/// the Fault's words, or the first element that differs. `conflicts`, unless it is null, takes the
/// launch's bank conflicts.
std::string wrong(const EmulatedRung& rung,
                  const RungKernel& kernel,
                  const Problem& problem,
                  std::uint64_t seed,
                  emulated::BankConflicts* conflicts = nullptr);
/// What is wrong with what the rung's function for the host computes, or empty.
std::string wrong_on_host(const EmulatedRung& rung, const Problem& problem, std::uint64_t seed);

}  // namespace launchgap::kernels
