#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/shape_text.h"
#include "harness/measure/verify.h"

namespace launchgap {
namespace {

using kernels::Distribution;

struct ConvolutionKind {
  const char *name, *shape;
};

constexpr ConvolutionKind kKinds[] = {
    {"3x2_by_2_padded", "2x10x9x7-6x3x2-s2-p1"},
    {"1x1", "3x5x4x6-7x1x1"},
    {"dilated_and_uneven", "2x4x11x9-6x3x3-s1x2-p2x0-d2x1"},
    {"grouped", "2x6x7x5-9x3x3-p1-g3"},
    {"depthwise", "2x5x6x6-5x3x3-p1-g5"},
};

ConvolutionShape with(const ConvolutionKind& kind,
                      ConvolutionDirection direction,
                      TensorLayout layout,
                      const char* type) {
  ConvolutionShape shape = convolution_shape(kind.shape);
  shape.direction = direction;
  shape.layout = layout;
  shape.type = product_type(type);
  return shape;
}

class VerifyConvolution
    : public ::testing::TestWithParam<
          std::tuple<ConvolutionKind, ConvolutionDirection, TensorLayout, const char*>> {
 protected:
  void SetUp() override {
    const auto& [kind, direction, layout, type] = GetParam();
    shape = with(kind, direction, layout, type);
    seeds.step = exact_step(shape);
    result.resize(shape.result_bytes());
    compute();
  }

  /// By the definition of the forward direction: every product of an input and a tap, wherever it
  /// counts.
  void compute() {
    const Tensor4 x = shape.input(), w = shape.filters(), y = shape.output();
    std::vector<double> sums(shape.result().count(), 0);
    const auto first = [&](std::size_t index) {
      return kernels::element(seeds.first, index, seeds.distribution, shape.type.a);
    };
    const auto second = [&](std::size_t index) {
      return kernels::sparse_element(
          seeds.second, index, seeds.distribution, shape.type.b, seeds.step);
    };
    const auto at = [](int value) { return static_cast<std::size_t>(value); };
    for (int n = 0; n < shape.n; ++n)
      for (int k = 0; k < shape.k; ++k)
        for (int oy = 0; oy < y.h; ++oy)
          for (int ox = 0; ox < y.w; ++ox)
            for (int c = 0; c < w.c; ++c)
              for (int r = 0; r < shape.r; ++r)
                for (int s = 0; s < shape.s; ++s) {
                  const int iy = oy * shape.stride_h - shape.pad_h + r * shape.dilation_h;
                  const int ix = ox * shape.stride_w - shape.pad_w + s * shape.dilation_w;
                  if (iy < 0 || ix < 0 || iy >= x.h || ix >= x.w) continue;
                  const int channel = k / (shape.k / shape.groups) * w.c + c;
                  const std::size_t in = x.index(shape.layout, at(n), at(channel), at(iy), at(ix));
                  const std::size_t tap = w.index(shape.layout, at(k), at(c), at(r), at(s));
                  const std::size_t out = y.index(shape.layout, at(n), at(k), at(oy), at(ox));
                  switch (shape.direction) {
                    case ConvolutionDirection::forward:
                      sums[out] += first(in) * second(tap);
                      break;
                    case ConvolutionDirection::data:
                      sums[in] += first(out) * second(tap);
                      break;
                    case ConvolutionDirection::filter:
                      sums[tap] += first(in) * second(out);
                      break;
                  }
                }
    for (std::size_t i = 0; i < sums.size(); ++i)
      kernels::store_element(result.data(), i, shape.type.c, sums[i]);
  }

  double at(std::size_t index) const {
    return kernels::load_element(result.data(), index, shape.type.c);
  }
  void set(std::size_t index, double value) {
    kernels::store_element(result.data(), index, shape.type.c, value);
  }
  void expect_right() { EXPECT_NO_THROW(verify_convolution(result.data(), shape, seeds, false)); }
  void expect_wrong(const char* what) {
    EXPECT_THROW(verify_convolution(result.data(), shape, seeds, false), WrongResult) << what;
  }

  ConvolutionShape shape;
  InputSeeds seeds{21, 22, Distribution::small_integer};
  std::vector<unsigned char> result;
};

TEST_P(VerifyConvolution, PassesTheRightOneAndFailsAnyOneWrongElement) {
  expect_right();
  for (std::size_t index = 0; index < shape.result().count(); ++index) {
    const double before = at(index);
    set(index, before + 1);
    expect_wrong("one element");
    set(index, before);
  }
  expect_right();
}

TEST_P(VerifyConvolution, NamesWhatIsWrong) {
  const Tensor4 tensor = shape.result();
  set(tensor.count() - 1, at(tensor.count() - 1) + 2);
  EXPECT_THAT([&] { verify_convolution(result.data(), shape, seeds, false); },
              ::testing::ThrowsMessage<WrongResult>(::testing::HasSubstr(fmt::format(
                  "[{}][{}][{}][{}] is", tensor.n - 1, tensor.c - 1, tensor.h - 1, tensor.w - 1))));
}

TEST_P(VerifyConvolution, FailsWhatLiesInAnothersPlaceAndWhatWasNeverWritten) {
  const std::size_t plane = result.size() / static_cast<std::size_t>(shape.result().n);
  std::swap_ranges(result.begin(),
                   result.begin() + static_cast<std::ptrdiff_t>(plane),
                   result.end() - static_cast<std::ptrdiff_t>(plane));
  expect_wrong("the first and the last in each other's place");
  compute();
  std::memset(result.data() + result.size() - kernels::element_bytes(shape.type.c),
              kernels::unwritten_byte(shape.type.c),
              kernels::element_bytes(shape.type.c));
  expect_wrong("the last element was never written");
}

TEST_P(VerifyConvolution, FailsAnotherConvolution) {
  const ConvolutionShape right = shape;
  const auto computed_as = [&](auto&& change, const char* what) {
    change(shape);
    compute();
    shape = right;
    expect_wrong(what);
  };
  // Of the gradient of the input, that would be another tensor.
  if (shape.pad_h > 0 && shape.direction != ConvolutionDirection::data) {
    computed_as(
        [](ConvolutionShape& other) {
          other.h += 2 * other.pad_h, other.w += 2 * other.pad_w;
          other.pad_h = other.pad_w = 0;
        },
        "without padding, of an input that is larger");
  }
  computed_as(
      [](ConvolutionShape& other) {
        other.layout = other.layout == TensorLayout::nhwc ? TensorLayout::nchw : TensorLayout::nhwc;
      },
      "in another layout");
  const InputSeeds swapped = seeds;
  std::swap(seeds.first, seeds.second);
  compute();
  seeds = swapped;
  expect_wrong("operands exchanged");
}

// An algorithm that transforms its inputs rounds: its operands are dense.
TEST_P(VerifyConvolution, ATransformMayRoundButNotMiss) {
  seeds.step = 1;
  compute();
  const double unit = shape.type.c == ElementType::fp16   ? 0x1p-11
                      : shape.type.c == ElementType::bf16 ? 0x1p-8
                                                          : 0x1p-20;
  const double allowed = unit * 4 * static_cast<double>(shape.terms());
  const auto passes = [&] { verify_convolution(result.data(), shape, seeds, true); };
  EXPECT_NO_THROW(passes());
  const double before = at(0);
  const std::size_t count = shape.result().count();
  const bool tells_integers = allowed < 0.25;
  if (tells_integers && count > 200) {
    set(0, before + allowed / 2);
    EXPECT_THROW(passes(), WrongResult) << "one element alone is a fault";
  }
  set(0, before);
  for (std::size_t i = 0; i < count; i += 50) set(i, at(i) + allowed / 2);
  EXPECT_NO_THROW(passes());
  set(0, before + 4 * allowed + 1);
  EXPECT_THROW(passes(), WrongResult);
  set(0, before);
  std::memset(result.data() + result.size() / 2 / 8 * 8, 0xFF, 8);
  EXPECT_THROW(passes(), WrongResult) << "what was never written, wherever it is";
}

TEST_P(VerifyConvolution, OfTimedDataAllowsRoundingAndNoMore) {
  seeds.distribution = Distribution::uniform;
  seeds.step = 1;
  compute();
  const auto passes = [&] { verify_timed_convolution(result.data(), shape, seeds, false); };
  EXPECT_NO_THROW(passes());
  for (std::size_t i = 0; i < shape.result().count(); ++i) set(i, at(i) * 1.02);
  EXPECT_THROW(passes(), WrongResult);
}

std::string kind_name(const ::testing::TestParamInfo<VerifyConvolution::ParamType>& info) {
  const auto& [kind, direction, layout, type] = info.param;
  return std::string(kind.name) + "_" + std::string(name_of(direction)) + "_" +
         std::string(name_of(layout)) + "_" + type;
}

const auto kDirections = ::testing::Values(ConvolutionDirection::forward,
                                           ConvolutionDirection::data,
                                           ConvolutionDirection::filter);
INSTANTIATE_TEST_SUITE_P(Kinds,
                         VerifyConvolution,
                         ::testing::Combine(::testing::ValuesIn(kKinds),
                                            kDirections,
                                            ::testing::Values(TensorLayout::nchw,
                                                              TensorLayout::nhwc),
                                            ::testing::Values("fp32", "bf16")),
                         kind_name);
INSTANTIATE_TEST_SUITE_P(Types,
                         VerifyConvolution,
                         ::testing::Combine(::testing::Values(kKinds[0]),
                                            ::testing::Values(ConvolutionDirection::forward),
                                            ::testing::Values(TensorLayout::any),
                                            ::testing::Values("fp64", "fp16")),
                         kind_name);

// Of gradients, with few bits and long sums: the non-zeros of each sum are counted.
TEST(ExactStepOfConvolutions, KeepsTheSumsOfEveryDirectionExact) {
  for (const ConvolutionDirection direction :
       {ConvolutionDirection::forward, ConvolutionDirection::data, ConvolutionDirection::filter}) {
    for (const TensorLayout layout : {TensorLayout::nchw, TensorLayout::nhwc}) {
      ConvolutionShape shape = convolution_shape("32x64x28x28-96x3x3-p1");
      shape.direction = direction, shape.layout = layout, shape.type = product_type("bf16");
      const std::uint64_t step = exact_step(shape);
      EXPECT_GT(step, 1u);
      EXPECT_LE(step, 4 * shape.terms() / 64 + 8) << "no sparser than it takes";
    }
  }
}

/// The gradient of depthwise filters in FP16, whose sums of `part` terms are added up in FP16.
std::vector<unsigned char> added_up_in_parts(const ConvolutionShape& shape,
                                             const InputSeeds& seeds,
                                             int part) {
  std::vector<unsigned char> result(shape.result_bytes());
  const Tensor4 x = shape.input(), w = shape.filters(), y = shape.output();
  const auto at = [](int value) { return static_cast<std::size_t>(value); };
  for (int k = 0; k < shape.k; ++k)
    for (int r = 0; r < shape.r; ++r)
      for (int s = 0; s < shape.s; ++s) {
        double sum = 0, of_part = 0;
        int terms = 0;
        for (int place = 0; place < shape.n * y.h * y.w; ++place) {
          const int n = place / y.w / y.h, oy = place / y.w % y.h, ox = place % y.w;
          const int iy = oy - shape.pad_h + r, ix = ox - shape.pad_w + s;
          if (iy >= 0 && ix >= 0 && iy < x.h && ix < x.w) {
            of_part += kernels::element(seeds.first,
                                        x.index(shape.layout, at(n), at(k), at(iy), at(ix)),
                                        seeds.distribution,
                                        shape.type.a) *
                       kernels::element(seeds.second,
                                        y.index(shape.layout, at(n), at(k), at(oy), at(ox)),
                                        seeds.distribution,
                                        shape.type.b);
          }
          if (++terms % part == 0) {
            sum = kernels::rounded_to(shape.type.c, sum + of_part);
            of_part = 0;
          }
        }
        kernels::store_element(
            result.data(), w.index(shape.layout, at(k), 0, at(r), at(s)), shape.type.c, sum);
      }
  return result;
}

// As an H200 did of this shape; where each product is rounded that is no arithmetic of FP32.
TEST(VerifyTimedConvolution, OfFiltersIn16BitsAllowsThatPartsOfTheSumsAreRounded) {
  ConvolutionShape shape = convolution_shape("8x64x14x14-64x3x3-p1-g64");
  shape.direction = ConvolutionDirection::filter;
  shape.layout = TensorLayout::nhwc;
  shape.type = product_type("fp16");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const InputSeeds seeds{seed, seed + 100, Distribution::uniform};
    const auto in_parts = [&](int part) {
      const auto result = added_up_in_parts(shape, seeds, part);
      verify_timed_convolution(result.data(), shape, seeds, false);
    };
    EXPECT_NO_THROW(in_parts(196)) << seed;
    EXPECT_NO_THROW(in_parts(14)) << seed;
    EXPECT_THROW(in_parts(1), WrongResult) << seed;
  }
}

/// A convolution of the host's library, as the benchmarks have it.
class HostConvolution
    : public ::testing::TestWithParam<
          std::tuple<ConvolutionKind, ConvolutionDirection, TensorLayout, const char*>> {};

TEST_P(HostConvolution, IsThatOfItsShapeInEveryDirectionAndLayout) {
  const auto& [kind, direction, layout, type] = GetParam();
  const ConvolutionShape shape = with(kind, direction, layout, type);
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  std::unique_ptr<Convolution> convolution;
  try {
    convolution = device->convolution(*stream, shape);
  } catch (const Unsupported& error) {
    GTEST_SKIP() << error.what();
  }
  const auto first = device->allocate(shape.first_bytes()),
             second = device->allocate(shape.second_bytes());
  std::vector<unsigned char> result(shape.result_bytes());
  const auto convolve = [&](const InputSeeds& seeds, bool new_tensors) {
    fill(*device, *stream, *first, seeds.first, shape.type.a, seeds.distribution);
    fill(*device, *stream, *second, seeds.second, shape.type.b, seeds.distribution, seeds.step);
    if (new_tensors) {
      convolution->add_tensors(*first, *second);
    } else {
      convolution->update_tensors(0);
    }
    convolution->enqueue(0);
    convolution->read_output(0, result.data());
  };
  const InputSeeds integers{5, 6, Distribution::small_integer, exact_step(shape)};
  convolve(integers, true);
  EXPECT_NO_THROW(verify_convolution(result.data(), shape, integers, false))
      << convolution->method();
  const InputSeeds uniform{7, 8, Distribution::uniform};
  convolve(uniform, false);
  EXPECT_NO_THROW(verify_timed_convolution(result.data(), shape, uniform, false));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    HostConvolution,
    ::testing::Combine(::testing::ValuesIn(kKinds),
                       kDirections,
                       ::testing::Values(TensorLayout::any, TensorLayout::nchw, TensorLayout::nhwc),
                       ::testing::Values("fp32", "bf16")),
    kind_name);

}  // namespace
}  // namespace launchgap
