// OpenBLAS and oneDNN, loaded at run time and only in workers of the host device: both start
// threads at load.
#pragma once

#include <memory>

#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/host/queue.h"
#include "harness/device/matmul.h"

namespace launchgap::host {

/// Loads the library on first use, with `threads` threads. Throws Unsupported if it is not to be
/// had. OpenBLAS: cblas_sgemm, row-major. Only FP32.
std::unique_ptr<Matmul> openblas_matmul(Queue& queue, const MatmulShape& shape, int threads);

/// oneDNN: forward convolution, direct algorithm, in the layout that oneDNN prefers. Only FP32.
std::unique_ptr<Convolution> onednn_convolution(Queue& queue,
                                                const ConvolutionShape& shape,
                                                int threads);

/// The libraries loaded so far.
std::vector<LoadedLibrary> loaded_libraries();

}  // namespace launchgap::host
