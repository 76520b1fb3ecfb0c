// What the tests of the fakes share: the driver's functions, a node, a context. One process per
// test: the driver is initialised once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/device/cuda/abi/cublas.h"
#include "harness/device/cuda/abi/driver.h"
#include "harness/device/cuda/abi/nccl.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

using namespace cuda::abi;
using Json = nlohmann::json;

inline void* open_library(const std::string& file) {
  void* const handle =
      dlopen((LAUNCHGAP_FAKE_CUDA_FOLDER "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  if (dlsym(handle, "launchgap_fake_library") == nullptr)
    throw std::runtime_error(file + " has no marker");
  return handle;
}

/// A fake library's functions: the struct and the list of its abi.
#define LAUNCHGAP_LOAD(name, required, ...) \
  name = reinterpret_cast<decltype(name)>(dlsym(handle, #name));
#define LAUNCHGAP_LIBRARY(Library, Functions, list, file) \
  struct Library : Functions {                            \
    Library() {                                           \
      void* const handle = open_library(file);            \
      list(LAUNCHGAP_LOAD)                                \
    }                                                     \
  }
LAUNCHGAP_LIBRARY(Cuda, DriverFunctions, LAUNCHGAP_CUDA_DRIVER_FUNCTIONS, "libcuda.so.1");
LAUNCHGAP_LIBRARY(Nccl, NcclFunctions, LAUNCHGAP_NCCL_FUNCTIONS, "libnccl.so.2");
LAUNCHGAP_LIBRARY(Cublas, CublasFunctions, LAUNCHGAP_CUBLAS_FUNCTIONS, "libcublas.so.13");

/// Of several measurements the least, value by value: others may have had the processor.
template <typename Measure>
auto least_of(Measure measure) {
  auto least = measure();
  for (int again = 0; again < 2; ++again) {
    const auto values = measure();
    for (std::size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], values[i]);
  }
  return least;
}

inline double median(std::vector<double> values) {
  std::nth_element(
      values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

inline Json a_device(const Json& changes = Json::object()) {
  Json device = {{"name", "Fake A100"},
                 {"uuid", "GPU-00000000-0000-0000-0000-000000000001"},
                 {"compute_capability", "8.0"},
                 {"memory_bytes", std::size_t{1} << 30},
                 {"call_ns", 1000},
                 {"launch_ns", 3000},
                 {"kernel_ns", 50000},
                 {"alloc_ns", 0},
                 {"free_ns", 0},
                 {"tflops", {{"fp32", 10}, {"fp16", 100}, {"bf16", 100}}}};
  device.update(changes);
  return device;
}

inline Json a_node(const Json& device = a_device(), const Json& faults = Json::array()) {
  return {{"devices", Json::array({device})}, {"faults", faults}};
}

inline Json fault(const char* library, const char* call, int after, int code) {
  return {{"device", 0}, {"library", library}, {"call", call}, {"after", after}, {"code", code}};
}

// Much longer than the scheduler takes the processor away for.
inline constexpr double kLong = 30e6;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kTolerance = 0.3;
#else
inline constexpr double kTolerance = 0.03;
#endif

/// Events tell milliseconds in binary32.
#define EXPECT_SAME_NS(actual, expected) EXPECT_NEAR(actual, expected, 1e-6 * (expected) + 1)

/// How long the threads of this process have waited for a CPU so far, all together, as the kernel
/// counts it; 0 where it does not.
inline double waited_for_cpu_ns() {
  double all = 0;
  std::error_code ended;
  for (std::filesystem::directory_iterator task("/proc/self/task", ended), end;
       !ended && task != end;
       task.increment(ended)) {
    std::ifstream file(task->path() / "schedstat");
    double ran = 0, waited = 0;
    if (file >> ran >> waited) all += waited;
  }
  return all;
}

/// A time below a limit, but for what other processes took: beside them nobody knows how long
/// something takes, and alone the limit is sharp.
#define EXPECT_SOONER(actual, limit) EXPECT_LT(actual, (limit) + waited_for_cpu_ns())

/// A time that is at least as described, and not kLong more.
#define EXPECT_TAKES(actual, expected) \
  EXPECT_GE(actual, expected);         \
  EXPECT_SOONER(actual, (expected) + kLong)

inline constexpr auto kElf = "\177ELF";
inline constexpr auto kPtx = ".version 4.3\n.target sm_35\n.address_size 64\n";

/// A node that is described, and nothing loaded yet.
class FakeNode : public testing::Test {
 protected:
  void SetUp() override {
    static bool used = false;
    if (used) GTEST_SKIP() << "one process per test: use ctest, or --gtest_filter";
    used = true;
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("LAUNCHGAP_FAKE_SEED", "1", 1);
  }

  void TearDown() override {
    if (!path_.empty()) std::filesystem::remove(path_);
  }

  void describe(const std::string& text) {
    path_ = std::filesystem::temp_directory_path() /
            ("fake_node_" + std::to_string(getpid()) + ".json");
    std::ofstream(path_) << text;
    setenv("LAUNCHGAP_FAKE_NODE", path_.c_str(), 1);
  }

 private:
  std::filesystem::path path_;
};

class FakeCuda : public FakeNode {
 public:  // for the rows of tables
  /// A context on the first device, with the project's kernels.
  void start(const Json& node = a_node()) {
    describe(node.dump());
    ASSERT_EQ(cu.cuInit(0), kSuccess);
    ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), kSuccess);
    use_context();
  }

  void use_context() {
    ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
    ASSERT_EQ(cu.cuModuleLoadDataEx(&module, kPtx, 0, nullptr, nullptr), kSuccess);
    null = function("launchgap_null");
    increment = function("launchgap_increment");
    gate = function("launchgap_gate");
    spin = function("launchgap_spin");
  }

  /// A node of devices that differ in these keys; no context yet.
  void start_devices(const std::vector<Json>& changes, Json node = Json::object()) {
    node["devices"] = Json::array();
    for (const auto& keys : changes) {
      Json device = a_device(keys);
      const auto number = std::to_string(1000 + node["devices"].size());
      device["uuid"] = "GPU-00000000-0000-0000-0000-00000000" + number;
      node["devices"].push_back(device);
    }
    describe(node.dump());
    ASSERT_EQ(cu.cuInit(0), kSuccess);
  }

  /// Each row on a device of its own, which differs in the row's keys.
  template <class Rows, class Keys, class Body>
  void on_each(const Rows& rows, Keys keys_of, Body body) {
    std::vector<Json> keys;
    for (const auto& row : rows) keys.push_back(std::invoke(keys_of, row));
    start_devices(keys);
    for (int i = 0; const auto& row : rows) {
      use_device(i++);
      body(row);
    }
  }

  void use_device(int which) {
    ordinal = which;
    ASSERT_EQ(cu.cuDevicePrimaryCtxSetFlags_v2(ordinal, kScheduleSpin), kSuccess);
    ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, ordinal), kSuccess);
    use_context();
  }

  Function function(const char* name) {
    Function found = nullptr;
    EXPECT_EQ(cu.cuModuleGetFunction(&found, module, name), kSuccess) << name;
    return found;
  }

  /// Of a module of native code, which has all kernels.
  Function native_function(const char* name) {
    Module native = nullptr;
    EXPECT_EQ(cu.cuModuleLoadDataEx(&native, kElf, 0, nullptr, nullptr), kSuccess);
    Function found = nullptr;
    EXPECT_EQ(cu.cuModuleGetFunction(&found, native, name), kSuccess) << name;
    return found;
  }

  Stream stream(unsigned flags = kStreamNonBlocking) {
    Stream created = nullptr;
    EXPECT_EQ(cu.cuStreamCreate(&created, flags), kSuccess);
    return created;
  }

  Event event() {
    Event created = nullptr;
    EXPECT_EQ(cu.cuEventCreate(&created, kEventDefault), kSuccess);
    return created;
  }

  DevicePointer memory(std::size_t bytes) {
    DevicePointer pointer = 0;
    EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, bytes), kSuccess);
    return pointer;
  }

  unsigned counter(DevicePointer at) {
    unsigned value = 0xDEAD;
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(&value, at, sizeof value), kSuccess);
    return value;
  }

  DevicePointer new_counter() {
    const auto pointer = memory(sizeof(unsigned));
    const unsigned zero = 0;
    EXPECT_EQ(cu.cuMemcpyHtoD_v2(pointer, &zero, sizeof zero), kSuccess);
    return pointer;
  }

  template <typename... Arguments>
  Result launch(Function function, Stream on, Arguments... arguments) {
    void* parameters[] = {static_cast<void*>(&arguments)..., nullptr};
    return cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr);
  }

  Result launch_with(LaunchAttributeId id, Function function, Stream on, void** arguments) {
    LaunchAttribute attribute{};
    attribute.id = id;
    attribute.value.flag = 1;
    const LaunchConfig config{1, 1, 1, 1, 1, 1, 0, on, &attribute, 1};
    return cu.cuLaunchKernelEx(&config, function, arguments, nullptr);
  }

  Result begin_capture(Stream on) { return cu.cuStreamBeginCapture_v2(on, kCaptureThreadLocal); }
  template <typename Work>
  Graph captured(Stream on, Work work) {
    Graph graph = nullptr;
    EXPECT_EQ(begin_capture(on), kSuccess);
    work();
    EXPECT_EQ(cu.cuStreamEndCapture(on, &graph), kSuccess);
    return graph;
  }
  GraphExec instantiated(Graph graph) {
    GraphExec executable = nullptr;
    EXPECT_EQ(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), kSuccess);
    return executable;
  }
  /// Makes `waiting` wait for what `ahead` has so far.
  void order(Stream ahead, Stream waiting) {
    const auto passed = event();
    EXPECT_EQ(cu.cuEventRecord(passed, ahead), kSuccess);
    EXPECT_EQ(cu.cuStreamWaitEvent(waiting, passed, 0), kSuccess);
  }

  /// Two words of host memory, 0.
  unsigned* mapped(unsigned flags = kHostAllocDeviceMap) {
    void* host = nullptr;
    EXPECT_EQ(cu.cuMemHostAlloc(&host, 2 * sizeof(unsigned), flags), kSuccess);
    auto* const words = static_cast<unsigned*>(host);
    words[0] = words[1] = 0;
    return words;
  }

  /// A product of n x n matrices of FP32, by the library that holds a runtime of its own.
  Result multiply(Stream on, int n = 1) {
    const Cublas blas;
    CublasHandle handle = nullptr;
    EXPECT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
    EXPECT_EQ(blas.cublasSetStream_v2(handle, on), kCublasSuccess);
    const auto count = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    auto* const a = reinterpret_cast<float*>(memory(12 * count));
    float *const b = a + count, *const c = b + count;
    const float one = 1, zero = 0;
    const auto code = blas.cublasSgemm_v2(handle, 0, 0, n, n, n, &one, a, n, b, n, &zero, c, n);
    EXPECT_EQ(blas.cublasDestroy_v2(handle), kCublasSuccess);
    return Result{code};
  }

  /// What `work` takes on the device, behind a gate.
  template <typename Body>
  double device_ns(Stream on, Body work) {
    auto* const words = mapped();
    const auto open = reinterpret_cast<DevicePointer>(words);
    const auto begin = event(), end = event();
    EXPECT_EQ(launch(gate, on, open, open + sizeof(unsigned), 5'000'000'000ull), kSuccess);
    EXPECT_EQ(cu.cuEventRecord(begin, on), kSuccess);
    work();
    EXPECT_EQ(cu.cuEventRecord(end, on), kSuccess);
    usleep(1000);  // it all has arrived
    std::atomic_ref(words[0]).store(1);
    EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    return elapsed_ns(begin, end);
  }

  double elapsed_ns(Event begin, Event end) {
    float milliseconds = -1;
    EXPECT_EQ(cu.cuEventElapsedTime(&milliseconds, begin, end), kSuccess);
    return 1e6 * static_cast<double>(milliseconds);
  }

  Cuda cu;
  int ordinal = 0;
  Context context = nullptr;
  Module module = nullptr;
  Function null = nullptr, increment = nullptr, gate = nullptr, spin = nullptr;
};

}  // namespace launchgap::fake
