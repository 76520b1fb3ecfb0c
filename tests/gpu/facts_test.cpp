// What a GPU says of itself, and what NVML says of it.
#include <algorithm>
#include <map>

#include "harness/core/clock.h"
#include "harness/device/backend.h"
#include "harness/measure/telemetry.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

using GpuFacts = Gpu;

TEST_F(GpuFacts, SayWhatItIs) {
  const DeviceFacts& facts = device->facts();
  EXPECT_FALSE(facts.name.empty());
  EXPECT_TRUE(facts.compute_capability.has_value());
  EXPECT_TRUE(facts.pci_bus_id.has_value());
  EXPECT_GT(facts.memory_bytes.value_or(0), 1u << 30);
  EXPECT_GT(facts.multiprocessors.value_or(0), 0);
  EXPECT_GT(facts.last_level_cache_bytes.value_or(0), 0u);
  EXPECT_TRUE(facts.uuid.starts_with("GPU-") || facts.uuid.starts_with("MIG-")) << facts.uuid;
  EXPECT_EQ(facts.uuid.size(), 40u);
  EXPECT_EQ(facts.uuid, Gpu::uuid) << "the one that was asked for";
}

TEST_F(GpuFacts, ADeviceThatIsNotThereIsNotOpened) {
  EXPECT_THROW(open_device("cuda", "GPU-00000000-0000-0000-0000-000000000000"), Error);
}

TEST_F(GpuFacts, KernelsSayInWhichFormTheyRun) {
  const auto kernel = device->load(kernels::null_kernel);
  EXPECT_TRUE(kernel->form() == "native" || kernel->form() == "portable") << kernel->form();
  EXPECT_FALSE(kernel->form() == "native" && kernel->compiled_by_driver());
}

class GpuTelemetry : public Gpu {
 protected:
  static std::map<std::string_view, double> read(Telemetry& telemetry) {
    const TelemetryReading reading = telemetry.read();
    return {reading.values.begin(), reading.values.end()};
  }
};

/// Wide enough for every GPU, and narrow enough for a unit that is wrong.
struct Plausible {
  std::string_view key;
  double least, most;
  bool of_every_gpu;  // also of the oldest; of an instance of a partitioned one NVML says less
};

TEST_F(GpuTelemetry, SaysWhatCanBe) {
  Telemetry telemetry(device->facts());
  ASSERT_EQ(telemetry.device_problem(), "");
  const auto values = read(telemetry);
  const bool whole = device->facts().uuid.starts_with("GPU-");
  const Plausible quantities[] = {{"performance_state", 0, 32, true},
                                  {"sm_clock_mhz", 50, 5000, true},
                                  {"memory_clock_mhz", 50, 20'000, true},
                                  {"temperature_c", 1, 120, true},
                                  {"power_w", 1, 3000, false},
                                  {"energy_j", 0, 1e13, false},
                                  {"clock_reasons", 0, 0xFFFF, true},
                                  {"pcie_generation", 0, 8, false},
                                  {"pcie_width", 0, 32, false},
                                  {"other_processes", 0, 1000, false}};
  for (const auto& [key, least, most, of_every_gpu] : quantities) {
    const auto found = values.find(key);
    if (found == values.end()) {
      EXPECT_FALSE(of_every_gpu && whole) << key;
      continue;
    }
    EXPECT_GE(found->second, least) << key;
    EXPECT_LE(found->second, most) << key;
  }
  for (const auto& [key, value] : values)
    EXPECT_NE(std::ranges::find(telemetry_quantities(), key, &TelemetryQuantity::key),
              telemetry_quantities().end())
        << key;
}

TEST_F(GpuTelemetry, CountersNeverFallAndNoneCountsMoreTimeThanThereWas) {
  Telemetry telemetry(device->facts());
  const auto spin = device->load(kernels::spin_kernel);
  void* const nothing = nullptr;
  const std::int64_t begin = now_ns();
  const auto before = read(telemetry);
  // NVML's energy has steps of up to 100 ms.
  for (int i = 0; i < 300; ++i) launch(*stream, *spin, {1, 1}, 1'000'000ull, nothing);
  stream->wait();
  const auto after = read(telemetry);
  const auto elapsed_ns = static_cast<double>(now_ns() - begin);
  for (const TelemetryQuantity& quantity : telemetry_quantities()) {
    const auto first = before.find(quantity.key), last = after.find(quantity.key);
    const bool of_one_cpu = quantity.key == "deep_idle_us";  // and this thread may be on another
    if (!quantity.counter || of_one_cpu || first == before.end() || last == after.end()) continue;
    const double grown = last->second - first->second;
    EXPECT_GE(grown, 0) << quantity.key;
    // A counter of time has steps of its own, of some 100 ms.
    EXPECT_TRUE(!quantity.key.ends_with("_ns") || grown <= elapsed_ns + 1e9) << quantity.key;
  }
  if (const auto first = before.find("energy_j"); first != before.end()) {
    const double joules = after.at("energy_j") - first->second;
    EXPECT_GT(joules, 0) << "300 ms of work";
    EXPECT_LT(joules, 3000 * (elapsed_ns * 1e-9 + 1)) << "of 3 kW at most";
  }
}

}  // namespace
}  // namespace launchgap
