// One product of matrices, written in the idiom of each generation of GPUs: what a GPU gives to
// code of another time, and what an old one lacks. Each rung's file explains it.
#pragma once

#include <span>
#include <string_view>

#include "kernels/element.h"
#include "kernels/kernel.h"

namespace launchgap::kernels {

/// C (m x n) = A (m x k) B (k x n), row-major without gaps; a block computes `height` x `width`
/// elements of C, or as many as it has threads where they are 0. Parameters of the kernel: a, b, c,
/// int m, int n, int k; a and b are tensor maps where boxes of them are brought.
struct Rung {
  std::string_view name;  // of the axis `rung`
  const KernelDescription* kernel = nullptr;
  ElementType type = ElementType::fp32;  // of A, B and C; sums are FP32
  std::string_view type_name;
  unsigned threads = 0, height = 0, width = 0;
  bool edges = false;  // any shape; else m, n and k are multiples of `height`, `width` and `depth`
  unsigned depth = 1;
  unsigned box_of_a = 0, box_of_b = 0;  // rows of a box, of 64 columns; 0: pointers
  std::string_view idiom;               // for the reader of a report
  double rate = 1;  // about what it reaches of the library: for estimates, and on fake GPUs
};

/// From the oldest on.
std::span<const Rung> rungs();
/// Null if none has this name.
const Rung* find_rung(std::string_view name);
/// Null if it is no rung's.
const Rung* rung_of(const KernelDescription& kernel);

LaunchShape launch_shape(const Rung& rung, int m, int n);

/// What of a matrix in memory is in a tensor map of the fakes, whose first word is its address.
inline const void* mapped_matrix(const void* tensor_map) {
  return *static_cast<void* const*>(tensor_map);
}

/// Rows [first, last) of C, on the host.
void multiply_on_host(const void* a,
                      const void* b,
                      void* c,
                      int first,
                      int last,
                      int n,
                      int k,
                      ElementType type);

}  // namespace launchgap::kernels
