// The part of the CUDA driver's binary interface that launchgap calls, declared here so that the
// binary builds without a CUDA toolkit and one build serves drivers from R470 (Kepler) to today's.
//
// tests/device/cuda_abi_test.cpp compares every value and layout with NVIDIA's cuda.h where a
// toolkit is installed. Source: CUDA Driver API reference, "Data types used by CUDA driver".
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace launchgap::cuda::abi {

using Result = int;
using Device = int;
using DevicePointer = unsigned long long;
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using MemoryPool = struct MemoryPoolHandle*;
using PhysicalMemory = unsigned long long;  // CUmemGenericAllocationHandle
using Graph = struct GraphHandle*;
using GraphNode = struct GraphNodeHandle*;
using GraphExec = struct GraphExecHandle*;

struct Uuid {
  unsigned char bytes[16];
};

enum LaunchAttributeId : int {
  kLaunchCooperative =
      2,  // the grid's blocks are all resident at once, so they can wait for each other
  kLaunchProgrammatic =
      6,  // may begin before what is ahead of it in the stream has ended (9.0 and later)
};

/// CUlaunchAttribute. Of the union only what launchgap sets is spelled out.
struct LaunchAttribute {
  int id;
  char pad[8 - sizeof(int)];
  union {
    char bytes[64];
    int flag;  // of kLaunchCooperative and kLaunchProgrammatic: on or off
  } value;
};

/// CUmemLocation.
struct MemoryLocation {
  int type;  // kOnDevice
  int id;    // the device
};

/// CUmemAllocationProp of cuMemCreate.
struct PhysicalMemoryProperties {
  int type;  // kPinned
  int handle_types;
  MemoryLocation location;
  void* metadata;
  unsigned char flags[8];
};

/// CUmemAccessDesc of cuMemSetAccess.
struct AccessDescription {
  MemoryLocation location;
  int flags;  // kReadAndWrite
};

/// CUmemPoolProps of cuMemPoolCreate; drivers before 12.2 know what follows `security` as reserved.
struct MemoryPoolProperties {
  int type;  // kPinned
  int handle_types;
  MemoryLocation location;
  void* security;
  std::size_t max_bytes;  // 0: the driver's choice
  unsigned short usage;
  unsigned char reserved[54];
};

/// CUlaunchConfig of cuLaunchKernelEx (driver 11.8 and later).
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

/// CUgraphExecUpdateResultInfo.
struct GraphUpdateResult {
  int result;  // GraphUpdate
  GraphNode node, from;
};
enum GraphUpdate : int { kGraphUpdated = 0, kGraphUpdateError = 1, kGraphTopologyChanged = 2 };
enum CaptureMode : int { kCaptureThreadLocal = 1 };

enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kUnsupportedLimit = 215,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kUnsupportedPtxVersion = 222,
  kInvalidSource = 300,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kTensorMemoryLeak = 721,
  kCooperativeLaunchTooLarge = 720,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kCompatNotSupportedOnDevice = 804,
  kMpsClientTerminated = 810,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kGraphUpdateFailure = 910,
  kUnknown = 999,
};

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kWarpSize = 10,
  kClockRateKhz = 13,
  kMultiprocessorCount = 16,
  kIntegrated = 18,
  kCanMapHostMemory = 19,
  kComputeMode = 20,
  kEccEnabled = 32,
  kMemoryClockRateKhz = 36,
  kGlobalMemoryBusWidth = 37,
  kL2CacheBytes = 38,
  kThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kStreamPrioritiesSupported = 78,
  kManagedMemorySupported = 83,
  kConcurrentManagedAccess = 89,
  kCooperativeLaunchSupported = 95,
  kVirtualMemorySupported = 102,
  kMemoryPoolsSupported = 115,
};

enum FunctionAttribute : int {
  kPtxVersion = 5,
  kBinaryVersion = 6,
  kMaxDynamicSharedBytes = 8,
};

/// A tensor map: 128 bytes that only the driver and the GPU read.
struct TensorMap {
  alignas(128) std::uint64_t opaque[16] = {};
};
enum TensorMapOption : int {
  kTensorBfloat16 = 9,
  kTensorNoInterleave = 0,
  kTensorSwizzle128 = 3,
  kTensorPromote128 = 2,
  kTensorFillZero = 0,
};

