// cuBLAS, cuDNN, NCCL, the CUDA runtime and the driver's memory, behind the faces of device.h and
// allocator.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "harness/device/allocator.h"
#include "harness/device/collective.h"
#include "harness/device/convolution.h"
#include "harness/device/cuda/driver.h"
#include "harness/device/cuda/stream.h"
#include "harness/device/matmul.h"

namespace launchgap::cuda {

/// Loads cuBLAS on first use. Throws Unsupported where it is missing or does not serve type and
/// device.
std::unique_ptr<Matmul> cublas_matmul(Device& device,
                                      abi::Stream stream,
                                      const MatmulShape& shape,
                                      bool autotune);

/// cuBLASLt, of which the first candidate is chosen at first.
std::unique_ptr<Matmul> cublaslt_matmul(Device& device,
                                        abi::Stream stream,
                                        const MatmulShape& shape);

/// By one of the interfaces of cuDNN, "legacy" or "graph"; empty: the legacy one. Loads cuDNN on
/// first use. Throws Unsupported where it is missing, lacks the interface, or does not serve type,
/// shape or device.
std::unique_ptr<Convolution> cudnn_convolution(Device& device,
                                               abi::Stream stream,
                                               const ConvolutionShape& shape,
                                               std::string_view interface);
std::unique_ptr<Convolution> cudnn_legacy_convolution(Device& device,
                                                      abi::Stream stream,
                                                      const ConvolutionShape& shape);
std::unique_ptr<Convolution> cudnn_graph_convolution(Device& device,
                                                     abi::Stream stream,
                                                     const ConvolutionShape& shape);

/// NCCL's sums over several GPUs. Loads it on first use. Throws Unsupported where it is missing.
std::unique_ptr<Collective> nccl_collective(std::span<Device* const> devices);

// --- The CUDA runtime's ways to launch, through the plugin of runtime_plugin.h ---

/// Loads the plugin once per process. Throws Unsupported if there is none or it cannot be used
/// here, with what to do about it.
std::unique_ptr<NullLauncher> runtime_launcher(RuntimeApi api);

// --- The CUDA driver's ways to get memory ---

/// Throws Unsupported for a kind that GPUs, or this GPU's driver, do not have.
std::unique_ptr<Allocator> make_allocator(const Driver& driver,
                                          CudaStream& stream,
                                          abi::Device device,
                                          AllocatorKind kind,
                                          launchgap::Device& of);

/// The driver's virtual memory management. Throws Unsupported where the driver or the GPU has none.
std::unique_ptr<VirtualMemory> make_virtual_memory(const Driver& driver, abi::Device device);

// --- What the libraries have in common ---

/// The libraries loaded so far.
std::vector<LoadedLibrary> loaded_libraries();
void note_loaded(const LoadedLibrary& library);

/// The compute capability as a number, 90 for "9.0"; 0 if unknown.
int capability(const DeviceFacts& facts);

/// Throws Unsupported where the type is TF32 and the device has none: the libraries would compute
/// in FP32 without a word.
void need_tf32(const DeviceFacts& facts, const ProductType& type);

}  // namespace launchgap::cuda
