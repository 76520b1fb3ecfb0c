#include <algorithm>
#include <array>
#include <cmath>
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

std::size_t size(int value) {
  return static_cast<std::size_t>(value);
}

/// n, c, h and w of an element of a tensor in memory.
std::array<std::size_t, 4> place_of(const Tensor4& tensor, TensorLayout layout, std::size_t index) {
  const std::size_t C = size(tensor.c), H = size(tensor.h), W = size(tensor.w);
  if (layout == TensorLayout::nhwc)
    return {index / C / W / H, index % C, index / C / W % H, index / C % W};
  return {index / W / H / C, index / W / H % C, index / W % H, index % W};
}

/// "dx[1][0][3][2]", always in the order n, c, h, w.
std::string name_of_element(const ConvolutionShape& shape, std::size_t index) {
  const auto [n, c, h, w] = place_of(shape.result(), shape.layout, index);
  const char* const name = shape.direction == ConvolutionDirection::forward ? "output"
                           : shape.direction == ConvolutionDirection::data  ? "gradient of input"
                                                                            : "gradient of filters";
  return fmt::format("{}[{}][{}][{}][{}]", name, n, c, h, w);
}

/// Where an output or an input lies that belongs to another by a tap of the filter; negative or
/// beyond the image: nowhere.
int input_at(int out, int stride, int tap, int dilation, int pad) {
  return out * stride + tap * dilation - pad;
}

/// Calls `term(index of the first operand, of the second)` for each product of which an element of
/// the result is the sum.
template <class Function>
void for_each_term(const ConvolutionShape& shape, std::size_t index, Function&& term) {
  const auto [n, c, h, w] = place_of(shape.result(), shape.layout, index);
  const Tensor4 input = shape.input(), filters = shape.filters(), output = shape.output();
  const std::size_t filters_of_group = size(shape.k / shape.groups), channels = size(filters.c);
  const auto in = [&](std::size_t image, std::size_t channel, int y, int x) {
    return input.index(shape.layout, image, channel, size(y), size(x));
  };
  const auto out = [&](std::size_t image, std::size_t filter, int y, int x) {
    return output.index(shape.layout, image, filter, size(y), size(x));
  };
  const auto tap = [&](std::size_t filter, std::size_t channel, int r, int s) {
    return filters.index(shape.layout, filter, channel, size(r), size(s));
  };
  const auto inside = [&](int y, int x) { return y >= 0 && y < input.h && x >= 0 && x < input.w; };
  switch (shape.direction) {
    case ConvolutionDirection::forward: {
      const std::size_t first_channel = c / filters_of_group * channels;
      for (std::size_t channel = 0; channel < channels; ++channel) {
        for (int r = 0; r < shape.r; ++r) {
          for (int s = 0; s < shape.s; ++s) {
            const int y =
                input_at(static_cast<int>(h), shape.stride_h, r, shape.dilation_h, shape.pad_h);
            const int x =
                input_at(static_cast<int>(w), shape.stride_w, s, shape.dilation_w, shape.pad_w);
            if (inside(y, x)) term(in(n, first_channel + channel, y, x), tap(c, channel, r, s));
          }
        }
      }
      return;
    }
    case ConvolutionDirection::data: {
      const std::size_t first_filter = c / channels * filters_of_group;
      for (std::size_t filter = 0; filter < filters_of_group; ++filter) {
        for (int r = 0; r < shape.r; ++r) {
          for (int s = 0; s < shape.s; ++s) {
            const int above = static_cast<int>(h) + shape.pad_h - r * shape.dilation_h;
            const int left = static_cast<int>(w) + shape.pad_w - s * shape.dilation_w;
            if (above < 0 || left < 0 || above % shape.stride_h || left % shape.stride_w) continue;
            const int y = above / shape.stride_h, x = left / shape.stride_w;
            if (y < output.h && x < output.w)
              term(out(n, first_filter + filter, y, x),
                   tap(first_filter + filter, c % channels, r, s));
          }
        }
      }
      return;
    }
    case ConvolutionDirection::filter: {
      const std::size_t channel = n / filters_of_group * channels + c;
      for (std::size_t image = 0; image < size(shape.n); ++image) {
        for (int out_y = 0; out_y < output.h; ++out_y) {
          for (int out_x = 0; out_x < output.w; ++out_x) {
            const int y =
                input_at(out_y, shape.stride_h, static_cast<int>(h), shape.dilation_h, shape.pad_h);
            const int x =
                input_at(out_x, shape.stride_w, static_cast<int>(w), shape.dilation_w, shape.pad_w);
            if (inside(y, x)) term(in(image, channel, y, x), out(image, n, out_y, out_x));
          }
        }
      }
      return;
    }
  }
}

