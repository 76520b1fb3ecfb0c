#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/device/matmul.h"
#include "harness/measure/verify.h"

namespace launchgap {
namespace {

using kernels::Distribution;
using namespace testing;

/// The product of the filled inputs, by the definition, rounded to the type once.
void reference_matmul(const MatmulShape& shape, const InputSeeds& seeds, Buffer& c) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n),
             k = static_cast<std::size_t>(shape.k);
  std::vector<double> row(n);
  for (std::size_t number = 0; number < static_cast<std::size_t>(shape.batch); ++number) {
    for (std::size_t i = 0; i < m; ++i) {
      std::fill(row.begin(), row.end(), 0);
      for (std::size_t l = 0; l < k; ++l) {
        const double a = kernels::sparse_element(seeds.first,
                                                 number * m * k + shape.a_index(i, l),
                                                 seeds.distribution,
                                                 shape.type.a,
                                                 seeds.step);
        for (std::size_t j = 0; j < n; ++j) {
          row[j] += a * kernels::element(seeds.second,
                                         number * k * n + shape.b_index(l, j),
                                         seeds.distribution,
                                         shape.type.b);
        }
      }
      for (std::size_t j = 0; j < n; ++j) {
        kernels::store_element(c.address(), number * m * n + i * n + j, shape.type.c, row[j]);
      }
    }
  }
}

void add_to(Buffer& buffer, std::size_t index, ElementType type, double amount) {
  kernels::store_element(
      buffer.address(), index, type, kernels::load_element(buffer.address(), index, type) + amount);
}

struct VerifyMatmul : TestWithParam<MatmulShape> {
  void SetUp() override {
    shape = GetParam();
    seeds.step = exact_step(shape);
    c = device->allocate(shape.c_bytes());
    reference_matmul(shape, seeds, *c);
  }
  void expect_right() { EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds)); }
  void expect_wrong(const std::string& what) {
    EXPECT_THROW(verify_matmul(*device, *c, shape, seeds), WrongResult) << what;
  }
  std::unique_ptr<Device> device = open_device("host", "host");
  MatmulShape shape;
  InputSeeds seeds{11, 12, Distribution::small_integer};
  std::unique_ptr<Buffer> c;
};

TEST_P(VerifyMatmul, PassesTheRightProductAndFailsAnyOneWrongElementAndNamesIt) {
  expect_right();
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n);
  for (const std::size_t index : {std::size_t{0}, n - 1, 3 * n + 5, (m - 1) * n, m * n - 1}) {
    for (const float amount : {1.0f, -1.0f}) {
      add_to(*c, index, shape.type.c, amount);
      EXPECT_THAT(
          [&] { verify_matmul(*device, *c, shape, seeds); },
          ThrowsMessage<WrongResult>(HasSubstr(fmt::format("C[{}][{}]", index / n, index % n))))
          << "wrong by " << amount;
      add_to(*c, index, shape.type.c, -amount);
    }
  }
  expect_right();
}

// Errors that cancel where weights are 0, 1 and -1.
TEST_P(VerifyMatmul, FailsTwoWrongElementsOfARow) {
  for (const float other : {1.0f, -1.0f}) {
    add_to(*c, 7, shape.type.c, 1);
    add_to(*c, 11, shape.type.c, other);
    expect_wrong("");
    add_to(*c, 7, shape.type.c, -1);
    add_to(*c, 11, shape.type.c, -other);
  }
}

TEST_P(VerifyMatmul, FailsARowInAnothersPlaceAndAnElementThatWasNeverWritten) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n);
  const std::size_t row = n * kernels::element_bytes(shape.type.c);
  auto* const bytes = static_cast<unsigned char*>(c->address());
  std::swap_ranges(bytes, bytes + row, bytes + row * (m - 1));
  expect_wrong("");
  std::swap_ranges(bytes, bytes + row, bytes + row * (m - 1));
  std::memset(bytes + c->bytes() - kernels::element_bytes(shape.type.c),
              kernels::unwritten_byte(shape.type.c),
              kernels::element_bytes(shape.type.c));
  expect_wrong("");
}

TEST_P(VerifyMatmul, FailsAWrongTile) {
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < 64; ++j)
      add_to(*c, i * static_cast<std::size_t>(shape.n) + j, shape.type.c, 8);
  }
  expect_wrong("");
}

// The bits of an alpha of 1, read as the type that the computation wants.
TEST_P(VerifyMatmul, FailsWhatAnAlphaOfTheWrongTypeMakes) {
  std::vector<double> right(shape.c_count());
  for (std::size_t i = 0; i < right.size(); ++i)
    right[i] = kernels::load_element(c->address(), i, shape.type.c);
  const double alphas[] = {1.4e-45,     // an integer as FP32, and about that as FP64
                           1065353216,  // FP32 as an integer
                           5.26e-315,   // FP32 as FP64
                           0};          // FP64 as FP32 or as an integer, FP32 as FP16
  for (const double alpha : alphas) {
    for (std::size_t i = 0; i < right.size(); ++i)
      kernels::store_element(c->address(), i, shape.type.c, alpha * right[i]);
    expect_wrong(fmt::format("{}", alpha));
  }
}

