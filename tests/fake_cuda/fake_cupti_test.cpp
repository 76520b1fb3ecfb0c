// What the fake CUPTI promises: records of what the fake driver did, and everything that real ones
// get wrong.
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "harness/device/cuda/runtime_plugin.h"
#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/driver_calls.h"
#include "tests/fake_cuda/fixture.h"

#if __has_include(<cupti_driver_cbid.h>)
#include <cupti_driver_cbid.h>
#endif

namespace launchgap::fake {
namespace {

namespace tracing = launchgap::cupti::abi;

using tracing::ApiActivity;
using tracing::KernelActivity;

struct Cupti {
  // The signatures name types that the driver's interface has too.
  struct Functions : tracing::CuptiFunctions {};
  static Functions load() {
    void* const handle = open_library("libcupti.so.13");
    Functions functions;
#define LOAD_CUPTI(name, required, ...) \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(handle, #name));
    LAUNCHGAP_CUPTI_FUNCTIONS(LOAD_CUPTI)
#undef LOAD_CUPTI
    return functions;
  }
};

/// What the client of these tests got; CUPTI's callbacks have no argument for it.
struct Client {
  Cupti::Functions cupti;
  std::size_t buffer_bytes = std::size_t{1} << 16;
  std::size_t most_records = 0;
  std::size_t overhead_bytes = sizeof(tracing::OverheadActivity3);
  bool refuses = false;
  bool flushes_in_callback = false;

  std::mutex mutex;
  std::vector<ApiActivity> apis;
  std::vector<KernelActivity> kernels;
  std::vector<tracing::MemoryActivity> memory;
  std::vector<tracing::SynchronizationActivity> waits;
  std::vector<tracing::GraphActivity> graphs;
  std::vector<tracing::OverheadActivity3> overheads;
  std::vector<std::uint32_t> kinds;  // in the order of delivery
  std::map<std::uint32_t, std::set<std::ptrdiff_t>> strides;
  std::vector<std::vector<std::uint8_t>> delivered;
  std::vector<tracing::Result> ends;  // what ended the iteration of each buffer
  std::vector<std::thread::id> requested_on, completed_on;
  tracing::Result flushed_in_callback = -1;

  void take(std::uint8_t* buffer, std::size_t valid_bytes) {
    tracing::Activity* record = nullptr;
    tracing::Activity* before = nullptr;
    tracing::Result code = 0;
    while ((code = cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &record)) == 0) {
      if (before != nullptr) strides[before->kind].insert(distance(before, record));
      before = record;
      kinds.push_back(record->kind);
      switch (record->kind) {
        case tracing::kDriverApi:
        case tracing::kRuntimeApi:
          apis.push_back(*reinterpret_cast<ApiActivity*>(record));
          break;
        case tracing::kConcurrentKernel:
          kernels.push_back(*reinterpret_cast<KernelActivity*>(record));
          break;
        case tracing::kMemory2:
          memory.push_back(*reinterpret_cast<tracing::MemoryActivity*>(record));
          break;
        case tracing::kGraphTrace:
          graphs.push_back(*reinterpret_cast<tracing::GraphActivity*>(record));
          break;
        case tracing::kSynchronization:
          waits.push_back(*reinterpret_cast<tracing::SynchronizationActivity*>(record));
          break;
        case tracing::kOverhead: {
          tracing::OverheadActivity3 overhead{};
          std::memcpy(&overhead, record, std::min(sizeof overhead, overhead_bytes));
          std::free(overhead.data);
          overheads.push_back(overhead);
          break;
        }
        default:
          ADD_FAILURE() << record->kind;
      }
    }
    // The last record ends with what is valid, if the iteration came that far.
    if (before != nullptr && code == tracing::kMaxLimitReached) {
      strides[before->kind].insert(buffer + valid_bytes - reinterpret_cast<std::uint8_t*>(before));
    }
    ends.push_back(code);
  }

  static std::ptrdiff_t distance(const tracing::Activity* from, const tracing::Activity* to) {
    return reinterpret_cast<const std::uint8_t*>(to) - reinterpret_cast<const std::uint8_t*>(from);
  }
};

Client& client() {
  static auto* const instance = new Client;
  return *instance;
}

void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  auto& c = client();
  const std::lock_guard lock(c.mutex);
  c.requested_on.push_back(std::this_thread::get_id());
  constexpr std::size_t kAlignment = 8;
  *bytes = c.buffer_bytes;
  *records = c.most_records;
  *buffer = c.refuses
                ? nullptr
                : static_cast<std::uint8_t*>(std::aligned_alloc(
                      kAlignment, (c.buffer_bytes + kAlignment - 1) / kAlignment * kAlignment));
}

void complete(tracing::Context,
              std::uint32_t,
              std::uint8_t* buffer,
              std::size_t,
              std::size_t valid_bytes) {
  auto& c = client();
  if (c.flushes_in_callback) c.flushed_in_callback = c.cupti.cuptiActivityFlushAll(0);
  const std::lock_guard lock(c.mutex);
  c.completed_on.push_back(std::this_thread::get_id());
  c.delivered.emplace_back(buffer, buffer + valid_bytes);
  c.take(buffer, valid_bytes);
  std::free(buffer);
}

Json a_traced_node(const Json& cupti = Json::object(), const Json& device = Json::object()) {
  Json node = a_node(a_device(device));
  node["cupti"] = cupti;
  return node;
}

class FakeCupti : public FakeCuda {
 protected:
  void SetUp() override {
    FakeCuda::SetUp();
    client().cupti = cupti;
  }

  void register_callbacks() {
    ASSERT_EQ(cupti.cuptiActivityRegisterCallbacks(request, complete), tracing::kSuccess);
  }

  void enable(std::initializer_list<tracing::Kind> kinds) {
    for (const auto kind : kinds) {
      ASSERT_EQ(cupti.cuptiActivityEnable(kind), tracing::kSuccess) << kind;
    }
  }

  void disable(std::initializer_list<tracing::Kind> kinds) {
    for (const auto kind : kinds) {
      ASSERT_EQ(cupti.cuptiActivityDisable(kind), tracing::kSuccess) << kind;
    }
  }

  /// A context, and all launches with their kernels traced.
  void start_tracing(const Json& node) {
    start(node);
    on = stream();
    register_callbacks();
    ASSERT_EQ(cupti.cuptiSubscribe(&subscriber, nullptr, nullptr), tracing::kSuccess);
    enable({tracing::kConcurrentKernel});
    for (const auto call : {tracing::kLaunchKernel, tracing::kLaunchKernelEx}) {
      ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(call, 1), tracing::kSuccess);
    }
    ASSERT_EQ(cupti.cuptiActivityEnableRuntimeApi(tracing::kCudaLaunchKernelExC, 1),
              tracing::kSuccess);
  }

  Client& flush(std::uint32_t flag = tracing::kFlushCompleted) {
    EXPECT_EQ(cupti.cuptiActivityFlushAll(flag), tracing::kSuccess);
    return client();
  }

  void launch_and_wait(int times = 1) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(launch(null, on), kSuccess);
      ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    }
  }

  std::size_t dropped() {
    std::size_t count = 0;
    EXPECT_EQ(cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &count), tracing::kSuccess);
    return count;
  }

  /// A product of n x n matrices, by the library that holds a runtime of its own.
  void multiply(int n) {
    const Cublas blas;
    CublasHandle handle = nullptr;
    ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
    ASSERT_EQ(blas.cublasSetStream_v2(handle, on), kCublasSuccess);
    const auto bytes = 4 * static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    const auto matrix = reinterpret_cast<float*>(memory(3 * bytes));
    const auto count = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    const float one = 1, zero = 0;
    ASSERT_EQ(blas.cublasSgemm_v2(handle,
                                  kCublasOpN,
                                  kCublasOpN,
                                  n,
                                  n,
                                  n,
                                  &one,
                                  matrix,
                                  n,
                                  matrix + count,
                                  n,
                                  &zero,
                                  matrix + 2 * count,
                                  n),
              kCublasSuccess);
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    ASSERT_EQ(blas.cublasDestroy_v2(handle), kCublasSuccess);
  }

  /// A 3x3 convolution over n x n pixels.
  void convolve(int n) {
    const Cudnn dnn;
    CudnnHandle handle = nullptr;
    CudnnTensor x = nullptr, y = nullptr;
    CudnnFilter w = nullptr;
    CudnnConvolution convolution = nullptr;
    ASSERT_EQ(dnn.cudnnCreate(&handle), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnSetStream(handle, on), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnCreateTensorDescriptor(&x), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnCreateTensorDescriptor(&y), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnCreateFilterDescriptor(&w), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnCreateConvolutionDescriptor(&convolution), kCudnnSuccess);
    constexpr int kChannels = 4;
    for (const auto tensor : {x, y}) {
      ASSERT_EQ(dnn.cudnnSetTensor4dDescriptor(tensor, kCudnnNchw, kCudnnHalf, 1, kChannels, n, n),
                kCudnnSuccess);
    }
    ASSERT_EQ(dnn.cudnnSetFilter4dDescriptor(w, kCudnnHalf, kCudnnNchw, kChannels, kChannels, 3, 3),
              kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnSetConvolution2dDescriptor(
                  convolution, 1, 1, 1, 1, 1, 1, kCudnnCrossCorrelation, kCudnnFloat),
              kCudnnSuccess);
    const auto pixels = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    const auto tensor_bytes = 2 * kChannels * pixels;
    const auto px = memory(tensor_bytes), py = memory(tensor_bytes), pw = memory(4096);
    const float one = 1, zero = 0;
    ASSERT_EQ(dnn.cudnnConvolutionForward(handle,
                                          &one,
                                          x,
                                          reinterpret_cast<const void*>(px),
                                          w,
                                          reinterpret_cast<const void*>(pw),
                                          convolution,
                                          kCudnnImplicitPrecompGemm,
                                          nullptr,
                                          0,
                                          &zero,
                                          y,
                                          reinterpret_cast<void*>(py)),
              kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnDestroyConvolutionDescriptor(convolution), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnDestroyFilterDescriptor(w), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnDestroyTensorDescriptor(y), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnDestroyTensorDescriptor(x), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnDestroy(handle), kCudnnSuccess);
  }

  const Cupti::Functions cupti = Cupti::load();
  tracing::Subscriber subscriber = nullptr;
  Stream on = nullptr;
};

