// The part of CUPTI's binary interface that launchgap reads, declared here so that the binary
// builds without a CUDA toolkit and one build reads every library from CUDA 11 to 13.
//
// A library fills the newest version of a record that it knows and appends fields from version to
// version, so each struct here is the prefix that all of them share, and records are only ever
// stepped over by the loaded library's own cuptiActivityGetNextRecord. Sizes and offsets are pinned
// below; tests/trace/cupti_abi_test.cpp compares them, and every number, with NVIDIA's headers
// where a toolkit is installed. Source: cupti_activity.h, cupti_activity_deprecated.h,
// cupti_driver_cbid.h and cupti_runtime_cbid.h of CUDA 13.0 Update 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace launchgap::cupti::abi {

using Result = int;
using Subscriber = struct SubscriberHandle*;
using Context = struct TracedContextHandle*;  // a CUcontext

enum : Result {
  kSuccess = 0,
  kInvalidParameter = 1,
  kApiNotImplemented = 11,
  kMaxLimitReached = 12,
  kNotInitialized = 15,
  kInvalidKind = 21,
  kNotSupported = 27,
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,
  kVirtualisedInsufficientPrivileges = 40,
  kUnknown = 999,
};

enum Kind : std::uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriverApi = 4,
  kRuntimeApi = 5,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kSynchronization = 38,
  kMemory2 = 49,
  kGraphTrace = 51,
};

/// Ids of API functions; `_ptsz` is the per-thread default stream's variant.
enum DriverCall : std::uint32_t {
  kMemAlloc = 243,  // cuMemAlloc_v2
  kMemFree = 245,   // cuMemFree_v2
  kLaunchKernel = 307,
  kLaunchKernelPtsz = 442,
  kLaunchCooperativeKernel = 477,
  kLaunchCooperativeKernelPtsz = 478,
  kGraphLaunch = 514,
  kGraphLaunchPtsz = 515,
  kMemAllocAsync = 598,
  kMemAllocAsyncPtsz = 599,
  kMemFreeAsync = 600,
  kMemFreeAsyncPtsz = 601,
  kLaunchKernelEx = 652,
  kLaunchKernelExPtsz = 653,
};

enum RuntimeCall : std::uint32_t {
  kCudaLaunchKernel = 211,
  kCudaLaunchKernelPtsz = 214,
  kCudaLaunchCooperativeKernel = 269,
  kCudaLaunchCooperativeKernelPtsz = 270,
  kCudaGraphLaunch = 311,
  kCudaGraphLaunchPtsz = 312,
  kCudaLaunchKernelExC = 430,
  kCudaLaunchKernelExCPtsz = 431,
  kInternalCudaLaunchKernel = 505,  // __cudaLaunchKernel: what nvcc 13 makes of <<<>>>
  kInternalCudaLaunchKernelPtsz = 506,
};

enum MemoryOperation : std::uint32_t { kAllocation = 1, kRelease = 2 };

enum OverheadKind : std::uint32_t {
  kDriverCompiler = 1,
  kBufferFlush = 1 << 16,
  kInstrumentation = 2 << 16,
  kResource = 3 << 16,
  kModuleLoading = 4 << 16,
  kLazyFunctionLoading = 5 << 16,
  kCommandBufferFull = 6 << 16,
  kBufferRequest = 7 << 16,
  kManagedMemoryInit = 8 << 16,
};

enum SynchronizationType : std::uint32_t {
  kEventSynchronize = 1,
  kStreamWaitEvent = 2,
  kStreamSynchronize = 3,
  kContextSynchronize = 4,
};

enum Attribute : std::uint32_t {
  kDeviceBufferSize = 0,
  kDeviceBufferPoolLimit = 2,
  kZeroedOutBuffer = 5,
  kDeviceBufferPreAllocate = 6,
};

/// What a record calls a thread by: pthread_self(), cut to 32 bits, or gettid().
enum ThreadIdType : std::uint32_t { kThreadIdDefault = 0, kThreadIdSystem = 1 };

inline constexpr std::uint32_t kFlushCompleted = 0;
inline constexpr std::uint32_t kFlushForced = 1;

struct Activity {
  Kind kind;
};

