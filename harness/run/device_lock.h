// One session at a time on a device, across the users of a machine.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "harness/core/errors.h"

namespace launchgap {

/// How the message of DeviceHeld begins.
inline constexpr std::string_view kHeld = "another session is measuring it";

/// Another session has the device.
class DeviceHeld : public Error {
 public:
  using Error::Error;
};

/// The turns of several processes of a node that measure different devices: what must be alone has
/// the node for itself, and everything else goes side by side. Held until destroyed, or until the
/// process ends however it ends.
class NodeTurn {
 public:
  /// Waits until it is this process's turn; `stopped` ends that without one. Throws Error if there
  /// can be no lock.
  NodeTurn(bool alone, const std::function<bool()>& stopped);
  ~NodeTurn();
  NodeTurn(const NodeTurn&) = delete;
  NodeTurn& operator=(const NodeTurn&) = delete;

 private:
  std::string path_;
  int descriptor_ = -1;
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
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace launchgap
