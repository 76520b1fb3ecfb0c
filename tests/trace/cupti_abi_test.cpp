// launchgap declares the part of CUPTI that it reads. Here the compiler compares that with NVIDIA's
// headers, and the real library decodes buffers to the same records as launchgap's decoder does:
// it needs no driver for that.
#include <cstring>
#include <random>

#include <gmock/gmock.h>

#include "harness/trace/cupti/abi.h"
#include "harness/trace/cupti/cupti.h"
#include "harness/trace/cupti/decode.h"

// clang-format off
#include <cupti.h>
// clang-format on

namespace launchgap::cupti {
namespace {

#define SAME(ours, theirs) \
  static_assert(static_cast<long long>(abi::ours) == static_cast<long long>(theirs))
#define SAME_FIELD(Ours, field, Theirs, their_field)                           \
  static_assert(offsetof(abi::Ours, field) == offsetof(Theirs, their_field) && \
                sizeof(abi::Ours::field) == sizeof(Theirs::their_field))

SAME(kSuccess, CUPTI_SUCCESS);
SAME(kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
SAME(kApiNotImplemented, CUPTI_ERROR_API_NOT_IMPLEMENTED);
SAME(kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
SAME(kInvalidKind, CUPTI_ERROR_INVALID_KIND);
SAME(kNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
SAME(kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(kVirtualisedInsufficientPrivileges, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME(kUnknown, CUPTI_ERROR_UNKNOWN);

SAME(kDriverApi, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(kRuntimeApi, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(kOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(kSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME(kMemory2, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME(kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(kThreadIdDefault, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
SAME(kThreadIdSystem, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME(kGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);

SAME(kMemAlloc, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);
SAME(kMemFree, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2);
SAME(kLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
SAME(kLaunchKernelPtsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz);
SAME(kLaunchCooperativeKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel);
SAME(kLaunchCooperativeKernelPtsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz);
SAME(kGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
SAME(kGraphLaunchPtsz, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz);
SAME(kMemAllocAsync, CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync);
SAME(kMemAllocAsyncPtsz, CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz);
SAME(kMemFreeAsync, CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync);
SAME(kMemFreeAsyncPtsz, CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz);
SAME(kLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
SAME(kLaunchKernelExPtsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz);
SAME(kCudaLaunchKernel, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
SAME(kCudaLaunchKernelPtsz, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000);
SAME(kCudaLaunchCooperativeKernel, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000);
SAME(kCudaLaunchCooperativeKernelPtsz,
     CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000);
SAME(kCudaGraphLaunch, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
SAME(kCudaGraphLaunchPtsz, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000);
SAME(kCudaLaunchKernelExC, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060);
SAME(kCudaLaunchKernelExCPtsz, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060);
#if CUPTI_API_VERSION >= 130000
SAME(kInternalCudaLaunchKernel, CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000);
SAME(kInternalCudaLaunchKernelPtsz, CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000);
#endif

SAME(kAllocation, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
SAME(kRelease, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
SAME(kDriverCompiler, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
SAME(kBufferFlush, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
SAME(kInstrumentation, CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION);
SAME(kResource, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
#if CUPTI_API_VERSION >= 26
SAME(kModuleLoading, CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING);
SAME(kLazyFunctionLoading, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
SAME(kCommandBufferFull, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
SAME(kBufferRequest, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST);
SAME(kManagedMemoryInit, CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT);
#endif
SAME(kEventSynchronize, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
SAME(kStreamWaitEvent, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
SAME(kStreamSynchronize, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
SAME(kContextSynchronize, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
SAME(kDeviceBufferSize, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
SAME(kDeviceBufferPoolLimit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME(kZeroedOutBuffer, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME(kDeviceBufferPreAllocate, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE);
SAME(kFlushCompleted, CUPTI_ACTIVITY_FLAG_NONE);
SAME(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

static_assert(sizeof(abi::ApiActivity) == sizeof(CUpti_ActivityAPI));
SAME_FIELD(ApiActivity, call, CUpti_ActivityAPI, cbid);
SAME_FIELD(ApiActivity, start, CUpti_ActivityAPI, start);
SAME_FIELD(ApiActivity, end, CUpti_ActivityAPI, end);
SAME_FIELD(ApiActivity, thread, CUpti_ActivityAPI, threadId);
SAME_FIELD(ApiActivity, correlation, CUpti_ActivityAPI, correlationId);

/// The fields that launchgap reads are in the same place in every version of the kernel's record.
#define SAME_KERNEL(Theirs)                                       \
  SAME_FIELD(KernelActivity, start, Theirs, start);               \
  SAME_FIELD(KernelActivity, end, Theirs, end);                   \
  SAME_FIELD(KernelActivity, device, Theirs, deviceId);           \
  SAME_FIELD(KernelActivity, stream, Theirs, streamId);           \
  SAME_FIELD(KernelActivity, grid_x, Theirs, gridX);              \
  SAME_FIELD(KernelActivity, grid_z, Theirs, gridZ);              \
  SAME_FIELD(KernelActivity, block_x, Theirs, blockX);            \
  SAME_FIELD(KernelActivity, block_z, Theirs, blockZ);            \
  SAME_FIELD(KernelActivity, correlation, Theirs, correlationId); \
  SAME_FIELD(KernelActivity, name, Theirs, name);                 \
  SAME_FIELD(KernelActivity, queued, Theirs, queued);             \
  SAME_FIELD(KernelActivity, submitted, Theirs, submitted)
SAME_KERNEL(CUpti_ActivityKernel4);
SAME_KERNEL(CUpti_ActivityKernel5);
SAME_KERNEL(CUpti_ActivityKernel6);
SAME_KERNEL(CUpti_ActivityKernel7);
SAME_KERNEL(CUpti_ActivityKernel8);
SAME_KERNEL(CUpti_ActivityKernel9);
#if CUPTI_API_VERSION >= 130000
SAME_KERNEL(CUpti_ActivityKernel10);
#endif

SAME_FIELD(OverheadActivity, overhead, CUpti_ActivityOverhead, overheadKind);
SAME_FIELD(OverheadActivity, start, CUpti_ActivityOverhead, start);
SAME_FIELD(OverheadActivity, end, CUpti_ActivityOverhead, end);
SAME_FIELD(OverheadActivity3, correlation, CUpti_ActivityOverhead2, correlationId);
SAME_FIELD(OverheadActivity3, correlation, CUpti_ActivityOverhead3, correlationId);
SAME_FIELD(OverheadActivity3, data, CUpti_ActivityOverhead3, overheadData);
static_assert(sizeof(abi::OverheadActivity3) == sizeof(CUpti_ActivityOverhead3));

#define SAME_MEMORY(Theirs)                                                       \
  SAME_FIELD(MemoryActivity, operation, Theirs, memoryOperationType);             \
  SAME_FIELD(MemoryActivity, memory_kind, Theirs, memoryKind);                    \
  SAME_FIELD(MemoryActivity, correlation, Theirs, correlationId);                 \
  SAME_FIELD(MemoryActivity, address, Theirs, address);                           \
  SAME_FIELD(MemoryActivity, bytes, Theirs, bytes);                               \
  SAME_FIELD(MemoryActivity, timestamp, Theirs, timestamp);                       \
  SAME_FIELD(MemoryActivity, pool_type, Theirs, memoryPoolConfig.memoryPoolType); \
  SAME_FIELD(MemoryActivity, pool, Theirs, memoryPoolConfig.address)
SAME_MEMORY(CUpti_ActivityMemory2);
SAME_MEMORY(CUpti_ActivityMemory3);
#if CUPTI_API_VERSION >= 24
SAME_MEMORY(CUpti_ActivityMemory4);
#endif

#define SAME_TRANSFER(Theirs)                               \
  SAME_FIELD(TransferActivity, bytes, Theirs, bytes);       \
  SAME_FIELD(TransferActivity, start, Theirs, start);       \
  SAME_FIELD(TransferActivity, end, Theirs, end);           \
  SAME_FIELD(TransferActivity, device, Theirs, deviceId);   \
  SAME_FIELD(TransferActivity, context, Theirs, contextId); \
  SAME_FIELD(TransferActivity, stream, Theirs, streamId);   \
  SAME_FIELD(TransferActivity, correlation, Theirs, correlationId)
SAME_TRANSFER(CUpti_ActivityMemcpy3);
SAME_TRANSFER(CUpti_ActivityMemcpy4);
SAME_TRANSFER(CUpti_ActivityMemcpy5);
SAME_TRANSFER(CUpti_ActivityMemset2);
SAME_TRANSFER(CUpti_ActivityMemset3);
SAME_TRANSFER(CUpti_ActivityMemset4);

SAME_FIELD(SynchronizationActivity, type, CUpti_ActivitySynchronization, type);
SAME_FIELD(SynchronizationActivity, start, CUpti_ActivitySynchronization, start);
SAME_FIELD(SynchronizationActivity, end, CUpti_ActivitySynchronization, end);
SAME_FIELD(SynchronizationActivity, correlation, CUpti_ActivitySynchronization, correlationId);
SAME_FIELD(GraphActivity, correlation, CUpti_ActivityGraphTrace, correlationId);
SAME_FIELD(GraphActivity, start, CUpti_ActivityGraphTrace, start);
SAME_FIELD(GraphActivity, end, CUpti_ActivityGraphTrace, end);
SAME_FIELD(GraphActivity, graph, CUpti_ActivityGraphTrace, graphId);

#if CUPTI_API_VERSION >= 130000
static_assert(sizeof(abi::SubscriberParameters) == sizeof(CUpti_SubscriberParams));
SAME_FIELD(SubscriberParameters, name, CUpti_SubscriberParams, subscriberName);
SAME_FIELD(SubscriberParameters, old_subscriber, CUpti_SubscriberParams, oldSubscriberName);
SAME_FIELD(SubscriberParameters, old_subscriber_bytes, CUpti_SubscriberParams, oldSubscriberSize);

/// The library of the toolkit whose headers these are.
const Cupti* real_cupti() {
  static const Cupti* const library = []() -> const Cupti* {
    setenv("LAUNCHGAP_LIBCUPTI", LAUNCHGAP_CUDA_ROOT "/lib/libcupti.so", 0);
    try {
      const Cupti& cupti = Cupti::get();
      return cupti.facts.simulated || cupti.version < 130000 || cupti.version >= 140000 ? nullptr
                                                                                        : &cupti;
    } catch (const std::exception&) {
      return nullptr;
    }
  }();
  return library;
}

/// A buffer as CUPTI fills it: NVIDIA's structs one after another.
class HandBuiltBuffer {
 public:
  template <class Record>
  Record& add(CUpti_ActivityKind kind) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(Record));
    auto& record = *new (bytes_.data() + at) Record;
    std::memset(&record, 0, sizeof record);
    record.kind = kind;
    return record;
  }
  std::uint8_t* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }

  HandBuiltBuffer() { bytes_.reserve(1 << 22); }

 private:
  std::vector<std::uint8_t> bytes_;
};

struct RealCupti : ::testing::Test {
  static activity::Trace decoded_of(HandBuiltBuffer& buffer) {
    activity::Trace trace;
    decode({real_cupti()->cuptiActivityGetNextRecord, real_cupti()->version},
           buffer.data(),
           buffer.size(),
           trace);
    return trace;
  }
  void SetUp() override {
    if (!real_cupti()) GTEST_SKIP() << "no libcupti of CUDA 13 to compare with";
  }
};

/// Records of all kinds in random order with random content, in NVIDIA's own structs, which
/// NVIDIA's own library steps over: what the decoder gives must be what was put in, one by one.
TEST_F(RealCupti, DecodesAHandBuiltBufferAsItWasBuilt) {
  std::mt19937_64 random(20261120);
  const auto number = [&] { return static_cast<std::uint32_t>(random()); };
  const auto time = [&] { return random() >> 1; };
  const auto signed_time = [](std::uint64_t ns) { return static_cast<std::int64_t>(ns); };
  static const char* const kNames[] = {"launchgap_null", "sm90_gemm_f16", "void k<int>(int*)"};
  HandBuiltBuffer buffer;
  activity::Trace expected;
  for (int i = 0; i < 5000; ++i) {
    switch (random() % 6) {
      case 0: {
        const bool driver = random() % 2 == 0;
        auto& api = buffer.add<CUpti_ActivityAPI>(driver ? CUPTI_ACTIVITY_KIND_DRIVER
                                                         : CUPTI_ACTIVITY_KIND_RUNTIME);
        api.cbid =
            random() % 2 ? std::uint32_t{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx} : number() % 600;
        api.start = time(), api.end = time();
        api.threadId = number(), api.correlationId = number();
        expected.calls.push_back({signed_time(api.start),
                                  signed_time(api.end),
                                  api.correlationId,
                                  api.threadId,
                                  api.cbid,
                                  driver ? activity::Domain::driver : activity::Domain::runtime,
                                  driver ? driver_purpose(api.cbid) : runtime_purpose(api.cbid)});
        break;
      }
      case 1: {
        auto& kernel = buffer.add<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        kernel.start = time(), kernel.end = time();
        kernel.correlationId = number(), kernel.streamId = number();
        kernel.gridX = 7, kernel.gridY = 8, kernel.gridZ = static_cast<int>(number() % 1000);
        kernel.blockX = 32, kernel.blockY = 2, kernel.blockZ = static_cast<int>(number() % 4);
        kernel.name = kNames[random() % 3];
        expected.kernels.push_back({signed_time(kernel.start),
                                    signed_time(kernel.end),
                                    kernel.correlationId,
                                    kernel.streamId,
                                    expected.name_index(kernel.name),
                                    {kernel.gridX, kernel.gridY, kernel.gridZ},
                                    {kernel.blockX, kernel.blockY, kernel.blockZ}});
        break;
      }
      case 2: {
        auto& overhead = buffer.add<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
        overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
        overhead.start = time(), overhead.end = time();
        overhead.correlationId = number();
        overhead.overheadData = random() % 2 ? std::malloc(16) : nullptr;  // the decoder frees it
        expected.overheads.push_back({signed_time(overhead.start),
                                      signed_time(overhead.end),
                                      overhead.correlationId,
                                      activity::OverheadKind::command_buffer_full});
        break;
      }
      case 3: {
        auto& memory = buffer.add<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
        const bool release = random() % 2 == 0, of_pool = random() % 2 == 0;
        memory.memoryOperationType = release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                             : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
        memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        memory.address = random(), memory.bytes = random(), memory.timestamp = time();
        memory.correlationId = number();
        memory.memoryPoolConfig.memoryPoolType = of_pool ? CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL
                                                         : CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID;
        memory.memoryPoolConfig.address = random();
        expected.memory.push_back({signed_time(memory.timestamp),
                                   memory.address,
                                   memory.bytes,
                                   of_pool ? memory.memoryPoolConfig.address : 0,
                                   memory.correlationId,
                                   static_cast<std::uint32_t>(memory.memoryKind),
                                   release,
                                   memory.deviceId});
        break;
      }
      case 4: {
        auto& wait =
            buffer.add<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
        wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
        wait.start = time(), wait.end = time(), wait.correlationId = number();
        expected.waits.push_back({signed_time(wait.start),
                                  signed_time(wait.end),
                                  wait.correlationId,
                                  static_cast<std::uint32_t>(wait.type)});
        break;
      }
      case 5: {
        auto& graph = buffer.add<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
        graph.start = time(), graph.end = time();
        graph.correlationId = number(), graph.graphId = number();
        expected.graphs.push_back(
            {signed_time(graph.start), signed_time(graph.end), graph.correlationId, graph.graphId});
        break;
      }
    }
  }
  const activity::Trace decoded = decoded_of(buffer);
  EXPECT_EQ(decoded.calls, expected.calls);
  ASSERT_EQ(decoded.kernels.size(), expected.kernels.size());
  for (std::size_t i = 0; i < decoded.kernels.size(); ++i) {
    EXPECT_EQ(decoded.kernels[i], expected.kernels[i]);
    EXPECT_EQ(decoded.name(decoded.kernels[i].name), expected.name(expected.kernels[i].name));
  }
  EXPECT_EQ(decoded.overheads, expected.overheads);
  EXPECT_EQ(decoded.memory, expected.memory);
  EXPECT_EQ(decoded.waits, expected.waits);
  EXPECT_EQ(decoded.graphs, expected.graphs);
  EXPECT_EQ(decoded.dropped + decoded.unknown, 0u);
}

TEST_F(RealCupti, StopsAtARecordThatItCannotStepOver) {
  HandBuiltBuffer buffer;
  buffer.add<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER);
  buffer.add<CUpti_ActivityAPI>(static_cast<CUpti_ActivityKind>(4711));
  buffer.add<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER);
  const activity::Trace trace = decoded_of(buffer);
  EXPECT_EQ(trace.calls.size(), 1u);
  EXPECT_EQ(trace.unknown, 1u);
}

TEST_F(RealCupti, HasEveryFunctionThatIsCalled) {
#define LAUNCHGAP_EXPECT(name, required, ...) EXPECT_NE(real_cupti()->name, nullptr) << #name;
  LAUNCHGAP_CUPTI_FUNCTIONS(LAUNCHGAP_EXPECT)
#undef LAUNCHGAP_EXPECT
}

TEST_F(RealCupti, TellsTheTimeOfTheRealTimeClock) {
  timespec before, after;
  std::uint64_t now = 0;
  clock_gettime(CLOCK_REALTIME, &before);
  ASSERT_EQ(real_cupti()->cuptiGetTimestamp(&now), abi::kSuccess);
  clock_gettime(CLOCK_REALTIME, &after);
  const auto ns = [](const timespec& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
  };
  EXPECT_GE(now, ns(before));
  EXPECT_LE(now, ns(after));
}
#else
TEST(RealCupti, DecodesAsLaunchgapDoes) {
  GTEST_SKIP() << "these headers of CUPTI are older than CUDA 13";
}
#endif

TEST(CuptiAbi, IsNvidias) {
  // Compared at compile time, as far as these headers have it.
}

}  // namespace
}  // namespace launchgap::cupti
