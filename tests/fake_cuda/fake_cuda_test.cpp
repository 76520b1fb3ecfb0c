// What the fake driver, cuBLAS and cuDNN promise to the tests that stand on them.
#include <cmath>
#include <sstream>
#include <thread>

#include "tests/fake_cuda/fixture.h"
#include "tests/fake_cuda/visible_devices.h"

namespace launchgap::fake {
namespace {

// CUDA_VISIBLE_DEVICES

struct Mask {
  const char* value;
  std::vector<int> visible;
};

TEST(VisibleDevices, AreWhatTheDriverMakesOfTheVariable) {
  const std::vector<std::string> uuids{"GPU-11111111-aaaa-4000-8000-000000000000",
                                       "GPU-11112222-bbbb-4000-8000-000000000001",
                                       "GPU-33333333-cccc-4000-8000-000000000002"};
  const Mask cases[] = {
      {nullptr, {0, 1, 2}},
      {"", {}},
      {"NoDevFiles", {}},
      {"0", {0}},
      {"2,0", {2, 0}},
      {" 1 , 2", {1, 2}},
      {"0,2,-1,1", {0, 2}},
      {"0,7,1", {0}},
      {"-1", {}},
      {"0,,1", {0}},
      {"1gpu2,2ampere", {1, 2}},
      {"0,1,0", {}},
      {"GPU-33333333-cccc-4000-8000-000000000002", {2}},
      {"GPU-3", {2}},
      {"GPU-3,GPU-11111111", {2, 0}},
      {"GPU-1111", {}},
      {"GPU-3,GPU-1111,GPU-11112", {2}},
      {"GPU-3,1", {2}},
      {"1,GPU-3", {1}},
      {"GPU-9", {}},
      {"gpu-3", {}},
  };
  for (const auto& [value, visible] : cases) {
    EXPECT_EQ(visible_devices(uuids, value), visible) << (value != nullptr ? value : "(unset)");
  }
}

TEST_F(FakeCuda, OrdinalsFollowTheListOfVisibleDevices) {
  setenv("LAUNCHGAP_FAKE_NODE", LAUNCHGAP_FAKE_NODES_FOLDER "/mixed_8_gpus.json", 1);
  setenv("CUDA_VISIBLE_DEVICES", "6,4", 1);
  ASSERT_EQ(cu.cuInit(0), kSuccess);
  int count = 0;
  ASSERT_EQ(cu.cuDeviceGetCount(&count), kSuccess);
  EXPECT_EQ(count, 2);
  char name[64];
  ASSERT_EQ(cu.cuDeviceGetName(name, sizeof name, 0), kSuccess);
  EXPECT_STREQ(name, "NVIDIA H100 80GB HBM3");
  ASSERT_EQ(cu.cuDeviceGetName(name, sizeof name, 1), kSuccess);
  EXPECT_STREQ(name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(cu.cuDeviceGetName(name, sizeof name, 2), kInvalidDevice);
}

TEST_F(FakeCuda, NoVisibleDeviceIsNoDevice) {
  describe(a_node().dump());
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(cu.cuInit(0), kNoDevice);
  int count = 0;
  EXPECT_EQ(cu.cuDeviceGetCount(&count), kNotInitialized);
}

// Descriptions

TEST(NodeDescription, OfTheProjectAreValid) {
  for (const auto* const name : {"one_a100", "mixed_8_gpus", "mixed_8_gpus_two_faulty"}) {
    std::ifstream file(std::string(LAUNCHGAP_FAKE_NODES_FOLDER "/") + name + ".json");
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_NO_THROW(parse_node(text.str())) << name;
  }
}

TEST(NodeDescription, OfTheDocumentationIsValid) {
  std::ifstream file(LAUNCHGAP_FAKE_NODE_DOCUMENT);
  std::string text(std::istreambuf_iterator<char>(file), {});
  const auto begin = text.find("```json\n");
  ASSERT_NE(begin, std::string::npos);
  const auto example = text.substr(begin + 8, text.find("```", begin + 8) - begin - 8);
  EXPECT_NO_THROW(EXPECT_EQ(parse_node(example).devices.size(), 2u));
}

TEST(NodeDescription, ErrorsNameThePlaceAndWhatWouldBeRight) {
  struct Case {
    const char* pointer;  // in a_node
    Json value;
    const char* expected;  // part of the message
  };
  const Case cases[] = {
      {"/device",
       1,
       "/device: unknown key; known here: cublas_version, cudnn_version, cupti, devices, "
       "driver_version, faults, nvml"},
      {"/devices", 1, "/devices: 1 is not an array of devices"},
      {"/driver_version", "13.0", "/driver_version: \"13.0\" is not an integer of at least 1000"},
      {"/devices/0/uuid",
       "GPU-1",
       "/devices/0/uuid: \"GPU-1\" is not a UUID; expected GPU- and 8-4-4-4-12"},
      {"/devices/0/memory_bytes",
       -1,
       "/devices/0/memory_bytes: -1 is not a number of bytes above 0"},
      {"/devices/0/compute_capability", 8.0, "is not a compute capability such as \"8.0\""},
      {"/devices/0/latency_ns", 8.0, "/devices/0/latency_ns: unknown key"},
      {"/devices/0/memory_pools", 1, "/devices/0/memory_pools: 1 is not true or false"},
      {"/devices/0/call_ns", {{"uniform", 1}}, "/devices/0/call_ns/uniform: unknown key"},
      {"/devices/0/call_ns",
       {{"constant", -1}},
       "/devices/0/call_ns/constant: -1 is not a number of ns >= 0"},
      {"/devices/0/call_ns", {{"normal", {{"mean", 1}}}}, "/devices/0/call_ns/normal/sd: missing"},
      {"/devices/0/call_ns", {{"mixture", Json::array()}}, "weights have a sum above 0"},
      {"/devices/0/argument_ns_per_byte", -1, "-1 is not a number of ns >= 0"},
      {"/devices/0/launch_lock", "gpu", "\"gpu\" is not \"none\", \"stream\" or \"process\""},
      {"/devices/0/queue_depth", 0, "/devices/0/queue_depth: 0 is not an integer of at least 1"},
      {"/devices/0/threads_per_multiprocessor", 512, "512 is not an integer of at least 1024"},
      {"/devices/0/priorities", {-5, 0}, "is not [least, greatest]"},
      {"/devices/0/priorities", {0}, "is not [least, greatest]"},
      {"/devices/0/graph", {{"nodes_ns", 1}}, "/devices/0/graph/nodes_ns: unknown key"},
      {"/devices/0/graph", 1, "/devices/0/graph: 1 is not an object with the keys call_node_ns"},
      {"/devices/0/runtime", {{"ex_ns", -1}}, "/devices/0/runtime/ex_ns: -1 is not a number"},
      {"/devices/0/wake_ns", 5, "/devices/0/wake_ns: 5 is not an object with the keys block"},
      {"/devices/0/idle", {{{"ns", 5}}}, "/devices/0/idle/0/after_ms: missing"},
      {"/devices/0/tflops/fp8",
       1,
       "/devices/0/tflops/fp8: unknown key; known here: bf16, fp16, fp32, tf32"},
      {"/devices/0/tflops/fp32", 0, "/devices/0/tflops/fp32: 0 is not a number of TFLOP/s above 0"},
      {"/faults/0",
       {{"library", "cuda"}, {"call", "cuMemAlloc"}, {"code", 2}},
       "/faults/0/call: \"cuMemAlloc\" is not"},
      {"/faults/0", {{"library", "cuda"}, {"call", "cuGetErrorName"}}, "exactly one of"},
      {"/faults/0",
       {{"library", "cuda"}, {"call", "cuInit"}, {"code", 2}, {"hang", true}},
       "exactly one of"},
      {"/cupti/overhead", 1, "/cupti/overhead: unknown key; known here: abort_at_exit"},
      {"/cupti", nullptr, "/cupti: null is not an object with the keys"},
      {"/cupti/version", 0, "/cupti/version: 0 is not an integer of at least 1"},
      {"/cupti/nested", "both", "\"both\" is not \"same\", \"different\" or \"none\""},
      {"/cupti/silent", 1, "/cupti/silent: 1 is not true or false"},
      {"/cupti/subscriber", "", "/cupti/subscriber: \"\" is not the name of a tool"},
      {"/cupti/first_correlation", 0, "0 is not an integer from 1 to 4294967295"},
      {"/cupti/first_correlation", 4294967296, "is not an integer from 1 to 4294967295"},
      {"/cupti/dropped", {{"times", 1}}, "/cupti/dropped/times: unknown key"},
      {"/cupti/lost", {{"after", -1}}, "/cupti/lost/after: -1 is not a count of kernels >= 0"},
      {"/cupti/early", {{"count", 0}}, "/cupti/early/count: 0 is not a count of kernels >= 1"},
      {"/cupti/clock_step", {{"after", 1}}, "/cupti/clock_step/ns: missing"},
      {"/cupti/overheads", {{{"kind", "heat"}}}, "/cupti/overheads/0/kind: \"heat\" is not one of"},
      {"/cupti/overheads",
       {{{"kind", "resource"}, {"every", 0}, {"ns", 1}}},
       "/cupti/overheads/0/every: 0 is not a count of launches >= 1"},
      {"/nvml/driver", "580", "/nvml/driver: unknown key; known here: driver_version, version"},
      {"/devices/0/nvml/power", 1, "/devices/0/nvml/power: unknown key; known here: application"},
      {"/devices/0/nvml/pstate", 16, "16 is not an integer from 0 to 15"},
      {"/devices/0/nvml/sw_thermal_share", 1.5, "1.5 is not a share from 0 to 1"},
      {"/devices/0/nvml/missing",
       {"nvmlDeviceGetBrand"},
       "/devices/0/nvml/missing/0: \"nvmlDeviceGetBrand\" is not what nvml says of a device"},
      {"/devices/0/nvml/missing", {"field:x"}, "\"field:x\" is not what nvml says"},
      {"/faults/0",
       {{"library", "cupti"}, {"call", "cuptiFinalize"}, {"code", 1}},
       "/faults/0/call: \"cuptiFinalize\" is not"},
      {"/faults/0",
       {{"library", "nvml"}, {"call", "nvmlErrorString"}, {"code", 1}},
       "a function of nvml that returns a status"},
      {"/faults/0",
       {{"library", "nccl"}, {"call", "cuInit"}},
       "/faults/0/library: \"nccl\" is not \"cuda\""},
      {"/faults/0",
       {{"device", 1}, {"library", "cuda"}, {"call", "cuInit"}, {"code", 2}},
       "/faults/0/device: 1 is not"},
  };
  for (const auto& [pointer, value, expected] : cases) {
    Json node = a_node();
    node[Json::json_pointer(pointer)] = value;
    try {
      parse_node(node.dump());
      ADD_FAILURE() << pointer << " = " << value << " passed";
    } catch (const DescriptionError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(parse_node("{"), DescriptionError);
  EXPECT_THROW(parse_node("{}"), DescriptionError);
}

TEST(NodeDescription, KeysAreDocumented) {
  std::ifstream file(LAUNCHGAP_FAKE_NODE_DOCUMENT);
  const std::string document(std::istreambuf_iterator<char>(file), {});
  Json node = a_node();
  node["cupti"]["overheads"] = {{{"kind", "resource"}, {"every", 1}, {"ns", 1}}};
  node["faults"] = {fault("cuda", "cuInit", 0, 1)};
  node["devices"][0]["idle"] = {{{"after_ms", 1}, {"ns", 1}}};
  const char* const objects[] = {"",
                                 "/nvml",
                                 "/cupti",
                                 "/cupti/overheads/0",
                                 "/devices/0",
                                 "/devices/0/nvml",
                                 "/devices/0/graph",
                                 "/devices/0/idle/0",
                                 "/devices/0/runtime",
                                 "/devices/0/wake_ns",
                                 "/faults/0"};
  for (const std::string object : objects) {
    Json broken = node;
    broken[Json::json_pointer(object + "/?")] = 0;
    try {
      parse_node(broken.dump());
      ADD_FAILURE() << object;
    } catch (const DescriptionError& error) {
      const std::string message = error.what();
      std::istringstream keys(message.substr(message.find("known here: ") + 12));
      for (std::string key; std::getline(keys >> std::ws, key, ',');) {
        EXPECT_TRUE(document.find('`' + key + '`') != std::string::npos ||
                    document.find('"' + key + '"') != std::string::npos)
            << object << ": " << key;
      }
    }
  }
}

TEST_F(FakeCuda, BadDescriptionIsAnUnknownErrorAndOneLine) {
  Json node = a_node();
  node["devices"][0]["uuid"] = 7;
  describe(node.dump());
  testing::internal::CaptureStderr();
  EXPECT_EQ(cu.cuInit(0), kUnknown);
  EXPECT_EQ(cu.cuInit(0), kUnknown);
  const auto printed = testing::internal::GetCapturedStderr();
  EXPECT_NE(
      printed.find(std::string(std::getenv("LAUNCHGAP_FAKE_NODE")) + ": /devices/0/uuid: 7 is not"),
      std::string::npos)
      << printed;
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1);
}

TEST_F(FakeCuda, MissingDescriptionIsAnUnknownError) {
  setenv("LAUNCHGAP_FAKE_NODE", "/nowhere/node.json", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cu.cuInit(0), kUnknown);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("/nowhere/node.json: cannot be read"),
            std::string::npos);
}

// Devices and contexts

TEST_F(FakeCuda, DevicesAreAsDescribed) {
  setenv("LAUNCHGAP_FAKE_NODE", LAUNCHGAP_FAKE_NODES_FOLDER "/one_a100.json", 1);
  int version = 0;
  EXPECT_EQ(cu.cuDriverGetVersion(&version), kSuccess);
  EXPECT_EQ(version, 13000);
  ASSERT_EQ(cu.cuInit(0), kSuccess);
  Device device = -1;
  ASSERT_EQ(cu.cuDeviceGet(&device, 0), kSuccess);
  char text[32];
  ASSERT_EQ(cu.cuDeviceGetPCIBusId(text, sizeof text, device), kSuccess);
  EXPECT_STREQ(text, "0000:07:00.0");
  Uuid uuid{};
  ASSERT_EQ(cu.cuDeviceGetUuid_v2(&uuid, device), kSuccess);
  EXPECT_EQ(uuid.bytes[0], 0xA0);
  EXPECT_EQ(uuid.bytes[15], 0x01);
  std::size_t bytes = 0;
  ASSERT_EQ(cu.cuDeviceTotalMem_v2(&bytes, device), kSuccess);
  EXPECT_EQ(bytes, std::size_t{81154} << 20);
  const std::pair<int, int> attributes[] = {{kComputeCapabilityMajor, 8},
                                            {kComputeCapabilityMinor, 0},
                                            {kMultiprocessorCount, 108},
                                            {kClockRateKhz, 1410000},
                                            {kMemoryClockRateKhz, 1593000},
                                            {kGlobalMemoryBusWidth, 5120},
                                            {kL2CacheBytes, 40 << 20},
                                            {kMemoryPoolsSupported, 1},
                                            {kWarpSize, 32}};
  for (const auto& [attribute, expected] : attributes) {
    int value = -1;
    ASSERT_EQ(cu.cuDeviceGetAttribute(&value, attribute, device), kSuccess);
    EXPECT_EQ(value, expected) << attribute;
  }
}

TEST_F(FakeCuda, CallsNeedInitialisationAndAContext) {
  describe(a_node().dump());
  EXPECT_EQ(cu.cuCtxSynchronize(), kNotInitialized);
  ASSERT_EQ(cu.cuInit(0), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kInvalidContext);
  EXPECT_EQ(cu.cuStreamSynchronize(nullptr), kInvalidContext);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), kSuccess);
  ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRelease_v2(0), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kContextIsDestroyed);
}

