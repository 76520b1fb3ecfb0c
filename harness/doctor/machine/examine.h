// The folder `machine` takes /proc, /sys, /dev and the environment, runs what may crash or hang in
// probes, and gives the facts (machine_facts.h), of which it judges none.
//
// Gathers them: reads the machine, and asks driver, NVML, libraries and GPUs by probes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "harness/doctor/machine/machine_facts.h"

namespace launchgap::doctor {

struct ExamineOptions {
  bool prove = false;  // a kernel, a matrix product and a convolution on each GPU
  /// Another program's environment, to see the machine as that program does: what concerns CUDA and
  /// the loader is taken from there.
  std::optional<std::map<std::string, std::string>> environment;
  double load_timeout_s = 1.5;  // for a library to be loaded and say its version
  /// GPUs that nobody uses are slow to wake up, and are given the time where they are to be proven.
  double driver_timeout_s() const { return prove ? 30 : 10; }
  double proof_timeout_s = 60;
};

/// Takes what the slowest probe takes: well below 2 s without a proof on a machine whose driver
/// answers. Never throws for what is wrong with the machine.
std::unique_ptr<MachineFacts> examine(const ExamineOptions& options);

}  // namespace launchgap::doctor
