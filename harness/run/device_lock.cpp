#include "harness/run/device_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

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

std::string lock_path(const std::string& name) {
  const char* folder = std::getenv("LAUNCHGAP_LOCK_DIR");
  return fmt::format("{}/launchgap-{}.lock", folder && *folder ? folder : "/tmp", name);
}

struct Taken {
  int descriptor = -1;  // below 0: errno says why there can be no lock
  bool locked = false;  // else somebody holds it
};

/// Tries once to lock the file, shared or exclusive.
Taken take(const std::string& path, int operation) {
  while (true) {
    const Taken taken{open_lock_file(path), false};
    if (taken.descriptor < 0) return taken;
    if (flock(taken.descriptor, operation | LOCK_NB) != 0) return taken;
    // Whoever held it before may have taken it away since it was opened.
    struct stat own {
    }, there{};
    if (fstat(taken.descriptor, &own) == 0 && stat(path.c_str(), &there) == 0 &&
        own.st_ino == there.st_ino && own.st_dev == there.st_dev)
      return {taken.descriptor, true};
    close(taken.descriptor);
  }
}

/// Ends a lock, and takes its file away unless somebody else holds it too.
void release(int descriptor, const std::string& path) {
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
  close(descriptor);
}

/// The file, locked; or not, where `stopped` came first.
int wait_for(const std::string& path, int operation, const std::function<bool()>& stopped) {
  while (true) {
    const Taken taken = take(path, operation);
    if (taken.descriptor < 0)
      throw Error(with_errno(fmt::format("the node's lock {} cannot be opened", path)));
    if (taken.locked || stopped()) return taken.descriptor;
    close(taken.descriptor);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

NodeTurn::NodeTurn(bool alone, const std::function<bool()>& stopped) : path_(lock_path("node")) {
  // Who waits for a turn alone keeps the queue, so that those that go side by side, one after the
  // other, do not keep it waiting for ever.
  const std::string queue_path = lock_path("node-queue");
  const int queue = wait_for(queue_path, LOCK_EX, stopped);
  try {
    descriptor_ = wait_for(path_, alone ? LOCK_EX : LOCK_SH, stopped);
  } catch (...) {
    release(queue, queue_path);
    throw;
  }
  release(queue, queue_path);
}

NodeTurn::~NodeTurn() {
  release(descriptor_, path_);
}

DeviceLock::DeviceLock(const std::string& uuid) : path_(lock_path(uuid)) {
  const Taken taken = take(path_, LOCK_EX);
  descriptor_ = taken.descriptor;
  if (descriptor_ < 0)
    throw Error(with_errno(fmt::format("the device's lock {} cannot be opened", path_)));
  if (!taken.locked) {
    // Anybody may have written into it.
    std::array<char, 32> holder{};
    const ssize_t length = pread(descriptor_, holder.data(), holder.size(), 0);
    close(descriptor_);
    const std::string_view pid(holder.data(),
                               static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    const bool known =
        !pid.empty() && pid.find_first_not_of("0123456789") == std::string_view::npos;
    throw DeviceHeld(
        fmt::format("{} (process {}): wait for that to end", kHeld, known ? pid : "unknown"));
  }
  const std::string pid = fmt::format("{}", getpid());
  [[maybe_unused]] const int truncated = ftruncate(descriptor_, 0);
  [[maybe_unused]] const ssize_t written = pwrite(descriptor_, pid.data(), pid.size(), 0);
}

DeviceLock::DeviceLock(DeviceLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

DeviceLock::~DeviceLock() {
  if (descriptor_ >= 0) release(descriptor_, path_);
}

}  // namespace launchgap
