// The functions of the fake driver by name, with CUPTI's ids of them.
#pragma once

#include <cstdint>
#include <string_view>

namespace launchgap::fake {

// X(exported symbol, id). Source: cupti_driver_cbid.h of CUDA 13.0.
#define LAUNCHGAP_DRIVER_CALLS(X)                     \
  X(cuInit, 1)                                        \
  X(cuDriverGetVersion, 2)                            \
  X(cuGetErrorName, 373)                              \
  X(cuGetErrorString, 372)                            \
  X(cuDeviceGetCount, 4)                              \
  X(cuDeviceGet, 3)                                   \
  X(cuDeviceGetName, 5)                               \
  X(cuDeviceGetUuid, 482)                             \
  X(cuDeviceGetUuid_v2, 647)                          \
  X(cuDeviceTotalMem_v2, 259)                         \
  X(cuDeviceGetAttribute, 9)                          \
  X(cuDeviceGetPCIBusId, 332)                         \
  X(cuDevicePrimaryCtxSetFlags_v2, 546)               \
  X(cuDevicePrimaryCtxRetain, 386)                    \
  X(cuDevicePrimaryCtxRelease_v2, 544)                \
  X(cuCtxSetCurrent, 303)                             \
  X(cuCtxSynchronize, 17)                             \
  X(cuStreamCreate, 124)                              \
  X(cuStreamDestroy_v2, 326)                          \
  X(cuStreamSynchronize, 126)                         \
  X(cuStreamQuery, 125)                               \
  X(cuEventCreate, 118)                               \
  X(cuEventDestroy_v2, 325)                           \
  X(cuEventRecord, 119)                               \
  X(cuEventSynchronize, 121)                          \
  X(cuEventElapsedTime, 123)                          \
  X(cuModuleLoadDataEx, 20)                           \
  X(cuModuleUnload, 22)                               \
  X(cuModuleGetFunction, 23)                          \
  X(cuModuleGetLoadingMode, 673)                      \
  X(cuFuncGetAttribute, 85)                           \
  X(cuFuncSetAttribute, 481)                          \
  X(cuTensorMapEncodeTiled, 697)                      \
  X(cuLaunchKernel, 307)                              \
  X(cuLaunchKernelEx, 652)                            \
  X(cuCtxGetStreamPriorityRange, 370)                 \
  X(cuStreamCreateWithPriority, 367)                  \
  X(cuStreamWaitEvent, 295)                           \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 374) \
  X(cuLaunchCooperativeKernel, 477)                   \
  X(cuStreamBeginCapture_v2, 539)                     \
  X(cuStreamEndCapture, 497)                          \
  X(cuGraphGetNodes, 534)                             \
  X(cuGraphInstantiateWithFlags, 643)                 \
  X(cuGraphUpload, 580)                               \
  X(cuGraphLaunch, 514)                               \
  X(cuGraphExecUpdate_v2, 696)                        \
  X(cuGraphExecUpdate, 561)                           \
  X(cuGraphDestroy, 517)                              \
  X(cuGraphExecDestroy, 516)                          \
  X(cuMemGetInfo_v2, 242)                             \
  X(cuMemAlloc_v2, 243)                               \
  X(cuMemFree_v2, 245)                                \
  X(cuMemHostAlloc, 39)                               \
  X(cuMemHostGetDevicePointer_v2, 247)                \
  X(cuMemFreeHost, 38)                                \
  X(cuMemcpyHtoD_v2, 276)                             \
  X(cuMemcpyDtoH_v2, 278)                             \
  X(cuMemcpyHtoDAsync_v2, 277)                        \
  X(cuMemcpyDtoHAsync_v2, 279)                        \
  X(cuMemcpyDtoDAsync_v2, 281)                        \
  X(cuMemsetD8Async, 216)                             \
  X(cuMemAllocAsync, 598)                             \
  X(cuMemFreeAsync, 600)                              \
  X(cuDeviceGetDefaultMemPool, 606)                   \
  X(cuMemPoolSetAttribute, 603)                       \
  X(cuMemPoolGetAttribute, 604)                       \
  X(cuMemPoolTrimTo, 602)                             \
  X(cuMemPoolCreate, 607)                             \
  X(cuMemPoolDestroy, 608)                            \
  X(cuMemAllocFromPoolAsync, 611)                     \
  X(cuMemHostRegister_v2, 379)                        \
  X(cuMemHostUnregister, 302)                         \
  X(cuMemAllocManaged, 371)                           \
  X(cuMemGetAllocationGranularity, 556)               \
  X(cuMemAddressReserve, 547)                         \
  X(cuMemAddressFree, 548)                            \
  X(cuMemCreate, 549)                                 \
  X(cuMemRelease, 550)                                \
  X(cuMemMap, 551)                                    \
  X(cuMemUnmap, 552)                                  \
  X(cuMemSetAccess, 553)

/// One of them; from a name that is none it does not compile.
class DriverCall {
 public:
  consteval DriverCall(const char* name) : name_(name), id_(find(name)) {}

  const char* name() const { return name_; }
  std::uint32_t id() const { return id_; }

 private:
  static consteval std::uint32_t find(std::string_view name) {
#define LAUNCHGAP_FIND(symbol, number) \
  if (name == #symbol) return number;
    LAUNCHGAP_DRIVER_CALLS(LAUNCHGAP_FIND)
#undef LAUNCHGAP_FIND
    throw "not a function of the fake driver";
  }

  const char* name_;
  std::uint32_t id_;
};

}  // namespace launchgap::fake
