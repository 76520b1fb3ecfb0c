#include "harness/run/device_lock.h"

#include <cstdlib>
#include <filesystem>
#include <string>
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

TEST_F(DeviceLockTest, ALinkInItsPlaceIsNotFollowed) {
  std::filesystem::create_symlink("/etc/passwd", folder.path() / "launchgap-GPU-1.lock");
  EXPECT_THROW(DeviceLock("GPU-1"), Error);
}

}  // namespace
}  // namespace launchgap
