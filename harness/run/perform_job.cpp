#include "harness/run/perform_job.h"

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <unistd.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/device/device.h"
#include "harness/run/process.h"
#include "harness/trace/tracer.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

// One function for each task of job.h, which says what it does.

void perform(const job::Probe& job) {
  ProbeOptions options;
  options.index = job.index;
  options.found = [](int count) { report(message::Found{count}); };
  options.asking = [](const char* call) { report(message::Asking{call}); };
  report(message::Devices{probe_devices(job.backend, options)});
}

void perform(const job::Initialise& job) {
  const std::int64_t begin = now_ns();
  const std::unique_ptr<Device> device = open_device(job.backend, job.uuid);
  const double milliseconds = static_cast<double>(now_ns() - begin) * 1e-6;
  device->free_memory_bytes();  // a context that cannot even say that is of no use
  report(message::Initialised{milliseconds});
}

void perform(const job::WarmJitCache& job) {
  const std::unique_ptr<Device> device =
      open_device(job.backend, job.uuid, open_options(job.process_config, job.jit_cache));
  for (const KernelDescription* kernel : kernels::all_kernels()) {
    if (kernel->native_from > 0) continue;
    try {
      device->load(*kernel);
    } catch (const Unsupported&) {  // it is about a later generation
    }
  }
}

void perform(const job::FindTracing&) {
  report(message::TracingFound{why_no_cupti()});
}

void perform(const job::HoldDriverOpen& job) {
  probe_devices(job.backend);
  report(message::Kept{});
  for (;;) pause();
}

void perform(const job::Run& job) {
  measure(job);
}

}  // namespace

int run_job(const Json& json) {
  try {
    std::visit([](const auto& job) { perform(job); }, job_from_json(json));
    return 0;
  } catch (const std::exception& error) {
    report(message::Failed{error.what(), dynamic_cast<const WriteError*>(&error) != nullptr});
    if (process_is_traced()) std::_Exit(static_cast<int>(ExitCode::failed));
    return static_cast<int>(ExitCode::failed);
  }
}

OpenOptions open_options(const ProcessConfig& process_config,
                         const std::filesystem::path& jit_cache) {
  if (!process_config.unknown().empty())
    throw UsageError("there is no setting '{}' of a process", process_config.unknown());
  OpenOptions options;
  options.wait = process_config.wait().value_or(options.wait);
  options.loading = process_config.loading().value_or(options.loading);
  options.code = process_config.code().value_or(options.code);
  options.jit_cache = jit_cache;
  return options;
}

}  // namespace launchgap
