// The part of NCCL's binary interface that launchgap calls; the same in every release of NCCL 2.
// tests/device/cuda_abi_test.cpp compares it with nccl.h where that is installed.
#pragma once

#include <cstddef>
#include <type_traits>

#include "harness/device/cuda/abi/driver.h"

namespace launchgap::cuda::abi {

using NcclCommunicator = struct NcclCommunicatorState*;
using NcclResult = int;

enum : NcclResult {
  kNcclSuccess = 0,
  kNcclUnhandledCudaError = 1,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
};
enum NcclDataType : int { kNcclFloat32 = 7 };
enum NcclReduction : int { kNcclSum = 0 };

/// X(exported symbol, required, signature). Devices are the runtime's numbers, which are those of
/// cuDeviceGet. Between GroupStart and GroupEnd one thread calls for several devices; without, a
/// call of a device may wait until those of the others are made. ncclCommAbort ends the kernels
/// that wait, and may be called beside them from another thread. ncclGetLastError: since 2.13.
#define LAUNCHGAP_NCCL_FUNCTIONS(X)                                             \
  X(ncclGetVersion, true, NcclResult(int* version))                             \
  X(ncclGetErrorString, true, const char*(NcclResult result))                   \
  X(ncclGetLastError, false, const char*(NcclCommunicator communicator))        \
  X(ncclCommInitAll,                                                            \
    true,                                                                       \
    NcclResult(NcclCommunicator* communicators, int count, const int* devices)) \
  X(ncclCommDestroy, true, NcclResult(NcclCommunicator communicator))           \
  X(ncclCommAbort, true, NcclResult(NcclCommunicator communicator))             \
  X(ncclGroupStart, true, NcclResult())                                         \
  X(ncclGroupEnd, true, NcclResult())                                           \
  X(ncclAllReduce,                                                              \
    true,                                                                       \
    NcclResult(const void* from,                                                \
               void* to,                                                        \
               std::size_t count,                                               \
               NcclDataType type,                                               \
               NcclReduction reduction,                                         \
               NcclCommunicator communicator,                                   \
               Stream stream))

/// One pointer per function; optional ones may be null.
struct NcclFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_NCCL_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cuda::abi
