// The description of a node: what is said of it, and what is wrong with one.
#include <functional>
#include <sstream>

#include "harness/device/cuda/abi/nvml.h"
#include "tests/fake_cuda/fixture.h"
#include "tests/fake_cuda/visible_devices.h"

namespace launchgap::fake {
namespace {

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

TEST_F(FakeCuda, DevicesAreAsDescribed) {
  setenv("LAUNCHGAP_FAKE_NODE", LAUNCHGAP_FAKE_NODES_FOLDER "/one_a100.json", 1);
  ASSERT_EQ(cu.cuInit(0), kSuccess);
  char text[32];
  ASSERT_EQ(cu.cuDeviceGetPCIBusId(text, sizeof text, 0), kSuccess);
  EXPECT_STREQ(text, "0000:07:00.0");
  std::size_t bytes = 0;
  ASSERT_EQ(cu.cuDeviceTotalMem_v2(&bytes, 0), kSuccess);
  EXPECT_EQ(bytes, std::size_t{81154} << 20);
  const std::pair<int, int> attributes[] = {{kComputeCapabilityMajor, 8},
                                            {kMultiprocessorCount, 108},
                                            {kClockRateKhz, 1410000},
                                            {kMemoryClockRateKhz, 1593000},
                                            {kGlobalMemoryBusWidth, 5120},
                                            {kL2CacheBytes, 40 << 20},
                                            {kMemoryPoolsSupported, 1}};
  for (const auto& [attribute, expected] : attributes) {
    int value = -1;
    ASSERT_EQ(cu.cuDeviceGetAttribute(&value, attribute, 0), kSuccess);
    EXPECT_EQ(value, expected) << attribute;
  }
}

TEST(NodeDescription, OfTheProjectAreValid) {
  for (const auto* const name :
       {"one_a100", "mixed_8_gpus", "mixed_8_gpus_two_faulty", "harsh_gpu"}) {
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
       "/device: unknown key; known here: cublas_varies, cublas_version, cublaslt_candidates, "
       "cublaslt_wrong, cudnn_engine_wrong, cudnn_engines, cudnn_flips_every, cudnn_version, "
       "cudnn_wrong, cupti, devices, driver_version, faults, "
       "nvml"},
      {"/devices", 1, "/devices: 1 is not an array of devices"},
      {"/driver_version", "13.0", "/driver_version: \"13.0\" is not an integer of at least 1000"},
      {"/devices/0/uuid",
       "GPU-1",
       "/devices/0/uuid: \"GPU-1\" is not a UUID; expected GPU- and 8-4-4-4-12"},
      {"/devices/0/memory_bytes",
       -1,
       "/devices/0/memory_bytes: -1 is not a number of bytes above 0"},
      {"/devices/0/compute_capability", 8.0, "is not a compute capability such as \"8.0\""},
      {"/devices/0/memory_pools", 1, "/devices/0/memory_pools: 1 is not true or false"},
      {"/devices/0/call_ns",
       {{"constant", -1}},
       "/devices/0/call_ns/constant: -1 is not a number of ns >= 0"},
      {"/devices/0/call_ns", {{"normal", {{"mean", 1}}}}, "/devices/0/call_ns/normal/sd: missing"},
      {"/devices/0/call_ns", {{"mixture", Json::array()}}, "weights have a sum above 0"},
      {"/devices/0/launch_lock", "gpu", "\"gpu\" is not \"none\", \"stream\" or \"process\""},
      {"/devices/0/threads_per_multiprocessor", 512, "512 is not an integer of at least 1024"},
      {"/devices/0/priorities", {-5, 0}, "is not [least, greatest]"},
      {"/devices/0/graph", {{"nodes_ns", 1}}, "/devices/0/graph/nodes_ns: unknown key"},
      {"/devices/0/idle", {{{"ns", 5}}}, "/devices/0/idle/0/after_ms: missing"},
      {"/devices/0/tflops/fp4",
       1,
       "/devices/0/tflops/fp4: unknown key; known here: bf16, fp16, fp32, fp64, fp8, int8, tf32"},
      {"/devices/0/tflops/fp32", 0, "/devices/0/tflops/fp32: 0 is not a number of TFLOP/s above 0"},
      {"/faults/0",
       {{"library", "cuda"}, {"call", "cuMemAlloc"}, {"code", 2}},
       "/faults/0/call: \"cuMemAlloc\" is not"},
      {"/faults/0", {{"library", "cuda"}, {"call", "cuGetErrorName"}}, "exactly one of"},
      {"/faults/0",
       {{"library", "cuda"}, {"call", "cuInit"}, {"code", 2}, {"hang", true}},
       "exactly one of"},
      {"/faults/0",
       {{"library", "cuda"}, {"call", "cuInit"}, {"wrong_byte", 0}},
       "0 is not a byte of a result of cuBLAS or cuDNN"},
      {"/cupti/overhead", 1, "/cupti/overhead: unknown key; known here: abort_at_exit"},
      {"/cupti/nested", "both", "\"both\" is not \"same\", \"different\" or \"none\""},
      {"/cupti/subscriber", "", "/cupti/subscriber: \"\" is not the name of a tool"},
      {"/cupti/early", {{"count", 0}}, "/cupti/early/count: 0 is not a count of kernels >= 1"},
      {"/cupti/clock_step", {{"after", 1}}, "/cupti/clock_step/ns: missing"},
      {"/cupti/overheads", {{{"kind", "heat"}}}, "/cupti/overheads/0/kind: \"heat\" is not one of"},
      {"/cupti/overheads",
       {{{"kind", "resource"}, {"every", 0}, {"ns", 1}}},
       "/cupti/overheads/0/every: 0 is not a count of launches >= 1"},
      {"/devices/0/nvml/sw_thermal_share", 1.5, "1.5 is not a share from 0 to 1"},
      {"/devices/0/nvml/missing",
       {"nvmlDeviceGetBrand"},
       "/devices/0/nvml/missing/0: \"nvmlDeviceGetBrand\" is not what nvml says of a device"},
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
  node["cupti"]["overheads"] = Json::array({Json{{"kind", "resource"}, {"every", 1}, {"ns", 1}}});
  node["faults"] = Json::array({fault("cuda", "cuInit", 0, 1)});
  node["devices"][0]["idle"] = Json::array({Json{{"after_ms", 1}, {"ns", 1}}});
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

TEST_F(FakeCuda, ABadDescriptionIsAnUnknownErrorAndOneLineOfEachLibrary) {
  Json node = a_node();
  node["devices"][0]["uuid"] = 7;
  describe(node.dump());
  const auto nvml_init = reinterpret_cast<cuda::nvml::Result (*)()>(
      dlsym(open_library("libnvidia-ml.so.1"), "nvmlInit_v2"));
  const std::string path = std::getenv("LAUNCHGAP_FAKE_NODE");
  const std::string expected = path + ": /devices/0/uuid: 7 is not";
  const std::function<int()> calls[] = {[&] { return cu.cuInit(0); }, nvml_init};
  for (const auto& call : calls) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(call(), kUnknown);
    EXPECT_EQ(call(), kUnknown);
    const auto printed = testing::internal::GetCapturedStderr();
    EXPECT_NE(printed.find(expected), std::string::npos) << printed;
    EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1);
  }
}

TEST_F(FakeCuda, MissingDescriptionIsAnUnknownError) {
  setenv("LAUNCHGAP_FAKE_NODE", "/nowhere/node.json", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cu.cuInit(0), kUnknown);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("/nowhere/node.json: cannot be read"),
            std::string::npos);
}

}  // namespace
}  // namespace launchgap::fake
