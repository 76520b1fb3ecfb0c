// Variables of the environment that change what a worker measures.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/cpus.h"
#include "harness/core/output_file.h"
#include "harness/core/process_config.h"
#include "harness/device/facts.h"

namespace launchgap {

using Variables = std::map<std::string, std::string>;

struct FalsifyingVariable {
  std::string name, value;
  std::string_view effect;
};
/// Those that are set here, of the variables that falsify (VariableUse::falsifies).
std::vector<FalsifyingVariable> falsifying_variables();

/// Removes them, before a library reads them; returns what was removed.
Variables remove_falsifying_variables();

/// Variables that change what the libraries do, as they are set here.
Variables environment_of_libraries();

/// Those of them that must be equal for two runs to be comparable: all except paths and what a
/// container may see.
Variables environment_to_compare(const Variables& of_libraries);

// --- Which CPU a run's launching thread gets ---

/// The CPUs near a device, of those that this process may use; all of these where the machine does
/// not say what is near.
CpuList near_cpus(const DeviceFacts& device);

/// One CPU for a launching thread: of `near`, else of `allowed`, the last that is not in `taken`,
/// since the first ones serve most interrupts. The last of `allowed` where all are taken. `near` is
/// part of `allowed`, which is not empty.
int free_cpu(const CpuList& near, const CpuList& allowed, const std::vector<int>& taken);

// --- What the driver compiled from PTX, kept for later processes ---

/// A cache for each device, gone when the object is.
class JitCaches {
 public:
  struct Warmed {
    std::filesystem::path folder;  // empty if the system gives no temporary folder
    std::string problem;           // why it could not be filled, the first time; else empty
  };
  /// The device's folder, in which processes of CodeLoading::jit_cached find the kernels compiled;
  /// filled once, by a process of its own that has at most `timeout_s`. Where that fails, the cases
  /// that need it find nothing there and say so.
  Warmed warm(const DeviceFacts& device, const ProcessConfig& process_config, double timeout_s);

 private:
  std::optional<TemporaryFolder> folders_;
};

}  // namespace launchgap
