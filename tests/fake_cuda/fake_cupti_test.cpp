// What the fake CUPTI adds to a trace of the fake driver's work: records that are exactly what was
// drawn, as long as their version has them, and what else real ones have. What a user sees of
// records that are wrong, late or not there is in tests/end_to_end/test_tracing.py.
#include <cmath>
#include <map>
#include <pthread.h>
#include <set>
#include <thread>
#include <tuple>
#include <unistd.h>

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

LAUNCHGAP_LIBRARY(Cupti, tracing::CuptiFunctions, LAUNCHGAP_CUPTI_FUNCTIONS, "libcupti.so.13");

/// What the client of these tests got; CUPTI's callbacks have no argument for it.
struct Client {
  Cupti cupti;
  std::size_t buffer_bytes = std::size_t{1} << 16;
  bool refuses = false;

  std::vector<ApiActivity> apis;
  std::vector<KernelActivity> kernels;
  std::vector<std::uint32_t> kinds;  // in the order of delivery
  std::map<std::uint32_t, std::set<std::ptrdiff_t>> strides;
  std::vector<std::uint8_t> delivered;
  std::vector<std::thread::id> requested_on;

  void take(std::uint8_t* buffer, std::size_t valid_bytes) {
    tracing::Activity *record = nullptr, *before = nullptr;
    const auto stride_to = [&](void* next) {
      if (before == nullptr) return;
      strides[before->kind].insert(static_cast<std::uint8_t*>(next) -
                                   reinterpret_cast<std::uint8_t*>(before));
    };
    while (cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == tracing::kSuccess) {
      stride_to(record);
      before = record;
      kinds.push_back(record->kind);
      if (record->kind == tracing::kDriverApi || record->kind == tracing::kRuntimeApi)
        apis.push_back(*reinterpret_cast<ApiActivity*>(record));
      if (record->kind == tracing::kConcurrentKernel)
        kernels.push_back(*reinterpret_cast<KernelActivity*>(record));
    }
    stride_to(buffer + valid_bytes);
  }
};

Client& client() {
  static auto* const instance = new Client;
  return *instance;
}

void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  auto& c = client();
  c.requested_on.push_back(std::this_thread::get_id());
  *bytes = c.buffer_bytes;
  *records = 0;
  const std::size_t rounded = (c.buffer_bytes + 7) / 8 * 8;
  *buffer = c.refuses ? nullptr : static_cast<std::uint8_t*>(std::aligned_alloc(8, rounded));
}

void complete(tracing::Context,
              std::uint32_t,
              std::uint8_t* buffer,
              std::size_t,
              std::size_t valid_bytes) {
  client().delivered.assign(buffer, buffer + valid_bytes);
  client().take(buffer, valid_bytes);
  std::free(buffer);
}

Json a_traced_node(const Json& cupti = Json::object(), const Json& device = Json::object()) {
  Json node = a_node(a_device(device));
  node["cupti"] = cupti;
  return node;
}

class FakeCupti : public FakeCuda {
 protected:
  void enable(std::initializer_list<tracing::Kind> kinds) {
    for (const auto kind : kinds) {
      ASSERT_EQ(cupti.cuptiActivityEnable(kind), tracing::kSuccess) << kind;
    }
  }

  /// A context, and these kinds of records.
  void start_tracing(const Json& node, std::initializer_list<tracing::Kind> kinds) {
    start(node);
    on = stream();
    ASSERT_EQ(cupti.cuptiActivityRegisterCallbacks(request, complete), tracing::kSuccess);
    enable(kinds);
  }
  void select(std::uint32_t call) {
    ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(call, 1), tracing::kSuccess);
  }
  /// All launches with their kernels.
  void start_tracing(const Json& node) {
    start_tracing(node, {tracing::kConcurrentKernel});
    for (const auto call : {tracing::kLaunchKernel, tracing::kLaunchKernelEx}) select(call);
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

  const Cupti& cupti = client().cupti;
  tracing::Subscriber subscriber = nullptr;
  Stream on = nullptr;
};

constexpr auto kApi = tracing::kDriverApi;
constexpr auto kKernels = tracing::kConcurrentKernel;
constexpr auto kWaits = tracing::kSynchronization;
const Json kEveryLaunch = {{{"kind", "resource"}, {"every", 1}, {"ns", 1000}}};

// Times

