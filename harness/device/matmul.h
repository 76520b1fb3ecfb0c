// Matrix products of a device's library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/errors.h"
#include "harness/device/product_type.h"

namespace launchgap {

class Buffer;
class Stream;

/// C = A B of row-major matrices without gaps: A is m x k, B k x n, C m x n; `batch` of them, one
/// after the other in memory.
struct MatmulShape {
  int m = 0, n = 0, k = 0;
  ProductType type = kFp32;
  bool transpose_a = false;  // A is k x m in memory
  bool transpose_b = false;  // B is n x k in memory
  int batch = 1;

  static MatmulShape square(int size, const ProductType& type) { return {size, size, size, type}; }
  /// Elements of one matrix of the batch.
  std::size_t a_size() const { return std::size_t{1} * m * k; }
  std::size_t b_size() const { return std::size_t{1} * k * n; }
  std::size_t c_size() const { return std::size_t{1} * m * n; }
  std::size_t a_count() const { return a_size() * batch; }
  std::size_t b_count() const { return b_size() * batch; }
  std::size_t c_count() const { return c_size() * batch; }
  std::size_t a_bytes() const { return a_count() * kernels::element_bytes(type.a); }
  std::size_t b_bytes() const { return b_count() * kernels::element_bytes(type.b); }
  std::size_t c_bytes() const { return c_count() * kernels::element_bytes(type.c); }
  /// Where element (row, column) of A or B is in the memory of its matrix.
  std::size_t a_index(std::size_t row, std::size_t column) const {
    return transpose_a ? column * static_cast<std::size_t>(m) + row
                       : row * static_cast<std::size_t>(k) + column;
  }
  std::size_t b_index(std::size_t row, std::size_t column) const {
    return transpose_b ? column * static_cast<std::size_t>(k) + row
                       : row * static_cast<std::size_t>(n) + column;
  }
  double operations() const { return 2.0 * m * n * k * batch; }
};

/// In place of a library's name: the usual one, which tries its algorithms at the first call.
inline constexpr std::string_view kTunedMatmul = "tuned";

/// A way in which a library can compute a product.
struct MatmulCandidate {
  std::string algorithm;  // its number
  int tile = 0, stages = 0, split = 0;
  double waves = 0;  // of blocks on the device's multiprocessors
  std::size_t workspace_bytes = 0;
};

/// A library's matrix product, ready to run.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual void enqueue(const Buffer& a, const Buffer& b, Buffer& c) = 0;
  /// The ways that the library offers, its own preference first; none where it does not tell.
  virtual std::vector<MatmulCandidate> candidates() const { return {}; }
  /// From now on by one of them.
  virtual void choose(std::size_t) {}
  /// From now on in another stream of the device. A GPU's library then takes its own workspace, as
  /// it does for every program that changes a handle's stream. Throws Unsupported where a library
  /// has nothing that could change.
  virtual void move_to(Stream&) {
    throw Unsupported("this library has no handle that changes streams");
  }
  /// From now on with so many bytes of memory for what it keeps meanwhile. The caller has waited
  /// for its work. Throws Unsupported where it takes none from its caller.
  virtual void set_workspace(std::size_t) {
    throw Unsupported("this library takes no workspace from who calls it");
  }
  virtual std::string method() const = 0;  // library, call and algorithm
  /// What the library computes it with, as far as it tells: the same text for the same way of
  /// computing, in every process. Empty where it does not tell.
  virtual std::string algorithm() const { return {}; }
};

}  // namespace launchgap
