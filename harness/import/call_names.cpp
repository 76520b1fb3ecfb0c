#include "harness/import/call_names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace launchgap::recording {
namespace {

using activity::Domain;
using activity::Purpose;

struct NumberedCall {
  Domain domain;
  std::uint64_t number;
  std::string_view name;
};

// CUPTI's headers, cupti_runtime_cbid.h and cupti_driver_cbid.h; numbers never change.
constexpr auto kNumbered = std::to_array<NumberedCall>({
    {Domain::runtime, 13, "cudaLaunch"},
    {Domain::runtime, 20, "cudaMalloc"},
    {Domain::runtime, 22, "cudaFree"},
    {Domain::runtime, 25, "cudaMallocHost"},
    {Domain::runtime, 26, "cudaFreeHost"},
    {Domain::runtime, 27, "cudaHostAlloc"},
    {Domain::runtime, 31, "cudaMemcpy"},
    {Domain::runtime, 32, "cudaMemcpy2D"},
    {Domain::runtime, 39, "cudaMemcpyToSymbol"},
    {Domain::runtime, 40, "cudaMemcpyFromSymbol"},
    {Domain::runtime, 41, "cudaMemcpyAsync"},
    {Domain::runtime, 44, "cudaMemcpy2DAsync"},
    {Domain::runtime, 47, "cudaMemcpyToSymbolAsync"},
    {Domain::runtime, 48, "cudaMemcpyFromSymbolAsync"},
    {Domain::runtime, 49, "cudaMemset"},
    {Domain::runtime, 51, "cudaMemsetAsync"},
    {Domain::runtime, 126, "cudaThreadSynchronize"},
    {Domain::runtime, 131, "cudaStreamSynchronize"},
    {Domain::runtime, 137, "cudaEventSynchronize"},
    {Domain::runtime, 144, "cudaMemcpy3D"},
    {Domain::runtime, 145, "cudaMemcpy3DAsync"},
    {Domain::runtime, 160, "cudaMemcpyPeer"},
    {Domain::runtime, 161, "cudaMemcpyPeerAsync"},
    {Domain::runtime, 165, "cudaDeviceSynchronize"},
    {Domain::runtime, 206, "cudaMallocManaged"},
    {Domain::runtime, 211, "cudaLaunchKernel"},
    {Domain::runtime, 214, "cudaLaunchKernel_ptsz"},
    {Domain::runtime, 215, "cudaMemcpy_ptds"},
    {Domain::runtime, 225, "cudaMemcpyAsync_ptsz"},
    {Domain::runtime, 233, "cudaMemset_ptds"},
    {Domain::runtime, 239, "cudaStreamSynchronize_ptsz"},
    {Domain::runtime, 269, "cudaLaunchCooperativeKernel"},
    {Domain::runtime, 270, "cudaLaunchCooperativeKernel_ptsz"},
    {Domain::runtime, 272, "cudaLaunchCooperativeKernelMultiDevice"},
    {Domain::runtime, 311, "cudaGraphLaunch"},
    {Domain::runtime, 312, "cudaGraphLaunch_ptsz"},
    {Domain::runtime, 315, "cudaStreamBeginCapture"},
    {Domain::runtime, 316, "cudaStreamBeginCapture_ptsz"},
    {Domain::runtime, 319, "cudaStreamEndCapture"},
    {Domain::runtime, 320, "cudaStreamEndCapture_ptsz"},
    {Domain::runtime, 373, "cudaMallocAsync"},
    {Domain::runtime, 374, "cudaMallocAsync_ptsz"},
    {Domain::runtime, 375, "cudaFreeAsync"},
    {Domain::runtime, 376, "cudaFreeAsync_ptsz"},
    {Domain::runtime, 391, "cudaMallocFromPoolAsync"},
    {Domain::runtime, 392, "cudaMallocFromPoolAsync_ptsz"},
    {Domain::runtime, 430, "cudaLaunchKernelExC"},
    {Domain::runtime, 431, "cudaLaunchKernelExC_ptsz"},
    {Domain::runtime, 452, "cudaStreamBeginCaptureToGraph"},
    {Domain::runtime, 453, "cudaStreamBeginCaptureToGraph_ptsz"},
    {Domain::runtime, 505, "__cudaLaunchKernel"},
    {Domain::runtime, 506, "__cudaLaunchKernel_ptsz"},
    {Domain::driver, 17, "cuCtxSynchronize"},
    {Domain::driver, 38, "cuMemFreeHost"},
    {Domain::driver, 39, "cuMemHostAlloc"},
    {Domain::driver, 115, "cuLaunch"},
    {Domain::driver, 116, "cuLaunchGrid"},
    {Domain::driver, 117, "cuLaunchGridAsync"},
    {Domain::driver, 121, "cuEventSynchronize"},
    {Domain::driver, 126, "cuStreamSynchronize"},
    {Domain::driver, 216, "cuMemsetD8Async"},
    {Domain::driver, 218, "cuMemsetD16Async"},
    {Domain::driver, 220, "cuMemsetD32Async"},
    {Domain::driver, 243, "cuMemAlloc"},
    {Domain::driver, 244, "cuMemAllocPitch"},
    {Domain::driver, 245, "cuMemFree"},
    {Domain::driver, 249, "cuMemsetD8"},
    {Domain::driver, 250, "cuMemsetD16"},
    {Domain::driver, 251, "cuMemsetD32"},
    {Domain::driver, 271, "cuMemHostAlloc"},
    {Domain::driver, 276, "cuMemcpyHtoD"},
    {Domain::driver, 277, "cuMemcpyHtoDAsync"},
    {Domain::driver, 278, "cuMemcpyDtoH"},
    {Domain::driver, 279, "cuMemcpyDtoHAsync"},
    {Domain::driver, 280, "cuMemcpyDtoD"},
    {Domain::driver, 281, "cuMemcpyDtoDAsync"},
    {Domain::driver, 287, "cuMemcpy2D"},
    {Domain::driver, 288, "cuMemcpy2DUnaligned"},
    {Domain::driver, 289, "cuMemcpy2DAsync"},
    {Domain::driver, 290, "cuMemcpy3D"},
    {Domain::driver, 291, "cuMemcpy3DAsync"},
    {Domain::driver, 294, "cuMemAllocHost"},
    {Domain::driver, 305, "cuMemcpy"},
    {Domain::driver, 306, "cuMemcpyAsync"},
    {Domain::driver, 307, "cuLaunchKernel"},
    {Domain::driver, 318, "cuMemcpyPeer"},
    {Domain::driver, 319, "cuMemcpyPeerAsync"},
    {Domain::driver, 371, "cuMemAllocManaged"},
    {Domain::driver, 397, "cuMemcpyHtoD_v2_ptds"},
    {Domain::driver, 398, "cuMemcpyDtoH_v2_ptds"},
    {Domain::driver, 399, "cuMemcpyDtoD_v2_ptds"},
    {Domain::driver, 408, "cuMemcpy_ptds"},
    {Domain::driver, 418, "cuMemcpyAsync_ptsz"},
    {Domain::driver, 421, "cuMemcpyHtoDAsync_v2_ptsz"},
    {Domain::driver, 422, "cuMemcpyDtoHAsync_v2_ptsz"},
    {Domain::driver, 423, "cuMemcpyDtoDAsync_v2_ptsz"},
    {Domain::driver, 428, "cuMemsetD8Async_ptsz"},
    {Domain::driver, 429, "cuMemsetD16Async_ptsz"},
    {Domain::driver, 430, "cuMemsetD32Async_ptsz"},
    {Domain::driver, 440, "cuStreamSynchronize_ptsz"},
    {Domain::driver, 442, "cuLaunchKernel_ptsz"},
    {Domain::driver, 477, "cuLaunchCooperativeKernel"},
    {Domain::driver, 478, "cuLaunchCooperativeKernel_ptsz"},
    {Domain::driver, 480, "cuLaunchCooperativeKernelMultiDevice"},
    {Domain::driver, 495, "cuStreamBeginCapture"},
    {Domain::driver, 496, "cuStreamBeginCapture_ptsz"},
    {Domain::driver, 497, "cuStreamEndCapture"},
    {Domain::driver, 498, "cuStreamEndCapture_ptsz"},
    {Domain::driver, 514, "cuGraphLaunch"},
    {Domain::driver, 515, "cuGraphLaunch_ptsz"},
    {Domain::driver, 539, "cuStreamBeginCapture"},
    {Domain::driver, 540, "cuStreamBeginCapture_v2_ptsz"},
    {Domain::driver, 598, "cuMemAllocAsync"},
    {Domain::driver, 599, "cuMemAllocAsync_ptsz"},
    {Domain::driver, 600, "cuMemFreeAsync"},
    {Domain::driver, 601, "cuMemFreeAsync_ptsz"},
    {Domain::driver, 611, "cuMemAllocFromPoolAsync"},
    {Domain::driver, 612, "cuMemAllocFromPoolAsync_ptsz"},
    {Domain::driver, 652, "cuLaunchKernelEx"},
    {Domain::driver, 653, "cuLaunchKernelEx_ptsz"},
    {Domain::driver, 720, "cuStreamBeginCaptureToGraph"},
    {Domain::driver, 721, "cuStreamBeginCaptureToGraph_ptsz"},
    {Domain::driver, 800, "cuCtxSynchronize"},
});

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

}  // namespace