TEST_F(FakeCuda, ReleasingTheContextReturnsItsMemory) {
  start();
  const auto all = free_memory();
  memory(1 << 20);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRelease_v2(0), kSuccess);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), kSuccess);
  EXPECT_EQ(free_memory(), all);
}

TEST_F(FakeCuda, ImagesAreToldApart) {
  Json node = a_node(a_device({{"compute_capability", "7.0"}}));
  node["driver_version"] = 12040;
  start(node);
  const std::pair<const char*, Result> images[] = {
      {nullptr, kInvalidImage},
      {"", kInvalidImage},
      {"hello", kInvalidImage},
      {"\x50\xED\x55\xBA....", kNoBinaryForGpu},
      {"\x7F"
       "ELF....",
       kNoBinaryForGpu},
      {kPtx, kSuccess},
      {".version 8.4\n.target sm_70\n", kSuccess},
      {".version 8.5\n.target sm_70\n", kUnsupportedPtxVersion},
      {".version 8.0\n.target sm_80\n", kNoBinaryForGpu},
      {".target sm_35\n", kInvalidPtx},
  };
  for (const auto& [image, expected] : images) {
    Module loaded = nullptr;
    EXPECT_EQ(cu.cuModuleLoadDataEx(&loaded, image, 0, nullptr, nullptr), expected)
        << (image ? image : "null");
  }
  Function missing = nullptr;
  EXPECT_EQ(cu.cuModuleGetFunction(&missing, module, "nothing"), kNotFound);
  int value = 0;
  EXPECT_EQ(cu.cuFuncGetAttribute(&value, kPtxVersion, null), kSuccess);
  EXPECT_EQ(value, 35);
  EXPECT_EQ(cu.cuFuncGetAttribute(&value, kBinaryVersion, null), kSuccess);
  EXPECT_EQ(value, 70);
}