long long exact_result(const ConvolutionShape& shape, const InputSeeds& inputs, std::size_t index) {
  long long sum = 0;
  for_each_term(shape, index, [&](std::size_t first, std::size_t second) {
    sum += small_integer(inputs.first, first) * sparse_integer(inputs.second, second, inputs.step);
  });
  return sum;
}

/// How many of the second operand's elements that are not zero meet in one sum, at most.
std::size_t most_terms_in_a_sum(const ConvolutionShape& shape, std::uint64_t step) {
  const Tensor4 second = shape.second();
  std::vector<std::size_t> counts(shape.direction == ConvolutionDirection::data ? size(shape.c)
                                                                                : size(shape.k));
  const std::size_t all = second.count();
  for (std::size_t index = 0; index < all; index += step) {
    const auto place = place_of(second, shape.layout, index);
    const std::size_t n = place[0], c = place[1];
    switch (shape.direction) {
      case ConvolutionDirection::forward:
        ++counts[n];
        break;
      case ConvolutionDirection::data:
        ++counts[n / size(shape.k / shape.groups) * size(second.c) + c];
        break;
      case ConvolutionDirection::filter:
        ++counts[c];
        break;
    }
  }
  return *std::ranges::max_element(counts);
}

/// Calls `row(output, input, count)` for each row of an output plane: from which element of it and
/// of an input plane on how many belong to each other by tap (r, s); the inputs are `stride_w`
/// apart.
template <class Function>
void for_each_row(const ConvolutionShape& shape, int r, int s, Function&& row) {
  const int dy = r * shape.dilation_h - shape.pad_h, dx = s * shape.dilation_w - shape.pad_w;
  const auto begin = [](int offset, int stride) {
    return offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  };
  const auto end = [](int offset, int stride, int inputs, int outputs) {
    const int last = inputs - 1 - offset;
    return last < 0 ? 0 : std::min(outputs, last / stride + 1);
  };
  const int W = shape.out_w();
  const int first_x = begin(dx, shape.stride_w), last_x = end(dx, shape.stride_w, shape.w, W);
  const int last_y = end(dy, shape.stride_h, shape.h, shape.out_h());
  if (first_x >= last_x) return;
  for (int y = begin(dy, shape.stride_h); y < last_y; ++y) {
    row(size(y) * size(W) + size(first_x),
        size(y * shape.stride_h + dy) * size(shape.w) + size(first_x * shape.stride_w + dx),
        size(last_x - first_x));
  }
}

/// Planes of integers, each of `places`.
using Planes = std::vector<long long>;

/// The part of a verification that is of one group (and one image): what the weighted sum over the
/// result's channels must be at each place.
class CombinedConvolution {
 public:
  /// An element of the result may be off by `rounding`, less than a half.
  CombinedConvolution(const void* result,
                      const ConvolutionShape& shape,
                      const InputSeeds& inputs,
                      double rounding = 0)
      : result_(result),
        shape_(shape),
        inputs_(inputs),
        rounding_(rounding),
        filters_(shape.filters()),
        largest_(static_cast<long long>(most_terms_in_a_sum(shape, inputs.step)) * kLargestProduct),
        weights_(random_weights(
            derive_seed(inputs.first, "freivalds"),
            size(shape.direction == ConvolutionDirection::data ? shape.c : shape.k))) {
    if (largest_ > largest_exact(shape.type))
      throw Error("sums of up to {} are not exact in {}", largest_, shape.type.name);
  }

