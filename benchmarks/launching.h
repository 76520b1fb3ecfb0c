// What the benchmarks of the launch family share.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "harness/measure/benchmark.h"

namespace launchgap {

/// The way by which a device's launches go.
inline std::vector<std::string> launching_api(Profile, const DeviceFacts& facts) {
  return {facts.backend == "host" ? "queue" : "driver"};
}

inline std::string method_of(const Kernel& kernel, const CaseName& name) {
  return fmt::format("{} kernel through the {}",
                     kernel.form(),
                     name.at("api") == "driver" ? "CUDA driver API" : "host queue");
}

}  // namespace launchgap