TEST_F(FakeCuda, NativeImagesLoadSinceTuring) {
  start();
  Module native = nullptr;
  EXPECT_EQ(cu.cuModuleLoadDataEx(&native, "\x50\xED\x55\xBA....", 0, nullptr, nullptr), kSuccess);
}

// Streams

TEST_F(FakeCuda, ResultsAreThereAfterTheWaitOnly) {
  start(a_node(a_device({{"kernel_ns", kLong}})));
  const auto on = stream();
  const auto count = new_counter();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch(increment, on, count), kSuccess);
  EXPECT_EQ(cu.cuStreamQuery(on), kNotReady);
  EXPECT_EQ(counter(count), 0u) << "a copy does not wait for a non-blocking stream";
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_EQ(cu.cuStreamQuery(on), kSuccess);
  EXPECT_EQ(counter(count), 3u);
}

TEST_F(FakeCuda, CopiesWaitForBlockingStreams) {
  start();
  const auto count = new_counter();
  ASSERT_EQ(launch(increment, stream(0), count), kSuccess);
  ASSERT_EQ(launch(increment, nullptr, count), kSuccess);
  EXPECT_EQ(counter(count), 2u);
}

TEST_F(FakeCuda, WorkProceedsWhileNobodyWaits) {
  start();
  const auto on = stream();
  const auto count = new_counter();
  ASSERT_EQ(launch(increment, on, count), kSuccess);
  usleep(1000);
  EXPECT_EQ(cu.cuStreamQuery(on), kSuccess);
  EXPECT_EQ(counter(count), 1u);
}

TEST_F(FakeCuda, WaitsLastUntilTheVirtualEnd) {
  start(a_node(a_device({{"kernel_ns", kLong}})));
  const auto on = stream();
  const double begin = now_ns();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_SOONER(now_ns() - begin, kLong);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GE(now_ns() - begin, 3 * kLong + 3000);
}

TEST_F(FakeCuda, DestroyedStreamsFinishTheirWork) {
  start(a_node(a_device({{"kernel_ns", 2e6}})));
  const auto count = new_counter();
  const double begin = now_ns();
  for (const Function kernel : {null, increment}) {
    const auto on = stream();
    ASSERT_EQ(launch(kernel, on, count), kSuccess);
    ASSERT_EQ(cu.cuStreamDestroy_v2(on), kSuccess);
    EXPECT_EQ(cu.cuStreamSynchronize(on), kInvalidHandle);
  }
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  EXPECT_GE(now_ns() - begin, 2e6);
  EXPECT_EQ(counter(count), 1u);
}

TEST_F(FakeCuda, ThreadsShareTheDevice) {
  start();
  constexpr int kThreads = 4;
  constexpr unsigned kLaunches = 300;
  std::vector<DevicePointer> counts;
  for (int i = 0; i < kThreads; ++i) counts.push_back(new_counter());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess) << "the current context is the thread's own";
      const auto on = stream();
      for (unsigned j = 0; j < kLaunches; ++j) {
        ASSERT_EQ(launch(increment, on, counts[static_cast<std::size_t>(i)]), kSuccess);
        if (j % 50 == 0) {
          ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
        }
      }
      ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto count : counts) EXPECT_EQ(counter(count), kLaunches);
}

TEST_F(FakeCuda, TheNullStreamIsABarrierForBlockingStreamsOnly) {
  start(a_node(a_device({{"kernel_ns", kLong}})));
  const auto blocking = stream(0);
  const auto free = stream();
  const auto after_blocking = event();
  const auto after_null = event();
  const auto after_free = event();
  ASSERT_EQ(launch(null, blocking), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(after_blocking, blocking), kSuccess);
  ASSERT_EQ(launch(null, nullptr), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(after_null, nullptr), kSuccess);
  ASSERT_EQ(launch(null, free), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(after_free, free), kSuccess);
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  EXPECT_NEAR(elapsed_ns(after_blocking, after_null), kLong, 2);
  EXPECT_LT(elapsed_ns(after_blocking, after_free), 0.9 * kLong);
}

TEST_F(FakeCuda, EventsMeasureWhatKernelsTake) {
  start(a_node(a_device({{"kernel_ns", kLong}})));
  const auto on = stream();
  const auto begin = event();
  const auto end = event();
  float milliseconds = 0;
  EXPECT_EQ(cu.cuEventSynchronize(begin), kSuccess) << "never recorded";
  EXPECT_EQ(cu.cuEventElapsedTime(&milliseconds, begin, end), kInvalidHandle);
  ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(begin, on), kSuccess);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(end, on), kSuccess);
  EXPECT_EQ(cu.cuEventElapsedTime(&milliseconds, begin, end), kNotReady);
  ASSERT_EQ(cu.cuEventSynchronize(end), kSuccess);
  EXPECT_NEAR(elapsed_ns(begin, end), 5 * kLong, 10);
}

