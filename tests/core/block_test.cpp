#include "harness/core/block.h"

#include <stdexcept>

#include <gmock/gmock.h>

namespace launchgap {
namespace {

using ::testing::ElementsAre;

TEST(Block, KeepsOneValuePerMetricForEachSample) {
  Block block({"api_ns", "roundtrip_ns"}, 2);
  block.keep(100, 1, 2.5);
  block.keep(200, 3, 4);
  EXPECT_THAT(block.starts_ns(), ElementsAre(100, 200));
  EXPECT_THAT(block.values(0), ElementsAre(1, 3));
  EXPECT_THAT(block.values(1), ElementsAre(2.5, 4));
}

TEST(Block, AnotherNumberOfValuesIsRefusedInEveryBuild) {
  Block block({"api_ns", "roundtrip_ns"}, 2);
  EXPECT_THROW(block.keep(100, 1), std::logic_error);
  EXPECT_THROW(block.keep(100, 1, 2, 3), std::logic_error);
  EXPECT_EQ(block.size(), 0u);
}

TEST(Block, ASampleBeyondItsCapacityIsRefusedInEveryBuild) {
  Block block({"api_ns"}, 1);
  block.keep(100, 1);
  EXPECT_THROW(block.keep(200, 2), std::logic_error);
  EXPECT_EQ(block.size(), 1u);
  block.restart();
  block.keep(300, 3);
  EXPECT_THAT(block.values(0), ElementsAre(3));
}

}  // namespace
}  // namespace launchgap
