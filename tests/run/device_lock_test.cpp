#include "harness/run/device_lock.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "harness/core/output_file.h"
#include "tests/error_of.h"

namespace launchgap {
namespace {

struct DeviceLockTest : ::testing::Test {
  DeviceLockTest() { setenv("LAUNCHGAP_LOCK_DIR", folder.path().c_str(), 1); }
  ~DeviceLockTest() override { unsetenv("LAUNCHGAP_LOCK_DIR"); }
  const TemporaryFolder folder;
};

TEST_F(DeviceLockTest, KeepsASecondSessionOutAndNamesTheFirst) {
  const DeviceLock lock("GPU-1");
  EXPECT_THAT(error_of([] { DeviceLock second("GPU-1"); }),
              ::testing::HasSubstr(std::to_string(getpid())));
  EXPECT_NO_THROW(DeviceLock("GPU-2"));
}

TEST_F(DeviceLockTest, IsFreeAgainWhenItsHolderIsGone) {
  { const DeviceLock lock("GPU-1"); }
  EXPECT_NO_THROW(DeviceLock("GPU-1"));
}

TEST_F(DeviceLockTest, LeavesNothingBehind) {
  { const DeviceLock lock("GPU-1"); }
  {
    const NodeTurn one(false, [] { return false; }), beside(false, [] { return false; });
    EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(DeviceLockTest, WhatMustBeAloneWaitsForAllOthersAndTheyForIt) {
  std::atomic<int> together = 0, alone = 0;
  std::atomic<bool> wrong = false;
  const auto take_turns = [&](bool must_be_alone) {
    for (int i = 0; i < 20; ++i) {
      const NodeTurn turn(must_be_alone, [] { return false; });
      ++(must_be_alone ? alone : together);
      if (alone > 1 || (alone == 1 && together > 0)) wrong = true;
      --(must_be_alone ? alone : together);
    }
  };
  {
    const std::jthread one(take_turns, true), other(take_turns, true), third(take_turns, false),
        fourth(take_turns, false);
  }
  EXPECT_FALSE(wrong);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(DeviceLockTest, WhatMustBeAloneIsNotKeptWaitingByThoseThatFollowEachOther) {
  std::atomic<bool> over = false;
  const auto never = [] { return false; };
  const auto follow = [&] {
    while (!over) {
      const NodeTurn turn(false, never);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  };
  const std::jthread one(follow), other(follow), third(follow);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  bool had_its_turn = true;
  {
    const NodeTurn alone(true, [&] { return std::chrono::steady_clock::now() > until; });
    had_its_turn = std::chrono::steady_clock::now() < until;
    over = true;
  }
  EXPECT_TRUE(had_its_turn);
}

TEST_F(DeviceLockTest, ATurnThatDoesNotComeEndsWithTheWishToStop) {
  const NodeTurn alone(true, [] { return false; });
  const NodeTurn other(false, [] { return true; });
}

TEST_F(DeviceLockTest, ALinkInItsPlaceIsNotFollowed) {
  std::filesystem::create_symlink("/etc/passwd", folder.path() / "launchgap-GPU-1.lock");
  EXPECT_THROW(DeviceLock("GPU-1"), Error);
}

}  // namespace
}  // namespace launchgap
