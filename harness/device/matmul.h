// Matrix products of a device's library.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/element.h"

namespace launchgap {

using kernels::ElementType;
class Buffer;

/// C = A B of row-major matrices without gaps: A is m x k, B k x n, C m x n.
struct MatmulShape {
  int m = 0, n = 0, k = 0;
  ElementType type = ElementType::fp32;  // of A, B and C; products are summed in FP32
  bool allow_tf32 = false;               // FP32 inputs may be rounded to TF32 (10 bits of mantissa)
  bool transpose_a = false;              // A is k x m in memory
  bool transpose_b = false;              // B is n x k in memory

  static MatmulShape square(int size, ElementType type, bool allow_tf32 = false) {
    return {size, size, size, type, allow_tf32};
  }
  std::size_t a_count() const { return std::size_t{1} * m * k; }
  std::size_t b_count() const { return std::size_t{1} * k * n; }
  std::size_t c_count() const { return std::size_t{1} * m * n; }
  /// Where element (row, column) of A or B is in memory.
  std::size_t a_index(std::size_t row, std::size_t column) const {
    return transpose_a ? column * static_cast<std::size_t>(m) + row
                       : row * static_cast<std::size_t>(k) + column;
  }
  std::size_t b_index(std::size_t row, std::size_t column) const {
    return transpose_b ? column * static_cast<std::size_t>(k) + row
                       : row * static_cast<std::size_t>(n) + column;
  }
  double operations() const { return 2.0 * m * n * k; }
};

/// A library's matrix product, ready to run.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual void enqueue(const Buffer& a, const Buffer& b, Buffer& c) = 0;
  virtual std::string method() const = 0;  // library, call and algorithm
};

}  // namespace launchgap
