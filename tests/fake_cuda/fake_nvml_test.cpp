// What the fake NVML answers. What is made of it is in tests/end_to_end/test_tracing.py and
// tests/doctor/test_root_causes.py.
#include "harness/device/cuda/abi/nvml.h"
#include "tests/fake_cuda/fixture.h"

namespace launchgap::fake {
namespace {

namespace nvml = launchgap::cuda::nvml;

LAUNCHGAP_LIBRARY(Nvml, nvml::NvmlFunctions, LAUNCHGAP_NVML_FUNCTIONS, "libnvidia-ml.so.1");

class FakeNvml : public FakeNode {
 protected:
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

  const Nvml ml;
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

TEST_F(FakeNvml, DoesNotLoadTheDriver) {
  start_nvml();
  std::ifstream maps("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  EXPECT_NE(text.find("libnvidia-ml.so.1"), std::string::npos);
  EXPECT_EQ(text.find("libcuda.so"), std::string::npos);
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

TEST_F(FakeNvml, AnswersWithTheirTypesAndSizes) {
  start_nvml({{"pcie_replays", 17}, {"missing", {"nvmlDeviceGetPowerUsage", "field:74"}}});
  const auto replays = field(nvml::kPcieReplays);
  EXPECT_EQ(replays.type, nvml::kUnsignedInt);
  EXPECT_EQ(replays.value.as_unsigned, 17u);
  EXPECT_EQ(field(nvml::kSwPowerCapNs).result, nvml::kNotSupported);
  EXPECT_EQ(field(12345).result, nvml::kNotSupported);
  unsigned milliwatts = 0;
  EXPECT_EQ(ml.nvmlDeviceGetPowerUsage(device, &milliwatts), nvml::kNotSupported);
  char text[80];
  EXPECT_EQ(ml.nvmlSystemGetDriverVersion(text, 3), nvml::kInsufficientSize);
  EXPECT_EQ(ml.nvmlDeviceGetVbiosVersion(device, text, sizeof text), nvml::kSuccess);
  EXPECT_STREQ(text, "92.00.45.00.03");
  EXPECT_EQ(ml.nvmlDeviceGetVbiosVersion(device, text, 3), nvml::kInsufficientSize);
  EXPECT_EQ(get(ml.nvmlDeviceGetEnforcedPowerLimit), 400'000u);
  nvml::PciInfo pci{};
  EXPECT_EQ(ml.nvmlDeviceGetPciInfo_v3(device, &pci), nvml::kSuccess);
  EXPECT_STREQ(pci.bus_id, "00000000:01:00.0") << "with eight digits of domain";
  unsigned count = 0;
  EXPECT_EQ(ml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr),
            nvml::kInsufficientSize);
  EXPECT_EQ(count, 1u) << "the caller";
}

}  // namespace
}  // namespace launchgap::fake
