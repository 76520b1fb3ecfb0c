#include "kernels/element.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "kernels/kernels.h"

namespace launchgap::kernels {
namespace {

TEST(Element, SmallIntegersAreFromMinusTwoToTwoAndAllOccur) {
  int counts[5] = {};
  for (unsigned long long i = 0; i < 10000; ++i) {
    const double value = element(42, i, Distribution::small_integer, ElementType::fp32);
    ASSERT_EQ(value, std::trunc(value));
    ASSERT_LE(std::abs(value), 2);
    ++counts[static_cast<int>(value) + 2];
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 200);
}

TEST(Element, UniformFillsTheOpenIntervalAroundZeroAndIsNeverZero) {
  double sum = 0, squares = 0;
  for (unsigned long long i = 0; i < 100000; ++i) {
    const double value = element(42, i, Distribution::uniform, ElementType::fp32);
    ASSERT_GT(value, -1);
    ASSERT_LT(value, 1);
    ASSERT_NE(value, 0);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.01);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.01);
}

TEST(Element, UniformIntegersFillTheRangeOfTheirType) {
  int least = 0, most = 0;
  for (unsigned long long i = 0; i < 10000; ++i) {
    const double value = element(42, i, Distribution::uniform, ElementType::int8);
    ASSERT_EQ(value, std::trunc(value));
    least = std::min(least, static_cast<int>(value)),
    most = std::max(most, static_cast<int>(value));
  }
  EXPECT_EQ(least, -127);
  EXPECT_EQ(most, 127);
}

TEST(Element, UniformDoublesHaveDigitsThatNoFloatHas) {
  int longer = 0;
  for (unsigned long long i = 0; i < 1000; ++i) {
    const double value = element(42, i, Distribution::uniform, ElementType::fp64);
    ASSERT_LT(std::abs(value), 1);
    longer += value != static_cast<double>(static_cast<float>(value));
  }
  EXPECT_GT(longer, 990);
}

TEST(Element, NormalHasTheMomentsAndTailsOfANormalDistribution) {
  double sum = 0, squares = 0, fourth = 0;
  int beyond_two = 0;
  constexpr int kCount = 200000;
  for (unsigned long long i = 0; i < kCount; ++i) {
    const double value = element(42, i, Distribution::normal, ElementType::fp64);
    sum += value, squares += value * value, fourth += value * value * value * value;
    beyond_two += std::abs(value) > 2;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(fourth / kCount, 3, 0.2) << "2.85 of a sum of eight";
  EXPECT_NEAR(beyond_two / static_cast<double>(kCount), 0.0455, 0.003);
}

TEST(Element, ZerosAndOnesAreThat) {
  for (const ElementType type : {ElementType::fp32, ElementType::int8, ElementType::fp8_e4m3}) {
    EXPECT_EQ(element(1, 2, Distribution::zeros, type), 0);
    EXPECT_EQ(element(1, 2, Distribution::ones, type), 1);
  }
}

/// Each code but those of NaN reads back as itself.
template <class Float>
void expect_codes_read_back(unsigned codes, unsigned magnitude, unsigned largest) {
  for (unsigned code = 0; code < codes; ++code) {
    if ((code & magnitude) > largest) continue;
    EXPECT_EQ(Float::from(Float::to(code)), code);
  }
}

TEST(SmallFloat, EveryFiniteValueReadsBack) {
  expect_codes_read_back<Fp16>(0x10000, 0x7FFF, 0x7BFF);
  expect_codes_read_back<Bf16>(0x10000, 0x7FFF, 0x7F7F);
  expect_codes_read_back<Fp8E4m3>(0x100, 0x7F, 0x7E);
  expect_codes_read_back<Fp8E5m2>(0x100, 0x7F, 0x7B);
}

TEST(SmallFloat, RoundsToNearestEven) {
  EXPECT_EQ(Fp16::from(1.0f + 0x1p-11f), Fp16::from(1.0f));  // a tie goes to the even neighbour
  EXPECT_EQ(Fp16::from(1.0f + 3 * 0x1p-11f), Fp16::from(1.0f + 0x1p-9f));
  EXPECT_EQ(Fp16::from(1.0f + 0x1.8p-11f), Fp16::from(1.0f + 0x1p-10f));
  EXPECT_EQ(Fp16::to(Fp16::from(2049)), 2048);
  EXPECT_EQ(Fp16::to(Fp16::from(65519)), 65504);
  EXPECT_TRUE(std::isinf(Fp16::to(Fp16::from(65520))));
  EXPECT_EQ(Fp16::to(Fp16::from(0x1p-25f)), 0);  // half of the smallest subnormal: a tie
  EXPECT_EQ(Fp16::to(Fp16::from(0x1.8p-25f)), 0x1p-24f);
  EXPECT_EQ(Bf16::to(Bf16::from(256)), 256);
  EXPECT_EQ(Bf16::to(Bf16::from(257)), 256);
  EXPECT_EQ(Bf16::to(Bf16::from(259)), 260);
  EXPECT_EQ(Bf16::to(Bf16::from(-1.5f)), -1.5f);
  EXPECT_EQ(Fp8E4m3::to(Fp8E4m3::from(17)), 16);
  EXPECT_EQ(Fp8E4m3::to(Fp8E4m3::from(19)), 20);
  EXPECT_EQ(Fp8E4m3::to(Fp8E4m3::from(0x1p-10f)), 0);
  EXPECT_EQ(Fp8E4m3::to(Fp8E4m3::from(0x1.8p-10f)), 0x1p-9f);
  EXPECT_EQ(Fp8E5m2::to(Fp8E5m2::from(9)), 8);
  EXPECT_EQ(Fp8E5m2::to(Fp8E5m2::from(11)), 12);
}

TEST(SmallFloat, Fp8SaturatesAndHasItsOwnSpecialValues) {
  EXPECT_EQ(Fp8E4m3::to(Fp8E4m3::from(1000)), 448);
  EXPECT_EQ(Fp8E5m2::to(Fp8E5m2::from(1e6f)), 57344);
  EXPECT_TRUE(std::isnan(Fp8E4m3::to(0x7F)));
  EXPECT_TRUE(std::isinf(Fp8E5m2::to(0x7C)));
  EXPECT_TRUE(std::isnan(Fp8E5m2::to(0x7D)));
}

// What was filled with this byte and never written is no result.
TEST(UnwrittenByte, IsNoSumOfSmallIntegers) {
  for (const ElementType type : {ElementType::fp64,
                                 ElementType::fp32,
                                 ElementType::fp16,
                                 ElementType::bf16,
                                 ElementType::fp8_e4m3,
                                 ElementType::fp8_e5m2,
                                 ElementType::int8,
                                 ElementType::int32}) {
    unsigned char bytes[8];
    std::fill(std::begin(bytes), std::end(bytes), unwritten_byte(type));
    const double value = load_element(bytes, 0, type);
    EXPECT_TRUE(std::isnan(value) || value <= -128) << value;
  }
}

TEST(SparseElement, KeepsEachStepThAndNoneOfItIsZero) {
  constexpr unsigned long long kColumns = 64, kStep = 7;
  std::set<unsigned long long> columns;
  for (unsigned long long row = 0; row < 20; ++row) {
    int kept = 0;
    for (unsigned long long column = 0; column < kColumns; ++column) {
      const double value = sparse_element(
          42, row * kColumns + column, Distribution::small_integer, ElementType::bf16, kStep);
      if (value == 0) continue;
      EXPECT_TRUE(std::abs(value) == 1 || std::abs(value) == 2) << value;
      columns.insert(column);
      ++kept;
    }
    EXPECT_GE(kept, 9);
    EXPECT_LE(kept, 10);
  }
  EXPECT_EQ(columns.size(), kColumns) << "every column has its turn";
  for (unsigned long long i = 0; i < 100; ++i)
    EXPECT_EQ(sparse_element(42, i, Distribution::uniform, ElementType::fp32, 1),
              element(42, i, Distribution::uniform, ElementType::fp32));
}

TEST(Fill, WritesTheElementsOfItsSeedAndNothingBeyond) {
  unsigned short out[9] = {};
  out[8] = 0xABCD;
  void* pointer = out;
  unsigned long long count = 8, seed = 5;
  int type = static_cast<int>(ElementType::bf16),
      distribution = static_cast<int>(Distribution::uniform);
  unsigned long long step = 1;
  void* arguments[] = {&pointer, &count, &seed, &type, &distribution, &step};
  fill_kernel.host(arguments, {1, 1});
  for (unsigned i = 0; i < 8; ++i) {
    EXPECT_EQ(load_element(out, i, ElementType::bf16),
              element(5, i, Distribution::uniform, ElementType::bf16));
  }
  EXPECT_EQ(out[8], 0xABCD);
}

}  // namespace
}  // namespace launchgap::kernels
