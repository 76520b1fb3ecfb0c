#include "kernels/element.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "kernels/kernels.h"

namespace launchgap::kernels {
namespace {

TEST(Element, SmallIntegersAreFromMinusTwoToTwoAndAllOccur) {
  int counts[5] = {};
  for (unsigned long long i = 0; i < 10000; ++i) {
    const float value = element(42, i, Distribution::small_integer);
    ASSERT_EQ(value, std::trunc(value));
    ASSERT_LE(std::abs(value), 2);
    ++counts[static_cast<int>(value) + 2];
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 200);
}

TEST(Element, UniformFillsTheOpenIntervalAroundZeroAndIsNeverZero) {
  double sum = 0, squares = 0;
  for (unsigned long long i = 0; i < 100000; ++i) {
    const double value = element(42, i, Distribution::uniform);
    ASSERT_GT(value, -1);
    ASSERT_LT(value, 1);
    ASSERT_NE(value, 0);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.01);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.01);
}

TEST(Fp16, EveryFiniteValueReadsBack) {
  for (unsigned half = 0; half < 0x10000; ++half) {
    if ((half & 0x7C00u) == 0x7C00u) continue;
    EXPECT_EQ(to_fp16(from_fp16(static_cast<unsigned short>(half))), half);
  }
}

TEST(Fp16, RoundsToNearestEven) {
  EXPECT_EQ(to_fp16(1.0f + 0x1p-11f), to_fp16(1.0f));  // a tie goes to the even neighbour
  EXPECT_EQ(to_fp16(1.0f + 3 * 0x1p-11f), to_fp16(1.0f + 0x1p-9f));
  EXPECT_EQ(to_fp16(1.0f + 0x1.8p-11f), to_fp16(1.0f + 0x1p-10f));
  EXPECT_EQ(from_fp16(to_fp16(2049)), 2048);
  EXPECT_EQ(from_fp16(to_fp16(65519)), 65504);
  EXPECT_TRUE(std::isinf(from_fp16(to_fp16(65520))));
  EXPECT_EQ(from_fp16(to_fp16(0x1p-25f)), 0);  // half of the smallest subnormal: a tie
  EXPECT_EQ(from_fp16(to_fp16(0x1.8p-25f)), 0x1p-24f);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(from_bf16(to_bf16(256)), 256);
  EXPECT_EQ(from_bf16(to_bf16(257)), 256);
  EXPECT_EQ(from_bf16(to_bf16(259)), 260);
  EXPECT_EQ(from_bf16(to_bf16(-1.5f)), -1.5f);
}

TEST(SparseElement, KeepsEachStepThAndNoneOfItIsZero) {
  constexpr unsigned long long kColumns = 64, kStep = 7;
  std::set<unsigned long long> columns;
  for (unsigned long long row = 0; row < 20; ++row) {
    int kept = 0;
    for (unsigned long long column = 0; column < kColumns; ++column) {
      const float value =
          sparse_element(42, row * kColumns + column, Distribution::small_integer, kStep);
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
    EXPECT_EQ(sparse_element(42, i, Distribution::uniform, 1),
              element(42, i, Distribution::uniform));
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
              rounded_to(ElementType::bf16, element(5, i, Distribution::uniform)));
  }
  EXPECT_EQ(out[8], 0xABCD);
}

}  // namespace
}  // namespace launchgap::kernels
