#include "harness/measure/verify.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/plan.h"

namespace launchgap {
namespace {

using kernels::Distribution;

/// A buffer on the host.
class HostCopy {
 public:
  HostCopy(Device& device, const Buffer& buffer, std::size_t count, ElementType type)
      : type_(type), bytes_(count * kernels::element_bytes(type)) {
    device.read(buffer, 0, bytes_.data(), bytes_.size());
  }
  float operator[](std::size_t index) const {
    return kernels::load_element(bytes_.data(), index, type_);
  }

 private:
  ElementType type_;
  std::vector<unsigned char> bytes_;
};

/// As the operand holds it. Of one that is not sparse `step` is 1.
float input_element(std::uint64_t seed,
                    std::size_t index,
                    Distribution distribution,
                    ElementType type,
                    std::uint64_t step = 1) {
  return kernels::rounded_to(type, kernels::sparse_element(seed, index, distribution, step));
}

long long integer(std::uint64_t seed, std::size_t index) {
  return static_cast<long long>(kernels::element(seed, index, Distribution::small_integer));
}

/// Of the operand that may be sparse.
long long sparse_integer(std::uint64_t seed, std::size_t index, std::uint64_t step) {
  return static_cast<long long>(
      kernels::sparse_element(seed, index, Distribution::small_integer, step));
}

/// The largest integer up to which `type` holds all.
long long largest_exact(ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return 1 << 24;
    case ElementType::fp16:
      return 1 << 11;
    case ElementType::bf16:
      return 1 << 8;
  }
  return 0;
}

constexpr long long kLargestProduct = 4;  // of two small integers

/// The largest sum of `terms` products of which each `step`-th is not zero. Throws Error where the
/// type does not hold all sums.
long long largest_sum(ElementType type, std::size_t terms, std::uint64_t step) {
  const auto kept = static_cast<long long>((terms + step - 1) / step);
  if (kept * kLargestProduct > largest_exact(type))
    throw Error(fmt::format("sums of {} integers are not exact in this type", kept));
  return kept * kLargestProduct;
}

/// Non-zero integers of 15 bits and a sign.
std::vector<long long> random_weights(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<long long> weights(count);
  for (long long& weight : weights) {
    const std::uint64_t bits = random();
    weight = static_cast<long long>(1 + bits % 32767) * (bits >> 63 ? -1 : 1);
  }
  return weights;
}

[[noreturn]] void wrong(const std::string& where, double expected, double found) {
  throw WrongResult(fmt::format("wrong result: {} is {} and must be {}", where, found, expected));
}

/// A result as an integer; `false` where it is none, or larger than any sum can be.
bool as_integer(float value, long long largest, long long& integer) {
  if (!(std::abs(value) <= static_cast<float>(largest)) || value != std::trunc(value)) return false;
  integer = static_cast<long long>(value);
  return true;
}

/// Element (row, column) of A B in exact arithmetic.
long long exact_element(const MatmulShape& shape,
                        const InputSeeds& inputs,
                        std::size_t row,
                        std::size_t column) {
  const auto terms = static_cast<std::size_t>(shape.k);
  long long sum = 0;
  for (std::size_t i = 0; i < terms; ++i)
    sum += sparse_integer(inputs.first, shape.a_index(row, i), inputs.step) *
           integer(inputs.second, shape.b_index(i, column));
  return sum;
}

/// Throws for the first element of a row that is not what it must be. Something in it is wrong.
[[noreturn]] void name_wrong_element(const MatmulShape& shape,
                                     const InputSeeds& inputs,
                                     const HostCopy& c,
                                     std::size_t row) {
  const auto columns = static_cast<std::size_t>(shape.n);
  for (std::size_t column = 0; column < columns; ++column) {
    const auto expected = static_cast<double>(exact_element(shape, inputs, row, column));
    const float found = c[row * columns + column];
    if (!(found == expected)) wrong(fmt::format("C[{}][{}]", row, column), expected, found);
  }
  throw WrongResult(fmt::format("wrong result: row {} of C", row));
}

/// B x, for x with a weight for each column of B.
std::vector<long long> times_b(const MatmulShape& shape,
                               const InputSeeds& inputs,
                               const std::vector<long long>& x) {
  const auto n = static_cast<std::size_t>(shape.n), k = static_cast<std::size_t>(shape.k);
  std::vector<long long> bx(k, 0);
  // In the order of memory, whichever that is.
  if (shape.transpose_b) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < k; ++i) bx[i] += integer(inputs.second, j * k + i) * x[j];
    }
  } else {
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < n; ++j) bx[i] += integer(inputs.second, i * n + j) * x[j];
    }
  }
  return bx;
}