TEST_F(FakeCuda, CallsAndLaunchesTakeTheirDescribedTime) {
  const auto lognormal = [](double median, double sigma) {
    return Json{{"lognormal", {{"median", median}, {"sigma", sigma}}}};
  };
  start(a_node(a_device({{"call_ns", lognormal(20000, 0.05)},
                         {"launch_ns", lognormal(50000, 0.05)},
                         {"kernel_ns", 10000}})));
  const auto on = stream();
  constexpr std::size_t kWanted = 500, kLeast = 200;
  std::vector<double> calls, launches;
  for (int tries = 0; calls.size() < kWanted && tries < 5000; ++tries) {
    const double waited = WaitForCpu::of_process_ns();
    const double begin = now_ns();
    ASSERT_EQ(launch(null, on), kSuccess);
    const double returned = now_ns();
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    const double end = now_ns();
    if (WaitForCpu::of_process_ns() > waited) continue;  // another process had a CPU
    calls.push_back(returned - begin);
    launches.push_back(end - begin - 10000);
  }
  if (calls.size() < kLeast) GTEST_SKIP() << "other processes have the CPUs";
  EXPECT_NEAR(median(calls), 20000, kTolerance * 20000);
  EXPECT_NEAR(median(launches), 50000, kTolerance * 50000);
}

TEST_F(FakeCuda, TheProcessFactorScalesKernels) {
  start(a_node(a_device({{"process_factor_sigma", 0.5}})));
  const auto on = stream();
  const auto begin = event();
  const auto end = event();
  ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(begin, on), kSuccess);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(end, on), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GT(std::abs(elapsed_ns(begin, end) - 4 * 50000), 1000);
}

class FakeGate : public FakeCuda {
 protected:
  void close(unsigned long long timeout_ns) {
    start();
    on = stream();
    void* host = nullptr;
    ASSERT_EQ(cu.cuMemHostAlloc(&host, 2 * sizeof(unsigned), kHostAllocDeviceMap), kSuccess);
    flags = static_cast<volatile unsigned*>(host);
    flags[0] = 0;
    flags[1] = 0;
    DevicePointer open = 0;
    ASSERT_EQ(cu.cuMemHostGetDevicePointer_v2(&open, host, 0), kSuccess);
    ASSERT_EQ(launch(gate, on, open, open + sizeof(unsigned), timeout_ns), kSuccess);
  }

  Stream on = nullptr;
  volatile unsigned* flags = nullptr;
};

TEST_F(FakeGate, HoldsWhatIsBehindItUntilItOpens) {
  close(5'000'000'000);
  const auto begin = event();
  const auto end = event();
  ASSERT_EQ(cu.cuEventRecord(begin, on), kSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(end, on), kSuccess);
  usleep(2000);
  EXPECT_EQ(cu.cuStreamQuery(on), kNotReady);
  const double opened = now_ns();
  flags[0] = 1;
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GE(now_ns() - opened, 3 * 50000);
  EXPECT_NEAR(elapsed_ns(begin, end), 3 * 50000, 1);
  EXPECT_EQ(flags[1], 0u);
}

TEST_F(FakeGate, OpensForAThreadThatWaits) {
  close(5'000'000'000);
  std::thread opener([&] {
    usleep(3000);
    int version = 0;
    EXPECT_EQ(cu.cuDriverGetVersion(&version), kSuccess) << "a wait does not block the driver";
    __atomic_store_n(&flags[0], 1u, __ATOMIC_RELEASE);
  });
  const double begin = now_ns();
  EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GE(now_ns() - begin, 2e6);
  opener.join();
}

TEST_F(FakeGate, ThatNobodyOpensGivesUpAndSaysSo) {
  close(3'000'000);
  const double begin = now_ns();
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GE(now_ns() - begin, 2'500'000);
  EXPECT_EQ(flags[1], 1u);
}

// Faults

TEST_F(FakeCuda, StickyCodesKillTheContext) {
  start(a_node(a_device(), Json::array({fault("cuda", "cuLaunchKernel", 2, kIllegalAddress)})));
  const auto on = stream();
  EXPECT_EQ(launch(null, on), kSuccess);
  EXPECT_EQ(launch(null, on), kSuccess);
  EXPECT_EQ(launch(null, on), kIllegalAddress);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kIllegalAddress);
  DevicePointer pointer = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, 16), kIllegalAddress);
  int version = 0;
  EXPECT_EQ(cu.cuDriverGetVersion(&version), kSuccess);
  EXPECT_EQ(cu.cuInit(0), kSuccess);
  const char* name = nullptr;
  EXPECT_EQ(cu.cuGetErrorName(kIllegalAddress, &name), kSuccess);
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(FakeCuda, OtherCodesFailTheirCallOnly) {
  Json transient = fault("cuda", "cuMemAlloc_v2", 1, kOutOfMemory);
  transient["times"] = 2;
  start(a_node(a_device(), Json::array({transient})));
  DevicePointer pointer = 0;
  const Result expected[] = {kSuccess, kOutOfMemory, kOutOfMemory, kSuccess};
  for (const Result code : expected) EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, 16), code);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
}

TEST_F(FakeCuda, FaultsOfOtherDevicesDoNotAct) {
  Json node = a_node();
  node["devices"].push_back(a_device({{"uuid", "GPU-00000000-0000-0000-0000-000000000002"}}));
  node["faults"] = {{{"device", "GPU-00000000-0000-0000-0000-000000000002"},
                     {"library", "cuda"},
                     {"call", "cuCtxSynchronize"},
                     {"code", kUnknown}}};
  setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
  start(node);
  EXPECT_EQ(cu.cuCtxSynchronize(), kUnknown);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 1), kSuccess);
  ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
}

TEST_F(FakeCuda, AbortAborts) {
  Json abort = {{"library", "cuda"}, {"call", "cuCtxSynchronize"}, {"abort", true}};
  start(a_node(a_device(), Json::array({abort})));
  EXPECT_EXIT(cu.cuCtxSynchronize(), testing::KilledBySignal(SIGABRT), "");
}

TEST_F(FakeCuda, HangHangs) {
  Json hang = {{"library", "cuda"}, {"call", "cuCtxSynchronize"}, {"hang", true}};
  start(a_node(a_device(), Json::array({hang})));
  EXPECT_EXIT((alarm(1), cu.cuCtxSynchronize()), testing::KilledBySignal(SIGALRM), "");
}

TEST_F(FakeCuda, WildPointersAreIllegalAddressesAtTheNextWait) {
  start();
  const auto on = stream();
  ASSERT_EQ(launch(increment, on, DevicePointer{4096}), kSuccess);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kIllegalAddress);
  EXPECT_EQ(cu.cuStreamQuery(on), kIllegalAddress);
}

TEST_F(FakeCuda, FillsBeyondTheAllocationAreIllegalAddresses) {
  start();
  const auto out = memory(4096);
  ASSERT_EQ(launch_fill(nullptr, out, 1024, 1, ElementType::fp32), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
  ASSERT_EQ(launch_fill(nullptr, out, 1025, 1, ElementType::fp32), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kIllegalAddress);
}

// Memory

TEST_F(FakeCuda, MemoryIsAccounted) {
  start();
  const auto all = free_memory();
  EXPECT_EQ(all, std::size_t{1} << 30);
  const auto half = memory(std::size_t{1} << 29);
  EXPECT_EQ(half % 256, 0u);
  EXPECT_EQ(free_memory(), all / 2);
  DevicePointer pointer = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, (std::size_t{1} << 29) + 1), kOutOfMemory);
  const auto rest = memory(std::size_t{1} << 29);
  EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, 1), kOutOfMemory);
  EXPECT_EQ(cu.cuMemFree_v2(half), kSuccess);
  EXPECT_EQ(cu.cuMemFree_v2(half), kInvalidValue);
  EXPECT_EQ(cu.cuMemFree_v2(rest), kSuccess);
  EXPECT_EQ(free_memory(), all);
}

