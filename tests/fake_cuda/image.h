// Device images as cuModuleLoadDataEx tells them apart.
#pragma once

#include <string>

#include "harness/device/cuda/abi/driver.h"

namespace launchgap::fake {

struct Image {
  cuda::abi::Result status = cuda::abi::kInvalidImage;
  int ptx_version =
      0;  // virtual architecture as 10 * major + minor; for native code the device's own
  std::string explanation;  // for the error log
  bool native = false;
};

/// What becomes of `image` on a device of `capability` (90 for 9.0) under a driver of
/// `driver_version` (13000 for 13.0).
Image examine_image(const void* image, int capability, int driver_version);

}  // namespace launchgap::fake
