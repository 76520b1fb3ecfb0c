// The same source that GPUs run, on the CPU: it computes what exact arithmetic does, in whatever
// order the threads run.
#include "tests/ladder/rungs.h"

#include <set>
#include <utility>

#include <gmock/gmock.h>

#include "kernels/matmul/instructions.h"

namespace launchgap::kernels {
namespace {

using namespace testing;

class EachRung : public TestWithParam<std::string> {};

TEST_P(EachRung, IsExactForAllShapesAndOrders) {
  const EmulatedRung& own = emulated_rung(GetParam());
  ASSERT_GE(own.shapes.size(), 5u);
  for (const Shape& shape : own.shapes) {
    for (std::uint64_t seed = 0; seed < 10; ++seed)
      ASSERT_EQ(wrong(*own.rung, own.kernel, shape, seed), "")
          << shape.m << "x" << shape.n << "x" << shape.k << ", seed " << seed;
  }
}

TEST_P(EachRung, HasNoBankConflicts) {
  const EmulatedRung& own = emulated_rung(GetParam());
  for (const Shape& shape : own.shapes) {
    emulated::BankConflicts conflicts;
    EXPECT_EQ(wrong(*own.rung, own.kernel, shape, 1, &conflicts), "");
    EXPECT_THAT(conflicts, IsEmpty());
  }
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
  std::vector<const Rung*> launched, emulated;
  for (const Rung& one : rungs()) launched.push_back(&one);
  for (const EmulatedRung& one : emulated_rungs()) emulated.push_back(one.rung);
  EXPECT_EQ(launched, emulated);
}

INSTANTIATE_TEST_SUITE_P(Ladder,
                         EachRung,
                         Values("naive", "tiles", "wmma", "mma", "wgmma"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace launchgap::kernels