/// A y. Of A only each step-th element is not zero.
std::vector<long long> times_a(const MatmulShape& shape,
                               const InputSeeds& inputs,
                               const std::vector<long long>& y) {
  const auto m = static_cast<std::size_t>(shape.m), k = static_cast<std::size_t>(shape.k);
  std::vector<long long> ay(m, 0);
  const std::size_t count = shape.a_count();
  for (std::size_t index = 0; index < count; index += inputs.step) {
    const std::size_t row = shape.transpose_a ? index % m : index / k;
    const std::size_t column = shape.transpose_a ? index / m : index % k;
    ay[row] += sparse_integer(inputs.first, index, inputs.step) * y[column];
  }
  return ay;
}

}  // namespace

/// No divisor of the step divides `lengths`, of which one is that of the sums.
static std::uint64_t exact_step(ElementType type,
                                std::size_t terms,
                                std::initializer_list<std::size_t> lengths) {
  const auto most = static_cast<std::size_t>(largest_exact(type) / kLargestProduct);
  std::uint64_t step = (terms + most - 1) / most;
  if (step <= 1) return 1;
  const auto has_common_divisor = [&](std::size_t length) {
    return std::gcd(step, std::uint64_t{length}) > 1;
  };
  while (std::ranges::any_of(lengths, has_common_divisor)) ++step;
  return step;
}

std::uint64_t exact_step(ElementType type, std::size_t terms) {
  return exact_step(type, terms, {terms});
}

std::uint64_t exact_step(const MatmulShape& shape) {
  const auto m = static_cast<std::size_t>(shape.m), k = static_cast<std::size_t>(shape.k);
  return exact_step(shape.type, k, {m, k});
}

std::uint64_t exact_step(const ConvolutionShape& shape) {
  return exact_step(shape.type, shape.terms());
}

void verify_matmul(Device& device,
                   const Buffer& c,
                   const MatmulShape& shape,
                   const InputSeeds& inputs) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n);
  const long long largest = largest_sum(shape.type, static_cast<std::size_t>(shape.k), inputs.step);
  const HostCopy host(device, c, shape.c_count(), shape.type);
  const std::vector<long long> x = random_weights(derive_seed(inputs.first, "freivalds"), n);
  // |x| < 2^15, |B x| < 2^16 n, |A B x| < 2^17 n k: exact in 64 bits up to n k = 2^46.
  const std::vector<long long> abx = times_a(shape, inputs, times_b(shape, inputs, x));
  for (std::size_t i = 0; i < m; ++i) {
    long long cx = 0;
    for (std::size_t j = 0; j < n; ++j) {
      long long value = 0;
      if (!as_integer(host[i * n + j], largest, value)) name_wrong_element(shape, inputs, host, i);
      cx += value * x[j];
    }
    if (abx[i] != cx) name_wrong_element(shape, inputs, host, i);
  }
}

namespace {

/// Errors of sampled elements against what summation in FP32 and the types' rounding allow.
class Accuracy {
 public:
  Accuracy(ElementType type, bool tf32, std::size_t terms, double tolerance)
      : plain_fp32_(type == ElementType::fp32 && !tf32),
        gamma_(static_cast<double>(terms) * kUnit / (1 - static_cast<double>(terms) * kUnit) +
               (tf32 ? 2.5 * std::ldexp(1.0, -10) : 0)),
        output_rounding_(type == ElementType::fp16   ? std::ldexp(1.0, -11)
                         : type == ElementType::bf16 ? std::ldexp(1.0, -8)
                                                     : kUnit),
        tolerance_(tolerance) {}

