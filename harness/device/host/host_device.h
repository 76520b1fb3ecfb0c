// The CPU as a device: a stream is a worker thread, matmul is OpenBLAS, convolution oneDNN, memory
// the system's. It is what a program runs on when its GPU is not usable, and makes the whole suite
// run on any machine.
#pragma once

#include "harness/device/backend.h"

namespace launchgap::host {

const Backend& backend();

}  // namespace launchgap::host