TEST_F(FakeCuda, AllocationTakesItsTimeAndFreeingWaitsForWork) {
  start(a_node(a_device({{"alloc_ns", 1e6}, {"free_ns", 1e6}, {"kernel_ns", 3e6}})));
  double begin = now_ns();
  const auto pointer = memory(4096);
  EXPECT_GE(now_ns() - begin, 1e6);
  begin = now_ns();
  ASSERT_EQ(launch(null, stream()), kSuccess);
  ASSERT_EQ(cu.cuMemFree_v2(pointer), kSuccess);
  EXPECT_GE(now_ns() - begin, 4e6);
}

TEST_F(FakeCuda, PoolsKeepMemoryUpToTheirThreshold) {
  struct Case {
    unsigned long long threshold;
    bool kept;
  };
  start(a_node(a_device({{"alloc_ns", kLong}})));
  const auto on = stream();
  const auto all = free_memory();
  MemoryPool pool = nullptr;
  ASSERT_EQ(cu.cuDeviceGetDefaultMemPool(&pool, 0), kSuccess);
  for (const auto& [threshold, kept] : {Case{0, false}, Case{~0ull, true}}) {
    auto value = threshold;
    ASSERT_EQ(cu.cuMemPoolSetAttribute(pool, kReleaseThreshold, &value), kSuccess);
    DevicePointer first = 0, second = 0;
    ASSERT_EQ(cu.cuMemAllocAsync(&first, 1 << 20, on), kSuccess);
    EXPECT_EQ(free_memory(), all - (1 << 20));
    ASSERT_EQ(cu.cuMemFreeAsync(first, on), kSuccess);
    EXPECT_EQ(cu.cuMemFreeAsync(first, on), kInvalidValue);
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    EXPECT_EQ(free_memory(), kept ? all - (1 << 20) : all) << threshold;
    const double begin = now_ns();
    ASSERT_EQ(cu.cuMemAllocAsync(&second, 1 << 20, on), kSuccess);
    const double cost = now_ns() - begin;
    EXPECT_EQ(cost < kLong / 2, kept) << cost;
    ASSERT_EQ(cu.cuMemFreeAsync(second, on), kSuccess);
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    ASSERT_EQ(cu.cuMemPoolTrimTo(pool, 0), kSuccess);
    EXPECT_EQ(free_memory(), all);
  }
}

TEST_F(FakeCuda, FreedMemoryServesItsOwnStreamAtOnceAndOthersLater) {
  start(a_node(a_device({{"kernel_ns", kLong}})));
  const auto on = stream();
  DevicePointer first = 0, same = 0, other = 0;
  ASSERT_EQ(cu.cuMemAllocAsync(&first, 1 << 20, on), kSuccess);
  ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuMemFreeAsync(first, on), kSuccess);
  ASSERT_EQ(cu.cuMemAllocAsync(&other, 1 << 20, stream()), kSuccess);
  EXPECT_NE(other, first);
  ASSERT_EQ(cu.cuMemAllocAsync(&same, 1 << 20, on), kSuccess);
  EXPECT_EQ(same, first);
}

TEST_F(FakeCuda, PoolsReleaseNothingThatWorkStillUses) {
  start(a_node(a_device({{"kernel_ns", kLong}})));
  const auto busy = stream();
  const auto all = free_memory();
  DevicePointer pointer = 0;
  ASSERT_EQ(cu.cuMemAllocAsync(&pointer, 1 << 20, busy), kSuccess);
  ASSERT_EQ(launch(null, busy), kSuccess);
  ASSERT_EQ(cu.cuMemFreeAsync(pointer, busy), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(stream()), kSuccess);
  EXPECT_LT(free_memory(), all);
  ASSERT_EQ(cu.cuStreamSynchronize(busy), kSuccess);
  EXPECT_EQ(free_memory(), all);
}

TEST_F(FakeCuda, UseAfterAStreamOrderedFreeIsAnIllegalAddress) {
  start();
  const auto on = stream();
  DevicePointer pointer = 0;
  ASSERT_EQ(cu.cuMemAllocAsync(&pointer, 4096, on), kSuccess);
  ASSERT_EQ(launch_fill(on, pointer, 16, 1, ElementType::fp32), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  ASSERT_EQ(cu.cuMemFreeAsync(pointer, on), kSuccess);
  ASSERT_EQ(launch_fill(on, pointer, 16, 1, ElementType::fp32), kSuccess);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kIllegalAddress);
}

TEST_F(FakeCuda, DevicesWithoutPoolsSaySo) {
  start(a_node(a_device({{"memory_pools", false}})));
  DevicePointer pointer = 0;
  MemoryPool pool = nullptr;
  EXPECT_EQ(cu.cuMemAllocAsync(&pointer, 16, nullptr), kNotSupported);
  EXPECT_EQ(cu.cuDeviceGetDefaultMemPool(&pool, 0), kNotSupported);
}

TEST_F(FakeCuda, MemsetAndFillWriteWhatTheySay) {
  start();
  constexpr std::size_t kCount = 100'000;
  const auto out = memory(kCount * 4);
  ASSERT_EQ(launch_fill(nullptr, out, kCount, 42, ElementType::fp32), kSuccess);
  ASSERT_EQ(cu.cuMemsetD8Async(out + 400, 7, 400, nullptr), kSuccess);
  for (const std::size_t i : {0, 99, 100, 199, 200, 99'999}) {
    float value = -1;
    ASSERT_EQ(cu.cuMemcpyDtoH_v2(&value, out + 4 * i, 4), kSuccess);
    const bool in_memset = i >= 100 && i < 200;
    const float expected = in_memset
                               ? kernels::float_from_bits(0x07070707)
                               : kernels::element(42, i, kernels::Distribution::small_integer);
    EXPECT_EQ(value, expected) << i;
  }
}

// cuBLAS

class FakeCublas : public FakeCuda {
 protected:
  struct Problem {
    int op_a, op_b;
    int m, n, k;
    int padding;  // of every leading dimension
    float alpha, beta;
    ElementType in, out;
  };

  void TearDown() override {
    if (handle != nullptr) {
      EXPECT_EQ(blas.cublasDestroy_v2(handle), kCublasSuccess);
    }
    FakeCuda::TearDown();
  }

  static int cuda_type(ElementType type) {
    return type == ElementType::fp32   ? kCudaR32F
           : type == ElementType::fp16 ? kCudaR16F
                                       : kCudaR16BF;
  }

  void open() {
    start();
    ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
  }

  DevicePointer filled(std::size_t count, unsigned long long seed, ElementType type) {
    const auto pointer = memory(count * kernels::element_bytes(type));
    EXPECT_EQ(launch_fill(nullptr, pointer, count, seed, type), kSuccess);
    return pointer;
  }

  CublasStatus gemm(int op_a,
                    int op_b,
                    int m,
                    int n,
                    int k,
                    float alpha,
                    DevicePointer a,
                    int lda,
                    DevicePointer b,
                    int ldb,
                    float beta,
                    DevicePointer c,
                    int ldc,
                    ElementType in,
                    ElementType out,
                    int compute = kCompute32F) {
    return blas.cublasGemmEx(handle,
                             op_a,
                             op_b,
                             m,
                             n,
                             k,
                             &alpha,
                             reinterpret_cast<const void*>(a),
                             cuda_type(in),
                             lda,
                             reinterpret_cast<const void*>(b),
                             cuda_type(in),
                             ldb,
                             &beta,
                             reinterpret_cast<void*>(c),
                             cuda_type(out),
                             ldc,
                             compute,
                             kGemmDefault);
  }

  CublasStatus square(int n, DevicePointer a, DevicePointer b, DevicePointer c) {
    return gemm(kCublasOpN,
                kCublasOpN,
                n,
                n,
                n,
                1,
                a,
                n,
                b,
                n,
                0,
                c,
                n,
                ElementType::fp32,
                ElementType::fp32);
  }

  std::vector<unsigned char> read(DevicePointer from, std::size_t bytes) {
    std::vector<unsigned char> to(bytes);
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(to.data(), from, bytes), kSuccess);
    return to;
  }

  Cublas blas;
  CublasHandle handle = nullptr;
};