  /// One element: what it is and the terms that it is the sum of.
  void check(const std::string& where, double found, double sum, double magnitude, double squares) {
    const double error = std::abs(found - sum);
    const double allowed =
        gamma_ * magnitude + output_rounding_ * (std::abs(sum) + gamma_ * magnitude);
    if (!(error <= tolerance_ * allowed)) wrong(where + " of the timed result", sum, found);
    errors_ += error * error;
    squares_ += squares;
  }

  /// After the last element.
  void check_mean() const {
    if (plain_fp32_ && squares_ > 0 &&
        std::sqrt(errors_ / squares_) > tolerance_ * std::ldexp(1.0, -15)) {
      throw WrongResult(fmt::format(
          "the timed result has errors of {:.2g} of its size: that is not FP32 arithmetic",
          std::sqrt(errors_ / squares_)));
    }
  }

 private:
  static constexpr double kUnit = 0x1p-24;
  bool plain_fp32_;
  double gamma_;
  double output_rounding_;
  double tolerance_;
  double errors_ = 0;
  double squares_ = 0;
};

/// A sum of products, its terms' magnitudes and their squares.
struct Terms {
  double sum = 0, magnitude = 0, squares = 0;
  void add(double a, double b) {
    sum += a * b;
    magnitude += std::abs(a * b);
    squares += a * b * a * b;
  }
};

/// Calls `term(input index, filter index)` for each product of one output element; (image, k, y, x)
/// is its place.
template <class Function>
void for_each_term(const ConvolutionShape& shape, std::size_t index, Function&& term) {
  const auto W = static_cast<std::size_t>(shape.out_w()),
             H = static_cast<std::size_t>(shape.out_h());
  const auto C = static_cast<std::size_t>(shape.c), K = static_cast<std::size_t>(shape.k);
  const std::size_t x = index % W, y = index / W % H, k = index / W / H % K,
                    image = index / W / H / K;
  for (std::size_t c = 0; c < C; ++c) {
    for (int r = 0; r < shape.r; ++r) {
      const int in_y = static_cast<int>(y) * shape.stride + r - shape.pad;
      if (in_y < 0 || in_y >= shape.h) continue;
      for (int s = 0; s < shape.s; ++s) {
        const int in_x = static_cast<int>(x) * shape.stride + s - shape.pad;
        if (in_x < 0 || in_x >= shape.w) continue;
        const auto position = [](std::size_t plane, int height, int width, int row, int column) {
          return (plane * static_cast<std::size_t>(height) + static_cast<std::size_t>(row)) *
                     static_cast<std::size_t>(width) +
                 static_cast<std::size_t>(column);
        };
        term(position(image * C + c, shape.h, shape.w, in_y, in_x),
             position(k * C + c, shape.r, shape.s, r, s));
      }
    }
  }
}

std::string place(const ConvolutionShape& shape, std::size_t index) {
  const auto W = static_cast<std::size_t>(shape.out_w()),
             H = static_cast<std::size_t>(shape.out_h());
  const auto K = static_cast<std::size_t>(shape.k);
  return fmt::format(
      "output[{}][{}][{}][{}]", index / W / H / K, index / W / H % K, index / W % H, index % W);
}

}  // namespace

