#include "harness/core/metric.h"

#include <set>

#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

TEST(Metrics, EachHasAKeyOfItsOwnAUnitAndAMeaning) {
  std::set<std::string_view> keys;
  for (const Metric& metric : all_metrics()) {
    EXPECT_TRUE(keys.insert(metric.key).second) << metric.key;
    EXPECT_FALSE(metric.unit.empty()) << metric.key;
    EXPECT_FALSE(metric.source.empty()) << metric.key;
    EXPECT_GT(metric.meaning.size(), 20u) << metric.key;
    EXPECT_EQ(metric.key.ends_with("_ns"), metric.unit == "ns") << metric.key;
  }
}

TEST(Metrics, OldKeysAreReadAsNewOnes) {
  EXPECT_EQ(current_key("launch/null", "gap_ns"), "inter_kernel_gap_ns");
  EXPECT_EQ(current_key("matmul/library", "uncovered_ns"), "device_idle_ns");
  EXPECT_EQ(current_key("launch/chain", "empty_queue_share"), "starved_share");
  EXPECT_EQ(current_key("recorded/launch", "beside_transfers_ns"), "overlap_transfers_ns");
  EXPECT_EQ(current_key("launch/graph", "api_ns"), "calls_ns");
  EXPECT_EQ(current_key("launch/null", "api_ns"), "api_ns");
}

TEST(Metrics, AreFoundByKey) {
  EXPECT_EQ(metric("api_ns").unit, "ns");
  EXPECT_THROW(metric("api"), Error);
}

}  // namespace
}  // namespace launchgap
