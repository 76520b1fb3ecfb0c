// One session at a time on a device, across the users of a machine.
#pragma once

#include <optional>
#include <string>

namespace launchgap {

/// Held until destroyed, or until the process ends however it ends.
class DeviceLock {
 public:
  /// Takes the lock of a device. Throws Error that names the holder's process if another session
  /// has it.
  explicit DeviceLock(const std::string& uuid);
  ~DeviceLock();
  DeviceLock(DeviceLock&& other) noexcept;
  DeviceLock(const DeviceLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace launchgap
