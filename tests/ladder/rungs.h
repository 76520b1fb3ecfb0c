// The rungs' device code on the CPU, and the same product in exact arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/element.h"
#include "kernels/matmul/emulated.h"
#include "kernels/matmul/rungs.h"

namespace launchgap::kernels {

struct Shape {
  int m, n, k;
};

/// A rung's kernel, whatever its operands' type.
using RungKernel = std::function<void(const void*, const void*, void*, int, int, int)>;

template <class Element>
RungKernel kernel_of(void (*kernel)(const Element*, const Element*, Element*, int, int, int)) {
  return [kernel](const void* a, const void* b, void* c, int m, int n, int k) {
    kernel(static_cast<const Element*>(a),
           static_cast<const Element*>(b),
           static_cast<Element*>(c),
           m,
           n,
           k);
  };
}

/// The same with tensor maps: of A boxes of 128 rows, of B of 64.
inline RungKernel kernel_of(void (*kernel)(const emulated::TensorMap&,
                                           const emulated::TensorMap&,
                                           std::uint16_t*,
                                           int,
                                           int,
                                           int)) {
  return [kernel](const void* a, const void* b, void* c, int m, int n, int k) {
    const auto height = static_cast<unsigned>(m), width = static_cast<unsigned>(n);
    const auto depth = static_cast<unsigned>(k);
    kernel(emulated::make_tensor_map(static_cast<const std::uint16_t*>(a), height, depth, 128),
           emulated::make_tensor_map(static_cast<const std::uint16_t*>(b), depth, width, 64),
           static_cast<std::uint16_t*>(c),
           m,
           n,
           k);
  };
}

/// A rung as it is launched (kernels/matmul/rungs.h), and its device code on the CPU.
struct EmulatedRung {
  const Rung* rung;
  std::vector<Shape> shapes;
  RungKernel kernel;
};

const std::vector<EmulatedRung>& emulated_rungs();
const EmulatedRung& emulated_rung(const std::string& name);

/// What is wrong with the product of small integers, or empty: the Fault's words, or the first
/// element that differs. `conflicts`, unless it is null, takes the launch's bank conflicts.
std::string wrong(const Rung& rung,
                  const RungKernel& kernel,
                  Shape shape,
                  std::uint64_t seed,
                  emulated::BankConflicts* conflicts = nullptr);

}  // namespace launchgap::kernels
