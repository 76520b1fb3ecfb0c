// One session at a time on a device, across the users of a machine.
#pragma once

#include <string>

#include "harness/core/errors.h"

namespace launchgap {

/// Another session has the device.
class DeviceHeld : public Error {
 public:
  using Error::Error;
};

/// Held until destroyed, or until the process ends however it ends.
class DeviceLock {
 public:
  /// Takes the lock of a device. Throws DeviceHeld that names the holder's process, and Error if
  /// there can be no lock.
  explicit DeviceLock(const std::string& uuid);
  ~DeviceLock();
  DeviceLock(DeviceLock&& other) noexcept;
  DeviceLock(const DeviceLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace launchgap
