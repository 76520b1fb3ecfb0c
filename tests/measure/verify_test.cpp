#include "harness/measure/verify.h"

#include <cmath>
#include <cstring>
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
  const auto n = static_cast<std::size_t>(shape.size);
  std::vector<double> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (std::size_t k = 0; k < n; ++k) {
      const double a = kernels::rounded_to(
          shape.type, kernels::element(seeds.first, i * n + k, seeds.distribution));
      for (std::size_t j = 0; j < n; ++j) {
        row[j] +=
            a * kernels::rounded_to(shape.type,
                                    kernels::element(seeds.second, k * n + j, seeds.distribution));
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

class VerifyMatmul : public ::testing::TestWithParam<std::pair<int, ElementType>> {
 protected:
  void SetUp() override {
    std::tie(shape.size, shape.type) = GetParam();
    c = device->allocate(static_cast<std::size_t>(shape.size * shape.size) *
                         kernels::element_bytes(shape.type));
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

TEST_P(VerifyMatmul, FailsOneWrongElementWhereEveryElementCounts) {
  add_to(*c, static_cast<std::size_t>(shape.size) * 3 + 5, shape.type, 1);
  if (shape.type == ElementType::fp32 || shape.size <= 256) {
    EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
  }
}

TEST_P(VerifyMatmul, FailsAWrongTile) {
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < 64; ++j)
      add_to(*c, i * static_cast<std::size_t>(shape.size) + j, shape.type, 8);
  }
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
}

TEST_P(VerifyMatmul, FailsWhatWasNeverWritten) {
  std::memset(c->address(), 0xFF, c->bytes());
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
  std::memset(c->address(), 0, c->bytes());
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
}

TEST_P(VerifyMatmul, FailsTheTransposedProduct) {
  InputSeeds swapped{seeds.second, seeds.first, seeds.distribution};
  reference_matmul(shape, swapped, *c);
  EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult);
}

TEST_P(VerifyMatmul, OfTimedDataAllowsRoundingAndNoMore) {
  seeds.distribution = Distribution::uniform;
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
  MatmulShape shape{1024, ElementType::fp32, false};
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

INSTANTIATE_TEST_SUITE_P(SizesAndTypes,
                         VerifyMatmul,
                         ::testing::Values(std::pair(64, ElementType::fp32),
                                           std::pair(256, ElementType::fp16),
                                           std::pair(320, ElementType::fp32),
                                           std::pair(320, ElementType::fp16),
                                           std::pair(320, ElementType::bf16)));

class VerifyConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    shape.n = 2, shape.c = 5, shape.h = 9, shape.w = 7, shape.k = 6, shape.r = 3, shape.s = 3,
    shape.stride = 2, shape.pad = 1;
    output = device->allocate(shape.output_count() * 4);
    auto* const out = static_cast<float*>(output->address());
    std::size_t index = 0;
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
                  sum +=
                      kernels::element(seeds.first,
                                       static_cast<unsigned>(
                                           ((n * shape.c + c) * shape.h + in_y) * shape.w + in_x),
                                       seeds.distribution) *
                      kernels::element(
                          seeds.second,
                          static_cast<unsigned>(((k * shape.c + c) * shape.r + r) * shape.s + s),
                          seeds.distribution);
                }
            out[index++] = sum;
          }
  }
  std::unique_ptr<Device> device = open_device("host", "host");
  ConvolutionShape shape;
  InputSeeds seeds{21, 22, Distribution::small_integer};
  std::unique_ptr<Buffer> output;
};

TEST_F(VerifyConvolution, PassesTheRightOneAndFailsAWrongOne) {
  EXPECT_NO_THROW(verify_convolution(output->address(), shape, seeds, false));
  static_cast<float*>(output->address())[0] += 1;
  EXPECT_THROW(verify_convolution(output->address(), shape, seeds, false), WrongResult);
}

TEST_F(VerifyConvolution, ATransformMayRoundButNotMiss) {
  auto* const out = static_cast<float*>(output->address());
  out[0] += 1e-5f;
  EXPECT_THROW(verify_convolution(output->address(), shape, seeds, false), WrongResult);
  EXPECT_NO_THROW(verify_convolution(output->address(), shape, seeds, true));
  out[0] += 1;
  EXPECT_THROW(verify_convolution(output->address(), shape, seeds, true), WrongResult);
}

}  // namespace
}  // namespace launchgap
