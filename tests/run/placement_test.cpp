#include <gtest/gtest.h>

#include "harness/run/process_environment.h"

namespace launchgap {
namespace {

const CpuList kAllowed = {0, 1, 2, 3, 4, 5, 6, 7};
const CpuList kNear = {4, 5};

TEST(Placement, TakesTheLastCpuNearTheDevice) {
  EXPECT_EQ(free_cpu(kNear, kAllowed, {}), 5);
}

TEST(Placement, GivesEachRunACpuOfItsOwn) {
  EXPECT_EQ(free_cpu(kNear, kAllowed, {5}), 4);
  EXPECT_EQ(free_cpu(kNear, kAllowed, {5, 4}), 7) << "far is better than shared";
  EXPECT_EQ(free_cpu(kNear, kAllowed, {5, 4, 7}), 6);
}

TEST(Placement, SharesTheLastCpuWhereThereAreMoreRunsThanCpus) {
  EXPECT_EQ(free_cpu({0, 1}, {0, 1}, {1, 0}), 1);
}

TEST(Placement, IsAnywhereWhereNothingIsKnownToBeNear) {
  DeviceFacts device;
  EXPECT_EQ(near_cpus(device), allowed_cpus());
  device.numa_node = 4095;
  EXPECT_EQ(near_cpus(device), allowed_cpus());
}

}  // namespace
}  // namespace launchgap
