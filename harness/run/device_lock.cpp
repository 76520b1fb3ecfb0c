#include "harness/run/device_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

/// Opens the lock's file, making it if need be. Not made by opening alone: in a folder that
/// everybody may write to, Linux refuses O_CREAT on a file of another user (sysctl
/// fs.protected_regular).
int open_lock_file(const std::string& path) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const int existing = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (existing >= 0 || errno != ENOENT) return existing;
    const int made = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (made >= 0) {
      fchmod(made, 0666);
      return made;
    }
    if (errno != EEXIST) return -1;
  }
  return -1;
}

}  // namespace

DeviceLock::DeviceLock(const std::string& uuid) {
  const char* folder = std::getenv("LAUNCHGAP_LOCK_DIR");
  const std::string path =
      fmt::format("{}/launchgap-{}.lock", folder && *folder ? folder : "/tmp", uuid);
  descriptor_ = open_lock_file(path);
  if (descriptor_ < 0)
    throw Error(with_errno(fmt::format("the device's lock {} cannot be opened", path)));
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    // Anybody may have written into it.
    std::array<char, 32> holder{};
    const ssize_t length = pread(descriptor_, holder.data(), holder.size(), 0);
    close(descriptor_);
    const std::string_view pid(holder.data(),
                               static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    const bool known =
        !pid.empty() && pid.find_first_not_of("0123456789") == std::string_view::npos;
    throw DeviceHeld(
        fmt::format("another session is measuring it (process {}): wait for that to end",
                    known ? pid : "unknown"));
  }
  const std::string pid = fmt::format("{}", getpid());
  [[maybe_unused]] const int truncated = ftruncate(descriptor_, 0);
  [[maybe_unused]] const ssize_t written = pwrite(descriptor_, pid.data(), pid.size(), 0);
}

DeviceLock::DeviceLock(DeviceLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

DeviceLock::~DeviceLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace launchgap