enum JitOption : int {
  kJitErrorLogBuffer = 5,
  kJitErrorLogBufferSizeBytes = 6,
};

enum MemoryPoolAttribute : int {
  kReleaseThreshold = 4,  // 64-bit count of bytes that a synchronisation leaves in the pool
  kReservedMemory = 5,    // 64-bit count of bytes that the pool has now, since CUDA 11.3
};

enum MemoryLocationType : int { kOnDevice = 1 };
enum PhysicalMemoryType : int { kPinned = 1 };
enum AccessFlag : int { kReadAndWrite = 3 };
enum GranularityOption : int { kLeastGranularity = 0 };

enum ContextFlag : unsigned {
  kScheduleAuto = 0,
  kScheduleSpin = 1,
  kScheduleYield = 2,
  kScheduleBlockingSync = 4,
};

enum StreamFlag : unsigned { kStreamDefault = 0, kStreamNonBlocking = 1 };
enum EventFlag : unsigned { kEventDefault = 0, kEventBlockingSync = 1, kEventDisableTiming = 2 };
enum HostAllocFlag : unsigned { kHostAllocPortable = 1, kHostAllocDeviceMap = 2 };
enum HostRegisterFlag : unsigned { kHostRegisterPortable = 1 };
enum ManagedFlag : unsigned { kAttachGlobal = 1 };
enum ModuleLoadingMode : int { kEagerLoading = 1, kLazyLoading = 2 };