struct ApiActivity {
  Kind kind;
  std::uint32_t call;
  std::uint64_t start, end;
  std::uint32_t process, thread;
  std::uint32_t correlation;
  std::uint32_t return_value;
};
static_assert(sizeof(ApiActivity) == 40 && offsetof(ApiActivity, correlation) == 32);

/// CUpti_ActivityKernel4 up to `submitted`, the same to CUpti_ActivityKernel10.
struct KernelActivity {
  Kind kind;
  std::uint8_t cache_config, shared_memory_config;
  std::uint16_t registers_per_thread;
  std::uint32_t partitioned_cache_requested, partitioned_cache_executed;
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid_x, grid_y, grid_z;
  std::int32_t block_x, block_y, block_z;
  std::int32_t static_shared_memory, dynamic_shared_memory;
  std::uint32_t local_memory_per_thread, local_memory_total;
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
  void* reserved;
  std::uint64_t queued, submitted;
};
static_assert(offsetof(KernelActivity, start) == 16 && offsetof(KernelActivity, device) == 40 &&
              offsetof(KernelActivity, grid_x) == 52 && offsetof(KernelActivity, block_x) == 64 &&
              offsetof(KernelActivity, correlation) == 92 &&
              offsetof(KernelActivity, name) == 104 && offsetof(KernelActivity, queued) == 120 &&
              sizeof(KernelActivity) == 136);

/// CUpti_ActivityOverhead has these; `correlation` and `data` came later (CUDA 12.2 and 12.4).
struct OverheadActivity {
  Kind kind;
  OverheadKind overhead;
  std::uint32_t object_kind;
  std::uint32_t object[3];
  std::uint64_t start, end;
};
static_assert(offsetof(OverheadActivity, start) == 24 && sizeof(OverheadActivity) == 40);

/// CUpti_ActivityOverhead3, which CUPTI fills from CUDA 12.4 on. `data` is for the reader to free.
struct OverheadActivity3 {
  OverheadActivity common;
  std::uint32_t correlation;
  std::uint32_t reserved;
  void* data;
};
static_assert(offsetof(OverheadActivity3, correlation) == 40 && sizeof(OverheadActivity3) == 56);

struct SynchronizationActivity {
  Kind kind;
  SynchronizationType type;
  std::uint64_t start, end;
  std::uint32_t correlation;
  std::uint32_t context, stream, event;
};
static_assert(sizeof(SynchronizationActivity) == 40 &&
              offsetof(SynchronizationActivity, correlation) == 24);

/// CUpti_ActivityMemory2 up to the pool's address.
struct MemoryActivity {
  Kind kind;
  MemoryOperation operation;
  std::uint32_t memory_kind;
  std::uint32_t correlation;
  std::uint64_t address, bytes;
  std::uint64_t timestamp;
  std::uint64_t program_counter;
  std::uint32_t process, device, context, stream;
  const char* name;
  std::uint32_t is_async;
  std::uint32_t padding;
  std::uint32_t pool_type;  // 0: not from a pool
  std::uint32_t pool_padding;
  std::uint64_t pool;
};
static_assert(offsetof(MemoryActivity, bytes) == 24 && offsetof(MemoryActivity, timestamp) == 32 &&
              offsetof(MemoryActivity, is_async) == 72 && offsetof(MemoryActivity, pool) == 88);

/// A copy or a fill: CUpti_ActivityMemcpy3 and CUpti_ActivityMemset2 up to the correlation, the
/// same to CUpti_ActivityMemcpy6 and CUpti_ActivityMemset4.
struct TransferActivity {
  Kind kind;
  std::uint32_t how;  // from where to where, or the value
  std::uint64_t bytes;
  std::uint64_t start, end;
  std::uint32_t device, context, stream;
  std::uint32_t correlation;
};
/// Of a copy: CUPTI_ACTIVITY_MEMCPY_KIND_HTOD and _DTOH, in a byte with others behind it.
constexpr bool is_from_host(const TransferActivity& copy) {
  return (copy.how & 0xff) == 1;
}
constexpr bool is_to_host(const TransferActivity& copy) {
  return (copy.how & 0xff) == 2;
}
static_assert(offsetof(TransferActivity, device) == 32 && sizeof(TransferActivity) == 48);

struct GraphActivity {
  Kind kind;
  std::uint32_t correlation;
  std::uint64_t start, end;
  std::uint32_t device, graph, context, stream;
};
static_assert(sizeof(GraphActivity) == 40);

