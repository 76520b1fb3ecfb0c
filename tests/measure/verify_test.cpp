#include "harness/measure/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/matmul.h"

namespace launchgap {
namespace {

using kernels::Distribution;

/// The product of the filled inputs, by the definition, rounded to the type once.
void reference_matmul(const MatmulShape& shape, const InputSeeds& seeds, Buffer& c) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n),
             k = static_cast<std::size_t>(shape.k);
  std::vector<double> row(n);
  for (std::size_t i = 0; i < m; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (std::size_t l = 0; l < k; ++l) {
      const double a = kernels::rounded_to(
          shape.type,
          kernels::sparse_element(
              seeds.first, shape.a_index(i, l), seeds.distribution, seeds.step));
      for (std::size_t j = 0; j < n; ++j) {
        row[j] += a * kernels::rounded_to(
                          shape.type,
                          kernels::element(seeds.second, shape.b_index(l, j), seeds.distribution));
      }
    }
    for (std::size_t j = 0; j < n; ++j)
      kernels::store_element(c.address(), i * n + j, shape.type, static_cast<float>(row[j]));
  }
}

void add_to(Buffer& buffer, std::size_t index, ElementType type, float amount) {
  kernels::store_element(
      buffer.address(), index, type, kernels::load_element(buffer.address(), index, type) + amount);
}

class VerifyMatmul : public ::testing::TestWithParam<MatmulShape> {
 protected:
  void SetUp() override {
    shape = GetParam();
    seeds.step = exact_step(shape);
    c = device->allocate(shape.c_count() * kernels::element_bytes(shape.type));
    reference_matmul(shape, seeds, *c);
  }
  std::unique_ptr<Device> device = open_device("host", "host");
  MatmulShape shape;
  InputSeeds seeds{11, 12, Distribution::small_integer};
  std::unique_ptr<Buffer> c;
};

TEST_P(VerifyMatmul, PassesTheRightProduct) {
  EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds));
}

TEST_P(VerifyMatmul, FailsAnyOneWrongElementAndNamesIt) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n);
  for (const std::size_t index : {std::size_t{0}, n - 1, 3 * n + 5, (m - 1) * n, m * n - 1}) {
    for (const float amount : {1.0f, -1.0f}) {
      add_to(*c, index, shape.type, amount);
      try {
        verify_matmul(*device, *c, shape, seeds);
        ADD_FAILURE() << "element " << index << " is wrong by " << amount;
      } catch (const WrongResult& error) {
        const std::string name =
            "C[" + std::to_string(index / n) + "][" + std::to_string(index % n) + "]";
        EXPECT_NE(std::string(error.what()).find(name + " is"), std::string::npos) << error.what();
      }
      add_to(*c, index, shape.type, -amount);
    }
  }
  EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds));
}

// Errors that cancel where weights are 0, 1 and -1.
TEST_P(VerifyMatmul, FailsTwoWrongElementsOfARow) {
  for (const float other : {1.0f, -1.0f}) {
    add_to(*c, 7, shape.type, 1);
    add_to(*c, 11, shape.type, other);
    EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
    add_to(*c, 7, shape.type, -1);
    add_to(*c, 11, shape.type, -other);
  }
}

TEST_P(VerifyMatmul, FailsARowInAnothersPlaceAndAnElementThatWasNeverWritten) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n);
  const std::size_t row = n * kernels::element_bytes(shape.type);
  auto* const bytes = static_cast<unsigned char*>(c->address());
  std::swap_ranges(bytes, bytes + row, bytes + row * (m - 1));
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
  std::swap_ranges(bytes, bytes + row, bytes + row * (m - 1));
  std::memset(bytes + c->bytes() - kernels::element_bytes(shape.type),
              0xFF,
              kernels::element_bytes(shape.type));
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
}

TEST_P(VerifyMatmul, FailsAWrongTile) {
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < 64; ++j)
      add_to(*c, i * static_cast<std::size_t>(shape.n) + j, shape.type, 8);
  }
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
}

