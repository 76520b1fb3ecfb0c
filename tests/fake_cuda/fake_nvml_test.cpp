// What the fake NVML promises.
#include "harness/device/cuda/abi/nvml.h"
#include "tests/fake_cuda/fixture.h"

namespace launchgap::fake {
namespace {

namespace nvml = launchgap::cuda::nvml;

class FakeNvml : public FakeNode {
 protected:
  static nvml::NvmlFunctions load() {
    void* const handle = open_library("libnvidia-ml.so.1");
    nvml::NvmlFunctions functions;
#define LOAD_NVML(name, required, ...) \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(handle, #name));
    LAUNCHGAP_NVML_FUNCTIONS(LOAD_NVML)
#undef LOAD_NVML
    return functions;
  }

  static constexpr auto kUuid = "GPU-00000000-0000-0000-0000-000000000001";

  void start_nvml(const Json& described = Json::object(), const Json& faults = Json::array()) {
    describe(a_node(a_device({{"nvml", described}}), faults).dump());
    ASSERT_EQ(ml.nvmlInit_v2(), nvml::kSuccess);
    ASSERT_EQ(ml.nvmlDeviceGetHandleByUUID(kUuid, &device), nvml::kSuccess);
  }

  nvml::FieldValue field(std::uint32_t id) {
    nvml::FieldValue value{};
    value.field = id;
    EXPECT_EQ(ml.nvmlDeviceGetFieldValues(device, 1, &value), nvml::kSuccess);
    return value;
  }

  template <typename Number>
  Number get(nvml::Result (*function)(nvml::Device, Number*)) {
    Number number{};
    EXPECT_EQ(function(device, &number), nvml::kSuccess);
    return number;
  }

  unsigned clock(nvml::Clock clock) {
    unsigned megahertz = 0;
    EXPECT_EQ(ml.nvmlDeviceGetClockInfo(device, clock, &megahertz), nvml::kSuccess);
    return megahertz;
  }

  unsigned temperature() {
    unsigned celsius = 0;
    EXPECT_EQ(ml.nvmlDeviceGetTemperature(device, nvml::kGpuTemperature, &celsius), nvml::kSuccess);
    return celsius;
  }