  void verify() {
    for (int group = 0; group < shape_.groups; ++group) {
      switch (shape_.direction) {
        case ConvolutionDirection::forward:
          convolve<false>(group);
          break;
        case ConvolutionDirection::data:
          convolve<true>(group);
          break;
        case ConvolutionDirection::filter:
          filter(group);
          break;
      }
    }
    // A transform rounds many elements, and a fault a few.
    const std::size_t all = shape_.result().count();
    if (rounded_ > 0 && static_cast<double>(rounded_) < kLeastRounded * static_cast<double>(all))
      wrong_element(first_rounded_);
  }

 private:
  /// Throws if it is not what it must be.
  void check_element(std::size_t element, double allowed) const {
    const auto must_be = static_cast<double>(exact_result(shape_, inputs_, element));
    const double found = kernels::load_element(result_, element, shape_.type.c);
    if (!(std::abs(found - must_be) <= allowed))
      wrong(name_of_element(shape_, element), must_be, found);
  }
  [[noreturn]] void wrong_element(std::size_t element) const {
    check_element(element, 0);
    throw WrongResult("wrong result: near {}", name_of_element(shape_, element));
  }

  std::size_t first_filter(int group) const { return size(group * (shape_.k / shape_.groups)); }
  std::size_t last_filter(int group) const { return first_filter(group + 1); }
  std::size_t first_channel(int group) const { return size(group) * size(filters_.c); }
  std::size_t tap_count() const { return size(shape_.r) * size(shape_.s); }

  /// Calls `tap(filter, channel of the group, tap, value)` for the elements of a group's filters.
  template <class Function>
  void for_each_weight(int group, Function&& tap) const {
    for (std::size_t k = first_filter(group); k < last_filter(group); ++k) {
      for (std::size_t c = 0; c < size(filters_.c); ++c) {
        for (std::size_t t = 0; t < tap_count(); ++t) {
          const std::size_t index =
              filters_.index(shape_.layout, k, c, t / size(shape_.s), t % size(shape_.s));
          tap(k, c, t, sparse_integer(inputs_.second, index, inputs_.step));
        }
      }
    }
  }

  /// One plane of the first operand.
  void load_plane(std::size_t n, std::size_t c, Planes& plane) const {
    const Tensor4 tensor = shape_.first();
    plane.resize(size(tensor.h) * size(tensor.w));
    for (std::size_t i = 0; i < plane.size(); ++i) {
      plane[i] = small_integer(
          inputs_.first, tensor.index(shape_.layout, n, c, i / size(tensor.w), i % size(tensor.w)));
    }
  }

  template <class Function>
  void for_each_tap(Function&& tap) const {
    for (int r = 0; r < shape_.r; ++r) {
      for (int s = 0; s < shape_.s; ++s) tap(size(r * shape_.s + s), r, s);
    }
  }