TEST_P(VerifyMatmul, FailsWhatWasNeverWritten) {
  std::memset(c->address(), 0xFF, c->bytes());
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
  std::memset(c->address(), 0, c->bytes());
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
}

/// What somebody computes who takes an operand for its transpose, or m for n.
TEST_P(VerifyMatmul, FailsAnotherProduct) {
  const auto computed_as = [&](auto&& change) {
    MatmulShape other = shape;
    change(other);
    reference_matmul(other, seeds, *c);
  };
  computed_as([](MatmulShape& other) { other.transpose_a = !other.transpose_a; });
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult) << "A transposed";
  computed_as([](MatmulShape& other) { other.transpose_b = !other.transpose_b; });
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult) << "B transposed";
  if (shape.m != shape.n) {
    computed_as([](MatmulShape& other) { std::swap(other.m, other.n); });
    EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult) << "m and n swapped";
  }
  const InputSeeds swapped{seeds.second, seeds.first, seeds.distribution, seeds.step};
  reference_matmul(shape, swapped, *c);
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult) << "A and B swapped";
}

TEST_P(VerifyMatmul, OfTimedDataAllowsRoundingAndNoMore) {
  seeds.distribution = Distribution::uniform;
  seeds.step = 1;
  reference_matmul(shape, seeds, *c);
  EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
  for (std::size_t i = 0; i < c->bytes() / kernels::element_bytes(shape.type); ++i) {
    kernels::store_element(
        c->address(), i, shape.type, kernels::load_element(c->address(), i, shape.type) * 1.02f);
  }
  EXPECT_THROW(verify_timed_matmul(*device, *c, shape, seeds), WrongResult);
}

// TF32 has 10 bits of mantissa, and at this size stays below the worst case of FP32.
TEST(VerifyTimedMatmul, TellsTf32FromFp32WhereTheWorstCaseDoesNot) {
  const auto device = open_device("host", "host");
  MatmulShape shape = MatmulShape::square(1024, ElementType::fp32);
  const InputSeeds seeds{31, 32, Distribution::uniform};
  const auto c = device->allocate(std::size_t{1024} * 1024 * 4);
  auto* const out = static_cast<float*>(c->address());
  const auto tf32 = [](float value) {
    return kernels::float_from_bits((kernels::float_bits(value) + 0x1000u) & ~0x1FFFu);
  };
  const auto multiply = [&](auto&& rounded) {
    std::vector<float> a(std::size_t{1024} * 1024), b(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = rounded(kernels::element(seeds.first, i, seeds.distribution));
      b[i] = rounded(kernels::element(seeds.second, i, seeds.distribution));
    }
    std::fill(out, out + a.size(), 0.0f);
    for (std::size_t i = 0; i < 1024; ++i) {
      for (std::size_t k = 0; k < 1024; ++k) {
        for (std::size_t j = 0; j < 1024; ++j)
          out[i * 1024 + j] += a[i * 1024 + k] * b[k * 1024 + j];
      }
    }
  };
  multiply([](float value) { return value; });
  EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
  multiply(tf32);
  EXPECT_THROW(verify_timed_matmul(*device, *c, shape, seeds), WrongResult);
  shape.allow_tf32 = true;
  EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
}

TEST(ExactStep, KeepsSumsExactAndTakesTurnsOverAllColumns) {
  for (const ElementType type : {ElementType::fp32, ElementType::fp16, ElementType::bf16}) {
    const std::size_t most = type == ElementType::fp32   ? 1 << 22
                             : type == ElementType::fp16 ? 512
                                                         : 64;
    for (const std::size_t terms : {1, 64, 65, 147, 512, 513, 4096, 4608, 8192, 28672}) {
      const std::uint64_t step = exact_step(type, terms);
      EXPECT_LE((terms + step - 1) / step, most);
      EXPECT_EQ(std::gcd(step, std::uint64_t{terms}), 1u);
      if (terms <= most) {
        EXPECT_EQ(step, 1u);
      }
    }
  }
}

