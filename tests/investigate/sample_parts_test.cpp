#include <gmock/gmock.h>

#include "harness/investigate/moved_part.h"

namespace launchgap::investigate {
namespace {

using ::testing::ElementsAre;

// In the order of Part: overhead, call, kernel, queue, wait, program.

TEST(SampleParts, OfALaunchThatIsWaitedForAddUpToIt) {
  const Activity activities[] = {{1010, 1030, Part::call},   // the launch
                                 {1030, 1060, Part::queue},  // until the kernel begins
                                 {1060, 1080, Part::kernel},
                                 {1035, 1095, Part::wait}};  // the wait, over both of these
  EXPECT_THAT(divide(1000, 1100, activities), ElementsAre(0, 20, 20, 30, 15, 15));
}

TEST(SampleParts, WhereSeveralHoldTheFirstCounts) {
  const Activity activities[] = {{0, 100, Part::wait},
                                 {10, 90, Part::queue},
                                 {20, 80, Part::kernel},
                                 {30, 70, Part::call},
                                 {40, 60, Part::overhead}};
  EXPECT_THAT(divide(0, 100, activities), ElementsAre(20, 20, 20, 20, 20, 0));
}

TEST(SampleParts, WhatLiesOutsideIsCutOffAndTheSameTimeCountsOnce) {
  const Activity activities[] = {{-50, 10, Part::kernel},
                                 {90, 500, Part::kernel},
                                 {200, 300, Part::call},
                                 {40, 60, Part::kernel},
                                 {50, 70, Part::kernel},
                                 {80, 80, Part::overhead},
                                 {75, 72, Part::overhead}};  // ends before it begins
  EXPECT_THAT(divide(0, 100, activities), ElementsAre(0, 0, 50, 0, 0, 50));
}

TEST(SampleParts, WithoutActivitiesAllIsTheProgram) {
  EXPECT_THAT(divide(5, 105, {}), ElementsAre(0, 0, 0, 0, 0, 100));
  EXPECT_THAT(divide(5, 5, {}), ElementsAre(0, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace launchgap::investigate
