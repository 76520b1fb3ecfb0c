// The description of a node: what is said of it, and what is wrong with one.
#include <functional>
#include <sstream>

#include "harness/core/errors.h"
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

TEST(NodeDescription, WhatNvmlIsNotToldIsTheDevicesOwnAsItIsNow) {
  Json told = a_node();
  told["devices"][0]["nvml"] = {{"pcie_width", 8}};
  for (const Json& json : {a_node(), told}) {
    const Node node = parse_node(json.dump());
    const NvmlDescription& nvml = node.devices[0].nvml;
    EXPECT_EQ(nvml.pcie_width, json.contains("/devices/0/nvml"_json_pointer) ? 8 : 16);
    EXPECT_EQ(nvml.max_pcie_width, nvml.pcie_width);
    EXPECT_EQ(nvml.max_pcie_generation, nvml.pcie_generation);
    EXPECT_EQ(nvml.max_sm_clock_mhz, node.devices[0].clock_mhz);
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
       "\"device\" is no key here; known here: driver_version, cublas_version, cudnn_version, "
       "cupti, nccl, nvml, serialised, cublaslt_candidates, cublaslt_wrong, cublas_varies, "
       "cudnn_engines, cudnn_engine_wrong, cudnn_flips_every, cudnn_wrong, devices, faults"},
      {"/devices", 1, "\"devices\" is 1, and must be an array"},
      {"/driver_version", "13.0", "\"driver_version\" is a string, and must be an integer"},
      {"/driver_version", 999, "\"driver_version\" is 999, and must be at least 1000"},
      {"/cublaslt_candidates", Json::array(), "candidates must not be empty"},
      {"/cudnn_engines", {1, 0.5}, "\"cudnn_engines\" is [1,0.5], and must be at least 1"},
      {"/cublas_varies",
       "often",
       R"("cublas_varies" is "often", and must be one of "runs", "streams", "workspace")"},
      {"/devices/0/uuid",
       "GPU-1",
       "\"devices\"[0]: \"uuid\" is \"GPU-1\", and must be GPU- and 8-4-4-4-12"},
      {"/devices/0/memory_bytes", -1, "\"devices\"[0]: \"memory_bytes\" is -1, and must be"},
      {"/devices/0/memory_bytes", 0, "\"memory_bytes\" is 0, and must be at least 1"},
      {"/devices/0/compute_capability", 8.0, "\"compute_capability\" is 8.0, and must be a string"},
      {"/devices/0/compute_capability", "8", "is \"8\", and must be a text such as \"8.0\""},
      {"/devices/0/memory_pools", 1, "\"memory_pools\" is 1, and must be true or false"},
      {"/devices/0/call_ns",
       {{"constant", -1}},
       "\"devices\"[0]: \"call_ns\": \"constant\" is -1, and must be at least 0"},
      {"/devices/0/call_ns", -1, "\"call_ns\": -1 is no distribution"},
      {"/devices/0/call_ns",
       {{"normal", {{"mean", 1}}}},
       "\"call_ns\": \"normal\": \"sd\" is missing"},
      {"/devices/0/call_ns", {{"mixture", Json::array()}}, "weights with a sum above 0"},
      {"/devices/0/launch_lock", "gpu", R"(must be one of "none", "stream", "process")"},
      {"/devices/0/threads_per_multiprocessor", 512, "is 512, and must be at least 1024"},
      {"/devices/0/priorities", {-5, 0}, "\"priorities\" must be [least, greatest]"},
      {"/devices/0/graph", {{"nodes_ns", 1}}, "\"graph\": \"nodes_ns\" is no key here"},
      {"/devices/0/idle", {{{"ns", 5}}}, "\"idle\"[0]: \"after_ms\" is missing"},
      {"/devices/0/tflops/fp4",
       1,
       "\"tflops\": \"fp4\" is no key here; known here: fp64, fp32, tf32, fp16, bf16, int8, fp8"},
      {"/devices/0/tflops/fp32", 0, "\"tflops\": \"fp32\" is 0, and must be above 0"},
      {"/faults/0",
       {{"library", "cuda"}, {"call", "cuMemAlloc"}, {"code", 2}},
       "\"faults\"[0]: \"call\" is \"cuMemAlloc\", and must be"},
      {"/faults/0", {{"library", "cuda"}, {"call", "cuGetErrorName"}}, "exactly one of"},
      {"/faults/0",
       {{"library", "cuda"}, {"call", "cuInit"}, {"code", 2}, {"hang", true}},
       "exactly one of"},
      {"/faults/0",
       {{"library", "cuda"}, {"call", "cuInit"}, {"wrong_byte", 0}},
       "\"wrong_byte\" is a byte of a result, and must be of cuBLAS, cuDNN or NCCL"},
      {"/cupti/overhead", 1, "\"cupti\": \"overhead\" is no key here; known here: version"},
      {"/cupti/nested", "both", R"(must be one of "same", "different", "none")"},
      {"/cupti/subscriber", "", "\"subscriber\" is \"\", and must be not empty"},
      {"/cupti/early", {{"count", 0}}, "\"early\": \"count\" is 0, and must be at least 1"},
      {"/cupti/clock_step", {{"after", 1}}, "\"clock_step\": \"ns\" is missing"},
      {"/cupti/overheads",
       {{{"kind", "heat"}}},
       "\"overheads\"[0]: \"kind\" is \"heat\", and must be one of \"driver_compiler\""},
      {"/cupti/overheads",
       {{{"kind", "resource"}, {"every", 0}, {"ns", 1}}},
       "\"every\" is 0, and must be at least 1"},
      {"/devices/0/nvml/sw_thermal_share", 1.5, "is 1.5, and must be from 0 to 1"},
      {"/devices/0/nvml/memory_used_bytes", 1ll << 40, "must not be more than \"memory_bytes\""},
      {"/devices/0/nvml/missing",
       {"nvmlDeviceGetBrand"},
       "\"nvml\": \"missing\" is \"nvmlDeviceGetBrand\", and must be what nvml says of a device"},
      {"/faults/0",
       {{"library", "cupti"}, {"call", "cuptiFinalize"}, {"code", 1}},
       "\"call\" is \"cuptiFinalize\", and must be a function of that library"},
      {"/faults/0",
       {{"library", "nvml"}, {"call", "nvmlErrorString"}, {"code", 1}},
       "a function of that library that returns a status"},
      {"/faults/0",
       {{"library", "curand"}, {"call", "curandCreateGenerator"}},
       "\"library\" is \"curand\", and must be one of \"cuda\""},
      {"/faults/0",
       {{"device", 1}, {"library", "cuda"}, {"call", "cuInit"}, {"code", 2}},
       "\"device\" must be null (every device), an index from 0 to 1 (exclusive)"},
      {"/faults/0",
       {{"device", "GPU-2"}, {"library", "cuda"}, {"call", "cuInit"}, {"code", 2}},
       "or the UUID of a device"},
  };
  for (const auto& [pointer, value, expected] : cases) {
    Json node = a_node();
    node[Json::json_pointer(pointer)] = value;
    try {
      parse_node(node.dump());
      ADD_FAILURE() << pointer << " = " << value << " passed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(parse_node("{"), Error);
  EXPECT_THROW(parse_node("{}"), Error);
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
    } catch (const Error& error) {
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
  const std::string expected = path + ": \"devices\"[0]: \"uuid\" is 7, and must be";
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
