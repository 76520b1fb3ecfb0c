// Matrix products of a device's library.
#pragma once

#include <string>

#include "kernels/element.h"

namespace launchgap {

using kernels::ElementType;
class Buffer;

/// C = A B, row-major square matrices of `size` x `size`.
struct MatmulShape {
  int size = 0;
  ElementType type = ElementType::fp32;  // of A, B and C; products are summed in FP32
  bool allow_tf32 = false;               // FP32 inputs may be rounded to TF32 (10 bits of mantissa)

  double operations() const { return 2.0 * size * size * size; }
};

/// A library's matrix product, ready to run.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual void enqueue(const Buffer& a, const Buffer& b, Buffer& c) = 0;
  virtual std::string method() const = 0;  // library, call and algorithm
};

}  // namespace launchgap
