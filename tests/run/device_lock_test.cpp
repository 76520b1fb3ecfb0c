#include "harness/run/device_lock.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

class DeviceLockTest : public ::testing::Test {
 protected:
  DeviceLockTest()
      : folder(std::filesystem::temp_directory_path() /
               ("launchgap-locks-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder);
    setenv("LAUNCHGAP_LOCK_DIR", folder.c_str(), 1);
  }
  ~DeviceLockTest() override {
    unsetenv("LAUNCHGAP_LOCK_DIR");
    std::filesystem::remove_all(folder);
  }
  std::filesystem::path folder;
};

TEST_F(DeviceLockTest, KeepsASecondSessionOutAndNamesTheFirst) {
  const DeviceLock lock("GPU-1");
  try {
    DeviceLock second("GPU-1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(std::to_string(getpid())));
  }
  EXPECT_NO_THROW(DeviceLock("GPU-2"));
}

TEST_F(DeviceLockTest, IsFreeAgainWhenItsHolderIsGone) {
  { const DeviceLock lock("GPU-1"); }
  EXPECT_NO_THROW(DeviceLock("GPU-1"));
}

TEST_F(DeviceLockTest, ALinkInItsPlaceIsNotFollowed) {
  std::filesystem::create_symlink("/etc/passwd", folder / "launchgap-GPU-1.lock");
  EXPECT_THROW(DeviceLock("GPU-1"), Error);
}

}  // namespace
}  // namespace launchgap