std::int64_t signed_difference(std::uint64_t later, std::uint64_t earlier) {
  return static_cast<std::int64_t>(later - earlier);
}

std::uint64_t realtime_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Times

TEST_F(FakeCupti, TheClockIsThatOfTheWall) {
  start();
  std::uint64_t now = 0;
  const auto before = realtime_ns();
  ASSERT_EQ(cupti.cuptiGetTimestamp(&now), tracing::kSuccess);
  const auto after = realtime_ns();
  // The offset between the clocks is taken once; NTP may slew one of them.
  constexpr std::uint64_t kSlew = 10'000'000;
  EXPECT_GE(now + kSlew, before);
  EXPECT_LE(now, after + kSlew);
}

TEST_F(FakeCupti, ALaunchIsTracedExactlyAsItWasDrawn) {
  start_tracing(a_traced_node(
      Json::object(), {{"call_ns", 20000.4}, {"launch_ns", 50000.7}, {"kernel_ns", 12345.0}}));
  std::uint64_t before = 0, after = 0;
  ASSERT_EQ(cupti.cuptiGetTimestamp(&before), tracing::kSuccess);
  launch_and_wait(20);
  ASSERT_EQ(cupti.cuptiGetTimestamp(&after), tracing::kSuccess);
  const auto& trace = flush();
  ASSERT_EQ(trace.apis.size(), 20u);
  ASSERT_EQ(trace.kernels.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) {
    const auto& api = trace.apis[i];
    const auto& kernel = trace.kernels[i];
    EXPECT_EQ(api.end - api.start, 20000u);
    EXPECT_EQ(kernel.start - api.start, 50001u);
    EXPECT_EQ(kernel.end - api.start, 62346u) << "50000.7 + 12345, rounded once";
    EXPECT_EQ(kernel.completed, kernel.end);
    EXPECT_EQ(kernel.correlation, api.correlation);
    EXPECT_EQ(api.return_value, 0u);
    EXPECT_EQ(api.call, tracing::kLaunchKernel);
    EXPECT_EQ(api.process, static_cast<std::uint32_t>(getpid()));
    EXPECT_GE(api.start, before);
    EXPECT_LE(kernel.end, after);
  }
}

TEST_F(FakeCupti, ATracedProcessDrawsWhatAnUntracedOneDoes) {
  const Json lognormal = {{"lognormal", {{"median", 40000}, {"sigma", 0.3}}}};
  const Json device = {{"call_ns", lognormal},
                       {"launch_ns", lognormal},
                       {"kernel_ns", lognormal},
                       {"process_factor_sigma", 0.2}};
  Json cupti_object = {{"api_overhead_ns", lognormal}};
  start_tracing(a_traced_node(cupti_object, device));
  // As process.cpp seeds the first device.
  std::mt19937_64 random(1 + 0x9E3779B97F4A7C15ull);
  const double factor = std::exp(0.2 * std::normal_distribution<>()(random));
  const Distribution drawn{Distribution::Kind::lognormal, 40000, 0.3, {}, {}};
  Distribution::constant(0)(random);
  launch_and_wait(20);
  const auto& trace = flush();
  ASSERT_EQ(trace.kernels.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) {
    const auto& api = trace.apis[i];
    const auto& kernel = trace.kernels[i];
    const double call_ns = factor * drawn(random), launch_ns = factor * drawn(random),
                 kernel_ns = factor * drawn(random);
    EXPECT_EQ(kernel.start - api.start, static_cast<std::uint64_t>(std::llround(launch_ns)));
    EXPECT_NEAR(static_cast<double>(kernel.end - kernel.start), kernel_ns, 1);
    EXPECT_GT(static_cast<double>(api.end - api.start), call_ns + 5000) << "the overhead on top";
  }
}

TEST_F(FakeCupti, KernelsBehindOthersBeginWhenThoseEnd) {
  start_tracing(a_traced_node(Json::object(), {{"kernel_ns", 2e6}}));
  const auto begin = event(), end = event();
  ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(begin, on), kSuccess);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(end, on), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  const auto& kernels = flush().kernels;
  ASSERT_EQ(kernels.size(), 5u);
  for (std::size_t i = 1; i < kernels.size(); ++i) {
    EXPECT_EQ(kernels[i].start, kernels[i - 1].end);
    EXPECT_EQ(kernels[i].end - kernels[i].start, 2'000'000u);
  }
  EXPECT_NEAR(elapsed_ns(begin, end), static_cast<double>(kernels[4].end - kernels[1].start), 1);
}

TEST_F(FakeCupti, KernelsOfAGraphShareTheRecordOfItsLaunch) {
  start_tracing(a_traced_node(Json::object(), {{"graph", {{"node_ns", 1000}}}}));
  constexpr int kGraphLaunch = 514;
  ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(kGraphLaunch, 1), tracing::kSuccess);
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  const auto count = new_counter();
  ASSERT_EQ(cu.cuStreamBeginCapture_v2(on, kCaptureThreadLocal), kSuccess);
  for (const auto function : {null, null}) ASSERT_EQ(launch(function, on), kSuccess);
  ASSERT_EQ(cu.cuMemsetD8Async(count, 0, sizeof(unsigned), on), kSuccess);
  ASSERT_EQ(launch(increment, on, count), kSuccess);
  ASSERT_EQ(cu.cuStreamEndCapture(on, &graph), kSuccess);
  ASSERT_EQ(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), kSuccess);
  EXPECT_TRUE(flush().kernels.empty()) << "nothing ran";
  const auto captured = flush().apis.size();
  ASSERT_EQ(cu.cuGraphLaunch(executable, on), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  const auto& kernels = flush().kernels;
  const auto& api = flush().apis.back();
  EXPECT_EQ(flush().apis.size(), captured + 1);
  EXPECT_EQ(api.call, static_cast<std::uint32_t>(kGraphLaunch));
  ASSERT_EQ(kernels.size(), 3u) << "a memset is none";
  EXPECT_STREQ(kernels[2].name, "launchgap_increment");
  for (const auto& kernel : kernels) {
    EXPECT_EQ(kernel.correlation, api.correlation);
    EXPECT_NEAR(static_cast<double>(kernel.end - kernel.start), 50'000, 1);
  }
  EXPECT_EQ(kernels[0].start - api.start, 3000u);
  EXPECT_NEAR(static_cast<double>(kernels[1].start - kernels[0].end), 1000, 1);
}

// What hardware does and a plain node does not

TEST_F(FakeCupti, GraphsTracedAsAWholeHaveNoKernels) {
  start_tracing(a_traced_node({{"whole_graphs", true}}));
  ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(tracing::kGraphLaunch, 1), tracing::kSuccess);
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  ASSERT_EQ(cu.cuStreamBeginCapture_v2(on, kCaptureThreadLocal), kSuccess);
  for (const auto function : {null, null}) ASSERT_EQ(launch(function, on), kSuccess);
  ASSERT_EQ(cu.cuStreamEndCapture(on, &graph), kSuccess);
  ASSERT_EQ(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), kSuccess);
  const auto run = [&] {
    ASSERT_EQ(cu.cuGraphLaunch(executable, on), kSuccess);
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  };
  run();
  EXPECT_EQ(flush().kernels.size(), 2u) << "nobody wanted whole graphs";
  enable({tracing::kGraphTrace});
  run();
  EXPECT_EQ(flush().kernels.size(), 2u) << "of the run before";
  ASSERT_EQ(flush().graphs.size(), 1u);
  const auto& record = flush().graphs[0];
  EXPECT_EQ(record.correlation, flush().apis.back().correlation);
  EXPECT_EQ(record.start - flush().apis.back().start, 3000u);
  EXPECT_NEAR(static_cast<double>(record.end - record.start), 2 * 50'000, 2);
  launch_and_wait();
  EXPECT_EQ(flush().kernels.size(), 3u) << "other launches have theirs";
}

TEST_F(FakeCupti, AReloadedModulesKernelsHaveTheNamesOfTheOneBefore) {
  start_tracing(a_traced_node({{"stale_names", true}}));
  launch_and_wait();
  ASSERT_EQ(cu.cuModuleUnload(module), kSuccess);
  ASSERT_EQ(cu.cuModuleLoadDataEx(&module, kPtx, 0, nullptr, nullptr), kSuccess);
  null = function("launchgap_null");
  launch_and_wait();
  ASSERT_EQ(flush().kernels.size(), 2u);
  EXPECT_STREQ(flush().kernels[0].name, "launchgap_null");
  EXPECT_STRNE(flush().kernels[1].name, "launchgap_null");
}