TEST_F(FakeCupti, ALaunchIsTracedExactlyAsItWasDrawn) {
  start_tracing(a_traced_node(
      Json::object(), {{"call_ns", 20000.4}, {"launch_ns", 50000.7}, {"kernel_ns", 12345.0}}));
  launch_and_wait(20);
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
    EXPECT_EQ(api.process, static_cast<std::uint32_t>(getpid()));
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

TEST_F(FakeCupti, TheDevicesClockIsOffAsDescribed) {
  constexpr double kSd = 500, kQuantum = 32;
  start_tracing(a_traced_node({{"gpu_clock", {{"sd_ns", kSd}, {"quantum_ns", kQuantum}}}}));
  constexpr int kLaunches = 200;
  launch_and_wait(kLaunches);
  const auto& [kernels, apis] = std::tie(flush().kernels, client().apis);
  ASSERT_EQ(kernels.size(), 0u + kLaunches);
  double squares = 0;
  for (std::size_t i = 0; i < kLaunches; ++i) {
    const double error = static_cast<double>(kernels[i].start - apis[i].start) - 3000;
    squares += error * error;
    EXPECT_NEAR(static_cast<double>(kernels[i].end - kernels[i].start), 50'000, kQuantum);
    EXPECT_EQ((kernels[i].start - kernels[0].start) % 32, 0u);
  }
  EXPECT_NEAR(std::sqrt(squares / kLaunches), kSd, kSd / 4);
}

TEST_F(FakeCupti, TheObserversEffectIsPartOfTheCallAndOfItsRecord) {
  start_tracing(a_traced_node({{"api_overhead_ns", kLong},
                               {"kernel_overhead_ns", 2 * kLong},
                               {"other_overhead_ns", 4 * kLong}},
                              {{"call_ns", 30'000}, {"kernel_ns", 1000}}),
                {});
  struct Case {
    tracing::Kind kind;  // enabled beside those before
    double launch_ns, wait_ns;
  };
  for (const auto& [kind, launch_ns, wait_ns] : {Case{kKernels, 2 * kLong, 0},
                                                 {kWaits, 6 * kLong, 4 * kLong},
                                                 {tracing::kMemory2, 6 * kLong, 4 * kLong},
                                                 {kApi, 7 * kLong, 5 * kLong}}) {
    enable({kind});
    const double begin = now_ns();
    ASSERT_EQ(launch(null, on), kSuccess);
    const double returned = now_ns();
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    EXPECT_TAKES(returned - begin, launch_ns);
    EXPECT_TAKES(now_ns() - returned, wait_ns);
  }
  const auto& api = flush().apis.at(0);
  EXPECT_EQ(api.end - api.start, 7 * static_cast<std::uint64_t>(kLong) + 30'000);
  EXPECT_EQ(client().kernels.back().start - api.start, 3000u) << "the device is not delayed";
}

// Records

TEST_F(FakeCupti, AReloadedModulesKernelsHaveTheNamesOfTheOneBefore) {
  start_tracing(a_traced_node({{"stale_names", true}}));
  launch_and_wait();
  ASSERT_EQ(cu.cuModuleUnload(module), kSuccess);
  use_context();
  launch_and_wait();
  ASSERT_EQ(flush().kernels.size(), 2u);
  EXPECT_STREQ(client().kernels[0].name, "launchgap_null");
  EXPECT_STRNE(client().kernels[1].name, "launchgap_null");
}

TEST_F(FakeCupti, ACallHasAnIdWhetherOrNotItHasARecordAndNone0) {
  start_tracing(a_traced_node({{"first_correlation", 4294967294u}}));
  launch_and_wait(2);
  const auto& trace = flush();
  ASSERT_EQ(trace.apis.size(), 2u);
  EXPECT_EQ(trace.apis[0].correlation, 4294967294u);
  EXPECT_EQ(trace.apis[1].correlation, 1u) << "the wait between them had 4294967295";
}

TEST_F(FakeCupti, ThreadsAreNamedByPthreadUntilTheSystemsIdsAreAskedFor) {
  start_tracing(a_traced_node());
  launch_and_wait();
  ASSERT_EQ(cupti.cuptiSetThreadIdType(tracing::kThreadIdSystem), tracing::kSuccess);
  launch_and_wait();
  const auto& apis = flush().apis;
  ASSERT_EQ(apis.size(), 2u);
  EXPECT_EQ(apis[0].thread, static_cast<std::uint32_t>(pthread_self()));
  EXPECT_EQ(apis[1].thread, static_cast<std::uint32_t>(gettid()));
}

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
  start_tracing(a_traced_node({{"version", expected.version}, {"overheads", kEveryLaunch}}),
                {kApi, kKernels, kWaits, tracing::kOverhead});
  std::uint32_t version = 0;
  ASSERT_EQ(cupti.cuptiGetVersion(&version), tracing::kSuccess);
  EXPECT_EQ(version, expected.version);
  EXPECT_EQ(cupti.cuptiActivityEnable(tracing::kMemory2),
            expected.memory > 0 ? tracing::kSuccess : tracing::kNotSupported);
  launch_and_wait(2);
  memory(4096);
  std::map<std::uint32_t, std::set<std::ptrdiff_t>> strides{
      {kApi, {40}},
      {kKernels, {expected.kernel}},
      {tracing::kOverhead, {expected.overhead}},
      {kWaits, {expected.synchronization}}};
  if (expected.memory > 0) strides[tracing::kMemory2] = {expected.memory};
  EXPECT_EQ(flush().strides, strides);
  // Functions that came later.
  EXPECT_EQ(cupti.cuptiActivityEnableDriverApi(307, 1),
            expected.version >= 23 ? tracing::kSuccess : tracing::kApiNotImplemented);
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
  start_tracing(a_traced_node({{"overheads", kEveryLaunch}}),
                {kApi,
                 kKernels,
                 kWaits,
                 tracing::kOverhead,
                 tracing::kMemory2,
                 tracing::kMemcpy,
                 tracing::kMemset});
  launch_and_wait(3);
  const auto target = memory(4096);
  ASSERT_EQ(cu.cuMemsetD8Async(target, 1, 4096, on), kSuccess);
  ASSERT_EQ(cu.cuMemcpyDtoDAsync_v2(target, target + 2048, 2048, on), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  ASSERT_EQ(cu.cuMemFree_v2(memory(4096)), kSuccess);
  auto& bytes = flush().delivered;
  std::vector<std::uint32_t> kinds;
  tracing::Activity* record = nullptr;
  while (next(bytes.data(), bytes.size(), &record) == tracing::kSuccess)
    kinds.push_back(record->kind);
  EXPECT_EQ(kinds, client().kinds);
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
  GTEST_SKIP() << "no cupti_driver_cbid.h of NVIDIA's here";
#endif
}

// Buffers

TEST_F(FakeCupti, BuffersAreAskedForOnTheThreadThatLaunchesAndComeBackWhenItHasEnded) {
  start_tracing(a_traced_node());
  std::thread::id launcher;
  std::thread([&] {
    launcher = std::this_thread::get_id();
    ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
    launch_and_wait(10);
  }).join();
  EXPECT_EQ(flush().kernels.size(), 10u);
  EXPECT_EQ(client().requested_on, std::vector{launcher});
}

TEST_F(FakeCupti, AForcedFlushGivesAKernelThatRunsAndNeverAgain) {
  start_tracing(a_traced_node(Json::object(), {{"kernel_ns", kLong}}));
  ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_EQ(flush().kinds.size(), 0u) << "the kernel runs";
  ASSERT_EQ(flush(tracing::kFlushForced).kernels.size(), 1u);
  EXPECT_EQ(client().kernels[0].end, 0u);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_EQ(flush(tracing::kFlushForced).kernels.size(), 1u);
}

TEST_F(FakeCupti, RecordsWithoutRoomAreDroppedAndCounted) {
  start_tracing(a_traced_node());
  struct Case {
    bool refuses;
    std::size_t bytes, kept;  // of six records of three launches
  };
  for (const auto& [refuses, bytes, kept] :
       {Case{true, 4096, 0}, {false, 16, 0}, {false, 100, 3}, {false, 4096, 6}}) {
    client().refuses = refuses;
    client().buffer_bytes = bytes;
    client().kinds.clear();
    launch_and_wait(3);
    EXPECT_EQ(flush(tracing::kFlushForced).kinds.size(), kept);
    for (const std::size_t expected : {6 - kept, std::size_t{0}}) {
      std::size_t dropped = 0;
      cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
      EXPECT_EQ(dropped, expected) << "reading resets";
    }
  }
}

// Errors

TEST_F(FakeCupti, CallsHaveTheirOrderAndOneSubscriber) {
  start(a_traced_node());
  EXPECT_EQ(cupti.cuptiActivityEnable(kKernels), 7) << "nowhere to put records";
  EXPECT_EQ(cupti.cuptiActivityFlushAll(0), 7);
  ASSERT_EQ(cupti.cuptiActivityRegisterCallbacks(request, complete), tracing::kSuccess);
  enable({kKernels});
  EXPECT_EQ(cupti.cuptiActivityEnable(static_cast<tracing::Kind>(9999)), tracing::kInvalidKind);
  EXPECT_EQ(cupti.cuptiActivityEnableDriverApi(100'000, 1), tracing::kInvalidParameter);
  tracing::SubscriberParameters parameters{sizeof parameters, "launchgap", nullptr, 0};
  ASSERT_EQ(cupti.cuptiSubscribe_v2(&subscriber, nullptr, nullptr, &parameters), tracing::kSuccess);
  char name[64] = {};
  tracing::Subscriber second = nullptr;
  parameters.old_subscriber = name;
  parameters.old_subscriber_bytes = sizeof name;
  EXPECT_EQ(cupti.cuptiSubscribe_v2(&second, nullptr, nullptr, &parameters),
            tracing::kMultipleSubscribers);
  EXPECT_STREQ(name, "CUPTI for launchgap");
}

}  // namespace
}  // namespace launchgap::fake