  /// Forward, or back to the gradient of the input: each plane of the first operand with what the
  /// weights make of the group's filters on the side of the result.
  template <bool kBack>
  void convolve(int group) {
    const std::size_t filter = first_filter(group), channel = first_channel(group);
    const std::size_t first_plane = kBack ? filter : channel;
    const std::size_t planes = kBack ? last_filter(group) - filter : size(filters_.c);
    Planes combined(planes * tap_count(), 0), plane;
    for_each_weight(group, [&](std::size_t k, std::size_t c, std::size_t t, long long value) {
      const std::size_t own = kBack ? k - filter : c;
      combined[own * tap_count() + t] += weights_[kBack ? channel + c : k] * value;
    });
    const Tensor4 result = shape_.result();
    for (std::size_t n = 0; n < size(shape_.n); ++n) {
      Planes expected(size(result.h) * size(result.w), 0);
      for (std::size_t own = 0; own < planes; ++own) {
        load_plane(n, first_plane + own, plane);
        for_each_tap([&](std::size_t t, int r, int s) {
          const long long weight = combined[own * tap_count() + t];
          if (weight == 0) return;
          for_each_row(shape_, r, s, [&](std::size_t out, std::size_t in, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
              const std::size_t y = out + i, x = in + i * size(shape_.stride_w);
              expected[kBack ? x : y] += weight * plane[kBack ? y : x];
            }
          });
        });
      }
      compare(expected,
              kBack ? channel : filter,
              kBack ? first_channel(group + 1) : last_filter(group),
              [&](std::size_t at_c, std::size_t at) {
                return result.index(
                    shape_.layout, n, at_c, at / size(result.w), at % size(result.w));
              });
    }
  }

  void filter(int group) {
    const Tensor4 output = shape_.output();
    Planes expected(size(filters_.c) * tap_count(), 0), plane;
    for (std::size_t n = 0; n < size(shape_.n); ++n) {
      // The gradient's channels of the group, combined.
      Planes combined(size(output.h) * size(output.w), 0);
      for (std::size_t k = first_filter(group); k < last_filter(group); ++k) {
        for (std::size_t i = 0; i < combined.size(); ++i) {
          const std::size_t index =
              output.index(shape_.layout, n, k, i / size(output.w), i % size(output.w));
          combined[i] += weights_[k] * sparse_integer(inputs_.second, index, inputs_.step);
        }
      }
      for (std::size_t c = 0; c < size(filters_.c); ++c) {
        load_plane(n, first_channel(group) + c, plane);
        for_each_tap([&](std::size_t t, int r, int s) {
          long long sum = 0;
          for_each_row(shape_, r, s, [&](std::size_t out, std::size_t in, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
              sum += combined[out + i] * plane[in + i * size(shape_.stride_w)];
          });
          expected[c * tap_count() + t] += sum;
        });
      }
    }
    compare(expected,
            first_filter(group),
            last_filter(group),
            [&](std::size_t channel, std::size_t at) {
              const std::size_t t = at % tap_count();
              return filters_.index(
                  shape_.layout, channel, at / tap_count(), t / size(shape_.s), t % size(shape_.s));
            });
  }

  /// The weighted sums of the result's channels [first, last) at each place against what they must
  /// be.
  template <class Index>
  void compare(const Planes& expected, std::size_t first, std::size_t last, Index&& index) {
    const auto name_wrong_element = [&](std::size_t at) {
      for (std::size_t channel = first; channel < last; ++channel)
        check_element(index(channel, at), rounding_);
      wrong_element(index(first, at));
    };
    Planes found(expected.size(), 0);
    for (std::size_t channel = first; channel < last; ++channel) {
      for (std::size_t at = 0; at < expected.size(); ++at) {
        const double element = kernels::load_element(result_, index(channel, at), shape_.type.c);
        const double nearest = std::nearbyint(element);
        long long value = 0;
        if (!(std::abs(element - nearest) <= rounding_) || !as_integer(nearest, largest_, value))
          name_wrong_element(at);
        if (element != nearest && rounded_++ == 0) first_rounded_ = index(channel, at);
        found[at] += weights_[channel] * value;
      }
    }
    for (std::size_t at = 0; at < expected.size(); ++at) {
      if (found[at] != expected[at]) name_wrong_element(at);
    }
  }

  const void* result_;
  const ConvolutionShape& shape_;
  const InputSeeds& inputs_;
  double rounding_;
  Tensor4 filters_;
  long long largest_;
  // |weight| < 2^15, operands combined < 2^16 K, sums < 2^17 K times the terms: exact in 64 bits
  // for every shape that fits into memory.
  std::vector<long long> weights_;
  /// Of the elements, where any is no integer.
  static constexpr double kLeastRounded = 0.01;
  std::size_t rounded_ = 0, first_rounded_ = 0;
};

double largest_sum(const ConvolutionShape& shape) {
  return static_cast<double>(kLargestProduct) * static_cast<double>(shape.terms());
}