/// File names by the version of CUDA, 1000 * major + 10 * minor, the newest first. Up to CUDA 11
/// the minor version is in the name.
struct Soname {
  int cuda;
  const char* name;
};
inline constexpr Soname kSonames[] = {{13000, "libcupti.so.13"},
                                      {12000, "libcupti.so.12"},
                                      {11080, "libcupti.so.11.8"},
                                      {11070, "libcupti.so.11.7"},
                                      {11060, "libcupti.so.11.6"},
                                      {11050, "libcupti.so.11.5"},
                                      {11040, "libcupti.so.11.4"},
                                      {11030, "libcupti.so.11.3"},
                                      {11020, "libcupti.so.11.2"},
                                      {11010, "libcupti.so.11.1"},
                                      {11000, "libcupti.so.11.0"}};

/// The oldest whose records have this layout: CUDA 11.0.
inline constexpr std::uint32_t kOldestVersion = 13;
/// The oldest that survives being given no buffer: CUDA 12.9.
inline constexpr std::uint32_t kFirstThatTakesNoBuffer = 27;

/// Versions of the library, as cuptiGetVersion has them: 18 is CUDA 11.8, 23 is 12.5; from 13.0 on
/// 10000 * major + 100 * minor + patch.
inline constexpr std::uint32_t kFirstWithOverheadCorrelation = 20;  // 12.2
inline constexpr std::uint32_t kFirstWithOverheadData = 22;         // 12.4

using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records);
using BufferCompleted = void (*)(Context context,
                                 std::uint32_t stream,
                                 std::uint8_t* buffer,
                                 std::size_t bytes,
                                 std::size_t valid_bytes);
using Callback = void (*)(void* user, int domain, std::uint32_t call, const void* data);

/// CUpti_SubscriberParams of cuptiSubscribe_v2 (CUDA 13.0).
struct SubscriberParameters {
  std::size_t bytes;     // of this struct
  const char* name;      // what others are told has the process
  char* old_subscriber;  // who has it, when it is taken
  std::size_t old_subscriber_bytes;
};

// X(name, required, type): every function that is called; tracing is impossible without the
// required ones.
#define LAUNCHGAP_CUPTI_FUNCTIONS(X)                                                           \
  X(cuptiGetVersion, true, Result(std::uint32_t* version))                                     \
  X(cuptiGetTimestamp, true, Result(std::uint64_t* now))                                       \
  X(cuptiGetResultString, true, Result(Result code, const char** text))                        \
  X(cuptiSubscribe, true, Result(Subscriber* subscriber, Callback callback, void* user))       \
  X(cuptiSubscribe_v2,                                                                         \
    false,                                                                                     \
    Result(Subscriber* subscriber, Callback callback, void* user, SubscriberParameters* more)) \
  X(cuptiUnsubscribe, true, Result(Subscriber subscriber))                                     \
  X(cuptiActivityRegisterCallbacks,                                                            \
    true,                                                                                      \
    Result(BufferRequested requested, BufferCompleted completed))                              \
  X(cuptiActivityEnable, true, Result(Kind kind))                                              \
  X(cuptiActivityDisable, true, Result(Kind kind))                                             \
  X(cuptiActivityFlushAll, true, Result(std::uint32_t flag))                                   \
  X(cuptiActivityGetNextRecord,                                                                \
    true,                                                                                      \
    Result(std::uint8_t* buffer, std::size_t valid_bytes, Activity** record))                  \
  X(cuptiActivityGetNumDroppedRecords,                                                         \
    true,                                                                                      \
    Result(Context context, std::uint32_t stream, std::size_t* dropped))                       \
  X(cuptiActivitySetAttribute,                                                                 \
    false,                                                                                     \
    Result(Attribute attribute, std::size_t* bytes, void* value))                              \
  X(cuptiSetThreadIdType, false, Result(ThreadIdType type))                                    \
  X(cuptiActivityEnableDriverApi, false, Result(std::uint32_t call, std::uint8_t enable))      \
  X(cuptiActivityEnableRuntimeApi, false, Result(std::uint32_t call, std::uint8_t enable))

/// One pointer per function; optional ones may be null.
struct CuptiFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_CUPTI_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cupti::abi