void verify_timed_matmul(Device& device,
                         const Buffer& c,
                         const MatmulShape& shape,
                         const InputSeeds& inputs) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n),
             k = static_cast<std::size_t>(shape.k);
  std::mt19937_64 random(derive_seed(inputs.first, "timed"));
  Accuracy accuracy(shape.type, shape.allow_tf32, k, 1);
  for (int sample = 0; sample < 64; ++sample) {
    const std::size_t row = random() % m, column = random() % n;
    Terms terms;
    for (std::size_t i = 0; i < k; ++i) {
      terms.add(
          input_element(
              inputs.first, shape.a_index(row, i), inputs.distribution, shape.type, inputs.step),
          input_element(inputs.second, shape.b_index(i, column), inputs.distribution, shape.type));
    }
    unsigned char bytes[4] = {};
    const std::size_t element_bytes = kernels::element_bytes(shape.type);
    device.read(c, (row * n + column) * element_bytes, bytes, element_bytes);
    accuracy.check(fmt::format("C[{}][{}]", row, column),
                   kernels::load_element(bytes, 0, shape.type),
                   terms.sum,
                   terms.magnitude,
                   terms.squares);
  }
  accuracy.check_mean();
}

namespace {

long long exact_output(const ConvolutionShape& shape, const InputSeeds& inputs, std::size_t index) {
  long long sum = 0;
  for_each_term(shape, index, [&](std::size_t in, std::size_t weight) {
    sum += integer(inputs.first, in) * sparse_integer(inputs.second, weight, inputs.step);
  });
  return sum;
}

/// Of an algorithm that transforms its inputs.
void verify_rounded_convolution(const void* output,
                                const ConvolutionShape& shape,
                                const InputSeeds& inputs) {
  // The transforms lose a few digits of the largest partial sum.
  const double unit = shape.type == ElementType::fp16   ? std::ldexp(1.0, -11)
                      : shape.type == ElementType::bf16 ? std::ldexp(1.0, -8)
                                                        : std::ldexp(1.0, -20);
  const double largest = static_cast<double>(kLargestProduct) * static_cast<double>(shape.terms());
  const double allowed = unit * largest;
  const auto check = [&](std::size_t index) {
    const float expected =
        kernels::rounded_to(shape.type, static_cast<float>(exact_output(shape, inputs, index)));
    const float found = kernels::load_element(output, index, shape.type);
    if (!(std::abs(double{found} - expected) <= allowed))
      wrong(place(shape, index), expected, found);
  };
  const std::size_t count = shape.output_count();
  for (std::size_t index = 0; index < count; ++index) {
    if (!(std::abs(kernels::load_element(output, index, shape.type)) <= largest + allowed))
      check(index);
  }
  const auto W = static_cast<std::size_t>(shape.out_w()),
             H = static_cast<std::size_t>(shape.out_h());
  const auto K = static_cast<std::size_t>(shape.k);
  for (const std::size_t image : {std::size_t{0}, count - K * H * W}) {
    for (const std::size_t corner : {std::size_t{0}, W - 1, W * (H - 1), W * H - 1}) {
      check(image + corner);
      check(image + (K - 1) * H * W + corner);
    }
  }
  std::mt19937_64 random(derive_seed(inputs.first, "outputs"));
  for (int sample = 0; sample < 1024; ++sample) check(random() % count);
}

/// One image of the inputs convolved with one filter, which has the shape of the others: a plane of
/// the output.
std::vector<long long> plane_of(const ConvolutionShape& shape,
                                const std::vector<long long>& image,
                                const std::vector<long long>& filter) {
  const int W = shape.out_w(), H = shape.out_h();
  std::vector<long long> plane(static_cast<std::size_t>(W) * static_cast<std::size_t>(H), 0);
  std::size_t at = 0;
  for (int c = 0; c < shape.c; ++c) {
    const long long* const channel = image.data() + static_cast<std::size_t>(c) *
                                                        static_cast<std::size_t>(shape.h) *
                                                        static_cast<std::size_t>(shape.w);
    for (int r = 0; r < shape.r; ++r) {
      for (int s = 0; s < shape.s; ++s) {
        const long long weight = filter[at++];
        if (weight == 0) continue;
        // The outputs whose input is inside of the image.
        const auto first = [&](int offset) {
          return offset >= 0 ? 0 : (-offset + shape.stride - 1) / shape.stride;
        };
        const auto end = [&](int offset, int inputs_there, int outputs) {
          const int last = inputs_there - 1 - offset;
          return last < 0 ? 0 : std::min(outputs, last / shape.stride + 1);
        };
        const int dy = r - shape.pad, dx = s - shape.pad;
        for (int y = first(dy); y < end(dy, shape.h, H); ++y) {
          const long long* const in = channel + static_cast<std::size_t>(y * shape.stride + dy) *
                                                    static_cast<std::size_t>(shape.w);
          long long* const out =
              plane.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(W);
          const int last = end(dx, shape.w, W);
          for (int x = first(dx); x < last; ++x) out[x] += weight * in[x * shape.stride + dx];
        }
      }
    }
  }
  return plane;
}

}  // namespace