/// What somebody computes who takes an operand for its transpose, or m for n.
TEST_P(VerifyMatmul, FailsAnotherProduct) {
  const auto computed_as = [&](auto&& change) {
    MatmulShape other = shape;
    change(other);
    reference_matmul(other, seeds, *c);
  };
  computed_as([](MatmulShape& other) { other.transpose_a = !other.transpose_a; });
  expect_wrong("A transposed");
  computed_as([](MatmulShape& other) { other.transpose_b = !other.transpose_b; });
  expect_wrong("B transposed");
  if (shape.m != shape.n) {
    computed_as([](MatmulShape& other) { std::swap(other.m, other.n); });
    expect_wrong("m and n swapped");
  }
  const InputSeeds swapped{seeds.second, seeds.first, seeds.distribution, seeds.step};
  reference_matmul(shape, swapped, *c);
  expect_wrong("A and B swapped");
}

TEST_P(VerifyMatmul, OfTimedDataAllowsRoundingAndNoMore) {
  seeds.distribution = Distribution::uniform;
  seeds.step = 1;
  reference_matmul(shape, seeds, *c);
  EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
  // Of sums in few bits more may be wrong.
  const bool short_sums = shape.type.compute == Compute::tf32 ||
                          shape.type.compute == Compute::fp16 || shape.type.is_fp8();
  for (std::size_t i = 0; i < shape.c_count(); ++i) {
    kernels::store_element(
        c->address(),
        i,
        shape.type.c,
        kernels::load_element(c->address(), i, shape.type.c) * (short_sums ? 1.5 : 1.02));
  }
  EXPECT_THROW(verify_timed_matmul(*device, *c, shape, seeds), WrongResult);
}

TEST_P(VerifyMatmul, OfEveryDistributionPassesTheRightProduct) {
  seeds.step = 1;
  for (const Distribution distribution :
       {Distribution::normal, Distribution::zeros, Distribution::ones}) {
    seeds.distribution = distribution;
    reference_matmul(shape, seeds, *c);
    EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
  }
}

TEST(VerifyTimedMatmul, TellsFp32FromFp64) {
  const auto device = open_device("host", "host");
  const MatmulShape shape = MatmulShape::square(128, product_type("fp64"));
  const InputSeeds seeds{31, 32, Distribution::uniform};
  const auto c = device->allocate(shape.c_bytes());
  reference_matmul(shape, seeds, *c);
  EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
  auto* const out = static_cast<double*>(c->address());
  for (std::size_t i = 0; i < shape.c_count(); ++i) out[i] = static_cast<float>(out[i]);
  EXPECT_THROW(verify_timed_matmul(*device, *c, shape, seeds), WrongResult);
}

