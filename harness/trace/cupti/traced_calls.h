// The functions whose calls are worth a record, by CUPTI's numbers: whoever records enables these
// one by one where the library can, and whole domains elsewhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "harness/trace/cupti/abi.h"

namespace launchgap::cupti {

inline constexpr std::uint32_t kDriverLaunches[] = {abi::kLaunchKernel,
                                                    abi::kLaunchKernelPtsz,
                                                    abi::kLaunchKernelEx,
                                                    abi::kLaunchKernelExPtsz,
                                                    abi::kLaunchCooperativeKernel,
                                                    abi::kLaunchCooperativeKernelPtsz,
                                                    abi::kGraphLaunch,
                                                    abi::kGraphLaunchPtsz};

inline constexpr std::uint32_t kRuntimeLaunches[] = {abi::kCudaLaunchKernel,
                                                     abi::kCudaLaunchKernelPtsz,
                                                     abi::kInternalCudaLaunchKernel,
                                                     abi::kInternalCudaLaunchKernelPtsz,
                                                     abi::kCudaLaunchKernelExC,
                                                     abi::kCudaLaunchKernelExCPtsz,
                                                     abi::kCudaLaunchCooperativeKernel,
                                                     abi::kCudaLaunchCooperativeKernelPtsz,
                                                     abi::kCudaGraphLaunch,
                                                     abi::kCudaGraphLaunchPtsz};

inline constexpr std::uint32_t kDriverAllocations[] = {abi::kMemAlloc,
                                                       abi::kMemFree,
                                                       abi::kMemAllocAsync,
                                                       abi::kMemAllocAsyncPtsz,
                                                       abi::kMemFreeAsync,
                                                       abi::kMemFreeAsyncPtsz};

// cuStreamBeginCapture and cuStreamEndCapture, and the runtime's: a launch between them starts
// nothing.
inline constexpr std::uint32_t kDriverCaptures[] = {495, 496, 497, 498, 539, 540, 720, 721};
inline constexpr std::uint32_t kRuntimeCaptures[] = {315, 316, 319, 320, 452, 453};

// What a program does beside launching; launchgap's own benchmarks have no use for it. Names are in
// harness/import/call_names.cpp. Source: cupti_driver_cbid.h and cupti_runtime_cbid.h of CUDA 13.0.

inline constexpr std::uint32_t kOtherDriverCalls[] = {
    17,  800,                                // cuCtxSynchronize
    121,                                     // cuEventSynchronize
    126, 440,                                // cuStreamSynchronize
    244, 611, 612, 39,  271, 294, 38,  371,  // cuMemAlloc and of pools, host memory, managed memory
    276, 277, 278, 279, 280, 281, 305, 306,  // cuMemcpy…
    397, 398, 399, 408, 418, 421, 422, 423,  // of the per-thread default stream
    287, 288, 289, 290, 291, 318, 319,       // 2D, 3D, peers
    216, 218, 220, 249, 250, 251, 428, 429, 430,  // cuMemset…
};

inline constexpr std::uint32_t kOtherRuntimeCalls[] = {
    131, 239,                                // cudaStreamSynchronize
    137,                                     // cudaEventSynchronize
    165,                                     // cudaDeviceSynchronize
    20,  22,  25,  26,  27,  206,            // cudaMalloc, cudaFree, host and managed memory
    373, 374, 375, 376, 391, 392,            // cudaMallocAsync, cudaFreeAsync, pools
    31,  41,  215, 225, 32,  44,  144, 145,  // cudaMemcpy…
    39,  40,  47,  48,  160, 161,            // to and from symbols, peers
    49,  51,  233, 235,                      // cudaMemset…
};

/// Enables the records of each call by `enable`; false if it could for none.
inline bool enable_each(abi::Result (*enable)(std::uint32_t call, std::uint8_t enabled),
                        std::span<const std::uint32_t> calls) {
  if (!enable) return false;
  return std::ranges::count_if(
             calls, [&](std::uint32_t call) { return enable(call, 1) == abi::kSuccess; }) > 0;
}

}  // namespace launchgap::cupti
