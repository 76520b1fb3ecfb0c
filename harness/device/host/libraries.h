// OpenBLAS and oneDNN, loaded at run time and only in workers of the host device: both start
// threads at load.
#pragma once

#include <memory>

#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/facts.h"
#include "harness/device/host/queue.h"
#include "harness/device/matmul.h"

namespace launchgap::host {

/// Each loads its library on first use, with `threads` threads, and throws Unsupported if it is not
/// to be had, or does not compute what is asked on this CPU. OpenBLAS: cblas_sgemm and cblas_dgemm.
std::unique_ptr<Matmul> openblas_matmul(Queue& queue, const MatmulShape& shape, int threads);

/// oneDNN in FP32, and in BF16 and INT8 where the CPU has the unit. Convolutions by the direct
/// algorithm.
std::unique_ptr<Matmul> onednn_matmul(Queue& queue, const MatmulShape& shape, int threads);
std::unique_ptr<Convolution> onednn_convolution(Queue& queue,
                                                const ConvolutionShape& shape,
                                                int threads);

/// The libraries loaded so far.
std::vector<LoadedLibrary> loaded_libraries();

// --- The list of libraries that this process has loaded for the host device ---

void note_loaded(const LoadedLibrary& library);

}  // namespace launchgap::host
