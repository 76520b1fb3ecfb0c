#include "harness/measure/verify.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/plan.h"
#include "kernels/kernels.h"

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

float input_element(std::uint64_t seed,
                    std::size_t index,
                    Distribution distribution,
                    ElementType type) {
  return kernels::rounded_to(type, kernels::element(seed, index, distribution));
}

long long integer(std::uint64_t seed, std::size_t index) {
  return static_cast<long long>(kernels::element(seed, index, Distribution::small_integer));
}

[[noreturn]] void wrong(const std::string& where, double expected, double found) {
  throw WrongResult(fmt::format("wrong result: {} is {} and must be {}", where, found, expected));
}

/// Element (row, column) of A B in exact arithmetic.
long long exact_element(const MatmulShape& shape,
                        const InputSeeds& inputs,
                        std::size_t row,
                        std::size_t column) {
  const auto n = static_cast<std::size_t>(shape.size);
  long long sum = 0;
  for (std::size_t k = 0; k < n; ++k)
    sum += integer(inputs.first, row * n + k) * integer(inputs.second, k * n + column);
  return sum;
}

void check_element(const MatmulShape& shape,
                   const InputSeeds& inputs,
                   const HostCopy& c,
                   std::size_t row,
                   std::size_t column) {
  const auto n = static_cast<std::size_t>(shape.size);
  const float expected = kernels::rounded_to(
      shape.type, static_cast<float>(exact_element(shape, inputs, row, column)));
  const float found = c[row * n + column];
  if (!(found == expected)) wrong(fmt::format("C[{}][{}]", row, column), expected, found);
}

void freivalds(const MatmulShape& shape, const InputSeeds& inputs, const HostCopy& c) {
  const auto n = static_cast<std::size_t>(shape.size);
  std::mt19937_64 random(derive_seed(inputs.first, "freivalds"));
  std::vector<long long> x(n), bx(n, 0);
  for (long long& value : x) value = static_cast<long long>(random() >> 44) - (1 << 19);
  // |x| < 2^19, |B x| < 2^20 n, |A B x| < 2^21 n^2: exact in 64 bits for every n here.
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) bx[i] += integer(inputs.second, i * n + j) * x[j];
  }
  for (std::size_t i = 0; i < n; ++i) {
    long long abx = 0, cx = 0;
    for (std::size_t j = 0; j < n; ++j) {
      abx += integer(inputs.first, i * n + j) * bx[j];
      const float value = c[i * n + j];
      if (!(std::abs(value) <= 4.0f * static_cast<float>(n)) || value != std::trunc(value)) {
        wrong(fmt::format("C[{}][{}]", i, j),
              static_cast<double>(exact_element(shape, inputs, i, j)),
              value);
      }
      cx += static_cast<long long>(value) * x[j];
    }
    if (abx != cx)
      wrong(fmt::format("row {} of C times a random vector", i),
            static_cast<double>(abx),
            static_cast<double>(cx));
  }
}

}  // namespace

void fill(Device& device,
          Stream& stream,
          const Buffer& buffer,
          std::uint64_t seed,
          ElementType type,
          Distribution distribution) {
  const std::unique_ptr<Kernel> kernel = device.load(kernels::fill_kernel);
  void* out = buffer.address();
  unsigned long long count = buffer.bytes() / kernels::element_bytes(type);
  unsigned long long kernel_seed = seed;
  int type_code = static_cast<int>(type);
  int distribution_code = static_cast<int>(distribution);
  void* arguments[] = {&out, &count, &kernel_seed, &type_code, &distribution_code};
  const auto blocks =
      static_cast<unsigned>(std::clamp<unsigned long long>((count + 255) / 256, 1, 4096));
  stream.launch(*kernel, {blocks, 256}, arguments);
  stream.wait();
}

void verify_matmul(Device& device,
                   const Buffer& c,
                   const MatmulShape& shape,
                   const InputSeeds& inputs) {
  const auto n = static_cast<std::size_t>(shape.size);
  const HostCopy host(device, c, n * n, shape.type);
  if (n <= 256) {
    for (std::size_t row = 0; row < n; ++row) {
      for (std::size_t column = 0; column < n; ++column)
        check_element(shape, inputs, host, row, column);
    }
  } else if (shape.type == ElementType::fp32) {
    freivalds(shape, inputs, host);
  } else {
    std::mt19937_64 random(derive_seed(inputs.first, "tiles"));
    for (std::size_t row = 0; row < n; row += 64) {
      for (std::size_t column = 0; column < n; column += 64) {
        check_element(shape,
                      inputs,
                      host,
                      std::min(n - 1, row + random() % 64),
                      std::min(n - 1, column + random() % 64));
      }
    }
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
  const auto n = static_cast<std::size_t>(shape.size);
  std::mt19937_64 random(derive_seed(inputs.first, "timed"));
  Accuracy accuracy(shape.type, shape.allow_tf32, n, 1);
  for (int sample = 0; sample < 64; ++sample) {
    const std::size_t row = random() % n, column = random() % n;
    Terms terms;
    for (std::size_t k = 0; k < n; ++k) {
      terms.add(input_element(inputs.first, row * n + k, inputs.distribution, shape.type),
                input_element(inputs.second, k * n + column, inputs.distribution, shape.type));
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

void verify_convolution(const void* output,
                        const ConvolutionShape& shape,
                        const InputSeeds& inputs,
                        bool rounds_integers) {
  const auto check = [&](std::size_t index) {
    long long sum = 0;
    for_each_term(shape, index, [&](std::size_t in, std::size_t weight) {
      sum += integer(inputs.first, in) * integer(inputs.second, weight);
    });
    const float expected = kernels::rounded_to(shape.type, static_cast<float>(sum));
    const float found = kernels::load_element(output, index, shape.type);
    // Winograd's and FFT's transforms lose a few digits of the largest partial sum, which is 4 C R
    // S.
    const double unit = shape.type == ElementType::fp16   ? std::ldexp(1.0, -11)
                        : shape.type == ElementType::bf16 ? std::ldexp(1.0, -8)
                                                          : std::ldexp(1.0, -20);
    const double allowed = rounds_integers ? unit * 4.0 * shape.c * shape.r * shape.s : 0;
    if (!(std::abs(double{found} - expected) <= allowed))
      wrong(place(shape, index), expected, found);
  };
  const std::size_t count = shape.output_count();
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

void verify_timed_convolution(const void* output,
                              const ConvolutionShape& shape,
                              const InputSeeds& inputs,
                              bool transforms_inputs) {
  std::mt19937_64 random(derive_seed(inputs.first, "timed"));
  const auto terms_per_output =
      static_cast<std::size_t>(shape.c) * static_cast<std::size_t>(shape.r * shape.s);
  Accuracy accuracy(shape.type, shape.allow_tf32, terms_per_output, transforms_inputs ? 16 : 1);
  for (int sample = 0; sample < 64; ++sample) {
    const std::size_t index = random() % shape.output_count();
    Terms terms;
    for_each_term(shape, index, [&](std::size_t in, std::size_t weight) {
      terms.add(input_element(inputs.first, in, inputs.distribution, shape.type),
                input_element(inputs.second, weight, inputs.distribution, shape.type));
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
