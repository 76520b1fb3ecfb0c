// The CPU as a device: a stream is a worker thread, matmul is OpenBLAS, convolution oneDNN, memory
// the system's. It is what a program runs on when its GPU is not usable, and makes the whole suite
// run on any machine.
#pragma once

#include <memory>

#include "harness/device/device.h"

namespace launchgap::host {

DeviceFacts probe();
std::unique_ptr<Device> open();

}  // namespace launchgap::host
