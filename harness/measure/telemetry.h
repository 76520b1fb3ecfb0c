// The state of device and host around each block: read between blocks, never inside one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/system_files.h"
#include "harness/device/facts.h"

namespace launchgap {

namespace cuda {
class GpuState;
}

/// A quantity of telemetry. Counters only ever grow, so what matters is their change over a block;
/// the others are as they were at that moment.
struct TelemetryQuantity {
  std::string_view key;
  std::string_view unit;
  bool counter;
  std::string_view meaning;
};

/// All quantities, in the order in which tables show them.
std::span<const TelemetryQuantity> telemetry_quantities();

/// What could be read; what the machine does not tell is not there.
struct TelemetryReading {
  std::int64_t at_ns = 0;  // when reading began
  std::vector<std::pair<std::string_view, double>> values;
};

/// Reads for the calling thread, its CPU and one device.
class Telemetry {
 public:
  explicit Telemetry(const DeviceFacts& device);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  TelemetryReading read();
  /// Why the system does not tell a quantity of the launching CPU, by its key.
  std::map<std::string, std::string> missing() const;
  /// Why the device says nothing, where it does not.
  const std::string& device_problem() const { return device_problem_; }
  /// How the device is set up, by the names that a run's fingerprint has; what it does not tell is
  /// not there.
  std::map<std::string, std::string> device_settings() const;
  /// NVML, where it was loaded.
  std::optional<LoadedLibrary> loaded_library() const;

 private:
  SystemFiles system_;
  std::unique_ptr<cuda::GpuState> gpu_;
  std::string device_problem_;
};

}  // namespace launchgap
