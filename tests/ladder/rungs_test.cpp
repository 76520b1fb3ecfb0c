// The same source that GPUs run, on the CPU: it computes what exact arithmetic does, in whatever
// order the threads run.
#include "tests/ladder/rungs.h"

#include <array>

#include <gmock/gmock.h>

namespace launchgap::kernels {
namespace {

using namespace testing;

class EachRung : public TestWithParam<std::string> {};

TEST_P(EachRung, IsExactForAllShapesAndOrders) {
  const Rung& own = rung(GetParam());
  ASSERT_GE(own.shapes.size(), 5u);
  for (const Shape& shape : own.shapes) {
    for (std::uint64_t seed = 0; seed < 10; ++seed)
      ASSERT_EQ(wrong(own, own.kernel, shape, seed), "")
          << shape.m << "x" << shape.n << "x" << shape.k << ", seed " << seed;
  }
}

TEST_P(EachRung, HasNoBankConflicts) {
  const Rung& own = rung(GetParam());
  for (const Shape& shape : own.shapes) {
    emulated::BankConflicts conflicts;
    EXPECT_EQ(wrong(own, own.kernel, shape, 1, &conflicts), "");
    EXPECT_THAT(conflicts, IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder,
                         EachRung,
                         Values("naive", "tiles", "wmma", "mma", "wgmma"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace launchgap::kernels
