// A GPU through the CUDA driver API, cuBLAS and cuDNN, all loaded at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/device/device.h"

namespace launchgap::cuda {

/// Every GPU that the driver shows to this process. Creates no context. Throws Error if there is no
/// driver or it cannot be initialised, with the driver's own words.
std::vector<DeviceFacts> probe();

/// Opens a GPU's primary context. Throws Error if no visible GPU has this UUID.
std::unique_ptr<Device> open(const std::string& uuid);

}  // namespace launchgap::cuda