/// By how much an algorithm that transforms its inputs may miss an integer: the transforms lose a
/// few digits of the largest partial sum.
double rounding_of_transforms(const ConvolutionShape& shape) {
  const double unit = shape.type.c == ElementType::fp16   ? 0x1p-11
                      : shape.type.c == ElementType::bf16 ? 0x1p-8
                                                          : 0x1p-20;
  return unit * largest_sum(shape);
}

/// Of an algorithm that transforms its inputs, and rounds too much to tell one integer from the
/// next.
void verify_samples(const void* result, const ConvolutionShape& shape, const InputSeeds& inputs) {
  const double largest = largest_sum(shape), allowed = rounding_of_transforms(shape);
  const auto check = [&](std::size_t index) {
    const double expected =
        kernels::rounded_to(shape.type.c, static_cast<double>(exact_result(shape, inputs, index)));
    const double found = kernels::load_element(result, index, shape.type.c);
    if (!(std::abs(found - expected) <= allowed))
      wrong(name_of_element(shape, index), expected, found);
  };
  const Tensor4 tensor = shape.result();
  const std::size_t count = tensor.count();
  for (std::size_t index = 0; index < count; ++index) {
    if (!(std::abs(kernels::load_element(result, index, shape.type.c)) <= largest + allowed))
      check(index);
  }
  for (const std::size_t n : {std::size_t{0}, size(tensor.n) - 1}) {
    for (const std::size_t c : {std::size_t{0}, size(tensor.c) - 1}) {
      for (const std::size_t h : {std::size_t{0}, size(tensor.h) - 1}) {
        for (const std::size_t w : {std::size_t{0}, size(tensor.w) - 1})
          check(tensor.index(shape.layout, n, c, h, w));
      }
    }
  }
  std::mt19937_64 random(derive_seed(inputs.first, "outputs"));
  for (int sample = 0; sample < 1024; ++sample) check(random() % count);
}

}  // namespace

std::uint64_t exact_step(const ConvolutionShape& shape) {
  const auto most = static_cast<std::size_t>(largest_exact(shape.type) / kLargestProduct);
  std::uint64_t step = (shape.terms() + most - 1) / most;
  if (step <= 1) return 1;
  const Tensor4 second = shape.second();
  const auto takes_turns = [&] {
    for (const int length : {second.n, second.c, second.h, second.w}) {
      if (std::gcd(step, static_cast<std::uint64_t>(length)) > 1) return false;
    }
    return true;
  };
  while (!takes_turns() || most_terms_in_a_sum(shape, step) > most) ++step;
  return step;
}

void verify_convolution(const void* result,
                        const ConvolutionShape& shape,
                        const InputSeeds& inputs,
                        bool rounds_integers) {
  const double rounding = rounds_integers ? rounding_of_transforms(shape) : 0;
  if (rounding < 0.25) {
    CombinedConvolution(result, shape, inputs, rounding).verify();
  } else {
    verify_samples(result, shape, inputs);
  }
}

void verify_timed_convolution(const void* result,
                              const ConvolutionShape& shape,
                              const InputSeeds& inputs,
                              bool transforms_inputs) {
  std::mt19937_64 random(derive_seed(inputs.first, "timed"));
  // cuDNN 9.14 splits gradients of depthwise filters in FP16, and adds the parts up in FP16.
  const bool parts_rounded =
      shape.direction == ConvolutionDirection::filter && kernels::element_bytes(shape.type.c) == 2;
  Accuracy accuracy(shape.type, shape.terms(), transforms_inputs ? 16 : 1, parts_rounded);
  for (int sample = 0; sample < 64; ++sample) {
    const std::size_t index = random() % shape.result().count();
    Terms terms;
    for_each_term(shape, index, [&](std::size_t first, std::size_t second) {
      terms.add(kernels::element(inputs.first, first, inputs.distribution, shape.type.a),
                kernels::sparse_element(
                    inputs.second, second, inputs.distribution, shape.type.b, inputs.step));
    });
    accuracy.check(
        name_of_element(shape, index), kernels::load_element(result, index, shape.type.c), terms);
  }
  accuracy.check_mean();
}

}  // namespace launchgap
