#include "harness/run/process_environment.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "harness/core/environment_variables.h"
#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/core/system_files.h"
#include "harness/run/devices.h"
#include "harness/run/process.h"

namespace launchgap {
namespace {

/// Says where things are or what a container may see.
bool is_a_place(const std::string& name) {
  return name.ends_with("_HOME") || name.ends_with("_PATH") || name.starts_with("NVIDIA_");
}

}  // namespace

std::vector<FalsifyingVariable> falsifying_variables() {
  std::vector<FalsifyingVariable> found;
  for (const EnvironmentVariable& variable : environment_variables()) {
    if (variable.use != VariableUse::falsifies) continue;
    std::string name(variable.name);
    if (const char* const value = std::getenv(name.c_str()))
      found.push_back({std::move(name), value, variable.meaning});
  }
  return found;
}

Variables remove_falsifying_variables() {
  Variables removed;
  for (const FalsifyingVariable& variable : falsifying_variables()) {
    removed[variable.name] = variable.value;
    unsetenv(variable.name.c_str());
  }
  return removed;
}

Variables environment_of_libraries() {
  constexpr std::string_view kPrefixes[] = {"CUDA_",
                                            "CUBLAS",
                                            "CUDNN_",
                                            "NVIDIA_",
                                            "OMP_",
                                            "GOMP_",
                                            "KMP_",
                                            "OPENBLAS_",
                                            "DNNL_",
                                            "ONEDNN_",
                                            "MALLOC_",
                                            "GLIBC_TUNABLES",
                                            "LD_PRELOAD",
                                            "LAUNCHGAP_KERNELS",
                                            "LAUNCHGAP_WARM_UP",
                                            "LAUNCHGAP_DELAY_NS"};
  Variables variables = own_environment();
  std::erase_if(variables, [&](const auto& variable) {
    const std::string& name = variable.first;
    return name == "CUDA_VISIBLE_DEVICES" ||  // which the parent chose
           std::ranges::none_of(kPrefixes,
                                [&](std::string_view prefix) { return name.starts_with(prefix); });
  });
  return variables;
}

Variables environment_to_compare(const Variables& of_libraries) {
  Variables compared;
  for (const auto& [name, value] : of_libraries) {
    if (!is_a_place(name)) compared[name] = value;
  }
  return compared;
}

CpuList near_cpus(const DeviceFacts& device) {
  const CpuList allowed = allowed_cpus();
  CpuList near;
  if (const auto of_node = cpus_of_numa_node(device.numa_node.value_or(-1)))
    std::ranges::set_intersection(*of_node, allowed, std::back_inserter(near));
  return near.empty() ? allowed : near;
}

int free_cpu(const CpuList& near, const CpuList& allowed, const std::vector<int>& taken) {
  for (const CpuList* candidates : {&near, &allowed}) {
    for (auto cpu = candidates->rbegin(); cpu != candidates->rend(); ++cpu) {
      if (std::ranges::find(taken, *cpu) == taken.end()) return *cpu;
    }
  }
  return allowed.back();
}

JitCaches::Warmed JitCaches::warm(const DeviceFacts& device,
                                  const ProcessConfig& process_config,
                                  double timeout_s) {
  if (!folders_) folders_.emplace("launchgap-jit-");
  if (folders_->path().empty()) return {};
  const std::filesystem::path folder = folders_->path() / device.uuid;
  std::error_code exists;
  if (!std::filesystem::create_directory(folder, exists)) return {folder, ""};
  try {
    run_worker(
        job::WarmJitCache{device.backend,
                          device.uuid,
                          ProcessConfig(process_config.family()).with(CodeLoading::jit_warming),
                          folder},
        worker_environment(device),
        timeout_s,
        [] { return stop_signal != 0; });
  } catch (const Error& error) {
    return {folder, error.what()};
  }
  return {folder, ""};
}

}  // namespace launchgap