  const nvml::NvmlFunctions ml = load();
  nvml::Device device = nullptr;
};

TEST_F(FakeNvml, NeedsInitialisation) {
  describe(a_node().dump());
  unsigned milliwatts = 0;
  EXPECT_EQ(ml.nvmlDeviceGetHandleByUUID(kUuid, &device), nvml::kUninitialized);
  EXPECT_EQ(ml.nvmlDeviceGetPowerUsage(nullptr, &milliwatts), nvml::kUninitialized);
  ASSERT_EQ(ml.nvmlInit_v2(), nvml::kSuccess);
  EXPECT_EQ(ml.nvmlDeviceGetPowerUsage(nullptr, &milliwatts), 2);
  ASSERT_EQ(ml.nvmlDeviceGetHandleByUUID(kUuid, &device), nvml::kSuccess);
  EXPECT_EQ(ml.nvmlDeviceGetPowerUsage(device, &milliwatts), nvml::kSuccess);
  EXPECT_EQ(ml.nvmlDeviceGetPowerUsage(device, nullptr), 2);
}

TEST_F(FakeNvml, NeedsADescription) {
  setenv("LAUNCHGAP_FAKE_NODE", "/nowhere/node.json", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(ml.nvmlInit_v2(), nvml::kUnknown);
  EXPECT_EQ(ml.nvmlInit_v2(), nvml::kUnknown);
  const auto printed = testing::internal::GetCapturedStderr();
  EXPECT_NE(printed.find("/nowhere/node.json: cannot be read"), std::string::npos);
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1);
}

TEST_F(FakeNvml, DoesNotLoadTheDriver) {
  start_nvml();
  std::ifstream maps("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  EXPECT_NE(text.find("libnvidia-ml.so.1"), std::string::npos);
  EXPECT_EQ(text.find("libcuda.so"), std::string::npos);
}

TEST_F(FakeNvml, HasAVersion) {
  Json node = a_node();
  node["nvml"] = {{"version", "580.65.06"}};
  describe(node.dump());
  char text[16];
  EXPECT_EQ(ml.nvmlSystemGetNVMLVersion(text, sizeof text), nvml::kSuccess);
  EXPECT_STREQ(text, "580.65.06");
  EXPECT_EQ(ml.nvmlSystemGetNVMLVersion(text, 9), nvml::kInsufficientSize);
  EXPECT_EQ(ml.nvmlSystemGetNVMLVersion(text, 10), nvml::kSuccess);
}

TEST_F(FakeNvml, FindsDevicesWhateverCudaSees) {
  setenv("LAUNCHGAP_FAKE_NODE", LAUNCHGAP_FAKE_NODES_FOLDER "/mixed_8_gpus.json", 1);
  setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  ASSERT_EQ(ml.nvmlInit_v2(), nvml::kSuccess);
  const Node node = load_node();
  for (const auto& described : node.devices) {
    nvml::Device by_uuid = nullptr, by_bus = nullptr;
    EXPECT_EQ(ml.nvmlDeviceGetHandleByUUID(described.uuid.c_str(), &by_uuid), nvml::kSuccess);
    for (const auto& bus : {described.pci, "0000" + described.pci}) {
      EXPECT_EQ(ml.nvmlDeviceGetHandleByPciBusId_v2(bus.c_str(), &by_bus), nvml::kSuccess) << bus;
      EXPECT_EQ(by_bus, by_uuid);
    }
  }
  nvml::Device none = nullptr;
  EXPECT_EQ(ml.nvmlDeviceGetHandleByUUID("GPU-a000", &none), nvml::kNotFound) << "abbreviated";
  EXPECT_EQ(ml.nvmlDeviceGetHandleByUUID(nullptr, &none), 2);
  EXPECT_EQ(ml.nvmlDeviceGetHandleByPciBusId_v2("0000:fe:00.0", &none), nvml::kNotFound);
  EXPECT_EQ(ml.nvmlDeviceGetHandleByPciBusId_v2("somewhere", &none), 2);
}

TEST_F(FakeNvml, ADeviceHasDefaultsFromItsDescription) {
  start_nvml();
  EXPECT_EQ(get(ml.nvmlDeviceGetPerformanceState), 0);
  EXPECT_EQ(clock(nvml::kSmClock), 1500u);
  EXPECT_EQ(clock(nvml::kMemoryClock), 1000u);
  EXPECT_EQ(temperature(), 40u);
  EXPECT_EQ(get(ml.nvmlDeviceGetPowerUsage), 100'000u);
  EXPECT_EQ(get(ml.nvmlDeviceGetCurrentClocksEventReasons), 0u);
  EXPECT_EQ(get(ml.nvmlDeviceGetCurrPcieLinkGeneration), 4u);
  EXPECT_EQ(get(ml.nvmlDeviceGetCurrPcieLinkWidth), 16u);
  EXPECT_EQ(field(nvml::kPcieReplays).value.as_unsigned, 0u);
  EXPECT_EQ(field(nvml::kSwPowerCapNs).value.as_unsigned_long_long, 0u);
}

TEST_F(FakeNvml, ADeviceIsAsDescribed) {
  start_nvml({{"pstate", 8},
              {"sm_clock_mhz", 1380},
              {"memory_clock_mhz", 877},
              {"temperature_c", 84},
              {"power_mw", 250'000},
              {"reasons", 0x24},
              {"pcie_generation", 3},
              {"pcie_width", 8},
              {"pcie_replays", 17}});
  EXPECT_EQ(get(ml.nvmlDeviceGetPerformanceState), 8);
  EXPECT_EQ(clock(nvml::kSmClock), 1380u);
  EXPECT_EQ(clock(nvml::kMemoryClock), 877u);
  EXPECT_EQ(temperature(), 84u);
  EXPECT_EQ(get(ml.nvmlDeviceGetPowerUsage), 250'000u);
  EXPECT_EQ(get(ml.nvmlDeviceGetCurrentClocksEventReasons), 0x24u);
  EXPECT_EQ(get(ml.nvmlDeviceGetCurrentClocksThrottleReasons), 0x24u);
  EXPECT_EQ(get(ml.nvmlDeviceGetCurrPcieLinkGeneration), 3u);
  EXPECT_EQ(get(ml.nvmlDeviceGetCurrPcieLinkWidth), 8u);
  EXPECT_EQ(field(nvml::kPcieReplays).value.as_unsigned, 17u);
  EXPECT_EQ(field(nvml::kPcieReplays).type, nvml::kUnsignedInt);
  EXPECT_EQ(field(nvml::kPowerInstantMilliwatts).value.as_unsigned, 250'000u);
}

TEST_F(FakeNvml, CountersGrowByTheirShareOfTime) {
  start_nvml({{"sw_power_cap_share", 1},
              {"sw_thermal_share", 0.5},
              {"hw_thermal_share", 0.25},
              {"hw_power_brake_share", 0},
              {"power_mw", 1'000'000}});
  const auto all = [&] {
    std::vector<nvml::FieldValue> values(5);
    const std::uint32_t fields[] = {nvml::kSwPowerCapNs,
                                    nvml::kSwThermalNs,
                                    nvml::kHwThermalNs,
                                    nvml::kHwPowerBrakeNs,
                                    nvml::kSyncBoostNs};
    for (std::size_t i = 0; i < values.size(); ++i) values[i].field = fields[i];
    EXPECT_EQ(ml.nvmlDeviceGetFieldValues(device, static_cast<int>(values.size()), values.data()),
              nvml::kSuccess);
    return values;
  };
  const double begin = now_ns();
  const auto joules = get(ml.nvmlDeviceGetTotalEnergyConsumption);
  const auto before = all();
  usleep(50'000);
  const auto after = all();
  const double elapsed = now_ns() - begin;
  const double shares[] = {1, 0.5, 0.25, 0, 0};
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].result, nvml::kSuccess);
    EXPECT_EQ(after[i].type, nvml::kUnsignedLongLong);
    EXPECT_GT(after[i].timestamp, before[i].timestamp);
    const auto grown = static_cast<double>(after[i].value.as_unsigned_long_long -
                                           before[i].value.as_unsigned_long_long);
    EXPECT_GE(grown, shares[i] * 50e6);
    EXPECT_LE(grown, shares[i] * elapsed + 1);
  }
  const auto used = static_cast<double>(get(ml.nvmlDeviceGetTotalEnergyConsumption) - joules);
  EXPECT_GE(used, 50'000) << "1 kW for 50 ms, in mJ";
  EXPECT_LT(used, 1000 * 1e-6 * (now_ns() - begin) + 2);
}

TEST_F(FakeNvml, WhatIsMissingIsNotSupported) {
  start_nvml({{"missing",
               {"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage", "field:74"}}});
  unsigned long long millijoules = 0;
  unsigned milliwatts = 0;
  EXPECT_EQ(ml.nvmlDeviceGetTotalEnergyConsumption(device, &millijoules), nvml::kNotSupported);
  EXPECT_EQ(ml.nvmlDeviceGetPowerUsage(device, &milliwatts), nvml::kNotSupported);
  EXPECT_EQ(field(nvml::kSwPowerCapNs).result, nvml::kNotSupported);
  EXPECT_EQ(field(nvml::kSwThermalNs).result, nvml::kSuccess);
  EXPECT_EQ(field(12345).result, nvml::kNotSupported);
  EXPECT_EQ(temperature(), 40u);
}

TEST_F(FakeNvml, TheInventoryIsAsDescribed) {
  start_nvml({{"memory_used_bytes", 1 << 20},
              {"compute_mode", "exclusive process"},
              {"persistence", false},
              {"mig_instances", 2},
              {"ecc", false},
              {"uncorrected_ecc_errors", 3},
              {"remap_pending", true},
              {"pcie_width", 8},
              {"max_pcie_width", 16},
              {"application_clock_mhz", 900},
              {"power_limit_mw", 250'000},
              {"fabric", "in progress"}});
  char text[80];
  EXPECT_EQ(ml.nvmlSystemGetDriverVersion(text, sizeof text), nvml::kSuccess);
  EXPECT_STREQ(text, "580.65.06");
  EXPECT_EQ(ml.nvmlSystemGetDriverVersion(text, 3), nvml::kInsufficientSize);
  unsigned count = 0;
  EXPECT_EQ(ml.nvmlDeviceGetCount_v2(&count), nvml::kSuccess);
  EXPECT_EQ(count, 1u);
  nvml::Device by_index = nullptr;
  EXPECT_EQ(ml.nvmlDeviceGetHandleByIndex_v2(0, &by_index), nvml::kSuccess);
  EXPECT_EQ(by_index, device);
  EXPECT_EQ(ml.nvmlDeviceGetHandleByIndex_v2(1, &by_index), 2);
  EXPECT_EQ(ml.nvmlDeviceGetUUID(device, text, sizeof text), nvml::kSuccess);
  EXPECT_STREQ(text, kUuid);
  nvml::PciInfo pci{};
  EXPECT_EQ(ml.nvmlDeviceGetPciInfo_v3(device, &pci), nvml::kSuccess);
  EXPECT_STREQ(pci.bus_id, "00000000:01:00.0") << "with eight digits of domain";
  nvml::Memory memory{};
  EXPECT_EQ(ml.nvmlDeviceGetMemoryInfo(device, &memory), nvml::kSuccess);
  EXPECT_EQ(memory.used, 1u << 20);
  EXPECT_EQ(memory.total - memory.free, memory.used);
  EXPECT_EQ(get(ml.nvmlDeviceGetMinorNumber), 0u);
  EXPECT_EQ(get(ml.nvmlDeviceGetComputeMode), nvml::kExclusiveProcessMode);
  EXPECT_EQ(get(ml.nvmlDeviceGetPersistenceMode), 0);
  EXPECT_EQ(get(ml.nvmlDeviceGetMaxPcieLinkWidth), 16u);
  EXPECT_EQ(get(ml.nvmlDeviceGetPowerManagementLimit), 250'000u);
  EXPECT_EQ(get(ml.nvmlDeviceGetPowerManagementDefaultLimit), 400'000u);
  unsigned mhz = 0, now = 0, pending = 0;
  EXPECT_EQ(ml.nvmlDeviceGetApplicationsClock(device, nvml::kSmClock, &mhz), nvml::kSuccess);
  EXPECT_EQ(mhz, 900u);
  EXPECT_EQ(ml.nvmlDeviceGetMigMode(device, &now, &pending), nvml::kSuccess);
  EXPECT_EQ(now, 1u);
  nvml::Device instance = nullptr;
  EXPECT_EQ(ml.nvmlDeviceGetMigDeviceHandleByIndex(device, 1, &instance), nvml::kSuccess);
  EXPECT_EQ(ml.nvmlDeviceGetMigDeviceHandleByIndex(device, 2, &instance), nvml::kNotFound);
  unsigned long long errors = 0;
  EXPECT_EQ(ml.nvmlDeviceGetTotalEccErrors(device, 1, 0, &errors), nvml::kSuccess);
  EXPECT_EQ(errors, 3u);
  unsigned correctable = 0, uncorrectable = 0, waiting = 0, failed = 0;
  EXPECT_EQ(ml.nvmlDeviceGetRemappedRows(device, &correctable, &uncorrectable, &waiting, &failed),
            nvml::kSuccess);
  EXPECT_EQ(waiting, 1u);
  EXPECT_EQ(failed, 0u);
  nvml::FabricInfo fabric{};
  EXPECT_EQ(ml.nvmlDeviceGetGpuFabricInfo(device, &fabric), nvml::kSuccess);
  EXPECT_EQ(fabric.state, nvml::kFabricInProgress);
}

TEST_F(FakeNvml, ProcessesAreTheCallerAndItsNeighbours) {
  start_nvml({{"processes", {4711, 4712}}});
  unsigned count = 0;
  EXPECT_EQ(ml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr),
            nvml::kInsufficientSize);
  EXPECT_EQ(count, 3u);
  std::vector<nvml::ProcessInfo> processes(8);
  count = 2;
  EXPECT_EQ(ml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()),
            nvml::kInsufficientSize);
  count = 8;
  ASSERT_EQ(ml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()),
            nvml::kSuccess);
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(processes[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(processes[1].pid, 4711u);
  EXPECT_EQ(processes[2].pid, 4712u);
}

TEST_F(FakeNvml, FaultsAreOfTheirDevice) {
  Json node = a_node();
  node["devices"].push_back(a_device({{"uuid", "GPU-00000000-0000-0000-0000-000000000002"}}));
  node["faults"] = {{{"device", 1},
                     {"library", "nvml"},
                     {"call", "nvmlDeviceGetPowerUsage"},
                     {"code", nvml::kGpuIsLost}},
                    {{"library", "nvml"},
                     {"call", "nvmlInit_v2"},
                     {"times", 1},
                     {"code", nvml::kLibraryDriverMismatch}}};
  describe(node.dump());
  EXPECT_EQ(ml.nvmlInit_v2(), nvml::kLibraryDriverMismatch);
  ASSERT_EQ(ml.nvmlInit_v2(), nvml::kSuccess);
  nvml::Device healthy = nullptr, lost = nullptr;
  ASSERT_EQ(ml.nvmlDeviceGetHandleByUUID(kUuid, &healthy), nvml::kSuccess);
  ASSERT_EQ(ml.nvmlDeviceGetHandleByUUID("GPU-00000000-0000-0000-0000-000000000002", &lost),
            nvml::kSuccess);
  unsigned milliwatts = 0;
  EXPECT_EQ(ml.nvmlDeviceGetPowerUsage(healthy, &milliwatts), nvml::kSuccess);
  EXPECT_EQ(ml.nvmlDeviceGetPowerUsage(lost, &milliwatts), nvml::kGpuIsLost);
}

TEST_F(FakeNvml, EveryCodeOfTheInterfaceHasAText) {
  for (const nvml::Result code : {nvml::kSuccess,
                                  nvml::kUninitialized,
                                  nvml::kNotSupported,
                                  nvml::kNoPermission,
                                  nvml::kNotFound,
                                  nvml::kInsufficientSize,
                                  nvml::kDriverNotLoaded,
                                  nvml::kFunctionNotFound,
                                  nvml::kGpuIsLost,
                                  nvml::kLibraryDriverMismatch}) {
    EXPECT_STRNE(ml.nvmlErrorString(code), "Unknown Error") << code;
  }
  EXPECT_STREQ(ml.nvmlErrorString(nvml::kUnknown), "Unknown Error");
}

}  // namespace
}  // namespace launchgap::fake
