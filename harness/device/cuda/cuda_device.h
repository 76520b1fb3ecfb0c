// A GPU through the CUDA driver API, cuBLAS and cuDNN, all loaded at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/device/backend.h"

namespace launchgap::cuda {

const Backend& backend();

/// Every GPU that the driver shows to this process. Creates no context. Throws Error if there is no
/// driver or it cannot be initialised, with the driver's own words; a GPU that it says too little
/// of is not usable.
std::vector<DeviceFacts> probe(const ProbeOptions& options = {});

/// Opens a GPU's primary context, after setting what `options` want in the environment, which the
/// driver reads when it is initialised: before anything else uses the driver in this process.
/// Throws Error if no visible GPU has this UUID.
std::unique_ptr<Device> open(const std::string& uuid, const OpenOptions& options = {});

}  // namespace launchgap::cuda
