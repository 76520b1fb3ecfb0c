// A rung of kernels/matmul as a product like that of a library.
#pragma once

#include <memory>
#include <string>

#include "harness/device/matmul.h"

namespace launchgap {

class Device;

/// Throws Unsupported where the device cannot run the rung, or the rung does not tile the shape.
std::unique_ptr<Matmul> rung_matmul(Device& device,
                                    Stream& stream,
                                    const MatmulShape& shape,
                                    const std::string& name);

}  // namespace launchgap