// TF32 has 10 bits of mantissa, and at this size stays below the worst case of FP32.
TEST(VerifyTimedMatmul, TellsTf32FromFp32WhereTheWorstCaseDoesNot) {
  const auto device = open_device("host", "host");
  MatmulShape shape = MatmulShape::square(1024, kFp32);
  const InputSeeds seeds{31, 32, Distribution::uniform};
  const auto c = device->allocate(std::size_t{1024} * 1024 * 4);
  auto* const out = static_cast<float*>(c->address());
  const auto tf32 = [](float value) {
    return kernels::float_from_bits((kernels::float_bits(value) + 0x1000u) & ~0x1FFFu);
  };
  const auto multiply = [&](auto&& rounded) {
    std::vector<float> a(std::size_t{1024} * 1024), b(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = rounded(static_cast<float>(
          kernels::element(seeds.first, i, seeds.distribution, ElementType::fp32)));
      b[i] = rounded(static_cast<float>(
          kernels::element(seeds.second, i, seeds.distribution, ElementType::fp32)));
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
  shape.type = product_type("tf32");
  EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
}

TEST(ExactStep, KeepsSumsExactAndTakesTurnsOverAllColumns) {
  const std::pair<const char*, int> mosts[] = {{"fp64", 1 << 30},
                                               {"fp32", 1 << 22},
                                               {"tf32", 1 << 22},
                                               {"fp16", 512},
                                               {"fp16_acc16", 512},
                                               {"bf16", 64},
                                               {"int8", (1 << 29) - 1},
                                               {"fp8_e4m3", 64},
                                               {"fp8_e5m2", 64}};
  for (const auto& [type, most] : mosts) {
    for (const int terms : {1, 64, 65, 147, 512, 513, 4096, 4608, 8192, 28672}) {
      const std::uint64_t step = exact_step(MatmulShape{7, 9, terms, product_type(type)});
      EXPECT_LE((static_cast<std::uint64_t>(terms) + step - 1) / step,
                static_cast<std::uint64_t>(most))
          << type;
      EXPECT_EQ(std::gcd(step, static_cast<std::uint64_t>(terms)), 1u);
      if (terms <= most) {
        EXPECT_EQ(step, 1u);
      }
    }
  }
}

TEST(ExactProduct, TakesSumsUpToTheLargestThatIsExact) {
  const auto product = [](int terms) {
    return ExactProduct(MatmulShape{7, 9, terms, product_type("fp16")},
                        InputSeeds{5, 6, Distribution::small_integer, 1});
  };
  EXPECT_NO_THROW(product(512));
  EXPECT_THROW(product(513), Error);
}

class HostMatmul : public TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(HostMatmul, IsThatOfItsShapeWhicheverWayItsOperandsLie) {
  const auto& [library, type] = GetParam();
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const int batch : {1, 3}) {
        const MatmulShape shape{96, 71, 330, product_type(type), transpose_a, transpose_b, batch};
        std::unique_ptr<Matmul> matmul;
        try {
          matmul = device->matmul(*stream, shape, library);
        } catch (const Unsupported& error) {
          GTEST_SKIP() << error.what();
        }
        const InputSeeds seeds{5, 6, Distribution::small_integer, exact_step(shape)};
        const auto a = device->allocate(shape.a_bytes()), b = device->allocate(shape.b_bytes()),
                   c = device->allocate(shape.c_bytes());
        const auto multiply = [&](const InputSeeds& of) {
          fill(*device, *stream, *a, of.first, shape.type.a, of.distribution, of.step);
          fill(*device, *stream, *b, of.second, shape.type.b, of.distribution);
          stream->fill_bytes(c->address(), kernels::unwritten_byte(shape.type.c), c->bytes());
          matmul->enqueue(*a, *b, *c);
          stream->wait();
        };
        multiply(seeds);
        EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds)) << transpose_a << transpose_b;
        const InputSeeds uniform{5, 6, Distribution::uniform};
        multiply(uniform);
        EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, uniform));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries,
                         HostMatmul,
                         Combine(Values("openblas", "onednn"),
                                 Values("fp64", "fp32", "bf16", "int8")),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)) + "_" +
                                  std::get<1>(param.param);
                         });

TEST(VerifyMatmulOf, RefusesWhatIsNotExact) {
  const auto device = open_device("host", "host");
  const MatmulShape shape = MatmulShape::square(320, product_type("bf16"));
  const auto c = device->allocate(std::size_t{320} * 320 * 2);
  EXPECT_THROW(verify_matmul(*device, *c, shape, {1, 2, Distribution::small_integer, 1}), Error);
}

MatmulShape rectangle(const char* type, bool transpose_a, bool transpose_b, int batch = 1) {
  return {96, 71, 330, product_type(type), transpose_a, transpose_b, batch};
}

INSTANTIATE_TEST_SUITE_P(ShapesAndTypes,
                         VerifyMatmul,
                         Values(MatmulShape::square(64, product_type("fp32")),
                                MatmulShape::square(320, product_type("fp16")),
                                rectangle("fp64", false, true),
                                rectangle("fp32_pedantic", false, false),
                                rectangle("fp32", true, false),
                                rectangle("tf32", false, false),
                                rectangle("fp16", false, true),
                                rectangle("fp16_acc16", true, false),
                                rectangle("bf16", true, true),
                                rectangle("int8", false, true),
                                rectangle("fp8_e4m3", false, true),
                                rectangle("fp8_e5m2", false, true),
                                rectangle("fp32", false, false, 3),
                                rectangle("bf16", true, false, 2)),
                         [](const auto& param) {
                           const MatmulShape& shape = param.param;
                           return std::string(shape.type.name) + "_m" + std::to_string(shape.m) +
                                  (shape.transpose_a ? "t" : "n") +
                                  (shape.transpose_b ? "t" : "n") + "_b" +
                                  std::to_string(shape.batch);
                         });

// Whichever product of the batch it is.
TEST(VerifyMatmulOf, ABatchFailsAWrongElementInOneOfThem) {
  const auto device = open_device("host", "host");
  const MatmulShape shape = rectangle("fp16", false, false, 4);
  const InputSeeds seeds{11, 12, Distribution::small_integer, exact_step(shape)};
  const auto c = device->allocate(shape.c_bytes());
  reference_matmul(shape, seeds, *c);
  ASSERT_NO_THROW(verify_matmul(*device, *c, shape, seeds));
  for (std::size_t number = 0; number < 4; ++number) {
    const std::size_t last = (number + 1) * shape.c_size() - 1;
    add_to(*c, last, shape.type.c, 1);
    EXPECT_THAT(
        [&] { verify_matmul(*device, *c, shape, seeds); },
        ThrowsMessage<WrongResult>(HasSubstr(fmt::format("C[95][70] of product {}", number))));
    add_to(*c, last, shape.type.c, -1);
  }
}

}  // namespace
}  // namespace launchgap
