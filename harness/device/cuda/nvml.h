// What the driver knows of a GPU's state: clocks, heat, power and why clocks are held down.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/cuda/abi/nvml.h"
#include "harness/device/facts.h"

namespace launchgap::cuda {

// --- NVML's functions, loaded once per process ---

struct Nvml : nvml::NvmlFunctions {
  LoadedLibrary facts;

  /// Loads and initialises it on first use. Throws Error if it cannot be loaded, and LibraryError
  /// if it does not work.
  static const Nvml& get();

  /// Throws LibraryError unless the code is success.
  void check(nvml::Result code, const char* call) const;
};

// --- The state of one GPU ---

/// A quantity that a device told just now.
struct Gauge {
  std::string_view name;
  double value;
};

/// One GPU, as NVML sees it. Fields that the device or the library lacks are left out.
class GpuState {
 public:
  /// Loads NVML on first use and finds the GPU by UUID, or by its PCI address where that does not
  /// work (partitions). Throws Error with the reason.
  explicit GpuState(const DeviceFacts& facts);

  /// About a millisecond; never throws. What failed is left out.
  std::vector<Gauge> read() const;
  /// What was set up before, by the names that a run's fingerprint has: `driver`, `vbios`,
  /// `power_limit_w`, `application_clock_mhz` if it is below the highest clock, `persistence`,
  /// `mig`.
  std::map<std::string, std::string> settings() const;
  LoadedLibrary loaded_library() const;

 private:
  void add_fields(std::vector<Gauge>& gauges) const;
  void add_other_processes(std::vector<Gauge>& gauges) const;

  const Nvml& nvml_;
  nvml::Device device_ = nullptr;
  bool by_uuid_ = false;
};

}  // namespace launchgap::cuda
