#include "harness/measure/loop.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace launchgap {
namespace {

class Counting : public Case {
 public:
  explicit Counting(int fails_at = -1) : fails_at_(fails_at) {}
  void sample(Block& block) override {
    if (count == fails_at_) throw std::runtime_error("the sample failed");
    block.keep(now_ns(), count++);
  }
  std::string method() const override { return "counting"; }
  int count = 0;

 private:
  int fails_at_;
};

TEST(MeasureBlocks, TakesExactlyTheSamplesThatWereAskedFor) {
  Counting counting;
  std::vector<std::size_t> sizes;
  std::vector<double> firsts;
  measure_blocks(counting, {"api_ns"}, {3, 7}, {}, [&](const MeasuredBlock& measured) {
    const auto& [index, block, thread] = measured;
    EXPECT_EQ(index, static_cast<int>(sizes.size()));
    EXPECT_GE(block.end_ns(), block.starts_ns().back());
    EXPECT_LE(block.begin_ns(), block.starts_ns().front());
    sizes.push_back(block.size());
    firsts.push_back(block.values(0)[0]);
    return true;
  });
  EXPECT_EQ(sizes, (std::vector<std::size_t>{7, 7, 7}));
  EXPECT_EQ(firsts, (std::vector<double>{0, 7, 14}));
}

TEST(MeasureBlocks, AFailureEndsItAfterTheBlocksThatWereWhole) {
  for (const int whole : {0, 1, 2, 3}) {
    Counting counting(7 * whole + 3);
    int blocks = 0;
    EXPECT_THROW(
        measure_blocks(
            counting, {"api_ns"}, {5, 7}, {}, [&](const MeasuredBlock&) { return ++blocks > 0; }),
        std::runtime_error);
    EXPECT_EQ(blocks, whole);
    EXPECT_EQ(counting.count, 7 * whole + 3);
  }
}

TEST(MeasureBlocks, LeavesOutTheRestWhenItIsEnough) {
  Counting counting;
  int blocks = 0;
  measure_blocks(
      counting, {"api_ns"}, {5, 7}, {}, [&](const MeasuredBlock&) { return ++blocks < 2; });
  EXPECT_EQ(blocks, 2);
  EXPECT_EQ(counting.count, 14);
}

}  // namespace
}  // namespace launchgap
