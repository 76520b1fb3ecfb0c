#include "harness/run/planner.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/device/backend.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/shapes.h"
#include "harness/measure/sweep.h"
#include "harness/run/filter.h"
#include "harness/trace/traced_values.h"

namespace launchgap {
namespace {

/// Everything that a device would do, by process configuration, without tracing. Its `runs` are 0
/// where they are the session's.
std::vector<Workload> workloads_of(const DeviceFacts& device,
                                   Profile profile,
                                   const Filter& filter) {
  const ExpectedSpeed& expected = backend_of(device).expected;
  std::map<ProcessConfig, Workload> by_process_config;
  for (const Benchmark& benchmark : all_benchmarks()) {
    for (const CaseName& name : benchmark.cases(profile, device)) {
      if (!filter.passes(name.text())) continue;
      const ProcessConfig process_config = benchmark.process_config_of(name);
      Workload& workload = by_process_config[process_config];
      workload.device = device.uuid;
      workload.process_config = process_config;
      workload.runs = benchmark.processes ? benchmark.processes(profile) : 0;
      workload.alone = workload.alone || benchmark.alone || backend_of(device).runs_alone;
      workload.start_seconds = expected.start_seconds;
      workload.random_order = has_users_shapes() || has_sweeps();
      const double seconds = benchmark.seconds(device, name, benchmark.sampling(profile, name));
      workload.cases.push_back(
          {name.text(), seconds * (benchmark.family() == "launch" ? expected.launches : 1)});
    }
  }
  std::vector<Workload> workloads;
  for (auto& [process_config, workload] : by_process_config)
    workloads.push_back(std::move(workload));
  return workloads;
}

/// What of a workload runs under tracing: what has records that say something; and, if asked for,
/// what shows the observer effect once more at each level, without tracing too, with as many
/// processes as the plain runs have. Where a kernel's time goes is told by fewer.
std::vector<Workload> traced_twins(const Workload& plain, bool with_observer_effect) {
  constexpr int kPlainRunsPerTracedRun = 3;
  const auto shows_observer_effect = [](const PlannedCase& planned) {
    return benchmark_of(CaseName::parse(planned.name)).shows_observer_effect;
  };
  const auto is_traced = [](const PlannedCase& planned) {
    const CaseName name = CaseName::parse(planned.name);
    return benchmark_of(name).traced(name);
  };
  Workload twin = plain;
  twin.arm = Arm::traced;
  std::erase_if(twin.cases, std::not_fn(is_traced));
  if (twin.cases.empty()) return {};
  if (std::ranges::none_of(twin.cases, shows_observer_effect)) {
    twin.runs = std::max(1, plain.runs / kPlainRunsPerTracedRun);
    return {twin};
  }
  std::vector<Workload> twins = {twin};
  if (!with_observer_effect) return twins;
  std::erase_if(twin.cases, std::not_fn(shows_observer_effect));
  for (const TraceLevel level :
       {TraceLevel::none, TraceLevel::launches, TraceLevel::kernels, TraceLevel::all}) {
    twin.process_config = plain.process_config.with_observer(level);
    twin.arm = level == TraceLevel::none ? Arm::plain : Arm::traced;
    twins.push_back(twin);
  }
  return twins;
}

}  // namespace

Plan plan_cases(const std::vector<DeviceFacts>& devices, const PlanRequest& request) {
  const Filter filter(request.filter);
  const auto has = [&](const DeviceFacts& device, const ProcessConfig& process_config) {
    const int gpus = process_config.gpus();
    if (process_config.sees_all_gpus()) {
      const auto first = std::ranges::find_if(devices, [&](const DeviceFacts& other) {
        return other.usable && other.backend == device.backend;
      });
      return first != devices.end() && first->uuid == device.uuid;
    }
    return gpus == 1 || std::ranges::count_if(devices, [&](const DeviceFacts& other) {
                          return other.usable && other.backend == device.backend;
                        }) >= gpus;
  };
  const int usual = request.runs.value_or(default_runs(request.profile));
  std::vector<Workload> workloads;
  for (const DeviceFacts& device : devices) {
    const bool traced = is_gpu(device) ? request.trace_gpus : request.trace_host;
    for (Workload& workload : workloads_of(device, request.profile, filter)) {
      if (!has(device, workload.process_config)) continue;
      if (workload.runs == 0 || request.runs) workload.runs = usual;
      // The host's products have no kernels to tell apart: quick saves that time.
      const bool products = workload.process_config.family() == "matmul" ||
                            workload.process_config.family() == "convolution";
      const bool saved =
          request.profile == Profile::quick && !request.trace_all && !is_gpu(device) && products;
      if (traced && !saved) {
        std::ranges::copy(traced_twins(workload, request.observer_effect),
                          std::back_inserter(workloads));
      }
      workloads.push_back(std::move(workload));
    }
  }
  if (workloads.empty()) {
    std::set<std::string> names;
    for (const DeviceFacts& device : devices) {
      for (const Benchmark& benchmark : all_benchmarks()) {
        for (const CaseName& name : benchmark.cases(request.profile, device))
          names.insert(name.text());
      }
    }
    const std::string meant = filter_meant(request.filter, {names.begin(), names.end()});
    throw UsageError("no case passes --filter '{}'{} `launchgap list benchmarks` shows their names",
                     printable(request.filter, 200),
                     meant.empty() ? ":" : meant);
  }
  return make_plan(workloads, request.seed);
}

double record_bytes(const Plan& plan, Profile profile) {
  double bytes = 0;
  for (const PlannedRun* const run : plan.runs()) {
    bytes += 2000;
    for (const PlannedCase& planned : run->cases) {
      const CaseName name = CaseName::parse(planned.name);
      const Benchmark& benchmark = benchmark_of(name);
      const Sampling sampling = benchmark.sampling(profile, name);
      std::size_t columns = benchmark.metrics(name).size() + 1;
      if (run->arm == Arm::traced && run->process_config.trace_level() == TraceLevel::all)
        columns += traced_metrics(benchmark.traced_as(name), benchmark.metrics(name)).size();
      bytes += 1000.0 * sampling.blocks +
               6.0 * sampling.blocks * sampling.samples * static_cast<double>(columns);
    }
  }
  return bytes;
}

}  // namespace launchgap