TEST(HostMatmul, IsThatOfItsShapeWhicheverWayItsOperandsLie) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const MatmulShape shape{96, 71, 330, ElementType::fp32, false, transpose_a, transpose_b};
      std::unique_ptr<Matmul> matmul;
      try {
        matmul = device->matmul(*stream, shape);
      } catch (const Unsupported& error) {
        GTEST_SKIP() << error.what();
      }
      const InputSeeds seeds{5, 6, Distribution::small_integer, exact_step(shape)};
      const auto a = device->allocate(shape.a_count() * 4),
                 b = device->allocate(shape.b_count() * 4),
                 c = device->allocate(shape.c_count() * 4);
      fill(*device, *stream, *a, seeds.first, shape.type, seeds.distribution, seeds.step);
      fill(*device, *stream, *b, seeds.second, shape.type, seeds.distribution);
      stream->fill_bytes(c->address(), 0xFF, c->bytes());
      matmul->enqueue(*a, *b, *c);
      stream->wait();
      EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds)) << transpose_a << transpose_b;
    }
  }
}

TEST(VerifyMatmulOf, RefusesWhatIsNotExact) {
  const auto device = open_device("host", "host");
  const MatmulShape shape = MatmulShape::square(320, ElementType::bf16);
  const auto c = device->allocate(std::size_t{320} * 320 * 2);
  EXPECT_THROW(verify_matmul(*device, *c, shape, {1, 2, Distribution::small_integer, 1}), Error);
}

MatmulShape rectangle(ElementType type, bool transpose_a, bool transpose_b) {
  return {96, 71, 330, type, false, transpose_a, transpose_b};
}

INSTANTIATE_TEST_SUITE_P(ShapesAndTypes,
                         VerifyMatmul,
                         ::testing::Values(MatmulShape::square(64, ElementType::fp32),
                                           MatmulShape::square(256, ElementType::fp16),
                                           MatmulShape::square(320, ElementType::fp32),
                                           MatmulShape::square(320, ElementType::fp16),
                                           MatmulShape::square(320, ElementType::bf16),
                                           rectangle(ElementType::fp32, true, false),
                                           rectangle(ElementType::fp16, false, true),
                                           rectangle(ElementType::bf16, true, true),
                                           rectangle(ElementType::bf16, true, false)),
                         [](const auto& param) {
                           const MatmulShape& shape = param.param;
                           return "m" + std::to_string(shape.m) + (shape.transpose_a ? "t" : "n") +
                                  (shape.transpose_b ? "t" : "n") + "_type" +
                                  std::to_string(static_cast<int>(shape.type));
                         });

class VerifyConvolution : public ::testing::TestWithParam<ElementType> {
 protected:
  void SetUp() override {
    shape.n = 2, shape.c = 10, shape.h = 9, shape.w = 7, shape.k = 6, shape.r = 3, shape.s = 2,
    shape.stride = 2, shape.pad = 1;
    shape.type = GetParam();
    seeds.step = exact_step(shape);
    output = device->allocate(shape.output_count() * kernels::element_bytes(shape.type));
    compute();
  }
  /// By the definition.
  void compute() {
    std::size_t index = 0;
    const auto at = [](int value) { return static_cast<unsigned>(value); };
    for (int n = 0; n < shape.n; ++n)
      for (int k = 0; k < shape.k; ++k)
        for (int y = 0; y < shape.out_h(); ++y)
          for (int x = 0; x < shape.out_w(); ++x) {
            float sum = 0;
            for (int c = 0; c < shape.c; ++c)
              for (int r = 0; r < shape.r; ++r)
                for (int s = 0; s < shape.s; ++s) {
                  const int in_y = y * shape.stride - shape.pad + r,
                            in_x = x * shape.stride - shape.pad + s;
                  if (in_y < 0 || in_x < 0 || in_y >= shape.h || in_x >= shape.w) continue;
                  const unsigned in = at(((n * shape.c + c) * shape.h + in_y) * shape.w + in_x),
                                 weight = at(((k * shape.c + c) * shape.r + r) * shape.s + s);
                  sum +=
                      kernels::element(seeds.first, in, seeds.distribution) *
                      kernels::sparse_element(seeds.second, weight, seeds.distribution, seeds.step);
                }
            kernels::store_element(output->address(), index++, shape.type, sum);
          }
  }
  void expect_wrong(const char* what) {
    EXPECT_THROW(verify_convolution(output->address(), shape, seeds, false), WrongResult) << what;
  }
  std::unique_ptr<Device> device = open_device("host", "host");
  ConvolutionShape shape;
  InputSeeds seeds{21, 22, Distribution::small_integer};
  std::unique_ptr<Buffer> output;
};