TEST_F(FakeCublas, ProductsAreThoseOfTheDefinition) {
  open();
  const auto element = [](unsigned long long seed, std::size_t i) {
    return kernels::element(seed, i, kernels::Distribution::small_integer);
  };
  constexpr auto n = kCublasOpN;
  constexpr auto t = kCublasOpT;
  const Problem problems[] = {
      {n, n, 7, 5, 3, 0, 1, 0, ElementType::fp32, ElementType::fp32},
      {t, n, 33, 17, 300, 2, 1, 0, ElementType::fp32, ElementType::fp32},
      {n, t, 64, 96, 40, 0, 2, 0, ElementType::fp32, ElementType::fp32},
      {t, t, 31, 29, 23, 3, 0.5, 0, ElementType::fp32, ElementType::fp32},
      {n, n, 16, 16, 16, 1, 1, 0.5, ElementType::fp32, ElementType::fp32},
      {n, n, 300, 600, 260, 0, 1, 0, ElementType::fp32, ElementType::fp32},
      {n, t, 48, 40, 64, 0, 1, 0, ElementType::fp16, ElementType::fp16},
      {t, n, 48, 40, 64, 1, 1, 1, ElementType::fp16, ElementType::fp32},
      {n, n, 48, 40, 64, 0, 1, 0, ElementType::bf16, ElementType::bf16},
      {t, n, 48, 40, 64, 0, 1, 0, ElementType::bf16, ElementType::fp32},
  };
  for (const auto& p : problems) {
    SCOPED_TRACE(testing::Message() << p.op_a << p.op_b << " " << p.m << "x" << p.n << "x" << p.k);
    const int lda = (p.op_a == n ? p.m : p.k) + p.padding;
    const int ldb = (p.op_b == n ? p.k : p.n) + p.padding;
    const int ldc = p.m + p.padding;
    const auto a_count = static_cast<std::size_t>(lda * (p.op_a == n ? p.k : p.m));
    const auto b_count = static_cast<std::size_t>(ldb * (p.op_b == n ? p.n : p.k));
    const auto c_count = static_cast<std::size_t>(ldc * p.n);
    const auto a = filled(a_count, 1, p.in);
    const auto b = filled(b_count, 2, p.in);
    const auto c = filled(c_count, 3, p.out);
    ASSERT_EQ(
        gemm(p.op_a, p.op_b, p.m, p.n, p.k, p.alpha, a, lda, b, ldb, p.beta, c, ldc, p.in, p.out),
        kCublasSuccess);
    const auto got = read(c, c_count * kernels::element_bytes(p.out));
    for (int j = 0; j < p.n; ++j) {
      for (int i = 0; i < ldc; ++i) {
        const auto at = static_cast<std::size_t>(j * ldc + i);
        float expected = element(3, at);  // the padding stays
        if (i < p.m) {
          float sum = 0;
          for (int q = 0; q < p.k; ++q) {
            sum += element(1, static_cast<std::size_t>(p.op_a == n ? q * lda + i : i * lda + q)) *
                   element(2, static_cast<std::size_t>(p.op_b == n ? j * ldb + q : q * ldb + j));
          }
          expected = kernels::rounded_to(p.out, p.alpha * sum + p.beta * expected);
        }
        ASSERT_EQ(kernels::load_element(got.data(), at, p.out), expected) << i << "," << j;
      }
    }
    for (const auto pointer : {a, b, c}) ASSERT_EQ(cu.cuMemFree_v2(pointer), kSuccess);
  }
}

TEST_F(FakeCublas, AnElementReadAloneHasTheBitsThatItHasInTheMatrix) {
  open();
  constexpr int kN = 300;
  constexpr std::size_t kCount = kN * kN;
  const auto fill_uniform = [&](DevicePointer out, unsigned long long seed) {
    return launch(fill,
                  nullptr,
                  out,
                  1ull * kCount,
                  seed,
                  0,
                  static_cast<int>(kernels::Distribution::uniform));
  };
  const auto a = memory(4 * kCount), b = memory(4 * kCount), c = memory(4 * kCount);
  ASSERT_EQ(fill_uniform(a, 1), kSuccess);
  ASSERT_EQ(fill_uniform(b, 2), kSuccess);
  ASSERT_EQ(square(kN, a, b, c), kCublasSuccess);
  const std::size_t at[] = {0, 1, 12'345, kCount - 1};
  std::vector<std::vector<unsigned char>> alone;
  for (const auto i : at) alone.push_back(read(c + 4 * i, 4));
  const auto all = read(c, 4 * kCount);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_TRUE(
        std::equal(alone[i].begin(), alone[i].end(), all.begin() + static_cast<long>(4 * at[i])));
  }
}

TEST_F(FakeCublas, RepeatedProductsFollowTheirOperands) {
  open();
  constexpr int kN = 160;
  constexpr std::size_t kCount = kN * kN;
  const auto a = filled(kCount, 1, ElementType::fp32), b = filled(kCount, 2, ElementType::fp32);
  const auto c = memory(4 * kCount), d = memory(4 * kCount);
  const auto product = [&](DevicePointer x, DevicePointer y, DevicePointer out) {
    EXPECT_EQ(square(kN, x, y, out), kCublasSuccess);
    return read(out, 4 * kCount);
  };
  const auto first = product(a, b, c);
  EXPECT_EQ(product(a, b, c), first);
  // Each way of writing to an operand or to the result.
  const float nine = 9;
  ASSERT_EQ(cu.cuMemcpyHtoD_v2(a, &nine, sizeof nine), kSuccess);
  const auto second = product(a, b, c);
  EXPECT_NE(second, first);
  ASSERT_EQ(launch_fill(nullptr, a, kCount, 1, ElementType::fp32), kSuccess);
  EXPECT_EQ(product(a, b, c), first);
  ASSERT_EQ(cu.cuMemsetD8Async(c, 0, 4 * kCount, nullptr), kSuccess);
  EXPECT_EQ(product(a, b, c), first);
  ASSERT_EQ(launch(increment, nullptr, c), kSuccess);
  EXPECT_NE(read(c, 4 * kCount), first);
  EXPECT_EQ(product(a, b, c), first);
  // A product whose operand another product rewrites.
  const auto chained = product(c, b, d);
  const auto other = product(b, b, c);
  EXPECT_NE(other, first);
  EXPECT_NE(product(c, b, d), chained);
  product(a, b, c);
  EXPECT_EQ(product(c, b, d), chained);
}