Purpose purpose_of(std::string_view name) {
  // A host function is no work of the device.
  if (contains(name, "LaunchHostFunc")) return Purpose::other;
  if (contains(name, "GraphLaunch")) return Purpose::launch_graph;
  if (contains(name, "Launch")) return Purpose::launch;
  if (contains(name, "Synchronize")) return Purpose::wait;
  if (contains(name, "Memcpy")) return Purpose::copy;
  if (contains(name, "Memset")) return Purpose::fill;
  if (contains(name, "Malloc") || contains(name, "MemAlloc") || contains(name, "HostAlloc"))
    return Purpose::allocate;
  if (name.starts_with("cudaFree") || contains(name, "MemFree")) return Purpose::release;
  return Purpose::other;
}

Domain domain_of(std::string_view name) {
  return name.starts_with("cu") && name.size() > 2 && is_upper(name[2]) ? Domain::driver
                                                                        : Domain::runtime;
}

std::string_view without_version(std::string_view name) {
  const std::size_t version = name.rfind("_v");
  if (version == std::string_view::npos) return name;
  const std::string_view digits = name.substr(version + 2);
  const bool is_version =
      !digits.empty() && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return is_version ? name.substr(0, version) : name;
}

std::string_view name_of_call(Domain domain, std::uint64_t number) {
  const auto known = std::ranges::find_if(kNumbered, [&](const NumberedCall& call) {
    return call.domain == domain && call.number == number;
  });
  return known == kNumbered.end() ? std::string_view() : known->name;
}

std::string name_or_number(Domain domain, std::uint64_t number) {
  const std::string_view known = name_of_call(domain, number);
  if (!known.empty()) return std::string(known);
  return fmt::format("{} call {}", domain == Domain::driver ? "driver" : "runtime", number);
}

bool waits_for_device(std::string_view name) {
  return name.starts_with("cudaDeviceSynchronize") || name.starts_with("cuCtxSynchronize") ||
         name.starts_with("cudaThreadSynchronize");
}

bool is_collective(std::string_view kernel) {
  return kernel.starts_with("nccl");
}

bool is_of_amd(std::string_view name) {
  return name.starts_with("hip") && name.size() > 3 && is_upper(name[3]);
}

}  // namespace launchgap::recording