void verify_convolution(const void* output,
                        const ConvolutionShape& shape,
                        const InputSeeds& inputs,
                        bool rounds_integers) {
  if (rounds_integers) {
    verify_rounded_convolution(output, shape, inputs);
    return;
  }
  const auto K = static_cast<std::size_t>(shape.k), N = static_cast<std::size_t>(shape.n);
  const std::size_t terms = shape.terms(), pixels = shape.input_count() / N,
                    places = shape.output_count() / N / K;
  const long long largest = largest_sum(shape.type, terms, inputs.step);
  const std::vector<long long> weights = random_weights(derive_seed(inputs.first, "freivalds"), K);
  // |weight| < 2^15, |filter| < 2^16 K, |plane| < 2^17 K C R S: exact in 64 bits for every shape.
  std::vector<long long> filter(terms, 0);
  const std::size_t all = shape.filter_count();
  for (std::size_t index = 0; index < all; index += inputs.step)
    filter[index % terms] +=
        weights[index / terms] * sparse_integer(inputs.second, index, inputs.step);
  std::vector<long long> image(pixels), found(places);
  for (std::size_t n = 0; n < N; ++n) {
    for (std::size_t i = 0; i < pixels; ++i) image[i] = integer(inputs.first, n * pixels + i);
    const std::vector<long long> expected = plane_of(shape, image, filter);
    std::ranges::fill(found, 0);
    const auto name_wrong_output = [&](std::size_t place_in_plane) {
      for (std::size_t k = 0; k < K; ++k) {
        const std::size_t index = (n * K + k) * places + place_in_plane;
        const auto must_be = static_cast<double>(exact_output(shape, inputs, index));
        const float value = kernels::load_element(output, index, shape.type);
        if (!(value == must_be)) wrong(place(shape, index), must_be, value);
      }
      throw WrongResult(fmt::format("wrong result: image {} of the output", n));
    };
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t i = 0; i < places; ++i) {
        long long value = 0;
        if (!as_integer(kernels::load_element(output, (n * K + k) * places + i, shape.type),
                        largest,
                        value))
          name_wrong_output(i);
        found[i] += weights[k] * value;
      }
    }
    for (std::size_t i = 0; i < places; ++i) {
      if (found[i] != expected[i]) name_wrong_output(i);
    }
  }
}

void verify_timed_convolution(const void* output,
                              const ConvolutionShape& shape,
                              const InputSeeds& inputs,
                              bool transforms_inputs) {
  std::mt19937_64 random(derive_seed(inputs.first, "timed"));
  Accuracy accuracy(shape.type, shape.allow_tf32, shape.terms(), transforms_inputs ? 16 : 1);
  for (int sample = 0; sample < 64; ++sample) {
    const std::size_t index = random() % shape.output_count();
    Terms terms;
    for_each_term(shape, index, [&](std::size_t in, std::size_t weight) {
      terms.add(input_element(inputs.first, in, inputs.distribution, shape.type),
                input_element(inputs.second, weight, inputs.distribution, shape.type, inputs.step));
    });
    accuracy.check(place(shape, index),
                   kernels::load_element(output, index, shape.type),
                   terms.sum,
                   terms.magnitude,
                   terms.squares);
  }
  accuracy.check_mean();
}

}  // namespace launchgap