TEST_F(FakeCublas, ResultsOutliveTheirOperands) {
  open();
  constexpr int kN = 160;
  constexpr std::size_t kCount = kN * kN;
  const auto operand = [&](unsigned long long seed) {
    return filled(kCount, seed, ElementType::fp32);
  };
  const auto a = operand(1), b = operand(2), c = memory(4 * kCount), d = memory(4 * kCount);
  ASSERT_EQ(square(kN, a, b, c), kCublasSuccess);
  ASSERT_EQ(cu.cuMemFree_v2(a), kSuccess);
  const auto again = operand(5);
  ASSERT_EQ(launch_fill(nullptr, b, kCount, 6, ElementType::fp32), kSuccess);
  ASSERT_EQ(cu.cuMemFree_v2(b), kSuccess);
  const auto got = read(c, 4 * kCount);
  ASSERT_EQ(square(kN, operand(1), operand(2), d), kCublasSuccess);
  EXPECT_EQ(got, read(d, 4 * kCount));
  ASSERT_EQ(cu.cuMemFree_v2(again), kSuccess);
}

TEST_F(FakeCublas, VerificationShapesTakeLittleTime) {
  open();
  constexpr int kN = 512;
  constexpr std::size_t kCount = kN * kN;
  const auto a = filled(kCount, 1, ElementType::fp32), b = filled(kCount, 2, ElementType::fp32);
  const auto c = memory(4 * kCount);
  ASSERT_EQ(square(kN, a, b, c), kCublasSuccess);
  const double begin = now_ns();
  read(c, 4 * kCount);
  const double cost_ms = (now_ns() - begin) * 1e-6;
  RecordProperty("milliseconds", static_cast<int>(cost_ms));
  EXPECT_LT(cost_ms, 1000) << "some 50 ms on an idle machine";
}

TEST_F(FakeCublas, FastTf32RoundsItsOperandsWhereThereIsTf32) {
  start(a_node(a_device({{"tflops", {{"fp32", 10}, {"tf32", 80}}}})));
  ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
  const auto a = memory(4), b = memory(4), c = memory(4);
  const float beyond_tf32 = 1 + 0x1p-12f, one = 1;
  ASSERT_EQ(cu.cuMemcpyHtoD_v2(a, &beyond_tf32, 4), kSuccess);
  ASSERT_EQ(cu.cuMemcpyHtoD_v2(b, &one, 4), kSuccess);
  const auto fp32 = ElementType::fp32;
  for (const auto& [compute, expected] : {std::pair<int, float>{kCompute32F, beyond_tf32},
                                          {kCompute32FFastTf32, one},
                                          {kCompute32FPedantic, beyond_tf32}}) {
    float result = 0;
    ASSERT_EQ(gemm(0, 0, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1, fp32, fp32, compute), kCublasSuccess);
    ASSERT_EQ(cu.cuMemcpyDtoH_v2(&result, c, 4), kSuccess);
    EXPECT_EQ(result, expected) << compute;
  }
}

TEST_F(FakeCublas, TimeFollowsTheRateOfTheType) {
  start(a_node(a_device({{"kernel_ns", kLong}})));
  ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
  constexpr int kN = 1024;
  constexpr std::size_t kCount = kN * kN;
  const auto begin = event(), end = event();
  const std::pair<ElementType, double> rates[] = {{ElementType::fp32, 10},
                                                  {ElementType::fp16, 100}};
  for (const auto& [type, tflops] : rates) {
    const auto a = filled(kCount, 1, type), b = filled(kCount, 2, type), c = memory(4 * kCount);
    ASSERT_EQ(launch(null, nullptr), kSuccess);
    ASSERT_EQ(cu.cuEventRecord(begin, nullptr), kSuccess);
    ASSERT_EQ(gemm(0, 0, kN, kN, kN, 1, a, kN, b, kN, 0, c, kN, type, type), kCublasSuccess);
    ASSERT_EQ(cu.cuEventRecord(end, nullptr), kSuccess);
    ASSERT_EQ(cu.cuEventSynchronize(end), kSuccess);
    const double expected = kLong + 2.0 * kN * kN * kN / (tflops * 1e3);
    EXPECT_NEAR(elapsed_ns(begin, end), expected, 1e-5 * expected);
  }
}

TEST_F(FakeCublas, KeplerHasSgemmAndNoGemmEx) {
  start(a_node(a_device({{"compute_capability", "3.5"}, {"tflops", {{"fp32", 1}}}})));
  ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
  const auto a = memory(4096), b = memory(4096), c = memory(4096);
  EXPECT_EQ(gemm(0, 0, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8, ElementType::fp32, ElementType::fp32),
            kCublasArchMismatch);
  const float one = 1, zero = 0;
  const auto floats = [](auto pointer) { return reinterpret_cast<float*>(pointer); };
  EXPECT_EQ(blas.cublasSgemm_v2(
                handle, 0, 0, 8, 8, 8, &one, floats(a), 8, floats(b), 8, &zero, floats(c), 8),
            kCublasSuccess);
}

TEST_F(FakeCublas, UnsupportedTypesHaveTheirStatus) {
  start(a_node(a_device(
      {{"compute_capability", "5.2"}, {"tflops", {{"fp32", 1}, {"fp16", 1}, {"bf16", 1}}}})));
  ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
  const auto a = memory(4096), b = memory(4096), c = memory(4096);
  struct Case {
    ElementType in, out;
    int compute;
    int lda;
    CublasStatus status;
  };
  const Case cases[] = {
      {ElementType::fp32, ElementType::fp32, kCompute32F, 8, kCublasSuccess},
      {ElementType::fp32, ElementType::fp32, kCompute32FFastTf32, 8, kCublasSuccess},
      {ElementType::fp32, ElementType::fp32, 70, 8, kCublasNotSupported},
      {ElementType::fp32, ElementType::fp16, kCompute32F, 8, kCublasNotSupported},
      {ElementType::fp32, ElementType::fp32, kCompute32F, 7, kCublasInvalidValue},
      {ElementType::fp16, ElementType::fp16, kCompute32F, 8, kCublasArchMismatch},
      {ElementType::bf16, ElementType::bf16, kCompute32F, 8, kCublasArchMismatch},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(gemm(0, 0, 8, 8, 8, 1, a, test.lda, b, 8, 0, c, 8, test.in, test.out, test.compute),
              test.status)
        << static_cast<int>(test.in) << " " << test.compute;
  }
}

TEST_F(FakeCublas, AFaultIsReturnedAsItsStatus) {
  start(
      a_node(a_device(), Json::array({fault("cublas", "cublasGemmEx", 1, kCublasInternalError)})));
  ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
  const auto a = memory(4096);
  for (const CublasStatus status : {kCublasSuccess, kCublasInternalError, kCublasInternalError}) {
    EXPECT_EQ(square(8, a, a + 1024, a + 2048), status);
  }
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
}

TEST_F(FakeCublas, ProductsOfWildPointersAreIllegalAddresses) {
  open();
  const auto a = memory(4096);
  ASSERT_EQ(square(64, a, a, a), kCublasSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kIllegalAddress);
  EXPECT_EQ(square(8, a, a, a), kCublasExecutionFailed);
}

// cuDNN

class FakeCudnn : public FakeCublas {
 protected:
  struct Shape {
    int n, c, h, w, k, r, s;
    int pad, stride, dilation;
  };

  void TearDown() override {
    EXPECT_EQ(dnn.cudnnDestroyConvolutionDescriptor(convolution), kCudnnSuccess);
    EXPECT_EQ(dnn.cudnnDestroyFilterDescriptor(w), kCudnnSuccess);
    EXPECT_EQ(dnn.cudnnDestroyTensorDescriptor(y), kCudnnSuccess);
    EXPECT_EQ(dnn.cudnnDestroyTensorDescriptor(x), kCudnnSuccess);
    EXPECT_EQ(dnn.cudnnDestroy(dnn_handle), kCudnnSuccess);
    FakeCublas::TearDown();
  }