/// Every driver function that launchgap calls, as X(exported symbol, required, signature).
/// Optional ones are missing in old drivers, and their users say what that costs.
#define LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(X)                                                       \
  X(cuInit, true, Result(unsigned flags))                                                        \
  X(cuDriverGetVersion, true, Result(int* version))                                              \
  X(cuGetErrorName, true, Result(Result code, const char** name))                                \
  X(cuGetErrorString, true, Result(Result code, const char** text))                              \
  X(cuDeviceGetCount, true, Result(int* count))                                                  \
  X(cuDeviceGet, true, Result(Device* device, int ordinal))                                      \
  X(cuDeviceGetName, true, Result(char* name, int bytes, Device device))                         \
  X(cuDeviceGetUuid, true, Result(Uuid* uuid, Device device))                                    \
  X(cuDeviceGetUuid_v2, false, Result(Uuid* uuid, Device device))                                \
  X(cuDeviceTotalMem_v2, true, Result(std::size_t* bytes, Device device))                        \
  X(cuDeviceGetAttribute, true, Result(int* value, int attribute, Device device))                \
  X(cuDeviceGetPCIBusId, true, Result(char* text, int bytes, Device device))                     \
  X(cuDevicePrimaryCtxSetFlags_v2, true, Result(Device device, unsigned flags))                  \
  X(cuDevicePrimaryCtxRetain, true, Result(Context* context, Device device))                     \
  X(cuDevicePrimaryCtxRelease_v2, true, Result(Device device))                                   \
  X(cuCtxSetCurrent, true, Result(Context context))                                              \
  X(cuCtxSynchronize, true, Result())                                                            \
  X(cuStreamCreate, true, Result(Stream* stream, unsigned flags))                                \
  X(cuStreamDestroy_v2, true, Result(Stream stream))                                             \
  X(cuStreamSynchronize, true, Result(Stream stream))                                            \
  X(cuStreamQuery, true, Result(Stream stream))                                                  \
  X(cuEventCreate, true, Result(Event* event, unsigned flags))                                   \
  X(cuEventDestroy_v2, true, Result(Event event))                                                \
  X(cuEventRecord, true, Result(Event event, Stream stream))                                     \
  X(cuEventSynchronize, true, Result(Event event))                                               \
  X(cuEventElapsedTime, true, Result(float* milliseconds, Event begin, Event end))               \
  X(cuModuleLoadDataEx,                                                                          \
    true,                                                                                        \
    Result(Module* module, const void* image, unsigned count, int* options, void** values))      \
  X(cuModuleUnload, true, Result(Module module))                                                 \
  X(cuModuleGetFunction, true, Result(Function* function, Module module, const char* name))      \
  X(cuModuleGetLoadingMode, false, Result(int* mode))                                            \
  X(cuFuncGetAttribute, true, Result(int* value, int attribute, Function function))              \
  X(cuFuncSetAttribute, false, Result(Function function, int attribute, int value))              \
  X(cuTensorMapEncodeTiled,                                                                      \
    false,                                                                                       \
    Result(TensorMap* map,                                                                       \
           int type,                                                                             \
           unsigned rank,                                                                        \
           void* address,                                                                        \
           const std::uint64_t* sizes,                                                           \
           const std::uint64_t* strides,                                                         \
           const unsigned* box,                                                                  \
           const unsigned* element_strides,                                                      \
           int interleave,                                                                       \
           int swizzle,                                                                          \
           int promotion,                                                                        \
           int fill))                                                                            \
  X(cuLaunchKernel,                                                                              \
    true,                                                                                        \
    Result(Function function,                                                                    \
           unsigned grid_x,                                                                      \
           unsigned grid_y,                                                                      \
           unsigned grid_z,                                                                      \
           unsigned block_x,                                                                     \
           unsigned block_y,                                                                     \
           unsigned block_z,                                                                     \
           unsigned shared_bytes,                                                                \
           Stream stream,                                                                        \
           void** parameters,                                                                    \
           void** extra))                                                                        \
  X(cuLaunchKernelEx,                                                                            \
    false,                                                                                       \
    Result(const LaunchConfig* config, Function function, void** parameters, void** extra))      \
  X(cuCtxGetStreamPriorityRange, true, Result(int* least, int* greatest))                        \
  X(cuStreamCreateWithPriority, true, Result(Stream* stream, unsigned flags, int priority))      \
  X(cuStreamWaitEvent, true, Result(Stream stream, Event event, unsigned flags))                 \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                 \
    true,                                                                                        \
    Result(int* blocks, Function function, int threads, std::size_t shared_bytes))               \
  X(cuLaunchCooperativeKernel,                                                                   \
    false,                                                                                       \
    Result(Function function,                                                                    \
           unsigned grid_x,                                                                      \
           unsigned grid_y,                                                                      \
           unsigned grid_z,                                                                      \
           unsigned block_x,                                                                     \
           unsigned block_y,                                                                     \
           unsigned block_z,                                                                     \
           unsigned shared_bytes,                                                                \
           Stream stream,                                                                        \
           void** parameters))                                                                   \
  X(cuStreamBeginCapture_v2, false, Result(Stream stream, int mode))                             \
  X(cuStreamEndCapture, false, Result(Stream stream, Graph* graph))                              \
  X(cuGraphGetNodes, false, Result(Graph graph, GraphNode* nodes, std::size_t* count))           \
  X(cuGraphInstantiateWithFlags,                                                                 \
    false,                                                                                       \
    Result(GraphExec* executable, Graph graph, unsigned long long flags))                        \
  X(cuGraphUpload, false, Result(GraphExec executable, Stream stream))                           \
  X(cuGraphLaunch, false, Result(GraphExec executable, Stream stream))                           \
  X(cuGraphExecUpdate_v2,                                                                        \
    false,                                                                                       \
    Result(GraphExec executable, Graph graph, GraphUpdateResult* result))                        \
  X(cuGraphExecUpdate,                                                                           \
    false,                                                                                       \
    Result(GraphExec executable, Graph graph, GraphNode* node, int* result))                     \
  X(cuGraphDestroy, false, Result(Graph graph))                                                  \
  X(cuGraphExecDestroy, false, Result(GraphExec executable))                                     \
  X(cuMemGetInfo_v2, true, Result(std::size_t* free, std::size_t* total))                        \
  X(cuMemAlloc_v2, true, Result(DevicePointer* pointer, std::size_t bytes))                      \
  X(cuMemFree_v2, true, Result(DevicePointer pointer))                                           \
  X(cuMemHostAlloc, true, Result(void** pointer, std::size_t bytes, unsigned flags))             \
  X(cuMemHostGetDevicePointer_v2,                                                                \
    true,                                                                                        \
    Result(DevicePointer* pointer, void* host, unsigned flags))                                  \
  X(cuMemFreeHost, true, Result(void* pointer))                                                  \
  X(cuMemcpyHtoD_v2, true, Result(DevicePointer to, const void* from, std::size_t bytes))        \
  X(cuMemcpyDtoH_v2, true, Result(void* to, DevicePointer from, std::size_t bytes))              \
  X(cuMemcpyDtoDAsync_v2,                                                                        \
    true,                                                                                        \
    Result(DevicePointer to, DevicePointer from, std::size_t bytes, Stream stream))              \
  X(cuMemcpyHtoDAsync_v2,                                                                        \
    true,                                                                                        \
    Result(DevicePointer to, const void* from, std::size_t bytes, Stream stream))                \
  X(cuMemcpyDtoHAsync_v2,                                                                        \
    true,                                                                                        \
    Result(void* to, DevicePointer from, std::size_t bytes, Stream stream))                      \
  X(cuMemsetD8Async,                                                                             \
    true,                                                                                        \
    Result(DevicePointer to, unsigned char value, std::size_t bytes, Stream s))                  \
  X(cuMemAllocAsync, false, Result(DevicePointer* pointer, std::size_t bytes, Stream stream))    \
  X(cuMemFreeAsync, false, Result(DevicePointer pointer, Stream stream))                         \
  X(cuDeviceGetDefaultMemPool, false, Result(MemoryPool* pool, Device device))                   \
  X(cuMemPoolSetAttribute, false, Result(MemoryPool pool, int attribute, void* value))           \
  X(cuMemPoolGetAttribute, false, Result(MemoryPool pool, int attribute, void* value))           \
  X(cuMemPoolTrimTo, false, Result(MemoryPool pool, std::size_t bytes_to_keep))                  \
  X(cuMemPoolCreate, false, Result(MemoryPool* pool, const MemoryPoolProperties* properties))    \
  X(cuMemPoolDestroy, false, Result(MemoryPool pool))                                            \
  X(cuMemAllocFromPoolAsync,                                                                     \
    false,                                                                                       \
    Result(DevicePointer* pointer, std::size_t bytes, MemoryPool pool, Stream stream))           \
  X(cuMemHostRegister_v2, false, Result(void* pointer, std::size_t bytes, unsigned flags))       \
  X(cuMemHostUnregister, false, Result(void* pointer))                                           \
  X(cuMemAllocManaged, false, Result(DevicePointer* pointer, std::size_t bytes, unsigned flags)) \
  X(cuMemGetAllocationGranularity,                                                               \
    false,                                                                                       \
    Result(std::size_t* bytes, const PhysicalMemoryProperties* properties, int option))          \
  X(cuMemAddressReserve,                                                                         \
    false,                                                                                       \
    Result(DevicePointer* pointer,                                                               \
           std::size_t bytes,                                                                    \
           std::size_t alignment,                                                                \
           DevicePointer wish,                                                                   \
           unsigned long long flags))                                                            \
  X(cuMemAddressFree, false, Result(DevicePointer pointer, std::size_t bytes))                   \
  X(cuMemCreate,                                                                                 \
    false,                                                                                       \
    Result(PhysicalMemory* memory,                                                               \
           std::size_t bytes,                                                                    \
           const PhysicalMemoryProperties* properties,                                           \
           unsigned long long flags))                                                            \
  X(cuMemRelease, false, Result(PhysicalMemory memory))                                          \
  X(cuMemMap,                                                                                    \
    false,                                                                                       \
    Result(DevicePointer pointer,                                                                \
           std::size_t bytes,                                                                    \
           std::size_t offset,                                                                   \
           PhysicalMemory memory,                                                                \
           unsigned long long flags))                                                            \
  X(cuMemUnmap, false, Result(DevicePointer pointer, std::size_t bytes))                         \
  X(cuMemSetAccess,                                                                              \
    false,                                                                                       \
    Result(DevicePointer pointer,                                                                \
           std::size_t bytes,                                                                    \
           const AccessDescription* access,                                                      \
           std::size_t count))

/// One pointer per function; optional ones may be null.
struct DriverFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cuda::abi