TEST_P(VerifyConvolution, PassesTheRightOneAndFailsAnyOneWrongElement) {
  ASSERT_NO_THROW(verify_convolution(output->address(), shape, seeds, false));
  for (std::size_t index = 0; index < shape.output_count(); ++index) {
    add_to(*output, index, shape.type, 1);
    expect_wrong("one element");
    add_to(*output, index, shape.type, -1);
  }
  EXPECT_NO_THROW(verify_convolution(output->address(), shape, seeds, false));
}

TEST_P(VerifyConvolution, NamesWhatIsWrong) {
  add_to(*output, shape.output_count() - 1, shape.type, 2);
  try {
    verify_convolution(output->address(), shape, seeds, false);
    FAIL();
  } catch (const WrongResult& error) {
    EXPECT_NE(std::string(error.what()).find("output[1][5][4][3]"), std::string::npos)
        << error.what();
  }
}

TEST_P(VerifyConvolution, FailsAnImageInAnothersPlaceAndWhatWasNeverWritten) {
  auto* const bytes = static_cast<unsigned char*>(output->address());
  const std::size_t half = output->bytes() / 2;
  std::swap_ranges(bytes, bytes + half, bytes + half);
  expect_wrong("images swapped");
  std::swap_ranges(bytes, bytes + half, bytes + half);
  std::memset(bytes + output->bytes() - kernels::element_bytes(shape.type),
              0xFF,
              kernels::element_bytes(shape.type));
  expect_wrong("the last element was never written");
}

TEST_P(VerifyConvolution, FailsAnotherConvolution) {
  // Filters upside down, another stride's offset, and no padding are other sums.
  const ConvolutionShape right = shape;
  shape.pad = 0, shape.h += 2, shape.w += 2;
  compute();
  shape = right;
  expect_wrong("the inputs were read as another shape");
  InputSeeds swapped = seeds;
  std::swap(seeds.first, seeds.second);
  compute();
  seeds = swapped;
  expect_wrong("inputs and filters exchanged");
}

// An algorithm that transforms its inputs rounds: its filters are dense.
TEST_P(VerifyConvolution, ATransformMayRoundButNotMiss) {
  seeds.step = 1;
  compute();
  const double unit = shape.type == ElementType::fp16   ? 0x1p-11
                      : shape.type == ElementType::bf16 ? 0x1p-8
                                                        : 0x1p-20;
  const auto allowed = static_cast<float>(unit * 4 * 10 * 3 * 2);
  EXPECT_NO_THROW(verify_convolution(output->address(), shape, seeds, true));
  const float before = kernels::load_element(output->address(), 0, shape.type);
  add_to(*output, 0, shape.type, allowed / 2);
  EXPECT_NO_THROW(verify_convolution(output->address(), shape, seeds, true));
  kernels::store_element(output->address(), 0, shape.type, before + 4 * allowed + 1);
  EXPECT_THROW(verify_convolution(output->address(), shape, seeds, true), WrongResult);
  kernels::store_element(output->address(), 0, shape.type, before);
  std::memset(static_cast<unsigned char*>(output->address()) + output->bytes() / 2, 0xFF, 4);
  EXPECT_THROW(verify_convolution(output->address(), shape, seeds, true), WrongResult)
      << "what was never written, wherever it is";
}

INSTANTIATE_TEST_SUITE_P(Types,
                         VerifyConvolution,
                         ::testing::Values(ElementType::fp32,
                                           ElementType::fp16,
                                           ElementType::bf16));

}  // namespace
}  // namespace launchgap