  static int cudnn_type(ElementType type) {
    return type == ElementType::fp32   ? kCudnnFloat
           : type == ElementType::fp16 ? kCudnnHalf
                                       : kCudnnBfloat16;
  }

  void open() {
    start();
    ASSERT_EQ(dnn.cudnnCreate(&dnn_handle), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnCreateTensorDescriptor(&x), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnCreateTensorDescriptor(&y), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnCreateFilterDescriptor(&w), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnCreateConvolutionDescriptor(&convolution), kCudnnSuccess);
  }

  void set(const Shape& shape, int format, ElementType type) {
    const auto [n, c, h, width, k, r, s, pad, stride, dilation] = shape;
    const int t = cudnn_type(type);
    ASSERT_EQ(dnn.cudnnSetTensor4dDescriptor(x, format, t, n, c, h, width), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnSetFilter4dDescriptor(w, t, format, k, c, r, s), kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnSetConvolution2dDescriptor(convolution,
                                                  pad,
                                                  pad,
                                                  stride,
                                                  stride,
                                                  dilation,
                                                  dilation,
                                                  kCudnnCrossCorrelation,
                                                  kCudnnFloat),
              kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnGetConvolution2dForwardOutputDim(
                  convolution, x, w, &out[0], &out[1], &out[2], &out[3]),
              kCudnnSuccess);
    ASSERT_EQ(dnn.cudnnSetTensor4dDescriptor(y, format, t, out[0], out[1], out[2], out[3]),
              kCudnnSuccess);
  }

  Cudnn dnn;
  CudnnHandle dnn_handle = nullptr;
  CudnnTensor x = nullptr, y = nullptr;
  CudnnFilter w = nullptr;
  CudnnConvolution convolution = nullptr;
  int out[4] = {};
};

TEST_F(FakeCudnn, ConvolutionsAreThoseOfTheDefinition) {
  open();
  const Shape shapes[] = {{2, 3, 9, 8, 5, 3, 3, 1, 1, 1},
                          {1, 4, 12, 12, 6, 5, 3, 2, 2, 1},
                          {1, 2, 11, 10, 3, 3, 3, 0, 1, 2},
                          {3, 8, 5, 5, 4, 1, 1, 0, 1, 1},
                          {1, 3, 32, 32, 64, 7, 7, 3, 2, 1}};
  const auto element = [](unsigned long long seed, std::size_t i) {
    return kernels::element(seed, i, kernels::Distribution::small_integer);
  };
  for (const auto& shape : shapes) {
    for (const int format : {kCudnnNchw, kCudnnNhwc}) {
      for (const auto type : {ElementType::fp32, ElementType::fp16, ElementType::bf16}) {
        SCOPED_TRACE(testing::Message()
                     << shape.h << " " << format << " " << static_cast<int>(type));
        set(shape, format, type);
        const auto index = [format](const int(&e)[4], int n, int c, int h, int column) {
          return static_cast<std::size_t>(format == kCudnnNchw
                                              ? ((n * e[1] + c) * e[2] + h) * e[3] + column
                                              : ((n * e[2] + h) * e[3] + column) * e[1] + c);
        };
        const int in[4] = {shape.n, shape.c, shape.h, shape.w};
        const int filter[4] = {shape.k, shape.c, shape.r, shape.s};
        const auto count = [](const int(&e)[4]) {
          return static_cast<std::size_t>(e[0] * e[1] * e[2] * e[3]);
        };
        const auto px = filled(count(in), 1, type), pw = filled(count(filter), 2, type),
                   py = memory(4 * count(out));
        const float one = 1, zero = 0;
        ASSERT_EQ(dnn.cudnnConvolutionForward(dnn_handle,
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
        const auto got = read(py, count(out) * kernels::element_bytes(type));
        for (int n = 0; n < out[0]; ++n)
          for (int k = 0; k < out[1]; ++k)
            for (int p = 0; p < out[2]; ++p)
              for (int q = 0; q < out[3]; ++q) {
                float sum = 0;
                for (int c = 0; c < shape.c; ++c)
                  for (int r = 0; r < shape.r; ++r)
                    for (int s = 0; s < shape.s; ++s) {
                      const int h = p * shape.stride + r * shape.dilation - shape.pad;
                      const int v = q * shape.stride + s * shape.dilation - shape.pad;
                      if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue;
                      sum +=
                          element(1, index(in, n, c, h, v)) * element(2, index(filter, k, c, r, s));
                    }
                ASSERT_EQ(kernels::load_element(got.data(), index(out, n, k, p, q), type),
                          kernels::rounded_to(type, sum))
                    << n << " " << k << " " << p << " " << q;
              }
        for (const auto pointer : {px, pw, py}) ASSERT_EQ(cu.cuMemFree_v2(pointer), kSuccess);
      }
    }
  }
}

TEST_F(FakeCudnn, TheBestAlgorithmComesFirst) {
  open();
  set({8, 16, 32, 32, 16, 3, 3, 1, 1, 1}, kCudnnNhwc, ElementType::fp16);
  CudnnForwardPerformance results[8];
  int returned = 0;
  ASSERT_EQ(dnn.cudnnGetConvolutionForwardAlgorithm_v7(
                dnn_handle, x, w, convolution, y, 8, &returned, results),
            kCudnnSuccess);
  ASSERT_EQ(returned, 8);
  EXPECT_EQ(results[0].algorithm, kCudnnImplicitPrecompGemm);
  EXPECT_EQ(results[0].status, kCudnnSuccess);
  EXPECT_EQ(results[0].workspace_bytes, 0u);
  EXPECT_EQ(results[0].math_type, kCudnnTensorOpMath);
  EXPECT_EQ(results[1].algorithm, kCudnnImplicitGemm);
  EXPECT_GT(results[1].milliseconds, results[0].milliseconds);
  EXPECT_STREQ(dnn.cudnnGetErrorString(results[2].status), "CUDNN_STATUS_NOT_SUPPORTED");
  EXPECT_EQ(dnn.cudnnGetVersion(), 91900u);
}

// Error texts

TEST_F(FakeCuda, EveryCodeOfTheInterfaceHasAName) {
  for (const Result code : {kSuccess,
                            kInvalidValue,
                            kOutOfMemory,
                            kNotInitialized,
                            kDeinitialized,
                            kStubLibrary,
                            kDeviceUnavailable,
                            kNoDevice,
                            kInvalidDevice,
                            kInvalidImage,
                            kInvalidContext,
                            kNoBinaryForGpu,
                            kEccUncorrectable,
                            kUnsupportedLimit,
                            kInvalidPtx,
                            kNvlinkUncorrectable,
                            kUnsupportedPtxVersion,
                            kInvalidHandle,
                            kNotFound,
                            kNotReady,
                            kIllegalAddress,
                            kLaunchTimeout,
                            kContextIsDestroyed,
                            kAssert,
                            kHardwareStackError,
                            kIllegalInstruction,
                            kMisalignedAddress,
                            kInvalidAddressSpace,
                            kInvalidPc,
                            kLaunchFailed,
                            kNotPermitted,
                            kNotSupported,
                            kSystemNotReady,
                            kSystemDriverMismatch,
                            kCompatNotSupportedOnDevice,
                            kUnknown}) {
    const char* text = nullptr;
    EXPECT_EQ(cu.cuGetErrorName(code, &text), kSuccess) << code;
    EXPECT_EQ(cu.cuGetErrorString(code, &text), kSuccess) << code;
  }
  const char* text = "";
  EXPECT_EQ(cu.cuGetErrorName(12345, &text), kInvalidValue);
  EXPECT_EQ(text, nullptr);
}

}  // namespace
}  // namespace launchgap::fake