TEST_F(FakeCupti, TheDevicesClockIsOffAsDescribed) {
  constexpr double kSd = 500, kQuantum = 32;
  start_tracing(a_traced_node({{"gpu_clock", {{"sd_ns", kSd}, {"quantum_ns", kQuantum}}}}));
  constexpr int kLaunches = 200;
  launch_and_wait(kLaunches);
  ASSERT_EQ(flush().kernels.size(), static_cast<std::size_t>(kLaunches));
  double squares = 0;
  for (int i = 0; i < kLaunches; ++i) {
    const auto& kernel = flush().kernels[static_cast<std::size_t>(i)];
    const auto error = static_cast<double>(
        signed_difference(kernel.start, flush().apis[static_cast<std::size_t>(i)].start) - 3000);
    squares += error * error;
    EXPECT_NEAR(static_cast<double>(kernel.end - kernel.start), 50'000, kQuantum);
    EXPECT_EQ(signed_difference(kernel.start, flush().kernels[0].start) % 32, 0);
  }
  EXPECT_NEAR(std::sqrt(squares / kLaunches), kSd, kSd / 4);
}

TEST_F(FakeCupti, SomeRecordsAreImpossibleByChance) {
  start_tracing(a_traced_node({{"impossible_share", 0.3}}, {{"kernel_ns", 0}}));
  constexpr int kLaunches = 300;
  launch_and_wait(kLaunches);
  ASSERT_EQ(flush().kernels.size(), static_cast<std::size_t>(kLaunches)) << "none is lost";
  int zero = 0, inverted = 0, early = 0;
  for (std::size_t i = 0; i < kLaunches; ++i) {
    const auto& kernel = flush().kernels[i];
    if (kernel.start == 0) {
      ++zero;
    } else if (kernel.end < kernel.start) {
      ++inverted;
    } else if (kernel.start < flush().apis[i].start) {
      ++early;
    }
  }
  for (const int count : {zero, inverted, early}) EXPECT_NEAR(count, 0.1 * kLaunches, 20);
}

TEST_F(FakeCupti, TheBeginningOfATraceIsCorruptAfterIdleness) {
  start_tracing(a_traced_node({{"start_burst", {{"ms_per_idle_s", 1000}, {"most_ms", 20}}}}));
  usleep(40'000);
  launch_and_wait();
  usleep(30'000);
  launch_and_wait(10);
  const auto& kernels = flush().kernels;
  const bool lost = kernels.size() == 10;
  EXPECT_TRUE(lost || kernels[0].start == 0 || kernels[0].end < kernels[0].start ||
              kernels[0].start < flush().apis[0].start);
  for (std::size_t i = lost ? 0 : 1; i < kernels.size(); ++i)
    EXPECT_EQ(kernels[i].start - flush().apis[i + (lost ? 1 : 0)].start, 3000u);
}

TEST_F(FakeCupti, TracingTakesItsShareOfTheQueue) {
  start_tracing(a_traced_node({{"queue_depth", 4}}, {{"kernel_ns", kLong}, {"queue_depth", 100}}));
  for (int i = 0; i < 4; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  const double begin = now_ns();
  ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_GE(now_ns() - begin, kLong / 2) << "the fifth waits for the first";
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  disable({tracing::kConcurrentKernel});
  const double untraced = now_ns();
  for (int i = 0; i < 8; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_SOONER(now_ns() - untraced, 8 * kLong);
}

TEST_F(FakeCupti, TheRuntimesLaunchesHaveRecordsOfTheirOwn) {
  start_tracing(a_traced_node(Json::object(), {{"runtime", {{"chevron_ns", 5000}}}}));
  enable({tracing::kRuntimeApi});
  void* const handle = open_library(cuda::kRuntimePluginFile);
  using Get = const cuda::RuntimePlugin*();
  const auto& runtime = *reinterpret_cast<Get*>(dlsym(handle, cuda::kRuntimePluginSymbol))();
  ASSERT_EQ(runtime.launch_chevron(on), 0);
  ASSERT_EQ(runtime.launch_ex(on), 0);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  std::vector<ApiActivity> calls;
  for (const auto& api : flush().apis) {
    if (api.kind == tracing::kRuntimeApi) calls.push_back(api);
  }
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].call, 505u) << "__cudaLaunchKernel";
  EXPECT_EQ(calls[1].call, 430u) << "cudaLaunchKernelExC";
  const auto& kernels = flush().kernels;
  ASSERT_EQ(kernels.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(kernels[i].correlation, calls[i].correlation);
  EXPECT_EQ(kernels[0].start - calls[0].start, 8000u) << "the runtime's and the driver's part";
}

TEST_F(FakeCupti, AGateLastsUntilItOpens) {
  start_tracing(a_traced_node());
  void* host = nullptr;
  ASSERT_EQ(cu.cuMemHostAlloc(&host, 2 * sizeof(unsigned), kHostAllocDeviceMap), kSuccess);
  auto* const flags = static_cast<volatile unsigned*>(host);
  flags[0] = 0;
  flags[1] = 0;
  const auto open = reinterpret_cast<DevicePointer>(host);
  ASSERT_EQ(launch(gate, on, open, open + sizeof(unsigned), 1'000'000'000ull), kSuccess);
  ASSERT_EQ(launch(null, on), kSuccess);
  usleep(3000);
  flags[0] = 1;
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  const auto& kernels = flush().kernels;
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_STREQ(kernels[0].name, "launchgap_gate");
  EXPECT_GE(kernels[0].end - kernels[0].start, 2'900'000u);
  EXPECT_EQ(kernels[1].start, kernels[0].end);
}

TEST_F(FakeCupti, KernelsForHostsThatPollAreTracedAlike) {
  start_tracing(a_traced_node());
  void* host = nullptr;
  ASSERT_EQ(cu.cuMemHostAlloc(&host, 2 * sizeof(unsigned), kHostAllocDeviceMap), kSuccess);
  auto* const words = static_cast<unsigned*>(host);
  words[0] = 0;
  words[1] = 0;
  const auto address = reinterpret_cast<DevicePointer>(host);
  ASSERT_EQ(launch(function("launchgap_flag"), on, address, 1u), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  // One round that is answered, and one that nobody asks for.
  ASSERT_EQ(launch(function("launchgap_echo"), on, address, address + 4, 2u, 3'000'000ull),
            kSuccess);
  ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  const auto& trace = flush();
  ASSERT_EQ(trace.kernels.size(), 3u);
  const auto& flag = trace.kernels[0];
  const auto& echo = trace.kernels[1];
  EXPECT_STREQ(flag.name, "launchgap_flag");
  EXPECT_EQ(flag.start - trace.apis[0].start, 3000u);
  EXPECT_EQ(flag.end - flag.start, 50'000u);
  EXPECT_STREQ(echo.name, "launchgap_echo");
  EXPECT_EQ(echo.start - trace.apis[1].start, 3000u);
  EXPECT_GE(echo.end - echo.start, 3'000'000u);
  EXPECT_EQ(trace.kernels[2].start, echo.end);
}

// What records say

TEST_F(FakeCupti, KernelsHaveTheirNameShapeAndPlace) {
  start_tracing(a_traced_node());
  DevicePointer out = memory(1 << 20);
  unsigned long long count = 1024, seed = 1;
  int type = 0, distribution = 0;
  void* parameters[] = {&out, &count, &seed, &type, &distribution};
  LaunchConfig config{};
  config.grid_x = 4;
  config.grid_y = config.grid_z = 1;
  config.block_x = 256;
  config.block_y = config.block_z = 1;
  config.shared_bytes = 48;
  config.stream = on;
  ASSERT_EQ(cu.cuLaunchKernelEx(&config, fill, parameters, nullptr), kSuccess);
  ASSERT_EQ(launch(null, nullptr), kSuccess);
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  const auto& trace = flush();
  ASSERT_EQ(trace.kernels.size(), 2u);
  const auto& kernel = trace.kernels[0];
  EXPECT_STREQ(kernel.name, "launchgap_fill");
  EXPECT_EQ(kernel.grid_x, 4);
  EXPECT_EQ(kernel.grid_y, 1);
  EXPECT_EQ(kernel.block_x, 256);
  EXPECT_EQ(kernel.dynamic_shared_memory, 48);
  EXPECT_EQ(kernel.device, 0u);
  EXPECT_EQ(kernel.context, 1u);
  EXPECT_EQ(kernel.stream, 13u);
  EXPECT_EQ(kernel.queued, 0u);
  EXPECT_EQ(kernel.submitted, 0u);
  EXPECT_EQ(trace.apis[0].call, tracing::kLaunchKernelEx);
  EXPECT_EQ(trace.kernels[1].stream, 7u) << "the null stream";
  EXPECT_GT(trace.kernels[1].grid_id, kernel.grid_id);
}

TEST_F(FakeCupti, MemsetsAreNoKernels) {
  start_tracing(a_traced_node());
  enable({tracing::kDriverApi});
  const auto out = memory(4096);
  ASSERT_EQ(cu.cuMemsetD8Async(out, 0, 4096, on), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  const auto& trace = flush();
  EXPECT_TRUE(trace.kernels.empty());
  ASSERT_EQ(trace.apis.size(), 3u);
  EXPECT_EQ(trace.apis[0].call, 243u);
  EXPECT_EQ(trace.apis[1].call, 216u);
  EXPECT_EQ(trace.apis[1].end - trace.apis[1].start, 1000u) << "call_ns";
  EXPECT_EQ(trace.apis[2].call, 126u);
}

TEST_F(FakeCupti, RecordsComeOfWhatIsEnabledOnly) {
  using Kinds = std::set<std::uint32_t>;
  const std::vector<tracing::Kind> selections[] = {
      {},
      {tracing::kConcurrentKernel},
      {tracing::kDriverApi},
      {tracing::kRuntimeApi},
      {tracing::kSynchronization},
      {tracing::kMemory2},
      {tracing::kConcurrentKernel, tracing::kDriverApi, tracing::kMemory2},
      {tracing::kOverhead, tracing::kGraphTrace},
  };
  start(a_traced_node({{"overheads", {{{"kind", "resource"}, {"every", 1}, {"ns", 1000}}}}}));
  on = stream();
  register_callbacks();
  for (const auto& selection : selections) {
    for (const auto kind : selection) enable({kind});
    client().kinds.clear();
    launch_and_wait();
    ASSERT_EQ(cu.cuMemFree_v2(memory(4096)), kSuccess);
    Kinds expected(selection.begin(), selection.end());
    expected.erase(tracing::kRuntimeApi);  // nothing was called through it
    expected.erase(tracing::kGraphTrace);
    flush();
    EXPECT_EQ(Kinds(client().kinds.begin(), client().kinds.end()), expected);
    for (const auto kind : selection) disable({kind});
  }
  launch_and_wait();
  client().kinds.clear();
  flush();
  EXPECT_TRUE(client().kinds.empty());
}

TEST_F(FakeCupti, TheApiKindSetsEveryFunctionAndSelectionChangesSome) {
  start(a_traced_node());
  on = stream();
  register_callbacks();
  const auto calls = [&] {
    client().apis.clear();
    launch_and_wait();
    EXPECT_EQ(cu.cuStreamQuery(on), kSuccess);
    std::vector<std::uint32_t> seen;
    for (const auto& api : flush().apis) seen.push_back(api.call);
    return seen;
  };
  using Calls = std::vector<std::uint32_t>;
  EXPECT_EQ(calls(), Calls{});
  ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(126, 1), tracing::kSuccess);
  EXPECT_EQ(calls(), Calls{126});
  enable({tracing::kDriverApi});
  EXPECT_EQ(calls(), (Calls{307, 126, 125}));
  ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(126, 0), tracing::kSuccess);
  EXPECT_EQ(calls(), (Calls{307, 125}));
  disable({tracing::kDriverApi});
  EXPECT_EQ(calls(), Calls{});
  for (const std::uint32_t unknown : {0u, 807u, 100'000u}) {
    EXPECT_EQ(cupti.cuptiActivityEnableDriverApi(unknown, 1), tracing::kInvalidParameter);
    EXPECT_EQ(cupti.cuptiActivityEnableRuntimeApi(unknown, 1), tracing::kInvalidParameter);
  }
}

TEST_F(FakeCupti, EveryCallHasAnIdOfItsOwn) {
  start(a_traced_node());
  on = stream();
  register_callbacks();
  enable({tracing::kConcurrentKernel, tracing::kSynchronization, tracing::kMemory2});
  launch_and_wait();
  memory(4096);
  {
    const auto& trace = flush();
    EXPECT_EQ(trace.kernels.at(0).correlation, 0u) << "no API kind, no ids";
    EXPECT_EQ(trace.waits.at(0).correlation, 0u);
    EXPECT_EQ(trace.memory.at(0).correlation, 0u);
  }
  ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(307, 1), tracing::kSuccess);
  launch_and_wait(2);
  memory(4096);
  const auto& trace = flush();
  ASSERT_EQ(trace.apis.size(), 2u);
  EXPECT_EQ(trace.apis[0].correlation, 1u);
  EXPECT_EQ(trace.apis[1].correlation, 3u);
  EXPECT_EQ(trace.kernels.at(1).correlation, 1u);
  EXPECT_EQ(trace.waits.at(1).correlation, 2u) << "also those without a record of their call";
  EXPECT_EQ(trace.kernels.at(2).correlation, 3u);
  EXPECT_EQ(trace.memory.at(1).correlation, 5u);
}

TEST_F(FakeCupti, IdsWrapAroundAndAreNever0) {
  start_tracing(a_traced_node({{"first_correlation", 4294967294u}}));
  launch_and_wait(2);
  const auto& trace = flush();
  ASSERT_EQ(trace.apis.size(), 2u);
  EXPECT_EQ(trace.apis[0].correlation, 4294967294u);
  EXPECT_EQ(trace.apis[1].correlation, 1u) << "the wait between them had 4294967295";
}

TEST_F(FakeCupti, FailedCallsSayWhy) {
  Json node = a_traced_node();
  node["faults"] = {fault("cuda", "cuMemAlloc_v2", 0, kOutOfMemory)};
  start(node);
  register_callbacks();
  enable({tracing::kDriverApi, tracing::kMemory2});
  DevicePointer pointer = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, 4096), kOutOfMemory);
  EXPECT_EQ(cu.cuStreamSynchronize(reinterpret_cast<Stream>(&pointer)), kInvalidHandle);
  const auto& trace = flush();
  ASSERT_EQ(trace.apis.size(), 2u);
  EXPECT_EQ(trace.apis[0].return_value, 2u);
  EXPECT_EQ(trace.apis[1].return_value, 400u);
  EXPECT_TRUE(trace.memory.empty());
}

TEST_F(FakeCupti, AllocationsAreTracedWithTheirMemory) {
  start(a_traced_node());
  on = stream();
  register_callbacks();
  enable({tracing::kDriverApi, tracing::kMemory2});
  DevicePointer pooled = 0, plain = 0;
  void* host = nullptr;
  MemoryPool pool = nullptr;
  ASSERT_EQ(cu.cuDeviceGetDefaultMemPool(&pool, 0), kSuccess);
  ASSERT_EQ(cu.cuMemAlloc_v2(&plain, 1000), kSuccess);
  ASSERT_EQ(cu.cuMemAllocAsync(&pooled, 3000, on), kSuccess);
  ASSERT_EQ(cu.cuMemHostAlloc(&host, 2000, kHostAllocDeviceMap), kSuccess);
  ASSERT_EQ(cu.cuMemFreeAsync(pooled, on), kSuccess);
  ASSERT_EQ(cu.cuMemFree_v2(plain), kSuccess);
  ASSERT_EQ(cu.cuMemFreeHost(host), kSuccess);
  EXPECT_EQ(cu.cuMemFree_v2(plain), kInvalidValue);
  EXPECT_EQ(cu.cuMemFreeHost(host), kInvalidValue);
  EXPECT_EQ(cu.cuMemFreeAsync(pooled, on), kInvalidValue);
  struct Expected {
    std::uint32_t operation, kind;
    std::uint64_t address, bytes;
    std::uint32_t is_async, pool_type, stream;
  };
  const auto host_address = reinterpret_cast<std::uint64_t>(host);
  constexpr auto kNone = Place::kNone;
  const Expected expected[] = {
      {1, 3, plain, 1000, 0, 0, kNone},
      {1, 3, pooled, 3000, 1, 1, 13},
      {1, 2, host_address, 2000, 0, 0, kNone},
      {2, 3, pooled, 3000, 1, 1, 13},
      {2, 3, plain, 1000, 0, 0, kNone},
      {2, 2, host_address, 2000, 0, 0, kNone},
  };
  const auto& trace = flush();
  ASSERT_EQ(trace.memory.size(), std::size(expected)) << "none of the calls that failed";
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const auto& record = trace.memory[i];
    const auto& api = trace.apis[i + 1];
    EXPECT_EQ(record.operation, expected[i].operation) << i;
    EXPECT_EQ(record.memory_kind, expected[i].kind) << i;
    EXPECT_EQ(record.address, expected[i].address) << i;
    EXPECT_EQ(record.bytes, expected[i].bytes) << i;
    EXPECT_EQ(record.is_async, expected[i].is_async) << i;
    EXPECT_EQ(record.pool_type, expected[i].pool_type) << i;
    EXPECT_EQ(record.stream, expected[i].stream) << i;
    EXPECT_EQ(record.pool, expected[i].pool_type != 0 ? reinterpret_cast<std::uint64_t>(pool) : 0)
        << i;
    EXPECT_EQ(record.device, 0u) << i;
    EXPECT_EQ(record.context, 1u) << i;
    EXPECT_EQ(record.correlation, api.correlation) << i;
    EXPECT_GE(record.timestamp, api.start) << i;
    EXPECT_LE(record.timestamp, api.end) << i;
  }
}

TEST_F(FakeCupti, WaitsAreTraced) {
  start(a_traced_node(Json::object(), {{"kernel_ns", 2e6}}));
  on = stream();
  const auto recorded = event();
  register_callbacks();
  enable({tracing::kDriverApi, tracing::kSynchronization});
  ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(recorded, on), kSuccess);
  ASSERT_EQ(cu.cuEventSynchronize(recorded), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  const auto& trace = flush();
  ASSERT_EQ(trace.waits.size(), 3u);
  ASSERT_EQ(trace.apis.size(), 5u);
  const std::uint32_t types[] = {1, 3, 4}, calls[] = {121, 126, 17},
                      streams[] = {Place::kNone, 13, Place::kNone},
                      events[] = {1, Place::kNone, Place::kNone};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& wait = trace.waits[i];
    const auto& api = trace.apis[2 + i];
    EXPECT_EQ(wait.type, types[i]);
    EXPECT_EQ(api.call, calls[i]);
    EXPECT_EQ(wait.stream, streams[i]);
    EXPECT_EQ(wait.event, events[i]);
    EXPECT_EQ(wait.context, 1u);
    EXPECT_EQ(wait.correlation, api.correlation);
    EXPECT_GE(wait.start, api.start);
    EXPECT_LE(wait.end, api.end);
  }
  EXPECT_GE(trace.waits[0].end - trace.apis[0].start, 2'000'000u) << "the wait for the kernel";
}

// Libraries

TEST_F(FakeCupti, ProductsAreKernelsOfTheirSize) {
  start_tracing(a_traced_node());
  multiply(300);
  const auto& trace = flush();
  ASSERT_EQ(trace.kernels.size(), 1u);
  EXPECT_STREQ(trace.kernels[0].name, "fake_gemm_fp32_128x128");
  EXPECT_EQ(trace.kernels[0].grid_x, 3);
  EXPECT_EQ(trace.kernels[0].grid_y, 3);
  EXPECT_EQ(trace.kernels[0].block_x, 256);
  // 2 * 300^3 operations at 10 TFLOP/s.
  EXPECT_NEAR(static_cast<double>(trace.kernels[0].end - trace.kernels[0].start), 55400, 1);
}

struct Nested {
  const char* how;
  std::size_t records;
  bool same_id;
};

void PrintTo(const Nested& test, std::ostream* out) {
  *out << test.how;
}

class FakeCuptiNested : public FakeCupti, public testing::WithParamInterface<Nested> {};

TEST_P(FakeCuptiNested, LaunchesOfLibrariesAreRecordsOfTheRuntimeToo) {
  const auto& [how, records, same_id] = GetParam();
  start_tracing(a_traced_node({{"nested", how}}, {{"call_ns", 10000}}));
  multiply(64);
  const auto& trace = flush();
  ASSERT_EQ(trace.apis.size(), records);
  const auto& driver = trace.apis[0];
  const auto& outermost = trace.apis.back();
  const auto& kernel = trace.kernels.at(0);
  EXPECT_EQ(driver.kind, tracing::kDriverApi);
  EXPECT_EQ(driver.call, 652u);
  EXPECT_EQ(kernel.correlation, driver.correlation);
  EXPECT_EQ(outermost.end - outermost.start, 10000u) << "call_ns";
  EXPECT_EQ(kernel.start - outermost.start, 3000u) << "launch_ns";
  if (records == 1) return;
  EXPECT_EQ(outermost.kind, tracing::kRuntimeApi);
  EXPECT_EQ(outermost.call, 430u);
  EXPECT_EQ(outermost.correlation == driver.correlation, same_id);
  EXPECT_LT(outermost.start, driver.start);
  EXPECT_GT(outermost.end, driver.end);
}

INSTANTIATE_TEST_SUITE_P(How,
                         FakeCuptiNested,
                         testing::Values(Nested{"same", 2, true},
                                         Nested{"different", 2, false},
                                         Nested{"none", 1, true}),
                         [](const auto& test) { return std::string(test.param.how); });

TEST_F(FakeCupti, ConvolutionsAreTwoKernelsWithAGapBetweenThem) {
  start_tracing(a_traced_node(Json::object(),
                              {{"kernel_ns", kLong}, {"kernel_gap_ns", 7000}, {"call_ns", 10000}}));
  const auto begin = event(), end = event();
  ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(begin, on), kSuccess);
  convolve(32);
  ASSERT_EQ(cu.cuEventRecord(end, on), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  const auto& trace = flush();
  ASSERT_EQ(trace.kernels.size(), 3u);
  const auto& first = trace.kernels[1];
  const auto& second = trace.kernels[2];
  EXPECT_STREQ(first.name, "fake_transform_fp16");
  EXPECT_EQ(first.grid_x, 4) << "4 * 32 * 32 elements, 1024 per block";
  EXPECT_STREQ(second.name, "fake_convolution_fp16");
  EXPECT_EQ(second.grid_x, 8) << "32 * 32 pixels, 128 per block";
  EXPECT_EQ(second.grid_y, 1);
  EXPECT_EQ(second.block_x, 256);
  // kernel_ns, and 2 * 4 * 4 * 9 * 32 * 32 operations at 100 TFLOP/s.
  const double both = kLong + 2.0 * 4 * 4 * 9 * 32 * 32 / 100e3;
  EXPECT_NEAR(static_cast<double>(first.end - first.start), 0.1 * both, 1);
  EXPECT_NEAR(static_cast<double>(second.end - second.start), 0.9 * both, 1);
  EXPECT_NEAR(static_cast<double>(second.start - first.end), 7000, 1);
  EXPECT_NEAR(elapsed_ns(begin, end), both + 7000, 2);
  // The null kernel's launch, then a pair of records for each.
  ASSERT_EQ(trace.apis.size(), 5u);
  EXPECT_EQ(trace.apis[1].correlation, first.correlation);
  EXPECT_EQ(trace.apis[3].correlation, second.correlation);
  EXPECT_NE(first.correlation, second.correlation);
  EXPECT_EQ(trace.apis[2].end - trace.apis[2].start, 5000u) << "half of call_ns";
  EXPECT_EQ(trace.apis[4].start, trace.apis[2].end);
}

// Versions

struct Version {
  std::uint32_t version;
  std::ptrdiff_t kernel, memory, overhead, synchronization;
};

void PrintTo(const Version& test, std::ostream* out) {
  *out << test.version;
}

class FakeCuptiVersion : public FakeCupti, public testing::WithParamInterface<Version> {};

TEST_P(FakeCuptiVersion, RecordsAreAsLongAsTheirVersionHasThem) {
  const auto& expected = GetParam();
  start(a_traced_node({{"version", expected.version},
                       {"overheads", {{{"kind", "resource"}, {"every", 1}, {"ns", 1000}}}}}));
  on = stream();
  client().overhead_bytes = static_cast<std::size_t>(expected.overhead);
  register_callbacks();
  std::uint32_t version = 0;
  ASSERT_EQ(cupti.cuptiGetVersion(&version), tracing::kSuccess);
  EXPECT_EQ(version, expected.version);
  enable({tracing::kDriverApi,
          tracing::kConcurrentKernel,
          tracing::kSynchronization,
          tracing::kOverhead});
  EXPECT_EQ(cupti.cuptiActivityEnable(tracing::kMemory2),
            expected.memory > 0 ? tracing::kSuccess : tracing::kNotSupported);
  launch_and_wait(2);
  memory(4096);
  const auto& trace = flush();
  std::map<std::uint32_t, std::set<std::ptrdiff_t>> strides{
      {tracing::kDriverApi, {40}},
      {tracing::kConcurrentKernel, {expected.kernel}},
      {tracing::kOverhead, {expected.overhead}},
      {tracing::kSynchronization, {expected.synchronization}}};
  if (expected.memory > 0) strides[tracing::kMemory2] = {expected.memory};
  EXPECT_EQ(trace.strides, strides);
  EXPECT_STREQ(trace.kernels.at(0).name, "launchgap_null");
  // Functions that came later.
  EXPECT_EQ(cupti.cuptiActivityEnableDriverApi(307, 1),
            expected.version >= 23 ? tracing::kSuccess : tracing::kApiNotImplemented);
  EXPECT_EQ(cupti.cuptiActivityEnableRuntimeApi(505, 1),
            expected.version >= 130000 ? tracing::kSuccess
            : expected.version >= 23   ? tracing::kInvalidParameter
                                       : tracing::kApiNotImplemented);
  EXPECT_EQ(cupti.cuptiSubscribe_v2(&subscriber, nullptr, nullptr, nullptr),
            expected.version >= 130000 ? tracing::kSuccess : tracing::kApiNotImplemented);
}

INSTANTIATE_TEST_SUITE_P(Version,
                         FakeCuptiVersion,
                         testing::Values(Version{13, 160, 0, 40, 40},
                                         Version{15, 168, 112, 40, 40},
                                         Version{17, 176, 120, 40, 40},
                                         Version{18, 200, 120, 40, 40},
                                         Version{19, 208, 120, 40, 40},
                                         Version{20, 208, 120, 48, 40},
                                         Version{22, 208, 120, 56, 40},
                                         Version{23, 208, 120, 56, 40},
                                         Version{24, 208, 128, 56, 40},
                                         Version{26, 208, 128, 56, 56},
                                         Version{130000, 216, 128, 56, 56},
                                         Version{130001, 216, 128, 56, 56},
                                         Version{130200, 224, 128, 56, 56}),
                         [](const auto& test) { return std::to_string(test.param.version); });

TEST_F(FakeCupti, NvidiasLibraryReadsTheRecordsAlike) {
#ifdef LAUNCHGAP_REAL_CUPTI
  // Leak: the real library does not unload cleanly without a driver.
  void* const real = dlopen(LAUNCHGAP_REAL_CUPTI, RTLD_NOW | RTLD_LOCAL);
  if (real == nullptr) GTEST_SKIP() << dlerror();
  ASSERT_EQ(dlsym(real, "launchgap_fake_library"), nullptr);
  const auto next = reinterpret_cast<decltype(cupti.cuptiActivityGetNextRecord)>(
      dlsym(real, "cuptiActivityGetNextRecord"));
  ASSERT_NE(next, nullptr);
  start(a_traced_node({{"overheads", {{{"kind", "resource"}, {"every", 1}, {"ns", 1000}}}}}));
  on = stream();
  register_callbacks();
  enable({tracing::kDriverApi,
          tracing::kConcurrentKernel,
          tracing::kSynchronization,
          tracing::kOverhead,
          tracing::kMemory2});
  launch_and_wait(3);
  ASSERT_EQ(cu.cuMemFree_v2(memory(4096)), kSuccess);
  auto& trace = flush();
  ASSERT_EQ(trace.delivered.size(), 1u);
  auto& bytes = trace.delivered[0];
  std::vector<std::uint32_t> kinds;
  tracing::Activity* record = nullptr;
  while (next(bytes.data(), bytes.size(), &record) == tracing::kSuccess) {
    kinds.push_back(record->kind);
  }
  EXPECT_EQ(kinds, trace.kinds);
  EXPECT_EQ(next(bytes.data(), bytes.size(), &record), tracing::kMaxLimitReached);
#else
  GTEST_SKIP() << "no libcupti.so.13 of NVIDIA's here";
#endif
}

TEST(FakeCuptiIds, AreThoseOfNvidiasHeader) {
#if __has_include(<cupti_driver_cbid.h>)
#define SAME_ID(name, id) EXPECT_EQ(id, CUPTI_DRIVER_TRACE_CBID_##name) << #name;
  LAUNCHGAP_DRIVER_CALLS(SAME_ID)
#undef SAME_ID
#else
  GTEST_SKIP() << "no toolkit here";
#endif
}

// Buffers

TEST_F(FakeCupti, EveryThreadHasABufferOfItsOwnAskedForOnIt) {
  start_tracing(a_traced_node());
  std::set<std::thread::id> threads;
  std::vector<std::thread> launchers;
  std::mutex mutex;
  for (int i = 0; i < 3; ++i) {
    launchers.emplace_back([&] {
      {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      }
      ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
      const auto own = stream();
      for (int j = 0; j < 10; ++j) ASSERT_EQ(launch(null, own), kSuccess);
      ASSERT_EQ(cu.cuStreamSynchronize(own), kSuccess);
    });
  }
  for (auto& launcher : launchers) launcher.join();
  const auto& trace = flush();
  EXPECT_EQ(std::set(trace.requested_on.begin(), trace.requested_on.end()), threads);
  EXPECT_EQ(trace.delivered.size(), 3u) << "also those of threads that have ended";
  EXPECT_EQ(trace.kernels.size(), 30u);
  std::set<std::uint32_t> ids, its_threads;
  for (const auto& api : trace.apis) {
    ids.insert(api.correlation);
    its_threads.insert(api.thread);
  }
  EXPECT_EQ(ids.size(), 30u);
  EXPECT_EQ(its_threads.size(), 3u);
}

TEST_F(FakeCupti, FullBuffersComeBackWhenTheirKernelsAreDone) {
  start_tracing(a_traced_node());
  client().buffer_bytes = 3 * (216 + 40) + 100;
  launch_and_wait(3);
  EXPECT_EQ(client().delivered.size(), 0u);
  launch_and_wait(1);
  EXPECT_EQ(client().delivered.size(), 1u);
  EXPECT_EQ(client().kernels.size(), 3u);
  launch_and_wait(6);
  EXPECT_EQ(client().delivered.size(), 3u);
  EXPECT_EQ(flush().kernels.size(), 10u);
  EXPECT_EQ(client().apis.size(), 10u);
  EXPECT_EQ(client().delivered.size(), 4u);
  EXPECT_EQ(dropped(), 0u);
  for (const auto end : client().ends) EXPECT_EQ(end, tracing::kMaxLimitReached);
}

TEST_F(FakeCupti, BuffersHoldNoMoreRecordsThanAsked) {
  start_tracing(a_traced_node());
  client().most_records = 4;
  launch_and_wait(6);
  EXPECT_EQ(flush().delivered.size(), 3u);
  EXPECT_EQ(client().kernels.size(), 6u);
}

TEST_F(FakeCupti, AFlushGivesCompleteBuffersAndAForcedOneAll) {
  start_tracing(a_traced_node(Json::object(), {{"kernel_ns", kLong}}));
  ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_EQ(flush().delivered.size(), 0u) << "the kernel runs";
  flush(tracing::kFlushForced);
  ASSERT_EQ(client().kernels.size(), 1u);
  EXPECT_GT(client().kernels[0].start, 0u);
  EXPECT_EQ(client().kernels[0].end, 0u);
  EXPECT_EQ(client().apis.size(), 1u);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  flush(tracing::kFlushForced);
  EXPECT_EQ(client().kernels.size(), 1u) << "a record is not delivered again";
  ASSERT_EQ(launch(null, on), kSuccess);
  usleep(static_cast<unsigned>(1.1 * kLong / 1000));
  EXPECT_EQ(flush().kernels.size(), 2u) << "a device needs nobody who waits";
}

struct Refusal {
  const char* name;
  bool null;
  std::size_t bytes;
  std::size_t kept;  // of six records of three launches
};

void PrintTo(const Refusal& test, std::ostream* out) {
  *out << test.name;
}

class FakeCuptiRefusal : public FakeCupti, public testing::WithParamInterface<Refusal> {};

TEST_P(FakeCuptiRefusal, RecordsWithoutRoomAreDroppedAndCounted) {
  start_tracing(a_traced_node());
  client().refuses = GetParam().null;
  client().buffer_bytes = GetParam().bytes;
  launch_and_wait(3);
  flush(tracing::kFlushForced);
  EXPECT_EQ(client().kinds.size(), GetParam().kept);
  EXPECT_EQ(dropped(), 6 - GetParam().kept);
  EXPECT_EQ(dropped(), 0u) << "reading resets";
  client().refuses = false;
  client().buffer_bytes = 4096;
  launch_and_wait();
  flush();
  EXPECT_EQ(client().kinds.size(), GetParam().kept + 2);
}

INSTANTIATE_TEST_SUITE_P(Buffer,
                         FakeCuptiRefusal,
                         testing::Values(Refusal{"none", true, 4096, 0},
                                         Refusal{"tiny", false, 16, 0},
                                         Refusal{"small", false, 100, 3}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(FakeCupti, BuffersMayComeBackOnAnotherThread) {
  start_tracing(a_traced_node({{"callback_thread", true}}));
  launch_and_wait(3);
  const auto& trace = flush();
  EXPECT_EQ(trace.kernels.size(), 3u) << "before the flush returns";
  ASSERT_EQ(trace.completed_on.size(), 1u);
  EXPECT_NE(trace.completed_on[0], std::this_thread::get_id());
  EXPECT_EQ(trace.requested_on.at(0), std::this_thread::get_id());
}

TEST_F(FakeCupti, RecordsMayBeInNoOrder) {
  start_tracing(a_traced_node({{"shuffle", true}}));
  launch_and_wait(50);
  const auto& trace = flush();
  ASSERT_EQ(trace.kernels.size(), 50u);
  ASSERT_EQ(trace.apis.size(), 50u);
  const auto by_start = [](const auto& a, const auto& b) { return a.start < b.start; };
  EXPECT_FALSE(std::is_sorted(trace.kernels.begin(), trace.kernels.end(), by_start));
  std::set<std::uint32_t> ids;
  for (const auto& kernel : trace.kernels) {
    ids.insert(kernel.correlation);
    EXPECT_EQ(kernel.end - kernel.start, 50000u);
  }
  EXPECT_EQ(ids.size(), 50u);
}

TEST_F(FakeCupti, FlushingFromACallbackIsAnError) {
  start_tracing(a_traced_node());
  client().flushes_in_callback = true;
  launch_and_wait();
  flush();
  EXPECT_EQ(client().flushed_in_callback, 7);
  EXPECT_EQ(client().kernels.size(), 1u);
}

// Errors

TEST_F(FakeCupti, TheOrderOfCallsMatters) {
  start(a_traced_node());
  EXPECT_EQ(cupti.cuptiActivityEnable(tracing::kConcurrentKernel), 7) << "nowhere to put records";
  EXPECT_EQ(cupti.cuptiActivityEnableDriverApi(307, 1), 7);
  EXPECT_EQ(cupti.cuptiActivityFlushAll(0), 7);
  EXPECT_EQ(cupti.cuptiActivityRegisterCallbacks(nullptr, complete), tracing::kInvalidParameter);
  EXPECT_EQ(cupti.cuptiUnsubscribe(nullptr), tracing::kInvalidParameter);
  register_callbacks();
  EXPECT_EQ(cupti.cuptiActivityFlushAll(0), tracing::kSuccess);
  enable({tracing::kConcurrentKernel});
  EXPECT_EQ(cupti.cuptiActivityEnable(static_cast<tracing::Kind>(1)), tracing::kNotSupported)
      << "copies, which the fake does not trace";
  for (const std::uint32_t unknown : {0u, 56u, 9999u}) {
    EXPECT_EQ(cupti.cuptiActivityEnable(static_cast<tracing::Kind>(unknown)),
              tracing::kInvalidKind);
  }
  std::size_t bytes = 8;
  std::size_t value = 1 << 20;
  EXPECT_EQ(cupti.cuptiActivitySetAttribute(tracing::kDeviceBufferSize, &bytes, &value),
            tracing::kSuccess);
  bytes = 1;
  EXPECT_EQ(cupti.cuptiActivitySetAttribute(tracing::kZeroedOutBuffer, &bytes, &value),
            tracing::kSuccess);
  EXPECT_EQ(cupti.cuptiActivitySetAttribute(tracing::kDeviceBufferSize, &bytes, &value), 10);
  EXPECT_EQ(cupti.cuptiActivitySetAttribute(static_cast<tracing::Attribute>(99), &bytes, &value),
            tracing::kInvalidParameter);
  EXPECT_EQ(cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, nullptr),
            tracing::kInvalidParameter);
}

TEST_F(FakeCupti, IterationEndsAsTheRealOneDoes) {
  start(a_traced_node());
  alignas(8) std::uint8_t buffer[120] = {};
  buffer[0] = buffer[40] = tracing::kDriverApi;
  buffer[80] = 14;  // no kind of records
  tracing::Activity* record = nullptr;
  const auto next = [&](std::size_t bytes) {
    return cupti.cuptiActivityGetNextRecord(buffer, bytes, &record);
  };
  EXPECT_EQ(next(0), tracing::kMaxLimitReached);
  EXPECT_EQ(next(39), tracing::kMaxLimitReached);
  EXPECT_EQ(record, nullptr);
  EXPECT_EQ(next(120), tracing::kSuccess);
  EXPECT_EQ(next(120), tracing::kSuccess);
  auto* const last = record;
  EXPECT_EQ(next(80), tracing::kMaxLimitReached);
  EXPECT_EQ(next(120), tracing::kInvalidKind);
  EXPECT_EQ(next(120), tracing::kInvalidKind);
  EXPECT_EQ(record, last);
  EXPECT_EQ(cupti.cuptiActivityGetNextRecord(nullptr, 40, &record), tracing::kInvalidParameter);
}

TEST_F(FakeCupti, EveryCodeOfTheInterfaceHasAName) {
  start(a_traced_node());
  const std::pair<tracing::Result, const char*> codes[] = {
      {tracing::kSuccess, "CUPTI_SUCCESS"},
      {tracing::kInvalidParameter, "CUPTI_ERROR_INVALID_PARAMETER"},
      {tracing::kApiNotImplemented, "CUPTI_ERROR_API_NOT_IMPLEMENTED"},
      {tracing::kMaxLimitReached, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
      {tracing::kNotInitialized, "CUPTI_ERROR_NOT_INITIALIZED"},
      {tracing::kInvalidKind, "CUPTI_ERROR_INVALID_KIND"},
      {tracing::kNotSupported, "CUPTI_ERROR_NOT_SUPPORTED"},
      {tracing::kInsufficientPrivileges, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
      {tracing::kMultipleSubscribers, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
      {tracing::kVirtualisedInsufficientPrivileges,
       "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES"},
      {tracing::kUnknown, "CUPTI_ERROR_UNKNOWN"}};
  for (const auto& [code, name] : codes) {
    const char* text = nullptr;
    EXPECT_EQ(cupti.cuptiGetResultString(code, &text), tracing::kSuccess);
    EXPECT_STREQ(text, name);
  }
  const char* text = nullptr;
  EXPECT_EQ(cupti.cuptiGetResultString(12345, &text), tracing::kInvalidParameter);
}

TEST_F(FakeCupti, OneSubscriberAtATime) {
  start(a_traced_node());
  tracing::Subscriber second = nullptr;
  tracing::SubscriberParameters parameters{sizeof parameters, "launchgap", nullptr, 0};
  ASSERT_EQ(cupti.cuptiSubscribe_v2(&subscriber, nullptr, nullptr, &parameters), tracing::kSuccess);
  EXPECT_EQ(cupti.cuptiSubscribe(&second, nullptr, nullptr), tracing::kMultipleSubscribers);
  std::array<char, 64> name{};
  parameters.old_subscriber = name.data();
  parameters.old_subscriber_bytes = name.size();
  EXPECT_EQ(cupti.cuptiSubscribe_v2(&second, nullptr, nullptr, &parameters),
            tracing::kMultipleSubscribers);
  EXPECT_STREQ(name.data(), "CUPTI for launchgap");
  parameters.bytes = 8;
  EXPECT_EQ(cupti.cuptiSubscribe_v2(&second, nullptr, nullptr, &parameters),
            tracing::kInvalidParameter);
  ASSERT_EQ(cupti.cuptiUnsubscribe(subscriber), tracing::kSuccess);
  EXPECT_EQ(cupti.cuptiUnsubscribe(subscriber), tracing::kInvalidParameter);
  EXPECT_EQ(cupti.cuptiSubscribe(&second, nullptr, nullptr), tracing::kSuccess);
}

TEST_F(FakeCupti, AToolMayHaveTheProcess) {
  start(a_traced_node({{"subscriber", "Nsight Systems"}}));
  EXPECT_EQ(cupti.cuptiSubscribe(&subscriber, nullptr, nullptr), tracing::kMultipleSubscribers);
  std::array<char, 8> name{};
  tracing::SubscriberParameters parameters{sizeof parameters, nullptr, name.data(), name.size()};
  EXPECT_EQ(cupti.cuptiSubscribe_v2(&subscriber, nullptr, nullptr, &parameters),
            tracing::kMultipleSubscribers);
  EXPECT_STREQ(name.data(), "Nsight ") << "as much as there is room for";
}

struct Refused {
  const char* call;
  int code;
};

void PrintTo(const Refused& test, std::ostream* out) {
  *out << test.call;
}

class FakeCuptiFault : public FakeCupti, public testing::WithParamInterface<Refused> {};

TEST_P(FakeCuptiFault, IsReturnedAsItsCode) {
  const auto& [call, code] = GetParam();
  Json node = a_traced_node();
  node["faults"] = {
      {{"library", "cupti"}, {"call", call}, {"after", 1}, {"times", 1}, {"code", code}}};
  start(node);
  register_callbacks();
  std::uint64_t now = 0;
  const std::map<std::string, std::function<tracing::Result()>> calls{
      {"cuptiSubscribe",
       [&] {
         const auto result = cupti.cuptiSubscribe(&subscriber, nullptr, nullptr);
         if (result == 0) cupti.cuptiUnsubscribe(subscriber);
         return result;
       }},
      {"cuptiActivityEnable", [&] { return cupti.cuptiActivityEnable(tracing::kOverhead); }},
      {"cuptiActivityFlushAll", [&] { return cupti.cuptiActivityFlushAll(0); }},
      {"cuptiGetTimestamp", [&] { return cupti.cuptiGetTimestamp(&now); }},
  };
  for (const int expected : {0, code, 0}) EXPECT_EQ(calls.at(call)(), expected);
}

INSTANTIATE_TEST_SUITE_P(Call,
                         FakeCuptiFault,
                         testing::Values(Refused{"cuptiSubscribe", 35},
                                         Refused{"cuptiSubscribe", 15},
                                         Refused{"cuptiActivityEnable", 27},
                                         Refused{"cuptiActivityFlushAll", 999},
                                         Refused{"cuptiGetTimestamp", 999}),
                         [](const auto& test) {
                           return test.param.call + std::string("_") +
                                  std::to_string(test.param.code);
                         });

TEST_F(FakeCupti, WithoutADriverLittleWorks) {
  setenv("LAUNCHGAP_FAKE_NODE", "/nowhere/node.json", 1);
  std::uint32_t version = 0;
  std::uint64_t now = 0;
  EXPECT_EQ(cupti.cuptiGetVersion(&version), tracing::kSuccess);
  EXPECT_EQ(version, 130001u);
  EXPECT_EQ(cupti.cuptiGetTimestamp(&now), tracing::kSuccess);
  register_callbacks();
  EXPECT_EQ(cupti.cuptiSubscribe(&subscriber, nullptr, nullptr), tracing::kUnknown);
  EXPECT_EQ(cupti.cuptiActivityEnable(tracing::kConcurrentKernel), tracing::kUnknown);
  EXPECT_EQ(cupti.cuptiActivityFlushAll(0), tracing::kUnknown);
}

TEST_F(FakeCupti, MayBeSilent) {
  start_tracing(a_traced_node({{"silent", true}, {"api_overhead_ns", kLong}}));
  const double begin = now_ns();
  launch_and_wait(3);
  EXPECT_SOONER(now_ns() - begin, kLong);
  const auto& trace = flush(tracing::kFlushForced);
  EXPECT_TRUE(trace.kinds.empty());
  EXPECT_TRUE(trace.requested_on.empty());
  EXPECT_EQ(dropped(), 0u);
}

// The observer's effect

struct Effect {
  const char* name;
  std::vector<tracing::Kind> kinds;
  std::uint64_t launch_us;  // that the launch takes longer
  std::uint64_t wait_us;
};

void PrintTo(const Effect& test, std::ostream* out) {
  *out << test.name;
}

class FakeCuptiEffect : public FakeCupti, public testing::WithParamInterface<Effect> {};

TEST_P(FakeCuptiEffect, IsPartOfTheCallAndOfItsRecord) {
  start(a_traced_node({{"api_overhead_ns", 100'000},
                       {"kernel_overhead_ns", 400'000},
                       {"other_overhead_ns", 1'600'000}},
                      {{"call_ns", 30'000}, {"kernel_ns", 1000}}));
  on = stream();
  register_callbacks();
  for (const auto kind : GetParam().kinds) enable({kind});
  const auto launch_ns = 30'000 + 1000.0 * static_cast<double>(GetParam().launch_us);
  const auto wait_ns = 1000.0 * static_cast<double>(GetParam().wait_us);
  double shortest_launch = 1e9, shortest_wait = 1e9;
  for (int i = 0; i < 10; ++i) {
    const double begin = now_ns();
    ASSERT_EQ(launch(null, on), kSuccess);
    const double launched = now_ns();
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    shortest_launch = std::min(shortest_launch, launched - begin);
    shortest_wait = std::min(shortest_wait, now_ns() - launched);
  }
  ASSERT_EQ(cu.cuMemFree_v2(memory(4096)), kSuccess);
  // Longer only where the scheduler interferes.
  constexpr double kSlack = 50'000;
  EXPECT_GE(shortest_launch, launch_ns);
  EXPECT_LT(shortest_launch, launch_ns + kSlack);
  EXPECT_GE(shortest_wait, wait_ns);
  EXPECT_LT(shortest_wait, wait_ns + kSlack);
  const auto& trace = flush();
  for (const auto& api : trace.apis) {
    if (api.call == tracing::kLaunchKernel) {
      EXPECT_EQ(api.end - api.start, static_cast<std::uint64_t>(launch_ns));
    }
  }
  if (trace.apis.empty() || trace.kernels.empty()) return;
  EXPECT_EQ(trace.kernels[0].start - trace.apis[0].start, 3000u) << "the device is not delayed";
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    FakeCuptiEffect,
    testing::Values(
        Effect{"none", {}, 0, 0},
        Effect{"api", {tracing::kDriverApi}, 100, 100},
        Effect{"kernel", {tracing::kConcurrentKernel}, 400, 0},
        Effect{"memory", {tracing::kMemory2}, 1600, 1600},
        Effect{"waits_and_overhead", {tracing::kSynchronization, tracing::kOverhead}, 1600, 1600},
        Effect{"all",
               {tracing::kDriverApi, tracing::kConcurrentKernel, tracing::kSynchronization},
               2100,
               1700}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(FakeCupti, EveryNthLaunchWaitsForAnOverhead) {
  start_tracing(a_traced_node(
      {{"overheads",
        {{{"kind", "lazy_function_loading"}, {"every", 3}, {"ns", 200'000}},
         {{"kind", "command_buffer_full"}, {"every", 6}, {"ns", {{"constant", 100'000}}}}}}},
      {{"call_ns", 10'000}}));
  enable({tracing::kOverhead});
  launch_and_wait(6);
  const auto& trace = flush();
  ASSERT_EQ(trace.kernels.size(), 6u);
  const std::uint64_t late[] = {0, 0, 200'000, 0, 0, 300'000};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(trace.apis[i].end - trace.apis[i].start, 10'000 + late[i]) << i;
    EXPECT_EQ(trace.kernels[i].start - trace.apis[i].start, 3000 + late[i]) << i;
  }
  struct Expected {
    tracing::OverheadKind kind;
    std::size_t launch;
    std::uint64_t from, to;
  };
  const Expected expected[] = {{tracing::kLazyFunctionLoading, 2, 0, 200'000},
                               {tracing::kLazyFunctionLoading, 5, 0, 200'000},
                               {tracing::kCommandBufferFull, 5, 200'000, 300'000}};
  ASSERT_EQ(trace.overheads.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const auto& record = trace.overheads[i];
    const auto& api = trace.apis[expected[i].launch];
    EXPECT_EQ(record.common.overhead, expected[i].kind);
    EXPECT_EQ(record.common.start - api.start, expected[i].from);
    EXPECT_EQ(record.common.end - api.start, expected[i].to);
    EXPECT_EQ(record.correlation, api.correlation);
    EXPECT_EQ(record.common.object_kind, 2u);
    EXPECT_EQ(record.common.object[1], api.thread);
    EXPECT_EQ(record.data != nullptr, expected[i].kind == tracing::kCommandBufferFull);
  }
}

// Pathologies

struct Pathology {
  const char* key;
  std::size_t delivered;  // of 6 kernels, when it hits the third and the fourth
  std::size_t dropped;
  std::function<bool(const KernelActivity&, const ApiActivity&)> recognised;
};

void PrintTo(const Pathology& test, std::ostream* out) {
  *out << test.key;
}

class FakeCuptiPathology : public FakeCupti, public testing::WithParamInterface<Pathology> {};

TEST_P(FakeCuptiPathology, HitsTheKernelsThatAreNamed) {
  const auto& pathology = GetParam();
  start_tracing(a_traced_node({{pathology.key, {{"after", 2}, {"count", 2}}}}));
  launch_and_wait(6);
  const auto& trace = flush();
  EXPECT_EQ(trace.kernels.size(), pathology.delivered);
  EXPECT_EQ(trace.apis.size(), 6u);
  EXPECT_EQ(dropped(), pathology.dropped);
  std::map<std::uint32_t, ApiActivity> by_id;
  for (const auto& api : trace.apis) by_id[api.correlation] = api;
  for (std::size_t i = 0; i < trace.apis.size(); ++i) {
    const auto kernel =
        std::find_if(trace.kernels.begin(), trace.kernels.end(), [&](const auto& candidate) {
          return candidate.correlation == trace.apis[i].correlation;
        });
    const bool hit = i == 2 || i == 3;
    const bool missing = pathology.delivered < 6 && hit;
    ASSERT_EQ(kernel == trace.kernels.end(), missing) << i;
    if (missing) continue;
    EXPECT_EQ(pathology.recognised(*kernel, trace.apis[i]), hit) << i;
    if (!hit) {
      EXPECT_EQ(kernel->end - kernel->start, 50'000u) << i;
    }
  }
}

bool never(const KernelActivity&, const ApiActivity&) {
  return false;
}

INSTANTIATE_TEST_SUITE_P(Key,
                         FakeCuptiPathology,
                         testing::Values(Pathology{"dropped", 4, 2, never},
                                         Pathology{"lost", 4, 0, never},
                                         Pathology{"zero_timestamps",
                                                   6,
                                                   0,
                                                   [](const auto& kernel, const auto&) {
                                                     return kernel.start == 0 && kernel.end == 0;
                                                   }},
                                         Pathology{"inverted",
                                                   6,
                                                   0,
                                                   [](const auto& kernel, const auto&) {
                                                     return kernel.end < kernel.start;
                                                   }},
                                         Pathology{"early",
                                                   6,
                                                   0,
                                                   [](const auto& kernel, const auto& api) {
                                                     return signed_difference(kernel.start,
                                                                              api.start) ==
                                                            -1'000'000;
                                                   }}),
                         [](const auto& test) { return std::string(test.param.key); });

TEST_F(FakeCupti, AnUnknownKindEndsTheIterationOfItsBuffer) {
  start_tracing(a_traced_node({{"unknown_kind", {{"after", 2}, {"count", 1}}}}));
  launch_and_wait(4);
  flush();
  EXPECT_EQ(client().kernels.size(), 2u);
  ASSERT_EQ(client().ends.size(), 1u);
  EXPECT_EQ(client().ends[0], tracing::kInvalidKind);
  launch_and_wait();
  flush();
  EXPECT_EQ(client().kernels.size(), 3u);
  EXPECT_EQ(client().ends[1], tracing::kMaxLimitReached);
}

TEST_F(FakeCupti, TheClockMayStep) {
  constexpr std::int64_t kStep = -5'000'000'000;
  start_tracing(a_traced_node({{"clock_step", {{"after", 2}, {"ns", kStep}}}}));
  const auto clock = [&] {
    std::uint64_t now = 0;
    EXPECT_EQ(cupti.cuptiGetTimestamp(&now), tracing::kSuccess);
    return static_cast<double>(static_cast<std::int64_t>(now - realtime_ns()));
  };
  constexpr double kSlack = 20e6;
  launch_and_wait();
  EXPECT_NEAR(clock(), 0, kSlack);
  launch_and_wait();
  EXPECT_NEAR(clock(), static_cast<double>(kStep), kSlack);
  launch_and_wait(2);
  const auto& trace = flush();
  ASSERT_EQ(trace.apis.size(), 4u);
  const auto steps = [&](std::size_t i) {
    return signed_difference(trace.apis[i].start, trace.apis[i - 1].start) < 0;
  };
  EXPECT_FALSE(steps(1));
  EXPECT_TRUE(steps(2));
  EXPECT_FALSE(steps(3));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(trace.kernels[i].start - trace.apis[i].start, 3000u) << "a call has one clock";
  }
}

// The end of the process

class FakeCuptiExit : public FakeCupti {
 protected:
  void start_checked() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    start_tracing(a_traced_node({{"abort_at_exit", true}}));
  }
  void stop() {
    ASSERT_EQ(cupti.cuptiActivityDisable(tracing::kConcurrentKernel), tracing::kSuccess);
    ASSERT_EQ(cupti.cuptiActivityDisable(tracing::kDriverApi), tracing::kSuccess);
    ASSERT_EQ(cupti.cuptiActivityDisable(tracing::kRuntimeApi), tracing::kSuccess);
    ASSERT_EQ(cupti.cuptiUnsubscribe(subscriber), tracing::kSuccess);
  }
};

const auto aborts = testing::KilledBySignal(SIGABRT);
const auto ends_well = testing::ExitedWithCode(0);

TEST_F(FakeCuptiExit, AClientThatStoppedEndsWell) {
  EXPECT_EXIT((start_checked(), launch_and_wait(), stop(), std::exit(0)), ends_well, "");
}

TEST_F(FakeCuptiExit, ASubscriberThatIsLeftAborts) {
  EXPECT_EXIT(
      (start_checked(), stop(), cupti.cuptiSubscribe(&subscriber, nullptr, nullptr), std::exit(0)),
      aborts,
      "still subscribed while the process exits");
}

TEST_F(FakeCuptiExit, ActivityThatIsLeftAborts) {
  EXPECT_EXIT((start_checked(), cupti.cuptiUnsubscribe(subscriber), std::exit(0)),
              aborts,
              "activity is still enabled while the process exits");
}

TEST_F(FakeCuptiExit, CallsFromExitHandlersAbort) {
  EXPECT_EXIT((start_checked(),
               stop(),
               std::atexit([] { client().cupti.cuptiActivityFlushAll(0); }),
               std::exit(0)),
              aborts,
              "cuptiActivityFlushAll called while the process exits");
}

TEST_F(FakeCuptiExit, NobodyChecksUnlessAsked) {
  EXPECT_EXIT((start_tracing(a_traced_node()),
               std::atexit([] { client().cupti.cuptiActivityFlushAll(0); }),
               std::exit(0)),
              ends_well,
              "");
}

}  // namespace
}  // namespace launchgap::fake
