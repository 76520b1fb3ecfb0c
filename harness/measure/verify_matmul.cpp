#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/plan.h"
#include "harness/measure/exact_sums.h"
#include "harness/measure/verify.h"

namespace launchgap {
namespace {

/// One product of the batch, with its operands as they were made.
class OneOfBatch {
 public:
  OneOfBatch(const MatmulShape& shape, const InputSeeds& inputs, int number)
      : shape_(shape),
        inputs_(inputs),
        a_begin_(static_cast<std::size_t>(number) * shape.a_size()),
        b_begin_(static_cast<std::size_t>(number) * shape.b_size()) {}

  long long b(std::size_t index) const { return small_integer(inputs_.second, b_begin_ + index); }

  /// Element (row, column) of A B in exact arithmetic.
  long long exact_element(std::size_t row, std::size_t column) const {
    const auto terms = static_cast<std::size_t>(shape_.k);
    long long sum = 0;
    for (std::size_t i = 0; i < terms; ++i)
      sum += sparse_integer(inputs_.first, a_begin_ + shape_.a_index(row, i), inputs_.step) *
             b(shape_.b_index(i, column));
    return sum;
  }

  /// B x, for x with a weight for each column of B.
  std::vector<long long> times_b(const std::vector<long long>& x) const {
    const auto n = static_cast<std::size_t>(shape_.n), k = static_cast<std::size_t>(shape_.k);
    std::vector<long long> bx(k, 0);
    // In the order of memory, whichever that is.
    if (shape_.transpose_b) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t i = 0; i < k; ++i) bx[i] += b(j * k + i) * x[j];
      }
    } else {
      for (std::size_t i = 0; i < k; ++i) {
        for (std::size_t j = 0; j < n; ++j) bx[i] += b(i * n + j) * x[j];
      }
    }
    return bx;
  }

  /// A y. Of A only each step-th element is not zero.
  std::vector<long long> times_a(const std::vector<long long>& y) const {
    const auto m = static_cast<std::size_t>(shape_.m), k = static_cast<std::size_t>(shape_.k);
    std::vector<long long> ay(m, 0);
    const std::size_t first = (a_begin_ + inputs_.step - 1) / inputs_.step * inputs_.step;
    for (std::size_t at = first; at < a_begin_ + shape_.a_size(); at += inputs_.step) {
      const std::size_t index = at - a_begin_;
      const std::size_t row = shape_.transpose_a ? index % m : index / k;
      const std::size_t column = shape_.transpose_a ? index / m : index % k;
      ay[row] += sparse_integer(inputs_.first, at, inputs_.step) * y[column];
    }
    return ay;
  }

 private:
  const MatmulShape& shape_;
  const InputSeeds& inputs_;
  std::size_t a_begin_, b_begin_;
};

std::string place(const MatmulShape& shape, int number, std::size_t row, std::size_t column) {
  return shape.batch == 1 ? fmt::format("C[{}][{}]", row, column)
                          : fmt::format("C[{}][{}] of product {}", row, column, number);
}

}  // namespace

std::uint64_t exact_step(const MatmulShape& shape) {
  const auto m = static_cast<std::uint64_t>(shape.m), k = static_cast<std::uint64_t>(shape.k);
  const auto most = static_cast<std::uint64_t>(largest_exact(shape.type) / kLargestProduct);
  std::uint64_t step = (k + most - 1) / most;
  if (step <= 1) return 1;
  while (std::gcd(step, k) > 1 || std::gcd(step, m) > 1) ++step;
  return step;
}

ExactProduct::ExactProduct(const MatmulShape& shape, const InputSeeds& inputs)
    : shape_(shape),
      inputs_(inputs),
      largest_(largest_sum(static_cast<std::size_t>(shape.k), inputs.step)),
      x_(random_weights(derive_seed(inputs.first, "freivalds"),
                        static_cast<std::size_t>(shape.n))) {
  if (largest_ > largest_exact(shape.type))
    throw Error("sums of up to {} are not exact in {}", largest_, shape.type.name);
  // |x| < 2^15, |B x| < 2^16 n, |A B x| < 2^17 n k: exact in 64 bits up to n k = 2^46.
  for (int number = 0; number < shape_.batch; ++number) {
    const OneOfBatch product(shape_, inputs_, number);
    abx_.push_back(product.times_a(product.times_b(x_)));
  }
}

void ExactProduct::verify(Device& device, const Buffer& c) const {
  const auto m = static_cast<std::size_t>(shape_.m), n = static_cast<std::size_t>(shape_.n);
  const ElementType type = shape_.type.c;
  std::vector<unsigned char> result(shape_.c_size() * kernels::element_bytes(type));
  for (int number = 0; number < shape_.batch; ++number) {
    device.read(c, static_cast<std::size_t>(number) * result.size(), result.data(), result.size());
    const auto name_wrong_element = [&](std::size_t row) {
      const OneOfBatch product(shape_, inputs_, number);
      for (std::size_t column = 0; column < n; ++column) {
        const auto expected = static_cast<double>(product.exact_element(row, column));
        const double found = kernels::load_element(result.data(), row * n + column, type);
        if (!(found == expected)) wrong(place(shape_, number, row, column), expected, found);
      }
      throw WrongResult("wrong result: row {} of C", row);
    };
    for (std::size_t i = 0; i < m; ++i) {
      long long cx = 0;
      for (std::size_t j = 0; j < n; ++j) {
        long long value = 0;
        if (!as_integer(kernels::load_element(result.data(), i * n + j, type), largest_, value))
          name_wrong_element(i);
        cx += value * x_[j];
      }
      if (abx_[static_cast<std::size_t>(number)][i] != cx) name_wrong_element(i);
    }
  }
}

void verify_timed_matmul(Device& device,
                         const Buffer& c,
                         const MatmulShape& shape,
                         const InputSeeds& inputs) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n),
             k = static_cast<std::size_t>(shape.k);
  std::mt19937_64 random(derive_seed(inputs.first, "timed"));
  Accuracy accuracy(shape.type, k, 1);
  for (int sample = 0; sample < 64; ++sample) {
    const std::size_t row = random() % m, column = random() % n,
                      number = random() % static_cast<std::size_t>(shape.batch);
    Terms terms;
    for (std::size_t i = 0; i < k; ++i) {
      terms.add(kernels::sparse_element(inputs.first,
                                        number * shape.a_size() + shape.a_index(row, i),
                                        inputs.distribution,
                                        shape.type.a,
                                        inputs.step),
                kernels::element(inputs.second,
                                 number * shape.b_size() + shape.b_index(i, column),
                                 inputs.distribution,
                                 shape.type.b));
    }
    unsigned char bytes[8] = {};
    const std::size_t each = kernels::element_bytes(shape.type.c);
    device.read(c, (number * shape.c_size() + row * n + column) * each, bytes, each);
    accuracy.check(place(shape, static_cast<int>(number), row, column),
                   kernels::load_element(bytes, 0, shape.type.c),
                   terms);
  }
  accuracy.check_mean();
}

}  // namespace launchgap
