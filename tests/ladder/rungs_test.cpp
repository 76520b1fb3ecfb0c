// The same source that GPUs run, on the CPU: it computes what exact arithmetic does, in whatever
// order the threads run.
#include "tests/ladder/rungs.h"

#include <set>
#include <utility>

#include <gmock/gmock.h>

#include "kernels/ladder/instructions.h"

namespace launchgap::kernels {
namespace {

using namespace testing;

class EachRung : public TestWithParam<std::string> {};

TEST_P(EachRung, IsExactForAllShapesAndOrders) {
  const EmulatedRung& own = emulated_rung(GetParam());
  ASSERT_GE(own.problems.size(), 5u);
  for (const Problem& problem : own.problems) {
    for (std::uint64_t seed = 0; seed < 10; ++seed)
      ASSERT_EQ(wrong(own, own.kernel, problem, seed), "") << problem.text() << ", seed " << seed;
  }
}

TEST_P(EachRung, HasNoBankConflicts) {
  const EmulatedRung& own = emulated_rung(GetParam());
  for (const Problem& problem : own.problems) {
    emulated::BankConflicts conflicts;
    EXPECT_EQ(wrong(own, own.kernel, problem, 1, &conflicts), "");
    EXPECT_THAT(conflicts, IsEmpty());
  }
}

TEST_P(EachRung, ComputesTheSameOnTheHost) {
  const EmulatedRung& own = emulated_rung(GetParam());
  for (const Problem& problem : own.problems)
    EXPECT_EQ(wrong_on_host(own, problem, 1), "") << problem.text();
}

TEST(PlaceOfTile, IsEachTileOnce) {
  for (unsigned rows = 1; rows <= 20; ++rows) {
    for (unsigned columns = 1; columns <= 9; ++columns) {
      std::set<std::pair<unsigned, unsigned>> seen;
      for (unsigned block = 0; block < rows * columns; ++block) {
        const TilePlace place = place_of_tile(block, rows, columns);
        EXPECT_LT(place.row, rows);
        EXPECT_LT(place.column, columns);
        seen.insert({place.row, place.column});
      }
      EXPECT_EQ(seen.size(), rows * columns) << rows << " x " << columns;
    }
  }
}

TEST(PlaceOfTile, HasEightRowsSideBySide) {
  EXPECT_EQ(place_of_tile(7, 32, 32).row, 7u);
  EXPECT_EQ(place_of_tile(8, 32, 32).column, 1u);
  EXPECT_EQ(place_of_tile(8 * 32, 32, 32).row, 8u);
}

TEST(EmulatedRungs, AreAllThatAreLaunched) {
  std::vector<std::string> launched, emulated;
  for (const Rung& one : rungs()) launched.push_back("matmul_" + std::string(one.name));
  for (const ConvolutionRung& one : convolution_rungs())
    launched.push_back("convolution_" + std::string(one.name));
  for (const EmulatedRung& one : emulated_rungs()) emulated.push_back(one.name);
  EXPECT_EQ(launched, emulated);
}

INSTANTIATE_TEST_SUITE_P(Ladder,
                         EachRung,
                         Values("matmul_naive",
                                "matmul_tiles",
                                "matmul_wmma",
                                "matmul_mma",
                                "matmul_wgmma",
                                "matmul_tcgen05",
                                "convolution_naive",
                                "convolution_tiles",
                                "convolution_mma"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace launchgap::kernels
